"""Measure the scoring of a folder of recordings: sequences per second, and the time of a restart.

Each way runs in a process of its own, alternating over several rounds, on the same cached files. With --stream, the
model is Silero VAD, which takes one frame and its state in a call.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import wave
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from bench_models import published
from report import table, versions

import pyrnnx
from pyrnnx import Layer, RecurrentOp
from pyrnnx.frontends.onnx import write_model

FRAME, HIDDEN, RATE = 512, 128, 16_000
SECONDS = (2, 20)  # of a recording
SMALL = 4_000_000  # bytes of memory for parts of one or two recordings
OUTPUT = "Y_h"
CONTEXT, STATE = 64, (2, 1, 128)  # of Silero
STREAM = {"stream": True, "context": CONTEXT, "rate": RATE, "inputs": {"sr": RATE}, "outputs": ["output"], "batch": 32}


def make_data(folder: Path, count: int, *, stream: bool) -> None:
    """Write recordings of noise, and Silero VAD or an LSTM like its own over frames of 512 samples."""
    rng = np.random.default_rng(0)
    (folder / "in").mkdir()
    for index in range(count):
        samples = rng.integers(-8000, 8000, int(rng.uniform(*SECONDS) * RATE)).astype("<i2")
        with wave.open(str(folder / "in" / f"{index:05}.wav"), "wb") as file:
            file.setparams((1, 2, RATE, 0, "NONE", ""))
            file.writeframes(samples.tobytes())
    if stream:
        (folder / "model.onnx").write_bytes(next(published(folder)).path.read_bytes())
        return
    W, R = (rng.normal(0, 0.08, (1, 4 * HIDDEN, size)).astype(np.float32) for size in (FRAME, HIDDEN))
    write_model(Layer(RecurrentOp("LSTM", hidden_size=HIDDEN), W, R), folder / "model.onnx")


def recordings(folder: Path) -> Iterator[tuple[str, Any]]:
    """Yield names and samples, completed with zeros to whole frames."""
    for path in sorted((folder / "in").iterdir()):
        with wave.open(str(path)) as file:
            samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
        padded = np.zeros(-(-len(samples) // FRAME) * FRAME, np.float32)
        padded[: len(samples)] = samples / np.float32(32768)
        yield path.name, padded


def whole(session: Any, samples: Any) -> Any:
    """Return the last state of one call over all frames."""
    frames = samples.reshape(-1, 1, FRAME)
    feeds = {info.name: np.array([len(frames)], np.int32) for info in session.get_inputs()[1:]}
    return session.run([OUTPUT], {session.get_inputs()[0].name: frames, **feeds})[0]


def frame_by_frame(session: Any, samples: Any) -> Any:
    """Return probabilities as Silero's own client does: a call for each frame, with the state of the one before."""
    padded, state, speech = np.pad(samples, (CONTEXT, 0))[np.newaxis], np.zeros(STATE, np.float32), []
    for start in range(0, len(samples), FRAME):
        feeds = {"input": padded[:, start : start + CONTEXT + FRAME], "state": state, "sr": np.array(RATE)}
        probability, state = session.run(None, feeds)
        speech.append(probability)
    return np.concatenate(speech)


