"""The folder of results: files of others are not touched, and only parts of the same run are reused."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scoring_data import PART, assert_equal, contents, expected, lstm, of_npz, sequences, write_npy

import pyrnnx
from pyrnnx import PyrnnxError

ITEMS = sequences()
NAMED = {f"{index:03}.npy": item for index, item in enumerate(ITEMS)}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_npy(tmp_path / "in", ITEMS)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def run(source: Path, model: Any = None, **options: Any) -> Any:
    sink = source.parent / "out"
    return pyrnnx.score(model or lstm(), source, sink, **{"workers": 0, "memory": PART, **options})


@pytest.mark.parametrize("after", [1, 2, 7, 8, 9])
def test_an_overwriting_run_that_is_killed(after: int, source: Path, out: Path, killed: Any) -> None:
    """No part of the model before is taken for one of the model after, wherever it ends."""
    run(source)
    before = json.loads((out / "manifest.json").read_text())["model"]
    calls = itertools.count(1)
    with killed(lambda name, path: next(calls) == after):
        run(source, lstm(seed=1), overwrite=True)
    taken = json.loads((out / "manifest.json").read_text())["model"] != before
    if not taken:
        with pytest.raises(PyrnnxError, match="the model: sha256"):
            run(source, lstm(seed=1))
    run(source, lstm(seed=1), overwrite=not taken)
    assert_equal(of_npz(out), expected(lstm(seed=1), NAMED))


def test_a_record_of_another_model(source: Path, out: Path, tmp_path: Path) -> None:
    run(source, lstm(seed=1))
    shutil.copytree(out, tmp_path / "other")
    run(source, overwrite=True)
    for name in ("parts/00001.npz", "done/00001.json"):
        shutil.copy(tmp_path / "other" / name, out / name)
    assert run(source).computed
    assert_equal(of_npz(out), expected(lstm(), NAMED))


FOREIGN = ["tmp/thesis.txt", "parts/thesis.txt", "done/thesis.txt", "lock", "thesis.txt", "parts/00000.npz"]


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("name", FOREIGN)
def test_files_of_others(name: str, overwrite: bool, source: Path, out: Path) -> None:
    path = out / name
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    with pytest.raises(PyrnnxError, match=rf"has '{name.partition('/')[0]}' but no manifest.json"):
        run(source, overwrite=overwrite)
    assert contents(out) == {name: b"mine"}


@pytest.mark.parametrize("name", FOREIGN[:5])
def test_files_of_others_beside_results(name: str, source: Path, out: Path) -> None:
    run(source)
    (out / name).write_text("mine")
    run(source, lstm(seed=1), overwrite=True)
    assert (out / name).read_text() == "mine"


def test_a_lock_that_is_a_link(source: Path, out: Path, tmp_path: Path) -> None:
    (tmp_path / "letter").write_text("mine")
    run(source)
    (out / "lock").unlink()
    (out / "lock").symlink_to(tmp_path / "letter")
    with pytest.raises(PyrnnxError, match="cannot be written to"):
        run(source)
    assert (tmp_path / "letter").read_text() == "mine"


def test_a_folder_that_a_run_only_began_with(source: Path, out: Path) -> None:
    (out / "tmp").mkdir(parents=True)
    (out / "lock").touch()
    (out / "tmp" / f"manifest.json.{'0' * 32}").write_text("{")
    assert run(source).items == len(ITEMS)
    assert not list((out / "tmp").iterdir())


def test_parts_outside_the_plan_are_removed(source: Path, out: Path) -> None:
    run(source)
    before = contents(out / "parts")
    shutil.copy(out / "parts" / "00001.npz", out / "parts" / "00099.npz")
    shutil.copy(out / "done" / "00001.json", out / "done" / "00099.json")
    run(source)
    assert contents(out / "parts") == before
    assert not (out / "done" / "00099.json").exists()


def edited(**values: Any) -> Callable[[Path], object]:
    def edit(path: Path) -> None:
        path.write_text(json.dumps({**json.loads(path.read_text()), **values}))

    return edit


RECORDS: dict[str, Callable[[Path], object]] = {
    "deep": lambda path: path.write_text("[" * 100_000),
    "list": lambda path: path.write_text("[]"),
    "more items": edited(items=999),
    "skipped list": edited(skipped=["a"]),
    "skipped of another part": edited(items=0, skipped={"x": "y"}),
    "another part": edited(part=0),
    "another division": edited(first=0),
    "no sha256": edited(sha256=None),
    "no run": edited(run=None),
    "no identity": edited(identity=None),
    "of another part": lambda path: [
        shutil.copy(path.parents[1] / one.replace("1", "0"), path.parents[1] / one)
        for one in ("parts/00001.npz", "done/00001.json")
    ],
}


@pytest.mark.parametrize("name", RECORDS)
def test_records_that_do_not_fit(name: str, source: Path, out: Path) -> None:
    parts = run(source).parts
    before = contents(out / "parts")
    RECORDS[name](out / "done" / "00001.json")
    assert run(source).resumed == parts - 1
    assert contents(out / "parts") == before
    manifest = json.loads((out / "manifest.json").read_text())
    assert [one["part"] for one in manifest["results"]] == list(range(parts))


def test_an_item_that_could_not_be_listed(source: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts begin elsewhere then, under the same fingerprint: a part with as many items is not taken for another."""
    from pyrnnx.scoring.sources import arrays

    real = arrays._shape_of_file

    def broken(storage: Any, path: str) -> Any:
        if path.endswith("002.npy"):
            raise OSError("no network")
        return real(storage, path)

    with monkeypatch.context() as patch:
        patch.setattr(arrays, "_shape_of_file", broken)
        assert list(run(source, skip_errors=True).skipped) == ["002.npy"]
    assert run(source, skip_errors=True).skipped == {}
    assert_equal(of_npz(out), expected(lstm(), NAMED))


