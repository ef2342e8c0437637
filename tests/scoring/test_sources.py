"""Sources: every format lists and reads the same items, from files and from objects of a store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rows import each_row
from scoring_data import sequences, write_npy, write_wav

from pyrnnx import PyrnnxError
from pyrnnx.scoring.sources import open_source
from pyrnnx.scoring.sources.base import Bad
from pyrnnx.testing.numbers import Array

ITEMS = sequences((4, 1, 0, 9, 4), size=3)
EQUAL = sequences((4,) * 5, size=3)


def _npz(folder: Path) -> None:
    folder.mkdir()
    np.savez(folder / "a.npz", *ITEMS[:2])
    np.savez_compressed(folder / "b.npz", *ITEMS[2:])


def _parquet(folder: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    folder.mkdir()
    kind = pa.large_list(pa.list_(pa.float32()))
    for name, some in (("a", ITEMS[:3]), ("b", ITEMS[3:])):
        table = pa.table({"id": list(range(len(some))), "x": pa.array([item.tolist() for item in some], kind)})
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=2)


def _zarr(folder: Path, **arrays: Any) -> None:
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(str(folder), mode="w")
    for name, array in arrays.items():
        group.create_array(name, shape=array.shape, dtype=array.dtype, chunks=(2, *array.shape[1:]))[...] = array


def _zarr_array(folder: Path) -> None:
    zarr = pytest.importorskip("zarr")
    zarr.open_array(str(folder), mode="w", shape=(5, 4, 3), dtype="f4", chunks=(2, 4, 3))[...] = np.stack(EQUAL)


RAGGED = {"values": np.concatenate(ITEMS), "offsets": np.cumsum([0, *map(len, ITEMS)])}
WRITERS: dict[str, Callable[[Path], Any]] = {
    "npy": lambda folder: write_npy(folder, ITEMS),
    "npz": _npz,
    "parquet": _parquet,
    "zarr, a group of arrays": lambda folder: _zarr(folder, **{f"a{i}": item for i, item in enumerate(ITEMS)}),
    "zarr, values and offsets": lambda folder: _zarr(folder, **RAGGED),
    "zarr, an array": _zarr_array,
}


def _read(source: Any, places: Any) -> list[Array]:
    found = list(source.read(places))
    assert not [item for item in found if isinstance(item, Bad)]
    return found


@each_row("name", WRITERS)
def test_items(name: str, tmp_path: Path) -> None:
    WRITERS[name](tmp_path / "in")
    system = pytest.importorskip("fsspec").filesystem("memory")
    system.put(f"{tmp_path / 'in'}/", "memory://items/", recursive=True)
    wanted = EQUAL if name == "zarr, an array" else ITEMS
    for path in (str(tmp_path / "in"), "memory://items"):
        source = open_source(path)
        items = source.items()
        assert items.lengths.tolist() == [len(item) for item in wanted]
        assert len(set(items.names)) == len(wanted)
        assert not items.bad
        for chosen in (range(5), (1, 3, 4), (3,)):
            for i, array in zip(chosen, _read(source, [items.places[i] for i in chosen]), strict=True):
                np.testing.assert_array_equal(array, wanted[i].reshape(array.shape) if not len(array) else wanted[i])
                assert array.dtype == np.float32
        assert open_source(path).versions() == source.versions()
    system.rm("memory://items", recursive=True)


def test_names_of_zarr(tmp_path: Path) -> None:
    """An array may be a link, whose description is compared too."""
    _zarr(tmp_path / "in", **RAGGED, names=np.arange(10, 15))
    (tmp_path / "in" / "names").rename(tmp_path / "names")
    (tmp_path / "in" / "names").symlink_to(tmp_path / "names")
    source = open_source(tmp_path / "in")
    assert list(source.items().names) == ["10", "11", "12", "13", "14"]
    assert source.versions()[str(tmp_path / "in" / "names" / "zarr.json")]


def test_names_and_columns_of_parquet(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    columns = {"name": ["one", None, "three"], "x": [[1.0], [2.0, 3.0], None], "other": [[1], [2], [3]]}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    items = open_source(tmp_path / "a.parquet", column="x").items()
    assert (list(items.names), items.bad) == (["one", "a.parquet:1", "three"], {2: "null; expected a list"})
    assert open_source(tmp_path).items().bad == {0: "column is None; expected a column of lists: 'x', 'other'"}
    pq.write_table(pa.Table.from_arrays([pa.array([[1.0]])] * 2, ["x"] * 2), tmp_path / "a.parquet")
    assert open_source(tmp_path, column="x").items().bad == {0: "column is 'x'; expected a column of lists: 'x', 'x'"}


@each_row("kind", [1, 2, 3, 4, np.float32, np.float64])
@each_row("channels", [1, 2, 3])
def test_wav(kind: Any, channels: int, tmp_path: Path) -> None:
    """Integers of 1 to 4 bytes, and floats of SciPy: exact in float64, and rounded once."""
    (tmp_path / "below").mkdir()
    path = tmp_path / "below" / "a.wav"
    if isinstance(kind, int):
        highest = 2 ** (8 * kind - 1)
        stored = np.array([0, 1, -1, highest - 1, -highest, highest // 2], np.int64)
        write_wav(path, stored + (128 if kind == 1 else 0), kind, channels)
        wanted = (stored / highest).astype(np.float32).reshape(-1, channels)
    else:
        wavfile = pytest.importorskip("scipy.io.wavfile")
        wanted = (1.5 * np.sin(np.arange(900))).astype(np.float32).reshape(-1, channels)
        wavfile.write(path, 16_000, wanted.astype(kind))
    source = open_source(tmp_path)
    items = source.items()
    assert (list(items.names), items.lengths.tolist()) == (["below/a.wav"], [len(wanted)])
    (found,) = _read(source, items.places)
    np.testing.assert_array_equal(found, wanted[:, 0] if channels == 1 else wanted)


@each_row("name", ["a.flac", "a.ogg", "a.mp3"])
def test_recordings(name: str, tmp_path: Path) -> None:
    soundfile = pytest.importorskip("soundfile")
    samples = np.sin(np.arange(2_000) / 20) / 2
    soundfile.write(tmp_path / name, samples, 16_000)
    source = open_source(tmp_path)
    items = source.items()
    (found,) = _read(source, items.places)
    assert found.dtype == np.float32
    assert len(found) == items.lengths[0]
    # Lossy formats of low rates are off by some hundredths.
    np.testing.assert_allclose(found[:2_000], samples, rtol=0, atol=0.1 if name in ("a.ogg", "a.mp3") else 1e-4)


@each_row("rate", [8_000, 22_050, 44_100, 48_000])
@each_row("length", [0, 1, 2, 7, 4_410])
def test_resampling(rate: int, length: int, tmp_path: Path) -> None:
    """A slow sine stays the same sine, and the listed length is the one that is read."""
    soundfile = pytest.importorskip("soundfile")
    pytest.importorskip("soxr")
    times = np.arange(length) / rate
    soundfile.write(tmp_path / "a.wav", np.stack([np.sin(400 * times)] * 2, 1), rate, subtype="FLOAT")
    for channels in (None, "mean", 0):
        source = open_source(tmp_path, channels=channels, rate=16_000)
        items = source.items()
        (found,) = _read(source, items.places)
        assert items.lengths.tolist() == [len(found)] == [int(length * 16_000 / rate + 0.5)]
        if length > 1_000:
            wanted = np.sin(400 * np.arange(len(found)) / 16_000)
            got = found if channels is not None else found[:, 1]
            np.testing.assert_allclose(got[200:-200], wanted[200:-200], rtol=0, atol=1e-3)


def test_hidden_files_are_counted(tmp_path: Path) -> None:
    write_npy(tmp_path, ITEMS)
    for name in (".a.npy", ".folder/a.npy", ".other"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    source = open_source(tmp_path)
    assert (len(source.items()), source.hidden) == (len(ITEMS), 2)


def test_files_of_zarr(tmp_path: Path) -> None:
    """Descriptions count. The folder of an array's chunks is called c, too, and is left out."""
    _zarr(tmp_path / "z", c=np.ones((4, 3)))
    source = open_source(tmp_path / "z")
    assert source.files() == [str(tmp_path / "z" / "c" / "zarr.json"), str(tmp_path / "z" / "zarr.json")]
    before = source.versions()
    _zarr(tmp_path / "z", c=np.ones((9, 3)))
    assert source.versions() != before