def loop(threads: int, folder: Path, stream: bool) -> dict[str, Any]:
    """Run ONNX Runtime in the simplest loop over the files, with all results in one file at the end."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = ort.InferenceSession(str(folder / "model.onnx"), options)
    started, cpu = time.perf_counter(), time.process_time()
    run = frame_by_frame if stream else whole
    results = {name: run(session, samples) for name, samples in recordings(folder)}
    with open(folder / "loop.npz", "wb") as file:
        np.savez(file, **results)
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "cpu": time.process_time() - cpu, "items": len(results)}


def score(workers: int, threads: int, folder: Path, stream: bool, **options: Any) -> dict[str, Any]:
    """Run `pyrnnx.score`, then the same call again, for which all parts are finished."""
    pyrnnx.set_num_threads(threads)
    options = {"outputs": [OUTPUT], "frame": FRAME, "workers": workers, **(STREAM if stream else {}), **options}
    run = partial(pyrnnx.score, folder / "model.onnx", folder / "in", folder / "out", **options)
    started, cpu = time.perf_counter(), time.process_time()
    report = run(overwrite=(folder / "out").exists())
    whole, cpu = time.perf_counter() - started, time.process_time() - cpu
    started = time.perf_counter()
    again = run()
    restart = time.perf_counter() - started
    assert again.computed == 0
    if stream:
        check_streams(folder)
    records = json.loads((folder / "out" / "manifest.json").read_text())["results"]
    shares = {key: sum(record["seconds"][key] for record in records) for key in ("read", "compute", "write")}
    return {
        "seconds": report.seconds,
        "start": whole - report.seconds,
        "cpu": cpu,
        "restart": restart,
        "items": report.items,
        "parts": report.parts,
        "shares": {key: share / report.seconds / max(1, workers) for key, share in shares.items()},
    }


def check_streams(folder: Path) -> None:
    """Check the probabilities against the loop's."""
    with np.load(folder / "loop.npz") as expected:
        for path in (folder / "out" / "parts").iterdir():
            with np.load(path) as part:
                pieces = np.split(part["output"], part["output.offsets"][1:-1])
                for name, speech in zip(part["name"], pieces, strict=True):
                    np.testing.assert_allclose(speech, expected[str(name)], rtol=0, atol=1e-4)


WAYS: dict[str, Callable[[Path, bool], dict[str, Any]]] = {
    "ONNX Runtime, loop, 1 thread": partial(loop, 1),
    "ONNX Runtime, loop, 2 threads": partial(loop, 2),
    "pyrnnx, this process, 1 thread": partial(score, 0, 1),
    "pyrnnx, this process, 2 threads": partial(score, 0, 2),
    "pyrnnx, 1 worker of 1 thread": partial(score, 1, 1),
    "pyrnnx, 2 workers of 1 thread": partial(score, 2, 2),
    "pyrnnx, 1 worker, parts of one or two items": partial(score, 1, 1, memory=SMALL),
    "pyrnnx, 2 workers, parts of one or two items": partial(score, 2, 2, memory=SMALL),
}
HEADINGS = (
    "way", "sequences/s", "MB/s", "processor, ms a sequence", "read, %", "compute, %", "write, %", "parts", "start, s",
    "finished again, s",
)  # fmt: skip


def row_of(way: str, runs: list[dict[str, Any]], size: int) -> list[str]:
    # The fastest round is the one that other processes disturbed least.
    best = min(runs, key=lambda run: run["seconds"])
    rates = [best["items"] / best["seconds"], size / 1e6 / best["seconds"]]
    own = min(run["cpu"] / run["items"] for run in runs)
    cells = [way, *(f"{rate:.0f}" for rate in rates), "" if "worker" in way else f"{1000 * own:.2f}"]
    if "parts" not in best:
        return cells + [""] * (len(HEADINGS) - len(cells))
    cells += [f"{100 * best['shares'][key]:.0f}" for key in ("read", "compute", "write")]
    least = [min(run[key] for run in runs) for key in ("start", "restart")]
    return [*cells, str(best["parts"]), *(f"{seconds:.1f}" for seconds in least)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--stream", action="store_true", help="measure Silero VAD, frame by frame")
    parser.add_argument("--one", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(WAYS[arguments.one](arguments.folder, arguments.stream)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        make_data(folder, arguments.items, stream=arguments.stream)
        size = sum(path.stat().st_size for path in (folder / "in").iterdir())
        results: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
        for _ in range(arguments.rounds):
            for way in WAYS:
                command = [sys.executable, __file__, *sys.argv[1:], "--one", way, "--folder", temporary]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                results[way].append(json.loads(done.stdout.splitlines()[-1]))
        print(versions())
        print(f"\n{arguments.items} recordings, {size / 1e6:.0f} MB; the best of {arguments.rounds} rounds\n")
        print(table(HEADINGS, [row_of(way, runs, size) for way, runs in results.items()]))


if __name__ == "__main__":
    main()
