"""Sources: every format lists and reads the same items; a broken item is reported with its reason."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rows import each_row
from scoring_data import sequences, write_npy, write_wav

from pyrnnx import PyrnnxError
from pyrnnx.scoring.conversion import Frames
from pyrnnx.scoring.sources import open_source
from pyrnnx.scoring.sources.items import Bad
from pyrnnx.testing.numbers import Array

ITEMS = sequences((4, 1, 0, 9, 4), size=3)


def _npz(folder: Path) -> None:
    folder.mkdir()
    np.savez(folder / "a.npz", *ITEMS[:2])
    np.savez_compressed(folder / "b.npz", *ITEMS[2:])


def _parquet(folder: Path, large: bool = False) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    folder.mkdir()
    inner = pa.list_(pa.float32())
    kind = pa.large_list(inner) if large else pa.list_(inner)
    for name, some in (("a", ITEMS[:3]), ("b", ITEMS[3:])):
        table = pa.table({"id": list(range(len(some))), "x": pa.array([one.tolist() for one in some], kind)})
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=2)


def _zarr_group(folder: Path) -> None:
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(str(folder), mode="w")
    for index, item in enumerate(ITEMS):
        group.create_array(f"item{index}", shape=item.shape, dtype=item.dtype, chunks=(2, 3))[...] = item


def _zarr_ragged(folder: Path) -> None:
    zarr = pytest.importorskip("zarr")
    values, offsets = np.concatenate(ITEMS), np.cumsum([0, *map(len, ITEMS)])
    group = zarr.open_group(str(folder), mode="w")
    group.create_array("values", shape=values.shape, dtype=values.dtype, chunks=(4, 3))[...] = values
    group.create_array("offsets", shape=offsets.shape, dtype=offsets.dtype, chunks=(2,))[...] = offsets


WRITERS: dict[str, Callable[[Path], Any]] = {
    "npy": lambda folder: write_npy(folder, ITEMS),
    "npz": _npz,
    "parquet": _parquet,
    "parquet, large lists": lambda folder: _parquet(folder, large=True),
    "zarr, a group of arrays": _zarr_group,
    "zarr, values and offsets": _zarr_ragged,
}


def _read(source: Any, places: Any) -> list[Array]:
    found = list(source.read(places))
    assert not [one for one in found if isinstance(one, Bad)]
    return found


@each_row("name", WRITERS)
def test_items(name: str, tmp_path: Path) -> None:
    WRITERS[name](tmp_path / "in")
    source = open_source(tmp_path / "in", None, None)
    items = source.items()
    assert items.lengths.tolist() == [len(one) for one in ITEMS]
    assert len(set(items.names)) == len(ITEMS)
    assert not items.bad
    for chosen in (range(5), (1, 3, 4), (3,)):
        found = _read(source, [items.places[i] for i in chosen])
        for i, array in zip(chosen, found, strict=True):
            np.testing.assert_array_equal(array, ITEMS[i].reshape(array.shape) if not len(array) else ITEMS[i])
            assert array.dtype == np.float32
    before = source.fingerprint()
    assert open_source(tmp_path / "in", None, None).fingerprint() == before


def test_an_array_of_zarr(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    values = np.random.default_rng(0).normal(size=(7, 4, 3)).astype(np.float32)
    zarr.open_array(str(tmp_path), mode="w", shape=values.shape, dtype=values.dtype, chunks=(2, 4, 3))[...] = values
    source = open_source(tmp_path, None, None)
    items = source.items()
    assert (list(items.names), items.lengths.tolist()) == (list("0123456"), [4] * 7)
    np.testing.assert_array_equal(_read(source, items.places), values)
    np.testing.assert_array_equal(_read(source, [items.places[i] for i in (1, 2, 5)]), values[[1, 2, 5]])


@each_row("width", [1, 2, 3, 4])
@each_row("channels", [1, 2])
def test_wav(width: int, channels: int, tmp_path: Path) -> None:
    highest = 2 ** (8 * width - 1)
    samples = np.array([0, 1, -1, highest - 1, -highest, highest // 2], np.int64)
    write_wav(tmp_path / "below" / "a.wav", samples + (128 if width == 1 else 0), width, channels)
    source = open_source(tmp_path, None, None)
    items = source.items()
    assert (list(items.names), items.lengths.tolist()) == (["below/a.wav"], [6 // channels])
    (found,) = _read(source, items.places)
    # Exact in float64, and rounded once.
    np.testing.assert_array_equal(found.ravel(), (samples / highest).astype(np.float32))
    assert found.shape == ((6,) if channels == 1 else (3, 2))


@each_row("name", ["a.flac", "a.ogg", "a.mp3", "float.wav", "double.wav"])
def test_recordings(name: str, tmp_path: Path) -> None:
    """Floats are as they are stored, also beyond 1; the others are near."""
    soundfile = pytest.importorskip("soundfile")
    samples = np.sin(np.arange(2_000) / 20) * (1.5 if "wav" in name else 0.5)
    subtype = {"float.wav": "FLOAT", "double.wav": "DOUBLE"}.get(name)
    soundfile.write(tmp_path / name, samples, 16_000, subtype=subtype)
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


def test_names_of_parquet(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    columns = {"name": ["one", None, "three"], "x": [[1.0], [2.0, 3.0], None], "other": [[1], [2], [3]]}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    items = open_source(tmp_path / "a.parquet", None, "x").items()
    assert (list(items.names), items.bad) == (["one", "a.parquet:1", "three"], {2: "null; expected a list"})
    with pytest.raises(PyrnnxError, match=r"column is None; .*'x', 'other'"):
        open_source(tmp_path / "a.parquet", None, None).items()


LISTS: dict[str, tuple[Any, str]] = {
    "nulls": ([[1.0, None]], "nulls in a list"),
    "texts": ([["a"]], "string in a list"),
    "lists of different lengths": ([[[1.0], [1.0, 2.0]]], "different lengths"),
}


@each_row("name", LISTS)
def test_bad_lists(name: str, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    rows, words = LISTS[name]
    pq.write_table(pa.table({"x": rows}), tmp_path / "a.parquet")
    source = open_source(tmp_path, None, None)
    (found,) = source.read(source.items().places)
    assert isinstance(found, Bad)
    assert words in found.reason


def _cut_wav(folder: Path) -> Any:
    write_wav(folder / "b.wav", np.arange(100))
    whole = (folder / "b.wav").read_bytes()
    (folder / "b.wav").write_bytes(whole[:150])


BROKEN: dict[str, Callable[[Path], Any]] = {
    "a.npy": lambda folder: (folder / "b.npy").write_bytes(b"no array"),
    "empty.npy": lambda folder: (folder / "b.npy").write_bytes(b""),
    "objects.npy": lambda folder: np.save(folder / "b.npy", np.array([{}], object), allow_pickle=True),
    "scalar.npy": lambda folder: np.save(folder / "b.npy", np.float32(3)),
    "a.npz": lambda folder: (folder / "b.npz").write_bytes(b"PK no archive"),
    "a.wav": lambda folder: (folder / "b.wav").write_bytes(b"RIFF"),
    "empty.wav": lambda folder: (folder / "b.wav").write_bytes(b""),
    "short.wav": _cut_wav,
    "a.parquet": lambda folder: (folder / "a.parquet").write_bytes(b"no"),
}


@each_row("name", BROKEN)
def test_broken_files(name: str, tmp_path: Path) -> None:
    if name == "a.parquet":
        pytest.importorskip("pyarrow")
    BROKEN[name](tmp_path)
    source = open_source(tmp_path, None, None)
    items = source.items()
    (found,) = [Bad(items.bad[0])] if items.bad else source.read(items.places)
    assert isinstance(found, Bad)
    assert found.reason


def test_a_changed_source_has_another_fingerprint(tmp_path: Path) -> None:
    write_npy(tmp_path, ITEMS)
    before = open_source(tmp_path, None, None).fingerprint()
    np.save(tmp_path / "new.npy", ITEMS[0])
    assert open_source(tmp_path, None, None).fingerprint() != before


REJECTED: dict[str, tuple[Callable[[Path], Any], tuple[Any, ...], str]] = {
    "nothing there": (lambda folder: None, ("missing", None, None), "does not exist"),
    "no path": (lambda folder: None, (3, None, None), "source is of type int; expected a path"),
    "a file": (lambda folder: (folder / "f").write_text(""), ("f", None, None), "is a file"),
    "nothing at all": (lambda folder: None, ("", None, None), "has no files; expected a zarr folder"),
    "nothing known": (lambda folder: (folder / "a.csv").touch(), ("", None, None), "no files of a known format"),
    "format": (lambda folder: None, ("", "mp3", None), "source_format is 'mp3'; expected one of zarr"),
    "two formats": (lambda folder: [write_npy(folder, ITEMS), _cut_wav(folder)], ("", None, None), "several"),
    "no such file": (lambda folder: (folder / "a.npy").touch(), ("", "audio", None), "no .wav, .flac, .*file; exp"),
    "column": (lambda folder: (folder / "a.npy").touch(), ("", None, "x"), "column is 'x', and the source is npy"),
    "no zarr": (lambda folder: (folder / "zarr.json").write_text("{"), ("", None, None), "as zarr"),
}  # fmt: skip

NEEDS = {"no zarr": "zarr"}


@each_row("name", REJECTED)
def test_rejected(name: str, tmp_path: Path) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    write, (path, *options), words = REJECTED[name]
    write(tmp_path)
    with pytest.raises(PyrnnxError, match=words):
        open_source(tmp_path / path if isinstance(path, str) else path, *options).items()


def test_offsets_that_fall(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(str(tmp_path), mode="w")
    group.create_array("values", shape=(4, 3), dtype="f4")
    group.create_array("offsets", shape=(3,), dtype="i8")[...] = [0, 3, 2]
    with pytest.raises(PyrnnxError, match="not ascending"):
        open_source(tmp_path, None, None).items()


@each_row("context", [0, 2, 5])
@each_row("length", [0, 1, 3, 7, 9])
def test_frames(length: int, context: int) -> None:
    frames, values = Frames(3, context), np.arange(1, length + 1, dtype=np.float32)
    found = frames.cut(values)
    assert found.shape == (int(frames.count(np.array([length]))[0]), context + 3)
    for index, frame in enumerate(found):
        for place, value in enumerate(frame):
            sample = index * 3 - context + place
            assert value == (values[sample] if 0 <= sample < length else 0)


def test_an_array_called_c_is_in_the_fingerprint(tmp_path: Path) -> None:
    """The folder of an array's chunks is called c, too, and is left out."""
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(str(tmp_path / "z"), mode="w")
    group.create_array("c", shape=(4, 3), dtype="f4", chunks=(2, 3))[...] = 1
    source = open_source(tmp_path / "z", None, None)
    assert sorted(source.files()) == [str(tmp_path / "z" / "c" / "zarr.json"), str(tmp_path / "z" / "zarr.json")]
    before = source.fingerprint()
    del group["c"]
    group.create_array("c", shape=(9, 3), dtype="f4", chunks=(2, 3))[...] = 1
    assert source.fingerprint() != before
