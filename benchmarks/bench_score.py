"""Measure the scoring of a folder of recordings: sequences per second, memory, and the time of a restart.

Each way runs in a process of its own, alternating over several rounds, on the same cached files. With --stream, the
model is Silero VAD, which takes one frame and its state in a call. With --many, a source of very short items shows the
cost of their number.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from report import table

FRAME, HIDDEN, RATE = 512, 128, 16_000
SECONDS = (2, 20)  # of a recording
SMALL = 4_000_000  # bytes of memory for parts of one or two recordings
OUTPUT = "Y_h"
CONTEXT, STATE = 64, (2, 1, 128)  # of Silero


def make_data(folder: Path, count: int, *, stream: bool) -> None:
    """Write recordings of noise, and Silero VAD or an LSTM like its own over frames of 512 samples."""
    from pyrnnx import Layer, RecurrentOp
    from pyrnnx.frontends.onnx import write_model

    rng = np.random.default_rng(0)
    (folder / "in").mkdir()
    for index in range(count):
        samples = rng.integers(-8000, 8000, int(rng.uniform(*SECONDS) * RATE)).astype("<i2")
        with wave.open(str(folder / "in" / f"{index:05}.wav"), "wb") as file:
            file.setparams((1, 2, RATE, 0, "NONE", ""))
            file.writeframes(samples.tobytes())
    if stream:
        from models import published

        model = next(model for model in published(folder) if model.name == "silero_vad")
        (folder / "model.onnx").write_bytes(model.contents)
        return
    W, R = (rng.normal(0, 0.08, (1, 4 * HIDDEN, size)).astype(np.float32) for size in (FRAME, HIDDEN))
    write_model(Layer(RecurrentOp("LSTM", hidden_size=HIDDEN), W, R), folder / "model.onnx")


def plain_loop(folder: Path, threads: int) -> dict[str, Any]:
    """Run ONNX Runtime in the simplest loop: a call for each file, and all results in one file at the end."""
    import onnxruntime as ort

    from pyrnnx.scoring.sources.audio import read_audio

    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = ort.InferenceSession(str(folder / "model.onnx"), options)
    name, results = session.get_inputs()[0].name, {}
    files = sorted((folder / "in").iterdir())
    started, cpu = time.perf_counter(), time.process_time()
    for path in files:
        samples = read_audio(str(path))
        frames = np.zeros(-(-len(samples) // FRAME) * FRAME, np.float32)
        frames[: len(samples)] = samples
        feeds = {name: frames.reshape(-1, 1, FRAME)}
        for info in session.get_inputs()[1:]:
            feeds[info.name] = np.array([len(feeds[name])], np.int32)
        results[path.name] = session.run([OUTPUT], feeds)[0]
    with open(folder / "loop.npz", "wb") as file:
        np.savez(file, **results)
    return {"seconds": time.perf_counter() - started, "cpu": time.process_time() - cpu, "items": len(files)}


def stream_loop(folder: Path) -> dict[str, Any]:
    """Run ONNX Runtime as Silero's own client does: a call for each frame, with the state of the one before."""
    import onnxruntime as ort

    from pyrnnx.scoring.sources.audio import read_audio

    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = ort.InferenceSession(str(folder / "model.onnx"), options)
    files, results, rate = sorted((folder / "in").iterdir()), {}, np.array(RATE)
    started, cpu = time.perf_counter(), time.process_time()
    for path in files:
        samples = read_audio(str(path))
        padded = np.zeros((1, CONTEXT + -(-len(samples) // FRAME) * FRAME), np.float32)
        padded[0, CONTEXT : CONTEXT + len(samples)] = samples
        state, speech = np.zeros(STATE, np.float32), []
        for start in range(0, padded.shape[1] - CONTEXT, FRAME):
            frame = padded[:, start : start + CONTEXT + FRAME]
            probability, state = session.run(None, {"input": frame, "state": state, "sr": rate})
            speech.append(probability)
        results[path.name] = np.concatenate(speech)
    with open(folder / "loop.npz", "wb") as file:
        np.savez(file, **results)  # type: ignore[arg-type]  # names of files, not options
    return {"seconds": time.perf_counter() - started, "cpu": time.process_time() - cpu, "items": len(files)}


def streamed(folder: Path, workers: int, threads: int) -> dict[str, Any]:
    """Run `pyrnnx.score` frame by frame, and check its probabilities against the loop's."""
    options = {
        "stream": True,
        "context": CONTEXT,
        "rate": RATE,
        "inputs": {"sr": RATE},
        "outputs": ["output"],
        "batch": 32,
    }
    result = ours(folder, workers, threads, **options)
    with np.load(folder / "loop.npz") as expected:
        for path in (folder / "out" / "parts").iterdir():
            with np.load(path) as part:
                for name, speech in zip(
                    part["name"], np.split(part["output"], part["output.offsets"][1:-1]), strict=True
                ):
                    np.testing.assert_allclose(speech, expected[str(name)], rtol=0, atol=1e-4)
    return result


def ours(folder: Path, workers: int, threads: int, **options: Any) -> dict[str, Any]:
    """Run `pyrnnx.score`, then the same call again, for which all parts are finished."""
    import pyrnnx

    pyrnnx.set_num_threads(threads)
    sink = folder / "out"

    def score(**others: Any) -> Any:
        return pyrnnx.score(
            folder / "model.onnx",
            folder / "in",
            sink,
            **{"outputs": [OUTPUT], "frame": FRAME, "workers": workers, **options, **others},
        )

    started, cpu = time.perf_counter(), time.process_time()
    report = score(overwrite=sink.exists())
    whole, cpu = time.perf_counter() - started, time.process_time() - cpu
    started = time.perf_counter()
    again = score()
    restart = time.perf_counter() - started
    assert again.computed == 0
    records = json.loads((sink / "manifest.json").read_text())["results"]
    shares = {key: sum(record["seconds"][key] for record in records) for key in ("read", "compute", "write")}
    return {
        "seconds": report.seconds,
        "whole": whole,
        "cpu": cpu,
        "restart": restart,
        "items": report.items,
        "parts": report.parts,
        "shares": shares,
    }


WAYS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "ONNX Runtime, plain loop, 1 thread": lambda folder: plain_loop(folder, 1),
    "ONNX Runtime, plain loop, 2 threads": lambda folder: plain_loop(folder, 2),
    "pyrnnx, this process, 1 thread": lambda folder: ours(folder, 0, 1),
    "pyrnnx, this process, 2 threads": lambda folder: ours(folder, 0, 2),
    "pyrnnx, 1 worker of 1 thread": lambda folder: ours(folder, 1, 1),
    "pyrnnx, 2 workers of 1 thread": lambda folder: ours(folder, 2, 2),
    "pyrnnx, 1 worker, parts of one or two items": lambda folder: ours(folder, 1, 1, memory=SMALL),
    "pyrnnx, 2 workers, parts of one or two items": lambda folder: ours(folder, 2, 2, memory=SMALL),
}
STREAMS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "ONNX Runtime, loop over frames, 1 thread": stream_loop,
    "pyrnnx, this process, 1 thread": lambda folder: streamed(folder, 0, 1),
    "pyrnnx, 1 worker of 1 thread": lambda folder: streamed(folder, 1, 1),
    "pyrnnx, 2 workers of 1 thread": lambda folder: streamed(folder, 2, 2),
}


def run_one(way: str, folder: Path, *, stream: bool) -> None:
    """Print the result and the memory of one way as JSON, in a process of its own."""
    result = (STREAMS if stream else WAYS)[way](folder)
    for key, who in (("memory", resource.RUSAGE_SELF), ("workers_memory", resource.RUSAGE_CHILDREN)):
        result[key] = resource.getrusage(who).ru_maxrss * 1024
    print(json.dumps(result))


def listing(folder: Path) -> tuple[float, float]:
    """Return files listed per second, and bytes per item in the process that starts a run."""
    import tracemalloc

    from pyrnnx.scoring.sources import open_source

    source = open_source(folder / "in", None, None)
    started = time.perf_counter()
    count = len(source.items())
    seconds = time.perf_counter() - started
    tracemalloc.start()
    items = source.items()
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return count / seconds, taken / len(items)


def make_many(kind: str, folder: Path, count: int) -> None:
    """Write items of 1 to 7 steps of 5 values: a zarr group, a Parquet file of one row group, or .npy files."""
    rng = np.random.default_rng(0)
    offsets = np.cumsum([0, *rng.integers(1, 8, count)])
    values = rng.normal(size=(int(offsets[-1]), 5)).astype(np.float32)
    if kind == "zarr":
        import zarr

        group = zarr.open_group(str(folder), mode="w")
        group.create_array("values", shape=values.shape, dtype="f4", chunks=(100_000, 5))[...] = values
        group["offsets"] = offsets
        return
    folder.mkdir()
    if kind == "parquet":
        import pyarrow as pa
        import pyarrow.parquet

        steps = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), 5)
        column = pa.ListArray.from_arrays(offsets.astype(np.int32), steps)
        pyarrow.parquet.write_table(pa.table({"x": column}), folder / "x.parquet", row_group_size=2**20)
        return
    for index in range(count):
        parent = folder / f"{index // 1000:04}"
        parent.mkdir(exist_ok=True)
        np.save(parent / f"{index:07}.npy", values[offsets[index] : offsets[index + 1]])


