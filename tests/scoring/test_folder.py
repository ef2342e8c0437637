"""The folder of results: only parts of the same run are reused, and files of others stay."""

from __future__ import annotations

import itertools
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rows import each_row
from scoring_data import PART, assert_equal, contents, expected, lstm, named, of_npz, sequences, write_npy

import pyrnnx
from pyrnnx import PyrnnxError

ITEMS = sequences()
NAMED = named(ITEMS)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_npy(tmp_path / "in", ITEMS)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def run(source: Path, model: Any = None, **options: Any) -> Any:
    sink = source.parent / "out"
    return pyrnnx.score(model or lstm(), source, sink, **{"workers": 0, "memory": PART, **options})


def finished_run(folder: Path) -> tuple[Path, Path]:
    """Return source and sink of a run."""
    source = write_npy(folder / "in", ITEMS)
    run(source)
    return source, folder / "out"


def manifest_of(out: Path) -> Any:
    return json.loads((out / "manifest.json").read_text())


def test_a_finished_run_computes_nothing(source: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does it start workers."""
    cluster = pytest.importorskip("pyrnnx.scoring.cluster")
    first = run(source)
    times = {path: path.stat().st_mtime_ns for path in (out / "parts").iterdir()}
    monkeypatch.setattr(cluster, "connected", lambda *arguments: pytest.fail("workers were started"))
    again = run(source, workers=2)
    assert (again.resumed, again.computed, again.items, again.rate) == (first.parts, 0, len(ITEMS), 0)
    assert again.workers == 0
    assert {path: path.stat().st_mtime_ns for path in (out / "parts").iterdir()} == times


@pytest.mark.parametrize("where", ["parts", "done"])
def test_a_killed_run(where: str, source: Path, out: Path, killed: Any) -> None:
    folder = out / where
    with killed(lambda name, path: name == "sync_folder" and path == folder and len(list(folder.iterdir())) == 2):
        run(source)
    assert run(source).resumed == (1 if where == "parts" else 2)
    assert_equal(of_npz(out), expected(lstm(), NAMED))


@pytest.mark.parametrize("after", [1, 2, 7, 8, 9])
def test_an_overwriting_run_that_is_killed(after: int, source: Path, out: Path, killed: Any) -> None:
    """No part of the model before is taken for one of the model after, wherever it ends."""
    run(source)
    before = manifest_of(out)["model"]
    calls = itertools.count(1)
    with killed(lambda name, path: next(calls) == after):
        run(source, lstm(seed=1), overwrite=True)
    taken = manifest_of(out)["model"] != before
    if not taken:
        with pytest.raises(PyrnnxError, match="the model: sha256"):
            run(source, lstm(seed=1))
    run(source, lstm(seed=1), overwrite=not taken)
    assert_equal(of_npz(out), expected(lstm(seed=1), NAMED))


def test_a_folder_that_a_run_only_began_with(source: Path, out: Path) -> None:
    (out / "tmp").mkdir(parents=True)
    (out / ".lock").touch()
    (out / "tmp" / f"manifest.json.{'0' * 32}").write_text("{")
    (out / "tmp" / "thesis.txt").write_text("mine")
    assert run(source).items == len(ITEMS)
    assert [path.name for path in (out / "tmp").iterdir()] == ["thesis.txt"]


CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "model": ({"model": lstm(seed=1)}, "the model: sha256"),
    "source": ({}, "the source: fingerprint"),
    "options": ({"batch": 5}, "the options: batch was 32 and is 5"),
    "memory": ({"memory": 2 * PART}, f"memory was {PART} and is {2 * PART}"),
}


@each_row("name", CHANGES)
def test_another_run(name: str, tmp_path: Path) -> None:
    options, words = CHANGES[name]
    source, out = finished_run(tmp_path)
    if name == "source":
        np.save(source / "004.npy", ITEMS[0])
    with pytest.raises(PyrnnxError, match=words):
        run(source, **options)
    assert run(source, overwrite=True, **options).resumed == 0
    assert len(of_npz(out)) == len(ITEMS)


def test_two_runs_at_once(source: Path) -> None:
    inner = []

    def progress(done: int, total: int) -> None:
        with pytest.raises(PyrnnxError, match="another process is writing") as raised:
            run(source)
        inner.append(raised)

    run(source, progress=progress)
    assert inner


@each_row("name", ["done/thesis.txt", "thesis.txt", "parts/00000.npz", "segments.csv"])
def test_files_of_others(name: str, tmp_path: Path) -> None:
    """Without a manifest, a folder that has any is not taken; an overwriting run removes none of them."""
    source, out = write_npy(tmp_path / "in", ITEMS), tmp_path / "out"
    path = out / name
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    for overwrite in (False, True):
        with pytest.raises(PyrnnxError, match=rf"has '{name.partition('/')[0]}' but no manifest.json"):
            run(source, overwrite=overwrite)
    assert contents(out) == {name: b"mine"}
    if path.name == "thesis.txt":
        shutil.rmtree(out)
        run(source)
        path.write_text("mine")
        run(source, lstm(seed=1), overwrite=True)
        assert path.read_text() == "mine"


def test_a_record_of_another_model(source: Path, out: Path, tmp_path: Path) -> None:
    run(source, lstm(seed=1))
    shutil.copytree(out, tmp_path / "other")
    run(source, overwrite=True)
    for name in ("parts/00001.npz", "done/00001.json"):
        shutil.copy(tmp_path / "other" / name, out / name)
    assert run(source).computed
    assert_equal(of_npz(out), expected(lstm(), NAMED))


Spoil = Callable[[Path], object]


def edited(**values: Any) -> Spoil:
    return lambda path: path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def replaced(make: Spoil) -> Spoil:
    def replace(path: Path) -> None:
        path.unlink()
        make(path)

    return replace


def _of_another_part(path: Path) -> None:
    for name in ("parts/00001.npz", "done/00001.json"):
        shutil.copy(path.parents[1] / name.replace("1", "0"), path.parents[1] / name)


PART_1, RECORD_1 = "parts/00001.npz", "done/00001.json"
SPOILED: dict[str, tuple[str, Spoil]] = {
    "no part": (PART_1, os.remove),
    "a shorter part": (PART_1, lambda path: path.write_bytes(path.read_bytes()[:-1])),
    "a FIFO as part": (PART_1, replaced(os.mkfifo)),
    "no JSON": (RECORD_1, lambda path: path.write_text("{")),
    "no identity": (RECORD_1, edited(identity=None)),
    "another part": (RECORD_1, _of_another_part),
    "a FIFO as record": (RECORD_1, replaced(os.mkfifo)),
}


@each_row("name", SPOILED)
def test_parts_that_are_computed_again(name: str, tmp_path: Path) -> None:
    source, out = finished_run(tmp_path)
    before = contents(out / "parts")
    path, spoil = SPOILED[name]
    spoil(out / path)
    for folder, suffix in (("parts", "npz"), ("done", "json")):  # outside of the plan
        shutil.copy(out / folder / f"00000.{suffix}", out / folder / f"00099.{suffix}")
    assert run(source).resumed == len(before) - 1
    assert contents(out / "parts") == before
    assert not (out / "done" / "00099.json").exists()
    assert [record["part"] for record in manifest_of(out)["results"]] == list(range(len(before)))


MANIFESTS: dict[str, tuple[Spoil, str]] = {
    "half": (lambda path: path.write_bytes(path.read_bytes()[:99]), "is no JSON"),
    "deep": (lambda path: path.write_text("[" * 100_000), "is no JSON"),
    "list": (lambda path: path.write_text("[1]"), "is a JSON list; expected an object"),
    "format": (edited(format=2), "is no manifest of format 1"),
    "options": (edited(options=None), "the options was None"),
    "FIFO": (replaced(os.mkfifo), "is no JSON file .it is no regular file"),
}


@each_row("name", MANIFESTS)
def test_manifests_that_do_not_fit(name: str, tmp_path: Path) -> None:
    source, out = finished_run(tmp_path)
    spoil, words = MANIFESTS[name]
    spoil(out / "manifest.json")
    before = contents(out)
    with pytest.raises(PyrnnxError, match=words):
        run(source)
    assert contents(out) == before


@pytest.mark.parametrize("spoil", [os.remove, lambda path: path.write_bytes(b"short")])
def test_a_part_that_is_lost_while_it_runs(spoil: Spoil, source: Path, out: Path) -> None:
    def progress(done: int, total: int) -> None:
        if done == total:
            spoil(out / "parts" / "00000.npz")

    with pytest.raises(PyrnnxError, match=r"00000.npz.*the same call computes what is missing"):
        run(source, progress=progress)
    assert not manifest_of(out)["complete"]
    run(source)
    assert_equal(of_npz(out), expected(lstm(), NAMED))


def test_skipped_items(source: Path, out: Path) -> None:
    """They are tried again, and an error without `skip_errors`."""
    gone, bad = source / "011.npy", source / "003.npy"
    np.save(bad, np.ones((4, 2), np.float32))

    def progress(done: int, total: int) -> None:
        gone.rename(gone.with_suffix(".away")) if done == 0 else None

    first = run(source, skip_errors=True, progress=progress)
    assert list(first.skipped) == [bad.name, gone.name]
    gone.with_suffix(".away").rename(gone)
    with pytest.raises(PyrnnxError, match=f"item '{bad.name}'"):
        run(source)
    again = run(source, skip_errors=True)
    assert (list(again.skipped), again.resumed) == ([bad.name], first.parts - 2)
    assert_equal(of_npz(out), expected(lstm(), {key: NAMED[key] for key in NAMED if key != bad.name}))


@pytest.mark.parametrize("when", ["before its part is read", "after its part is read"])
def test_a_recording_that_is_replaced(when: str, source: Path, out: Path) -> None:
    """By one of the same size: the run is not complete under the fingerprint of the recording before."""
    new, old = source.parent / "new.npy", source / "011.npy"
    np.save(new, -ITEMS[-1])

    def progress(done: int, total: int) -> None:
        if new.exists() and done == (total if when.startswith("after") else 0):
            os.replace(new, old)

    with pytest.raises(PyrnnxError, match=rf"file '.*{old.name}' has changed since it was listed"):
        run(source, progress=progress)
    assert not manifest_of(out)["complete"]


def test_a_zarr_array_that_is_described_anew(tmp_path: Path) -> None:
    """The fingerprint of zarr contains only the descriptions."""
    zarr = pytest.importorskip("zarr")
    array = zarr.open_array(str(tmp_path / "in"), mode="w", shape=(3, 4, 5), dtype="f4", chunks=(1, 4, 5))
    array[...] = 1

    def progress(done: int, total: int) -> None:
        if done == total:
            array.attrs["changed"] = True

    with pytest.raises(PyrnnxError, match="has changed since it was listed"):
        run(tmp_path / "in", progress=progress)
