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
from scoring_data import PART, READERS, SIZE, assert_equal, expected, lstm, of_npz, sequences, write_npy, write_wav

import pyrnnx
from pyrnnx import PyrnnxError

resource: Any = pytest.importorskip("resource")  # FIFOs and links are of POSIX, too
ITEMS = sequences((7, 3, 9))
NAMED = {f"{index:03}.npy": item for index, item in enumerate(ITEMS)}


def run(source: Path, **options: Any) -> Any:
    sink = source.parent / "out"
    return pyrnnx.score(lstm(), source, sink, **{"workers": 0, "memory": PART, **options})


def _head(path: Path, shape: tuple[int, ...], dtype: str = "<f4") -> None:
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"shape": shape, "fortran_order": False, "descr": dtype})


def _broken_zip(path: Path) -> None:
    np.savez_compressed(path.with_suffix(".npz"), np.ones((50, SIZE), np.float32))
    contents = bytearray(path.with_suffix(".npz").read_bytes())
    path.with_suffix(".npz").unlink()
    path.write_bytes(contents[:60] + bytes(40) + contents[100:])


BAD: dict[str, tuple[Callable[[Path], Any], str]] = {
    "a FIFO": (os.mkfifo, "no regular file"),
    "a device": (lambda path: path.symlink_to("/dev/zero"), "no regular file"),
    "a link to nothing": (lambda path: path.symlink_to("gone"), "No such file"),
    "a head that lies": (lambda path: _head(path, (10**9, SIZE)), "0 bytes of values; its header declares 20000000000"),
    "steps without values": (lambda path: _head(path, (10**12, 0)), "bytes with its results, more than 1/3 of memory"),
    "more than int64": (lambda path: _head(path, (10**30, 0)), "expected at most"),
    "a head of no Python": (lambda path: path.write_bytes(b"\x93NUMPY\x01\x00\x10\x00{'descr': (((((("), ""),
    "a head of an endless dtype": (lambda path: _head(path, (1, SIZE), "x" * 5000), r"it cannot be read \(.{,200}\)"),
    "a sparse file": (
        lambda path: np.lib.format.open_memmap(path, "w+", np.float32, (10**8, SIZE)).flush(),
        "bytes with its results, more than 1/3 of memory",
    ),
    "a zip": (_broken_zip, ""),
}


@each_row("name", BAD)
def test_bad_files(name: str, tmp_path: Path) -> None:
    source = write_npy(tmp_path / "in", ITEMS)
    spoil, words = BAD[name]
    (source / "000.npy").unlink()
    spoil(source / "000.npy")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(PyrnnxError, match=rf"item '000.npy': .*{words}"):
        run(source)
    report = run(source, skip_errors=True)
    assert list(report.skipped) == ["000.npy"]
    assert_equal(of_npz(tmp_path / "out"), expected(lstm(), {k: v for k, v in NAMED.items() if k != "000.npy"}))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kB


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


def _parquet(path: Path, names: list[str] | None = None, columns: int = 1) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    lists = pa.array([one.tolist() for one in ITEMS], pa.list_(pa.list_(pa.float32())))
    path.parent.mkdir(exist_ok=True)
    arrays = [lists] * columns + ([pa.array(names)] if names else [])
    pq.write_table(pa.Table.from_arrays(arrays, ["x"] * columns + (["name"] if names else [])), path)


@each_row("cut", [0, 300])
def test_one_broken_parquet_file(cut: int, tmp_path: Path) -> None:
    for name in "abc":
        _parquet(tmp_path / "in" / f"{name}.parquet")
    broken = tmp_path / "in" / "b.parquet"
    broken.write_bytes(broken.read_bytes()[:cut])
    with pytest.raises(PyrnnxError, match=r"item 'b.parquet': it cannot be read as Parquet"):
        run(tmp_path / "in")
    report = run(tmp_path / "in", skip_errors=True)
    assert list(report.skipped) == ["b.parquet"]
    assert report.items == 2 * len(ITEMS)


def test_two_parquet_columns_of_one_name(tmp_path: Path) -> None:
    _parquet(tmp_path / "in" / "a.parquet", columns=2)
    for column in (None, "x"):
        with pytest.raises(PyrnnxError, match=r"two columns 'x'; expected one"):
            run(tmp_path / "in", column=column)