def many(kind: str, folder: Path, count: int, workers: int) -> None:
    """Print what a run over many short items takes, and then the same call again."""
    import pyrnnx

    rng = np.random.default_rng(1)
    W, R = (rng.normal(0, 0.3, (2, 24, size)).astype(np.float32) for size in (5, 6))
    layer = pyrnnx.Layer(pyrnnx.RecurrentOp("LSTM", hidden_size=6, direction="bidirectional"), W, R)
    make_many(kind, folder / "in", count)
    cells = [kind, f"{count:,}"]
    for _ in range(2):
        started, cpu = time.perf_counter(), time.process_time()
        report = pyrnnx.score(layer, folder / "in", folder / "out", workers=workers)
        whole, cpu = time.perf_counter() - started, time.process_time() - cpu
        cells += [f"{whole:.1f}", f"{cpu:.1f}"]
        if not report.resumed:
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            cells += [f"{whole - report.seconds:.1f}", str(report.parts), f"{memory / 1e6:.0f}"]
    print(table(list(MANY), [cells]))


MANY = (
    "source", "items", "run, s", "processor, s", "of it start, s", "parts", "memory, MB", "again, s", "processor, s",
)  # fmt: skip


def dispatched(count: int = 500, ahead: int = 64) -> float:
    """Return the processor time per empty part of scheduler and client, which are this process."""
    from pyrnnx.scoring.packages import import_distributed
    from pyrnnx.scoring.parts import Part

    names = tuple(f"folder/recording{index:07}.wav" for index in range(240))
    dask = import_distributed()
    options: Any = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with dask.LocalCluster(**options) as cluster, dask.Client(cluster) as client:
        pending: set[Any] = set()
        number = 0
        with client.as_current():
            started = time.process_time()
            while pending or number < count:
                while number < count and len(pending) < ahead:
                    part = Part(number, 0, names, tuple((name,) for name in names), (300,) * len(names), {})
                    pending.add(client.submit(len, part.names, key=f"dispatched-{number}", pure=False))
                    number += 1
                done = dask.wait(pending, return_when="FIRST_COMPLETED").done
                for future in done:
                    future.result()
                pending -= done
            return (time.process_time() - started) / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--stream", action="store_true", help="measure Silero VAD, frame by frame")
    parser.add_argument("--workers", type=int, default=0, help="processes of --many; 0: this one")
    parser.add_argument("--many", choices=["zarr", "parquet", "npy"], help="measure many short items of this format")
    parser.add_argument("--one", choices=[*WAYS, *STREAMS], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        run_one(arguments.one, arguments.folder, stream=arguments.stream)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if arguments.many:
            many(arguments.many, folder, arguments.items, arguments.workers)
            return
        make_data(folder, arguments.items, stream=arguments.stream)
        size = sum(path.stat().st_size for path in (folder / "in").iterdir())
        ways = STREAMS if arguments.stream else WAYS
        results: dict[str, list[dict[str, Any]]] = {way: [] for way in ways}
        for _ in range(arguments.rounds):
            for way in ways:
                command = [sys.executable, __file__, "--one", way, "--folder", temporary]
                command += ["--stream"] * arguments.stream
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                results[way].append(json.loads(done.stdout))
        print(f"{arguments.items} recordings, {size / 1e6:.0f} MB; the best of {arguments.rounds} rounds\n")
        print(table(list(HEADINGS), [_row(way, runs, size) for way, runs in results.items()]))
        if arguments.stream:
            return
        rate, taken = listing(folder)
        print(f"\nlisted: {rate:,.0f} files a second; {taken:.0f} bytes an item in the process that starts the run")
        print(f"dispatched: {1000 * dispatched():.1f} ms of processor time a part")


HEADINGS = (
    "way", "sequences/s", "MB/s", "processor, ms a sequence", "read, %", "compute, %", "write, %", "other, ms a part",
    "parts", "start, s", "finished again, s", "memory, MB", "of a worker, MB",
)  # fmt: skip


def _row(way: str, runs: list[dict[str, Any]], size: int) -> list[str]:
    # The fastest round is the one that other processes disturbed least.
    best = min(runs, key=lambda run: run["seconds"])
    seconds = best["seconds"]
    cells = [way, f"{runs[0]['items'] / seconds:.0f}", f"{size / 1e6 / seconds:.0f}"]
    workers = max(1, 2 * ("2 workers" in way))
    own = min(run["cpu"] / run["items"] for run in runs)
    cells.append("" if "worker" in way else f"{1000 * own:.2f}")
    if "parts" not in runs[0]:
        cells += [""] * 7
    else:
        cells += [f"{100 * best['shares'][key] / seconds / workers:.0f}" for key in ("read", "compute", "write")]
        rest = (seconds * workers - sum(best["shares"].values())) / best["parts"]
        cells += [f"{1000 * rest:.1f}", str(best["parts"])]
        cells += [f"{min(run['whole'] - run['seconds'] for run in runs):.1f}"]
        cells += [f"{min(run['restart'] for run in runs):.1f}"]
    cells.append(f"{best['memory'] / 1e6:.0f}")
    cells.append(f"{best['workers_memory'] / 1e6:.0f}" if "worker" in way else "")
    return cells


if __name__ == "__main__":
    main()