def _as_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _as_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _as_link(path: Path) -> None:
    """To a copy of itself."""
    path.rename(path.with_suffix(".copy"))
    path.symlink_to(path.with_suffix(".copy"))


MANIFESTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "half": (lambda path: path.write_bytes(path.read_bytes()[:99]), "is no JSON"),
    "deep": (lambda path: path.write_text("[" * 100_000), "is no JSON"),
    "binary": (lambda path: path.write_bytes(b"\xff\xfe"), "is no JSON"),
    "digits": (lambda path: path.write_text('{"format": %s}' % ("1" * 10_000)), "is no"),
    "list": (lambda path: path.write_text("[1]"), "is a JSON list; expected an object"),
    "format": (edited(format=2), "is no manifest of format 1"),
    "options": (edited(options=None), "the options was None"),
    "folder": (_as_folder, "cannot be opened: it is a folder"),
    "FIFO": (_as_fifo, "cannot be opened: it is no regular file"),
    "link": (_as_link, "cannot be opened: it is a symbolic link"),
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_manifests_that_do_not_fit(name: str, source: Path, out: Path) -> None:
    run(source)
    spoil, words = MANIFESTS[name]
    spoil(out / "manifest.json")
    before = contents(out) if name != "FIFO" else {}
    with pytest.raises(PyrnnxError, match=words):
        run(source)
    assert name == "FIFO" or contents(out) == before


@pytest.mark.parametrize("spoil", [os.remove, lambda path: path.write_bytes(b"short")])
def test_a_part_that_is_lost_while_it_runs(spoil: Callable[[Path], object], source: Path, out: Path) -> None:
    def progress(done: int, total: int) -> None:
        if done == total:
            spoil(out / "parts" / "00000.npz")

    with pytest.raises(PyrnnxError, match=r"00000.npz.*the same call computes what is missing"):
        run(source, progress=progress)
    assert not json.loads((out / "manifest.json").read_text())["complete"]
    run(source)
    assert_equal(of_npz(out), expected(lstm(), NAMED))


def test_skipped_items_are_tried_again(source: Path, out: Path) -> None:
    gone = source / "011.npy"

    def progress(done: int, total: int) -> None:
        gone.rename(gone.with_suffix(".away")) if done == 0 else None

    assert list(run(source, skip_errors=True, progress=progress).skipped) == ["011.npy"]
    gone.with_suffix(".away").rename(gone)
    assert run(source, skip_errors=True).skipped == {}
    assert_equal(of_npz(out), expected(lstm(), NAMED))


def test_what_was_skipped_is_an_error_without_skip_errors(source: Path) -> None:
    np.save(source / "003.npy", np.ones((4, 2), np.float32))
    first = run(source, skip_errors=True)
    with pytest.raises(PyrnnxError, match=r"item '003.npy'"):
        run(source)
    assert run(source, skip_errors=True).resumed == first.parts - 1


@pytest.mark.parametrize("spoil", [_as_fifo, _as_folder, _as_link])
@pytest.mark.parametrize("name", ["parts/00001.npz", "done/00001.json"])
def test_what_is_no_regular_file(name: str, spoil: Callable[[Path], None], source: Path, out: Path) -> None:
    """A record or part that is a FIFO would be waited for, and what a link leads to may be another's."""
    first = run(source)
    before = (out / name).read_bytes()
    spoil(out / name)
    if spoil is _as_folder:
        with pytest.raises(PyrnnxError, match="cannot be written"):
            run(source)
        (out / name).rmdir()
    assert run(source).resumed == first.parts - 1
    assert stat.S_ISREG((out / name).lstat().st_mode)
    copy = (out / name).with_suffix(".copy")
    assert not copy.exists() or copy.read_bytes() == before
    assert_equal(of_npz_alone(out), expected(lstm(), NAMED))


def of_npz_alone(out: Path) -> Any:
    """Results, without copies beside the parts."""
    for path in (out / "parts").glob("*.copy"):
        path.unlink()
    return of_npz(out)


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("name", ["parts", "done", "tmp"])
def test_folders_that_are_links(name: str, overwrite: bool, source: Path, out: Path, tmp_path: Path) -> None:
    """The target of a link is neither changed nor removed."""
    run(source)
    (out / name).rename(tmp_path / "elsewhere")
    (out / name).symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "00077.npz").write_text("mine")
    before = contents(tmp_path / "elsewhere")
    with pytest.raises(PyrnnxError, match=f"'{name}' is a symbolic link; expected a folder"):
        run(source, lstm(seed=1), overwrite=overwrite)
    assert contents(tmp_path / "elsewhere") == before


def test_a_finished_run_starts_no_workers(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyrnnx.scoring import cluster

    parts = run(source).parts
    monkeypatch.setattr(cluster, "connected", lambda *arguments: pytest.fail("workers were started"))
    report = run(source, workers=2)
    assert (report.resumed, report.computed, report.workers) == (parts, 0, 0)
