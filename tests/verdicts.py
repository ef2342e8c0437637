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
    element_type: int = TensorProto.FLOAT,
) -> onnx.ModelProto:
    """Return a model; `inputs` have element types and shapes, `element_type` is that of all outputs."""
    taken = [helper.make_tensor_value_info(name, *info) for name, info in inputs.items()]
    returned = [helper.make_tensor_value_info(name, element_type, shape) for name, shape in outputs.items()]
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


def near_zero(sign: float) -> onnx.ModelProto:
    """Return a model whose outputs are near 0 for every random input."""
    nodes = [
        helper.make_node("MatMul", ["X", "W"], ["product"]),
        helper.make_node("Sub", ["product", "shift"], ["sums"]),
        helper.make_node("Sigmoid", ["sums"], ["y"]),
    ]
    constants = {"W": np.full((4, 1), 0.1 * sign, "f4"), "shift": np.float32(18)}
    return model(nodes, {"X": (1, ["N", 4])}, {"y": ["N", 1]}, constants)


def hidden(change: float) -> onnx.ModelProto:
    """Return a model whose output hardly depends on its layer, one weight of which may be changed."""
    proto = one_layer("GRU", lengths=False)
    nodes = [
        helper.make_node("ReduceSum", ["Y"], ["sum"], keepdims=0),
        helper.make_node("Mul", ["sum", "little"], ["term"]),
        helper.make_node("Add", ["X", "term"], ["y"]),
    ]
    arrays = weights("GRU")
    arrays["W"][0, 0, 0] += np.float32(change)
    constants = {**arrays, "little": np.float32(1e-7)}
    return model([*proto.graph.node, *nodes], {"X": (1, ["T", "N", I])}, {"y": ["T", "N", I]}, constants)


def fixed(factor: float) -> onnx.ModelProto:
    """Return a model that accepts one number only, 7, as its second input."""
    nodes = [
        helper.make_node("Reshape", ["seven", "number"], ["reshaped"], allowzero=1),
        helper.make_node("ReduceSum", ["reshaped"], ["sum"], keepdims=0),
        helper.make_node("Mul", ["X", "sum"], ["y"]),
    ]
    constants = {"seven": np.full(7, factor, "f4")}
    return model(nodes, {"X": (1, ["N", 3]), "number": (7, [1])}, {"y": ["N", 3]}, constants)


def embedding(rows: int, changed: int | None = None) -> onnx.ModelProto:
    """Return a model that looks rows up in a table, of which one row may be changed."""
    table = np.random.default_rng(0).normal(size=(rows, 3)).astype("f4")
    if changed is not None:
        table[changed] += 1
    node = helper.make_node("Gather", ["table", "ids"], ["y"])
    return model([node], {"ids": (7, ["N", "T"])}, {"y": ["N", "T", 3]}, {"table": table})


def looked_up(operator: str, changed: int | None = None, rows: int = 50) -> onnx.ModelProto:
    """Return a model that looks rows up in a table, of which one row may be changed, after an operator."""
    table = np.random.default_rng(0).normal(size=(rows, 3)).astype("f4")
    if changed is not None:
        table[changed] += 1
    names = {"Add": ["ids", "one"], "Mod": ["ids", "rows"], "Transpose": ["turned"], "Cast": ["ids"]}[operator]
    is_table = operator == "Transpose"
    options: dict[str, Any] = {"to": 7} if operator == "Cast" else {}
    nodes = [
        helper.make_node(operator, names, ["table" if is_table else "index"], **options),
        helper.make_node("Gather", ["table", "ids" if is_table else "index"], ["y"]),
    ]
    constants: dict[str, Any] = {"turned": table.T.copy()} if is_table else {"table": table}
    constants |= {"one": np.int64(1), "rows": np.int64(rows)}
    kind = 1 if operator == "Cast" else 7
    return model(nodes, {"ids": (kind, ["N", "T"])}, {"y": ["N", "T", 3]}, constants)


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


