"""ONNX models with Scan, Loop and If around recurrent operators, for OpenVINO to convert."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from layers import random_weights
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from pyrnnx import CANONICAL, RecurrentOp
from pyrnnx.operator.op import CellName

Array = NDArray[Any]
Made = tuple[onnx.ModelProto, list[Array]]
T, N, I, H = 5, 3, 4, 6
rng = np.random.default_rng(7)
X, H0 = (rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((T, N, I), (1, N, H)))


def tensors(cell: CellName) -> list[onnx.TensorProto]:
    weights = random_weights(RecurrentOp(cell, H), I, convention=CANONICAL, seed=cell)
    found = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    return [*found, numpy_helper.from_array(np.array([0]), "zero"), numpy_helper.from_array(np.array([1]), "one")]


def info(name: str, shape: Any = None, kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def step(x: str, h: str) -> list[onnx.NodeProto]:
    """A step of a GRU on x [N, I], with its state [1, N, H] after it in h_next, and that as y [N, H]."""
    return [
        helper.make_node("Unsqueeze", [x, "zero"], ["x3"]),
        helper.make_node("GRU", ["x3", "W", "R", "B", "", h], ["", "h_next"], hidden_size=H, name="inner"),
        helper.make_node("Squeeze", ["h_next", "zero"], ["y"]),
    ]


def whole(nodes: list[onnx.NodeProto], inputs: dict[str, Array], outputs: list[str]) -> Made:
    given = [info(name, a.shape, helper.np_dtype_to_tensor_dtype(a.dtype)) for name, a in inputs.items()]
    graph = helper.make_graph(nodes, "source", given, [info(name) for name in outputs], tensors("GRU"))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model, list(inputs.values())


def scan(*, reverse: bool = False) -> Made:
    body = helper.make_graph(
        step("x", "h"),
        "body",
        [info("h", [1, N, H]), info("x", [N, I])],
        [info("h_next", [1, N, H]), info("y", [N, H])],
    )
    node = helper.make_node(
        "Scan",
        ["H0", "X"],
        ["last", "Y"],
        body=body,
        num_scan_inputs=1,
        scan_input_directions=[int(reverse)],
        scan_output_directions=[int(reverse)],
        scan_output_axes=[1],
    )
    return whole([node], {"X": X, "H0": H0}, ["last", "Y"])


def loop() -> Made:
    """A Loop that ends when the sum of the states is large, or after the number of steps in an input."""
    nodes = [
        helper.make_node("Gather", ["X", "k"], ["x"], axis=0),
        *step("x", "h"),
        helper.make_node("ReduceSum", ["y"], ["sum"], keepdims=0),
        helper.make_node("Less", ["sum", "limit"], ["on"]),
    ]
    flag, counter = info("c", [], TensorProto.BOOL), info("k", [], TensorProto.INT64)
    body = helper.make_graph(
        nodes,
        "body",
        [counter, flag, info("h", [1, N, H])],
        [info("on", [], TensorProto.BOOL), info("h_next", [1, N, H]), info("y", [N, H])],
    )
    node = helper.make_node("Loop", ["M", "", "H0"], ["last", "Y"], body=body)
    given = {"X": X, "H0": H0, "M": np.array(T - 1), "limit": np.array(1e6, np.float32)}
    return whole([node], given, ["last", "Y"])


def choice(*, first: bool = True) -> Made:
    """A step of a GRU, or the state as it is."""
    passed = [helper.make_node("Identity", ["H0"], ["same"])]
    then = helper.make_graph(step("x", "H0"), "then", [], [info("h_next", [1, N, H])])
    other = helper.make_graph(passed, "else", [], [info("same", [1, N, H])])
    node = helper.make_node("If", ["c"], ["Y"], then_branch=then, else_branch=other)
    return whole([node], {"x": X[0], "H0": H0, "c": np.array(first)}, ["Y"])