DESCRIPTIONS = {
    "no JSON": lambda path: path.write_text("{"),
    "list": lambda path: path.write_text("[]"),
    "dtype": lambda path: path.write_text(path.read_text().replace("float32", "quux")),
    "negative": lambda path: path.write_text(json.dumps({**json.loads(path.read_text()), "shape": [-3, SIZE]})),
    "huge": lambda path: path.write_text(json.dumps({**json.loads(path.read_text()), "shape": [10**30, SIZE]})),
    "large": lambda path: path.write_text(json.dumps({**json.loads(path.read_text()), "shape": [10**12, SIZE]})),
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


WAVS: dict[str, tuple[int, bytes, dict[str, Any], str]] = {  # bytes of a head that are replaced, options, what is wrong
    "40 bits": (34, (40).to_bytes(2, "little"), {}, "it is no recording that libsndfile reads .*unimplemented format"),
    "a head that lies": (
        40,
        (400_000_000).to_bytes(4, "little"),
        {},
        "it has another number of samples than its header declares; expected a whole recording",
    ),
}


def write_wavs(folder: Path, start: int, data: bytes) -> Path:
    """Write a.wav, and b.wav with other bytes in its head."""
    for name in ("a.wav", "b.wav"):
        write_wav(folder / name, np.arange(99))
    contents = bytearray((folder / "b.wav").read_bytes())
    contents[start : start + len(data)] = data
    (folder / "b.wav").write_bytes(contents)
    return folder


@each_row("name", WAVS)
def test_bad_recordings(name: str, tmp_path: Path) -> None:
    start, data, options, words = WAVS[name]
    source = write_wavs(tmp_path / "in", start, data)
    with pytest.raises(PyrnnxError, match=f"item 'b.wav': .*{words}"):
        run(source, frame=SIZE, **options)
    assert list(run(source, frame=SIZE, skip_errors=True, **options).skipped) == ["b.wav"]


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
        pyrnnx.score(lstm(), tmp_path / "in", tmp_path / "out", workers=0)


def test_recordings_of_two_rates(tmp_path: Path) -> None:
    source = write_wavs(tmp_path / "in", 24, (8_000).to_bytes(4, "little"))
    words = r"'a.wav' of 16000 samples per second and 'b.wav' of 8000; expected one sample rate, or rate, to which"
    with pytest.raises(PyrnnxError, match=words):
        run(source, frame=SIZE)
    assert run(source, frame=SIZE, rate=12_000).items == 2


REJECTED: dict[str, tuple[dict[str, Any], str]] = {
    "frame": ({"frame": 10**30}, "frame is 1000.*; expected an integer from 1 to 2147483647"),
    "context": ({"frame": 2, "context": 10**15}, "context is 10000"),
    "a frame beyond memory": (
        {"frame": 10**9},
        f"a frame takes 4000000000 bytes, more than 1/3 of memory={PART}; expected memory=12000000000 or above",
    ),
    "source_format": ({"source_format": []}, r"source_format is \[\]"),
    "column": ({"column": []}, r"column is \[\]"),
    "sink": ({"sink": "a\0b"}, "sink is .*; expected a path"),
    "a long sink": ({"sink": "x" * 300}, "File name too long"),
    "rate": ({"rate": 0}, "rate is 0; expected an integer, 1 or above"),
    "rate of arrays": ({"rate": 16_000}, "rate is 16000, and the source is npy; expected a source of audio"),
    "channels": (
        {"channels": "left"},
        'channels is \'left\'; expected "mean", "first", or the index of a channel from 0',
    ),
    "channels of arrays": ({"channels": "mean"}, "channels is 'mean', and the source is npy"),
    "unknown suffix": ({"sink": "o2.csv"}, r"ends in '.csv'; expected a name that ends in .zarr, .parquet, .npz or"),
    "source": ({"source": "a\0b"}, "source is .*; expected a path"),
}


@each_row("name", REJECTED)
def test_rejected(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options, words = REJECTED[name]
    source = write_npy(tmp_path / "in", ITEMS)
    given = {"source": source, "sink": "out", "workers": 0, "memory": PART, **options}
    with pytest.raises(PyrnnxError, match=words):
        pyrnnx.score(lstm(), **given)
