"""Models that differ in one point, which a verdict must not call the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from pyrnnx.testing.numbers import Array

I, H = 4, 5
_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
Shape = Sequence[str | int]


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, tuple[int, Shape]],
    outputs: Mapping[str, Shape],
    constants: Mapping[str, Any],
) -> onnx.ModelProto:
    """Return a model; `inputs` have element types and shapes, outputs are float32."""
    taken = [helper.make_tensor_value_info(name, *info) for name, info in inputs.items()]
    returned = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()]
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
    graph = helper.make_graph(list(nodes), "planted", taken, returned, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def weights(cell: str, directions: int = 1, seed: int = 0) -> dict[str, Array]:
    rng, size = np.random.default_rng(seed), _GATES[cell] * H
    shapes = {"W": (directions, size, I), "R": (directions, size, H), "B": (directions, 2 * size)}
    return {name: rng.uniform(-1, 1, shape).astype("f4") for name, shape in shapes.items()}


def one_layer(cell: str, direction: str = "forward", *, states: bool = False, lengths: bool = True) -> onnx.ModelProto:
    """Return a model of one layer, with sequence_lens and initial states if they are asked for."""
    inputs: dict[str, tuple[int, Shape]] = {"X": (1, ["T", "N", I])}
    if lengths:
        inputs["lens"] = (6, ["N"])
    given = ["X", "W", "R", "B", "lens" if lengths else ""]
    for name in ("initial_h", "initial_c")[: (1 + (cell == "LSTM")) * states]:
        inputs[name] = (1, [1, "N", H])
        given.append(name)
    node = helper.make_node(cell, given, ["Y", "Y_h"], name="layer", hidden_size=H, direction=direction)
    return model([node], inputs, {"Y": ["T", 1, "N", H], "Y_h": [1, "N", H]}, weights(cell))


def masked(factor: float) -> onnx.ModelProto:
    """Return a model that multiplies steps from the second on by a factor, and zeroes those beyond a row's length."""
    nodes = [
        helper.make_node("Shape", ["X"], ["steps"], start=0, end=1),
        helper.make_node("Squeeze", ["steps"], ["T_"]),
        helper.make_node("Range", ["zero", "T_", "one"], ["times"]),
        helper.make_node("Unsqueeze", ["times", "last"], ["column"]),
        helper.make_node("Less", ["column", "n"], ["valid"]),
        helper.make_node("Greater", ["column", "zero"], ["later"]),
        helper.make_node("Where", ["later", "factor", "unit"], ["factors"]),
        helper.make_node("Mul", ["X", "factors"], ["scaled"]),
        helper.make_node("Where", ["valid", "scaled", "nothing"], ["y"]),
    ]
    constants = {
        "zero": np.int64(0),
        "one": np.int64(1),
        "last": np.array([1]),
        "factor": np.float32(factor),
        "unit": np.float32(1),
        "nothing": np.float32(0),
    }
    return model(nodes, {"X": (1, ["T", "N"]), "n": (7, ["N"])}, {"y": ["T", "N"]}, constants)


def scanned(scale: float) -> onnx.ModelProto:
    """Return a model whose Scan of a cell of its own stops at each row's length."""
    body = helper.make_graph(
        [
            helper.make_node("Less", ["t", "n_"], ["valid"]),
            helper.make_node("Mul", ["h", "scale"], ["decayed"]),
            helper.make_node("Add", ["decayed", "x"], ["next"]),
            helper.make_node("Where", ["valid", "next", "h"], ["h_out"]),
            helper.make_node("Identity", ["n_"], ["n_out"]),
            helper.make_node("Identity", ["h_out"], ["y_t"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("n_", 7, ["N"]),
            helper.make_tensor_value_info("h", 1, ["N"]),
            helper.make_tensor_value_info("t", 7, []),
            helper.make_tensor_value_info("x", 1, ["N"]),
        ],
        [
            helper.make_tensor_value_info("n_out", 7, ["N"]),
            helper.make_tensor_value_info("h_out", 1, ["N"]),
            helper.make_tensor_value_info("y_t", 1, ["N"]),
        ],
        [numpy_helper.from_array(np.array(scale, "f4"), "scale")],
    )
    nodes = [
        helper.make_node("Shape", ["X"], ["steps"], start=0, end=1),
        helper.make_node("Squeeze", ["steps"], ["T_"]),
        helper.make_node("Range", ["zero", "T_", "one"], ["times"]),
        helper.make_node("Cast", ["n"], ["whole"], to=7),
        helper.make_node("Cast", ["n"], ["real"], to=1),
        helper.make_node("Mul", ["real", "none"], ["start"]),
        helper.make_node(
            "Scan", ["whole", "start", "times", "X"], ["n_last", "last", "y"], body=body, num_scan_inputs=2
        ),
    ]
    constants = {"zero": np.int64(0), "one": np.int64(1), "none": np.float32(0)}
    outputs: dict[str, Shape] = {"y": ["T", "N"], "last": ["N"]}
    return model(nodes, {"X": (1, ["T", "N"]), "n": (6, ["N"])}, outputs, constants)


def embedding(rows: int, changed: int | None = None) -> onnx.ModelProto:
    """Return a model that looks rows up in a table, of which one row may be changed."""
    table = np.random.default_rng(0).normal(size=(rows, 3)).astype("f4")
    if changed is not None:
        table[changed] += 1
    node = helper.make_node("Gather", ["table", "ids"], ["y"])
    return model([node], {"ids": (7, ["N", "T"])}, {"y": ["N", "T", 3]}, {"table": table})


def dropped(factor: float, steps: int = 8) -> onnx.ModelProto:
    """Return a model that drops its first steps."""
    nodes = [
        helper.make_node("Slice", ["X", "start", "end", "axis"], ["rest"]),
        helper.make_node("Mul", ["rest", "factor"], ["y"]),
    ]
    constants = {
        "start": np.array([steps]),
        "end": np.array([2**40]),
        "axis": np.array([1]),
        "factor": np.float32(factor),
    }
    return model(nodes, {"X": (1, ["N", "T", 2])}, {"y": ["N", "S", 2]}, constants)
