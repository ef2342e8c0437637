"""Compare the time of com.microsoft DynamicQuantizeLSTM with ONNX Runtime, one thread, as a Markdown table.

The time is the least processor time of the calling thread over many alternating calls, so other processes hardly count.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from report import table
from versions import versions

import pyrnnx
from pyrnnx.bench.timing import geometric_mean, milliseconds
from pyrnnx.bench.workload import Array
from pyrnnx.frontends.onnx import read_model

SHAPES = ((1, 1, 384, 384), (50, 1, 128, 128), (50, 1, 384, 384), (100, 8, 128, 128), (25, 32, 512, 512))
INPUTS = ("X", "W", "R", "B", "", "", "", "", "W_scale", "W_zero_point", "R_scale", "R_zero_point")
OUTPUTS = ("Y", "Y_h", "Y_c")
LIMIT = 1e-3  # of the mean difference: a state near a tie, rounded to different codes, moves some values by 1e-2


def make_model(I: int, H: int, per_channel: bool, directions: int) -> bytes:
    """Build a model with int8 weights and zero points of 0, as ONNX Runtime's quantize_dynamic does."""
    rng, factors = np.random.default_rng(0), (directions, 4 * H) if per_channel else (directions,)
    weights: dict[str, Array] = {"B": rng.normal(0, 0.3, (directions, 8 * H)).astype(np.float32)}
    for name, depth in (("W", I), ("R", H)):
        weights[name] = rng.integers(-127, 128, (directions, depth, 4 * H)).astype(np.int8)
        weights[f"{name}_scale"] = (rng.uniform(0.5, 1, factors) / 127 / H**0.5).astype(np.float32)
        weights[f"{name}_zero_point"] = np.zeros(factors, np.int8)
    direction = "bidirectional" if directions == 2 else "forward"
    attributes: dict[str, Any] = {"domain": "com.microsoft", "hidden_size": H, "direction": direction}
    node = helper.make_node("DynamicQuantizeLSTM", INPUTS, OUTPUTS, **attributes)
    X = helper.make_tensor_value_info("X", TensorProto.FLOAT, (None, None, I))
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in OUTPUTS]
    initializers = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph([node], "quantized", [X], results, initializers)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    return model


def least_times(calls: Mapping[str, Callable[[], Any]], seconds: float) -> dict[str, float]:
    least = dict.fromkeys(calls, float("inf"))
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for name, call in calls.items():
            for _ in range(3):
                start = time.thread_time()
                call()
                least[name] = min(least[name], time.thread_time() - start)
    return least


def run_case(shape: Sequence[int], per_channel: bool, directions: int, seconds: float) -> tuple[float, float, float]:
    """Return the times of pyrnnx and ONNX Runtime, and the mean difference of Y."""
    T, N, I, H = shape
    model = make_model(I, H, per_channel, directions)
    X = np.random.default_rng(1).normal(0.2, 1, (T, N, I)).astype(np.float32)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    (layer,) = read_model(onnx.load_from_string(model)).layers.values()
    assert isinstance(layer, pyrnnx.Layer)
    calls: dict[str, Callable[[], Any]] = {"pyrnnx": lambda: layer(X), "peer": lambda: session.run(None, {"X": X})}
    results = [call()[0] for call in calls.values()]
    difference = float(np.abs(results[0] - results[1]).mean())
    if not difference < LIMIT:
        raise SystemExit(f"{shape}: the results differ by {difference:.0e} on average")
    least = least_times(calls, seconds)
    return least["pyrnnx"], least["peer"], difference


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directions", type=int, choices=[1, 2], default=1)
    parser.add_argument("--seconds", type=float, default=3.0, help="seconds for each row")
    arguments = parser.parse_args()
    pyrnnx.set_num_threads(1)
    for name, version in versions().items():
        print(f"- {name}: {version}")
    rows, ratios = [], []
    for shape in SHAPES:
        for per_channel in (False, True):
            ours, theirs, difference = run_case(shape, per_channel, arguments.directions, arguments.seconds)
            sizes, weights = ",".join(map(str, shape)), "channel" if per_channel else "tensor"
            ratios.append(theirs / ours)
            rows.append(
                [sizes, weights, milliseconds(ours), milliseconds(theirs), f"{ratios[-1]:.2f}", f"{difference:.0e}"]
            )
    header = ["T,N,I,H", "scale for each", "pyrnnx ms", "ONNX Runtime ms", "ratio", "mean difference of Y"]
    print(f"\n### DynamicQuantizeLSTM, directions = {arguments.directions}\n")
    print(table(header, rows))
    print(f"\nratio: geometric mean {geometric_mean(ratios):.2f}, lowest {min(ratios):.2f}.")


if __name__ == "__main__":
    main()
