"""Items that cannot be read: each is named, may be skipped, and never hangs, crashes or exhausts memory."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rows import each_row
from scoring_data import (
    PART,
    READERS,
    SIZE,
    assert_equal,
    expected,
    lstm,
    named,
    of_npz,
    sequences,
    write_npy,
    write_wav,
)

import pyrnnx
from pyrnnx import PyrnnxError

resource: Any = pytest.importorskip("resource")  # FIFOs and links are of POSIX, too
ITEMS = sequences((7, 3, 9))
NAMED = named(ITEMS)


def run(source: Path, **options: Any) -> Any:
    sink = source.parent / "out"
    return pyrnnx.score(lstm(), source, sink, **{"workers": 0, "memory": PART, **options})


def _head(path: Path, shape: tuple[int, ...], dtype: str = "<f4") -> None:
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"shape": shape, "fortran_order": False, "descr": dtype})


BAD: dict[str, tuple[Callable[[Path], Any], str]] = {
    "a FIFO": (os.mkfifo, "no regular file"),
    "a link to nothing": (lambda path: path.symlink_to("gone"), "No such file"),
    "no array": (lambda path: path.write_bytes(b"no array"), "magic"),
    "objects": (lambda path: np.save(path, np.array([{}], object), allow_pickle=True), "Python objects"),
    "a scalar": (lambda path: np.save(path, np.float32(3)), "without axes"),
    "another dtype": (lambda path: np.save(path, ITEMS[0].astype(np.float64)), "float64; expected float32.*cast=True"),
    "another shape": (lambda path: np.save(path, ITEMS[0][:, 1:]), r"shape \(7, 4\); expected \[T, 5\]"),
    "a head that lies": (lambda path: _head(path, (10**9, SIZE)), "0 bytes of values; its header declares 20000000000"),
    "steps without values": (lambda path: _head(path, (10**12, 0)), "bytes with its results, more than 1/3 of memory"),
    "more than int64": (lambda path: _head(path, (10**30, 0)), "expected at most"),
    "a head of an endless dtype": (lambda path: _head(path, (1, SIZE), "x" * 5000), r"it cannot be read \(.{,200}\)"),
    "too large": (
        lambda path: np.save(path, np.ones((900, SIZE), np.float32)),
        "bytes with its results, more than 1/3 of memory=12000",
    ),
}


@each_row(("name", "place"), [*((name, 2) for name in BAD), ("no array", 0)])
def test_bad_files(name: str, place: int, tmp_path: Path) -> None:
    source = write_npy(tmp_path / "in", ITEMS)
    spoil, words = BAD[name]
    bad = source / f"{place:03}.npy"
    bad.unlink()
    spoil(bad)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(PyrnnxError, match=rf"item '{bad.name}': .*{words}"):
        run(source)
    report = run(source, skip_errors=True)
    assert list(report.skipped) == [bad.name]
    assert_equal(of_npz(tmp_path / "out"), expected(lstm(), {k: v for k, v in NAMED.items() if k != bad.name}))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kB


def _parquet(path: Path, rows: Any) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"x": rows}), path)


def _altered(write: Callable[[Path], object], start: int, data: bytes, end: int | None = None) -> Any:
    """Return a function that writes a file with other bytes from `start` on, or cut off at `end`."""

    def write_altered(path: Path) -> None:
        write(path)
        contents = bytearray(path.read_bytes())
        contents[start : start + len(data)] = data
        path.write_bytes(contents[:end])

    return write_altered


def _wav(path: Path) -> None:
    write_wav(path, np.arange(99))


def _npz(path: Path) -> None:
    np.savez_compressed(path, x=np.ones((50, SIZE), np.float32))


LISTS = [item.tolist() for item in ITEMS]


def _lists(path: Path) -> None:
    _parquet(path, LISTS)


def _row(*values: Any) -> Callable[[Path], None]:
    return lambda path: _parquet(path, [list(values)])


# what writes sound files; what writes a bad one; the end of the bad item's name; the reason
CONTAINERS: dict[str, tuple[Callable[[Path], Any], Callable[[Path], Any], str, str]] = {
    "npz": (_npz, lambda path: path.write_bytes(b"PK no archive"), "", ""),
    "npz, compressed": (_npz, _altered(_npz, 60, bytes(40)), "/x", ""),
    "wav": (_wav, lambda path: path.write_bytes(b"RIFF"), "", "it is no recording that libsndfile reads"),
    "wav, cut off": (_wav, _altered(_wav, 0, b"", 150), "", "another number of samples than its header declares"),
    "wav, a head that lies": (_wav, _altered(_wav, 40, (4 * 10**8).to_bytes(4, "little")), "", "a whole recording"),
    "parquet, cut off": (_lists, _altered(_lists, 0, b"", 300), "", r"it cannot be read \(Parquet"),
    "parquet of nulls": (_lists, _row(1.0, None), ":0", "nulls in a list"),
    "parquet of texts": (_lists, _row("a"), ":0", "string in a"),
    "parquet of other lists": (_lists, _row([1.0], [1.0, 2.0]), ":0", "different le"),
}


@each_row("name", CONTAINERS)
def test_bad_containers(name: str, tmp_path: Path) -> None:
    """A bad file between sound ones."""
    write, spoil, end, words = CONTAINERS[name]
    suffix = name.partition(" ")[0].rstrip(",")
    (tmp_path / "in").mkdir()
    for letter in "ac":
        write(tmp_path / "in" / f"{letter}.{suffix}")
    spoil(tmp_path / "in" / f"b.{suffix}")
    options: dict[str, Any] = {"frame": SIZE} if suffix == "wav" else {"cast": True}
    with pytest.raises(PyrnnxError, match=rf"item 'b.{suffix}{end}': .*{words}"):
        run(tmp_path / "in", **options)
    report = run(tmp_path / "in", skip_errors=True, **options)
    assert list(report.skipped) == [f"b.{suffix}{end}"]
    assert report.items == 2 * (len(ITEMS) if suffix == "parquet" else 1)


def described(**values: Any) -> Callable[[Path], object]:
    return lambda path: path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


DESCRIPTIONS: dict[str, Callable[[Path], object]] = {
    "no JSON": lambda path: path.write_text("{"),
    "dtype": described(data_type="quux"),
    "negative": described(shape=[-3, SIZE]),
    "huge": described(shape=[10**30, SIZE]),
    "large": described(shape=[10**12, SIZE]),
}


@each_row("name", DESCRIPTIONS)
def test_a_broken_array_of_zarr(name: str, tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(str(tmp_path / "in"), mode="w")
    for key, item in zip("abc", ITEMS, strict=True):
        group.create_array(key, shape=item.shape, dtype=item.dtype, chunks=(4, SIZE))[...] = item
    DESCRIPTIONS[name](tmp_path / "in" / "b" / "zarr.json")
    with pytest.raises(PyrnnxError, match="item 'b': "):
        run(tmp_path / "in")
    report = run(tmp_path / "in", skip_errors=True)
    assert (list(report.skipped), report.items) == (["b"], 2)


@each_row("kind", READERS)
def test_names_that_are_not_unicode(kind: str, tmp_path: Path) -> None:
    if kind != "npz":
        pytest.importorskip({"parquet": "pyarrow"}.get(kind, kind))
    source = write_npy(tmp_path / "in", ITEMS)
    try:
        os.rename(os.fsencode(source / "000.npy"), os.fsencode(source) + b"/000\xff.npy")
    except OSError:
        pytest.skip("the file system has Unicode names alone")
    report = run(source, sink_format=kind)
    assert report.items == 3
    assert len(READERS[kind](tmp_path / "out")) == report.items


def test_a_folder_that_cannot_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its items would be left out in silence."""
    (tmp_path / "in" / "closed").mkdir(parents=True)
    write_npy(tmp_path / "in", sequences((3, 2)))
    scandir = os.scandir

    def refuse(path: Any) -> Any:
        if os.fspath(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", os.fspath(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(PyrnnxError, match=r"source '.*closed' cannot be read \(Permission denied\)"):
        run(tmp_path / "in")


def test_recordings_of_two_rates(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    _wav(tmp_path / "in" / "a.wav")
    _altered(_wav, 24, (8_000).to_bytes(4, "little"))(tmp_path / "in" / "b.wav")
    words = r"'a.wav' of 16000 samples per second and 'b.wav' of 8000; expected one sample rate, or rate, to which"
    with pytest.raises(PyrnnxError, match=words):
        run(tmp_path / "in", frame=SIZE)
    assert run(tmp_path / "in", frame=SIZE, rate=12_000).items == 2
