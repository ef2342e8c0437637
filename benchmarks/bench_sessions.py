"""Compare sessions of ONNX Runtime and pyrnnx.onnxruntime on ONNX models: time of a call, of loading, and results.

    python benchmarks/bench_sessions.py --threads 1 MODEL.onnx ...

Each model is called with five random inputs, then timed in turns in one process. The 20 % quantile of times is shown.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

from pyrnnx import set_num_threads
from pyrnnx.onnxruntime import InferenceSession

SIZE = 20  # of dynamic dimensions, except the first
ROUNDS, SECONDS, PAUSE = 20, 0.015, 0.05


def random_inputs(path: Path, seed: int) -> dict[str, Any]:
    """Return arrays for inputs without a default; Silero's rate is 16000, and its frames have 576 samples."""
    generator, graph = np.random.default_rng(seed), onnx.load(path, load_external_data=False).graph
    defaults = {tensor.name for tensor in graph.initializer}
    inputs = {}
    for info in graph.input:
        if info.name in defaults:
            continue
        sizes = [axis.dim_value for axis in info.type.tensor_type.shape.dim]
        is_state = info.name in ("state", "h", "c")
        shape = [size if size > 0 else 1 if k == 0 or is_state else SIZE for k, size in enumerate(sizes)]
        if info.name == "input" and "silero" in str(path) and shape == [1, SIZE]:
            shape = [1, 576]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
        values = generator.integers(0, 5, shape) if dtype.kind in "iu" else 0.3 * generator.normal(size=shape)
        inputs[info.name] = np.array(16000 if info.name == "sr" else values, dtype)
    return inputs


def seconds_of(call: Callable[[], Any]) -> float:
    """Return seconds of one call, the mean over `SECONDS`."""
    begin, count = time.perf_counter(), 0
    while time.perf_counter() - begin < SECONDS:
        call()
        count += 1
    return (time.perf_counter() - begin) / count


def compare(path: Path, threads: int) -> float:
    """Print a row; return the ratio of ONNX Runtime's time to pyrnnx's."""
    sessions, loading = {}, {}
    for name, cls in (("onnxruntime", onnxruntime.InferenceSession), ("pyrnnx", InferenceSession)):
        options, begin = onnxruntime.SessionOptions(), time.perf_counter()
        options.intra_op_num_threads = threads
        sessions[name] = cls(str(path), options, providers=["CPUExecutionProvider"])
        loading[name] = time.perf_counter() - begin
    difference = 0.0
    for seed in range(5):
        inputs = random_inputs(path, seed)
        theirs, ours = (session.run(None, inputs) for session in sessions.values())
        for a, b in zip(theirs, ours, strict=True):
            difference = max(difference, float(np.abs(a - b).max() / max(1, np.abs(a).max())))
    times: dict[str, list[float]] = {name: [] for name in sessions}
    for _ in range(ROUNDS):
        for name in random.sample(list(sessions), 2):
            if threads > 1:  # wait until the other session's threads stop spinning
                time.sleep(PAUSE)
            times[name].append(seconds_of(lambda name=name: sessions[name].run(None, inputs)))  # type: ignore[misc]
    a, b = (float(np.quantile(values, 0.2)) for values in times.values())
    loads = " and ".join(f"{1e3 * seconds:.0f}" for seconds in loading.values())
    layers = len(sessions["pyrnnx"].layers)
    print(
        f"{path.name:32} {layers:2} layers  {1e3 * a:8.3f} ms, ours {1e3 * b:8.3f}: {a / b:.2f}  "
        f"difference {difference:.0e}  loading {loads} ms",
        flush=True,
    )
    return a / b


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("models", nargs="+", type=Path)
    arguments = parser.parse_args()
    set_num_threads(arguments.threads)
    onnxruntime.set_default_logger_severity(4)
    ratios = [compare(path, arguments.threads) for path in arguments.models]
    mean = float(np.exp(np.mean(np.log(ratios))))
    print(f"{arguments.threads} threads: mean {mean:.2f}, lowest {min(ratios):.2f}, of {len(ratios)} models")


if __name__ == "__main__":
    main()