def _nothing(folder: Path) -> None:
    pass


def _files(*names: str) -> Callable[[Path], object]:
    return lambda folder: [(folder / name).write_text("{") for name in names]


def _ragged(**arrays: Any) -> Callable[[Path], None]:
    return lambda folder: _zarr(folder, **{**RAGGED, **arrays})


# Each writer of files, the arguments of `open_source`, and the error.
REJECTED: dict[str, tuple[Callable[[Path], object], dict[str, Any], str]] = {
    "nothing there": (_nothing, {"path": "missing"}, "does not exist"),
    "no path": (_nothing, {"path": 3}, "source is of type int; expected a path"),
    "a file": (_files("f"), {"path": "f"}, "is a file"),
    "nothing at all": (_nothing, {}, "has no files; expected a zarr folder"),
    "nothing known": (_files("a.csv"), {}, "no files of a known format"),
    "format": (_nothing, {"kind": "mp3"}, "source_format is 'mp3'; expected one of zarr"),
    "two formats": (_files("a.npy", "a.wav"), {}, "several"),
    "no such file": (_files("a.npy"), {"kind": "audio"}, "no .wav, .flac, .*file; exp"),
    "column": (_files("a.npy"), {"column": "x"}, "column is 'x', and the source is npy"),
    "no zarr": (_files("zarr.json"), {}, "as zarr"),
    "falling": (_ragged(offsets=np.array([3, 2])), {}, "not ascending"),
    "names": (_ragged(names=np.arange(1)), {}, 'has 1 "names" and 6 "offsets"'),
}


@each_row("name", REJECTED)
def test_rejected(name: str, tmp_path: Path) -> None:
    if name == "no zarr":
        pytest.importorskip("zarr")
    write, arguments, words = REJECTED[name]
    write(tmp_path)
    path = arguments.get("path", "")
    with pytest.raises(PyrnnxError, match=words):
        open_source(**{**arguments, "path": tmp_path / path if isinstance(path, str) else path}).items()