def late(factor: float, steps: int = 9) -> onnx.ModelProto:
    """Return one layer in ONNX's layout, whose steps after the first are multiplied by a factor."""
    proto = one_layer("GRU", lengths=False)
    nodes = [
        helper.make_node("Slice", ["Y", "start", "middle"], ["first"]),
        helper.make_node("Slice", ["Y", "middle", "end"], ["rest"]),
        helper.make_node("Mul", ["rest", "factor"], ["product"]),
        helper.make_node("Concat", ["first", "product"], ["y"], axis=0),
    ]
    constants = {"start": [0], "middle": [steps], "end": [2**40], "factor": np.float32(factor)}
    return model(
        [*proto.graph.node, *nodes], {"X": (1, ["T", "N", I])}, {"y": ["T", 1, "N", H]}, {**weights("GRU"), **constants}
    )


def counted(number: int) -> onnx.ModelProto:
    """Return a model that adds a number to its whole inputs."""
    nodes = [helper.make_node("Cast", ["X"], ["whole"], to=7), helper.make_node("Add", ["whole", "number"], ["y"])]
    constants = {"number": np.int64(number)}
    return model(nodes, {"X": (1, ["N", "T"])}, {"y": ["N", "T"]}, constants, TensorProto.INT64)


def scaled(factor: float) -> onnx.ModelProto:
    """Return a model that scales the columns of its input very differently."""
    node = helper.make_node("Mul", ["X", "factors"], ["y"])
    factors = np.array([1e4, 1, factor], "f4")
    return model([node], {"X": (1, ["N", 3])}, {"y": ["N", 3]}, {"factors": factors})


def with_state(used: bool, steps: int = 4) -> onnx.ModelProto:
    """Return one layer whose initial state has a default, which it may ignore."""
    proto = one_layer("GRU", lengths=False)
    (node,) = proto.graph.node
    if used:
        node.input.append("state")
    inputs: dict[str, tuple[int, Shape]] = {"X": (1, [steps, 3, I]), "state": (1, [1, 3, H])}
    constants = {**weights("GRU"), "state": np.zeros((1, 3, H), "f4")}
    return model([node], inputs, {"Y": [steps, 1, 3, H]}, constants)


def flagged(factor: float) -> onnx.ModelProto:
    """Return a model that applies a factor if three whole inputs are all true."""
    names = ["first", "second", "third"]
    nodes = [helper.make_node("Cast", [name], [f"is_{name}"], to=9) for name in names]
    nodes += [
        helper.make_node("And", ["is_first", "is_second"], ["both"]),
        helper.make_node("And", ["both", "is_third"], ["all"]),
        helper.make_node("Where", ["all", "factor", "one"], ["by"]),
        helper.make_node("Mul", ["X", "by"], ["y"]),
    ]
    inputs: dict[str, tuple[int, Shape]] = {"X": (1, ["N"]), **{name: (7, []) for name in names}}
    return model(nodes, inputs, {"y": ["N"]}, {"factor": np.float32(factor), "one": np.float32(1)})


def in_mode(factor: float, mode: int = 5) -> onnx.ModelProto:
    """Return a model that applies a factor except in one mode, a whole number."""
    nodes = [
        helper.make_node("Sub", ["mode", "special"], ["difference"]),
        helper.make_node("Cast", ["difference"], ["is_other"], to=9),
        helper.make_node("Where", ["is_other", "one", "factor"], ["by"]),
        helper.make_node("Mul", ["X", "by"], ["y"]),
    ]
    constants = {"special": np.int64(mode), "one": np.float32(1), "factor": np.float32(factor)}
    return model(nodes, {"X": (1, ["N"]), "mode": (7, [])}, {"y": ["N"]}, constants)


def saturated(factor: float) -> onnx.ModelProto:
    """Return a model whose outputs are 0 and infinity."""
    nodes = [
        helper.make_node("Mul", ["X", "large"], ["scaled"]),
        helper.make_node("Exp", ["scaled"], ["power"]),
        helper.make_node("Mul", ["power", "factor"], ["y"]),
    ]
    return model(nodes, {"X": (1, ["N", 9])}, {"y": ["N", 9]}, {"large": np.float32(1e9), "factor": np.float32(factor)})
