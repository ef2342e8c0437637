"""`pyrnnx.score` in this process: bit for bit the layer alone; resumed, changed, broken and full runs."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from layers import random_layer
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
from pyrnnx import PyrnnxError, RecurrentOp
from pyrnnx.operator.conventions import OPENVINO_SEQUENCE
from pyrnnx.scoring.segments import speech_segments

ITEMS = sequences()
NAMED = named(ITEMS)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_npy(tmp_path / "in", ITEMS)


def run(model: Any, source: Path, sink: Path, **options: Any) -> Any:
    return pyrnnx.score(model, source, sink, **{"workers": 0, "memory": PART, **options})


@pytest.mark.parametrize("kind", READERS)
def test_results(kind: str, source: Path, tmp_path: Path) -> None:
    if kind != "npz":
        pytest.importorskip({"parquet": "pyarrow"}.get(kind, kind))
    layer, calls = lstm(), []
    report = run(layer, source, tmp_path / f"out.{kind}", progress=lambda done, total: calls.append((done, total)))
    assert (report.items, report.resumed, dict(report.skipped), report.workers) == (len(ITEMS), 0, {}, 0)
    assert report.parts > 2
    assert (report.batch, report.hidden) == (32, 0)
    assert calls[0] == (0, len(ITEMS))
    assert calls[-1] == (len(ITEMS), len(ITEMS))
    assert_equal(READERS[kind](tmp_path / f"out.{kind}"), expected(layer, NAMED))
    manifest = json.loads((tmp_path / f"out.{kind}" / "manifest.json").read_text())
    assert manifest["complete"]
    assert [one["part"] for one in manifest["results"]] == list(range(report.parts))


@each_row("options", [{}, {"batch": 1}, {"batch": 3}, {"memory": "1MiB"}, {"cast": True}])
def test_options_do_not_change_results(options: Any, tmp_path: Path) -> None:
    items = [item.astype(np.float64) for item in ITEMS] if options.get("cast") else ITEMS
    layer = lstm(convention=OPENVINO_SEQUENCE)  # [N, T, I] in, [N, D, T, H] out
    run(layer, write_npy(tmp_path / "in", items), tmp_path / "out", **options)
    assert_equal(of_npz(tmp_path / "out"), expected(lstm(), NAMED))


def test_a_single_file(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(lstm(), source / "003.npy", tmp_path / "out", progress=True)
    assert "1/1 items" in capsys.readouterr().err
    assert_equal(of_npz(tmp_path / "out"), expected(lstm(), {"003.npy": ITEMS[3]}))


@each_row("tail", ["pad", "drop"])
@each_row("context", [0, 2, 5])
def test_frames_of_wav(tail: str, context: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    samples = {f"{index}.wav": rng.integers(-(2**15), 2**15, size) for index, size in enumerate((50, 7, 23, 1, 0, 4))}
    items = {}
    for name, values in samples.items():
        write_wav(tmp_path / "in" / name, values)
        whole = values[: len(values) // 4 * 4] if tail == "drop" else np.pad(values, (0, -len(values) % 4))
        padded = np.pad(whole, (context, 0)).astype(np.float32) / 2**15
        frames = [padded[start : start + context + 4] for start in range(0, len(whole), 4)]
        items[name] = np.reshape(frames, (-1, context + 4)).astype(np.float32)
    layer = lstm(context + 4)
    run(layer, tmp_path / "in", tmp_path / "out", frame=4, context=context, tail=tail)
    assert_equal(of_npz(tmp_path / "out"), expected(layer, items))


CHANNELS: dict[Any, Any] = {
    None: lambda samples: samples,
    "mean": lambda samples: samples.astype(np.float64).mean(1),
    0: lambda samples: samples[:, 0],
    "1": lambda samples: samples[:, 1],
}


@each_row("channels", CHANNELS)
def test_channels_of_wav(channels: Any, tmp_path: Path) -> None:
    samples = np.random.default_rng(0).integers(-(2**15), 2**15, (23, 2))
    write_wav(tmp_path / "in" / "a.wav", samples.ravel(), channels=2)
    size = 2 if channels is None else 1
    run(lstm(size), tmp_path / "in", tmp_path / "out", channels=channels)
    item = (CHANNELS[channels](samples) / 2**15).astype(np.float32).reshape(23, size)
    assert_equal(of_npz(tmp_path / "out"), expected(lstm(size), {"a.wav": item}))


def test_channels_are_named(tmp_path: Path) -> None:
    write_wav(tmp_path / "in" / "a.wav", np.arange(20), channels=2)
    words = r"item 'a.wav': .*channels='mean', --channels mean, mixes the 2 channels down; 0 takes the first"
    for options in ({}, {"frame": SIZE}):
        with pytest.raises(PyrnnxError, match=words):
            run(lstm(), tmp_path / "in", tmp_path / "out", **options)
    with pytest.raises(PyrnnxError, match=r"it has 2 channels; channels is 2, and counts from 0"):
        run(lstm(), tmp_path / "in", tmp_path / "out", frame=SIZE, channels=2)


@contextmanager
def small_files(size: int) -> Iterator[None]:
    """Files of this process of so many bytes at most."""
    resource = pytest.importorskip("resource")
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_no_room_for_a_part(source: Path, tmp_path: Path) -> None:
    """A half-written part is removed, as on a full disk."""
    with small_files(8_000), pytest.raises(PyrnnxError, match=r"part 0 cannot be written to .*File too large"):
        run(lstm(), source, tmp_path / "out", memory=60_000)
    assert not list((tmp_path / "out" / "parts").iterdir())
    assert not list((tmp_path / "out" / "tmp").iterdir())
    run(lstm(), source, tmp_path / "out", memory=60_000)
    assert_equal(of_npz(tmp_path / "out"), expected(lstm(), NAMED))


def test_segments(tmp_path: Path) -> None:
    """Segments come from an output of one number a frame, from all parts, also after the run is repeated."""
    layer, lines = random_layer(RecurrentOp("GRU", hidden_size=1), 40), ["name,start,end"]
    for name, size in (("a,b.wav", 90_010), ("c.wav", 100), ("d.wav", 40_000)):
        samples = np.cumsum(np.random.default_rng(size).integers(-800, 801, size)) % 2**16 - 2**15
        write_wav(tmp_path / "in" / name, samples)
        frames = np.pad(samples / 2**15, (0, -size % 40)).astype(np.float32).reshape(-1, 1, 40)
        for start, end in speech_segments(layer.run(frames)[0].ravel(), size, 40, 16_000, 0.2):
            lines.append(f"{name},{start / 16_000:.3f},{end / 16_000:.3f}".replace("a,b.wav", '"a,b.wav"'))
    assert len(lines) > 3
    for resumed in (0, 2):
        report = run(layer, tmp_path / "in", tmp_path / "out", frame=40, segments=0.2, memory=1_200_000)
        assert report.resumed == resumed
        assert (tmp_path / "out" / "segments.csv").read_text().splitlines() == lines
        assert "segments" not in json.loads((tmp_path / "out" / "manifest.json").read_text())["results"][0]


REJECTED: dict[str, tuple[dict[str, Any], str]] = {
    "workers": ({"workers": -1}, "workers is -1; expected an integer, 0 or above"),
    "batch": ({"batch": 0}, "batch is 0; expected an integer, 1 or above"),
    "memory": ({"memory": "much"}, "memory is 'much'; expected a number of bytes"),
    "too little memory": ({"memory": 100}, "more than 1/3 of memory=100; expected memory="),
    "cast": ({"cast": "yes"}, "cast is 'yes'; expected True or False"),
    "frame 0": ({"frame": 0}, "frame is 0"),
    "a frame beyond memory": (
        {"frame": 10**9},
        f"takes over 4000000000 bytes .*, more than 1/3 of memory={PART}; expected memory=12000000000 or above",
    ),
    "segments": ({"segments": 50}, "segments is 50; expected a threshold between 0 and 1"),
    "segments of arrays": ({"segments": 0.5}, "segments is 0.5, frame is None, and the source is npy; expected rec"),
    "context": ({"context": 3}, "context is 3 and frame is None"),
    "rate": ({"source_format": "audio", "rate": 0}, "rate is 0; expected an integer, 1 or above"),
    "rate of arrays": ({"rate": 16_000}, "rate is 16000, and the source is npy; expected a source of audio"),
    "channels": ({"source_format": "audio", "channels": "left"}, 'is .left.; expected "mean", or the index'),
    "channels of arrays": ({"channels": "mean"}, "channels is 'mean', and the source is npy"),
    "scheduler": ({"scheduler": "tcp://127.0.0.1:1"}, "workers 0; expected workers above 0"),
    "no address": ({"scheduler": "host", "workers": 1}, "scheduler is 'host'; expected an address, such as"),
    "a password": ({"scheduler": "tcp://u:secret@host:1", "workers": 1}, r"scheduler is 'tcp://\.\.\.'; expected"),
    "sink_format": ({"sink_format": "csv"}, "sink_format is 'csv'; expected one of zarr, parquet, npz"),
    "unknown suffix": ({"sink": "o2.csv"}, r"ends in '.csv'; expected a name that ends in .zarr, .parquet, .npz or"),
    "sink": ({"sink": 3}, "sink is of type int; expected a path"),
    "a file": ({"sink": "in/000.npy"}, "is no folder"),
    "a sink in the source": ({"sink": "in/out"}, "overlap"),
    "outputs": ({"outputs": ["Z"]}, "outputs has 'Z'; expected names out of Y, Y_h, Y_c"),
    "axes": ({"axes": "NTI"}, "axes is 'NTI'; expected None for a layer or stack"),
    "progress": ({"progress": 3}, "progress is 3"),
    "model": ({"model": 3}, "model has type int; expected a path"),
    "constants": ({"model": lstm(constants={"sequence_lens": [1, 2]})}, "has the constants sequence_lens"),
    "no source": ({"source": "gone", "axes": "NTI"}, "source 'gone' does not exist"),  # before other arguments
}


@each_row("name", REJECTED)
def test_rejected(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options, words = REJECTED[name]
    given: Any = {"model": lstm(), "source": "in", "sink": "out", "workers": 0, "memory": PART, **options}
    write_npy(tmp_path / "in", ITEMS)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PyrnnxError, match=words):
        pyrnnx.score(**given)
    assert not (tmp_path / "out").exists()


def test_an_interrupted_run(source: Path, tmp_path: Path) -> None:
    def progress(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match=r"1 of \d+ parts are finished"):
        run(lstm(), source, tmp_path / "out", progress=progress)
    assert run(lstm(), source, tmp_path / "out").resumed == 1


@pytest.mark.parametrize("package", ["distributed", "pyarrow", "zarr", "filelock", "soundfile"])
def test_packages_that_are_missing(package: str, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    options: dict[str, dict[str, Any]] = {
        "distributed": {"workers": 2},
        "pyarrow": {"sink_format": "parquet"},
        "zarr": {"sink_format": "zarr"},
        "filelock": {},
        "soundfile": {"source_format": "audio"},
    }
    with pytest.raises(PyrnnxError, match=f"needs the package {package}; .* adds it"):
        run(lstm(), source, tmp_path / "out", **options[package])
