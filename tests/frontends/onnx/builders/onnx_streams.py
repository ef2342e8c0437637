"""ONNX models for streams: layers that begin inside them, or with inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx_models import make_model, simple_model

from pyrnnx.testing.cases import Case, make_arrays
from pyrnnx.testing.numbers import Array

N, I, H = 3, 4, 5


def layer(cell: str, k: int, layout: int, dtype: Any = np.float32, **attributes: Any) -> tuple[Any, dict[str, Array]]:
    """A node from x{k} to x{k+1}, without a direction axis behind it, and its weights."""
    case = Case("stream", cell, {}, ("B",), I=I if k == 0 else H, H=H)
    weights = {f"{name}{k}": a.astype(dtype) for name, a in make_arrays(case, seed=k).items() if name in "WRB"}
    nodes = [
        helper.make_node(
            cell, [f"x{k}", *weights], [f"Y{k}"], name=f"layer{k}", hidden_size=H, layout=layout, **attributes
        ),
        helper.make_node("Squeeze", [f"Y{k}", f"axis{k}"], [f"x{k + 1}"]),
    ]
    return nodes, weights | {f"axis{k}": np.array([2 if layout else 1])}


def stack(cells: Sequence[str], layout: int = 0, dtype: Any = np.float32) -> onnx.ModelProto:
    nodes: list[Any] = []
    constants: dict[str, Array] = {}
    for k, cell in enumerate(cells):
        made, weights = layer(cell, k, layout, dtype)
        nodes += made
        constants |= weights
    X = np.zeros((1, 1, I), dtype)
    return simple_model(nodes, {"x0": X}, [f"x{len(cells)}"], constants, 22, ir_version=10)


# The shape [1, N, H] of a state, of X and constants.
SHAPE = [
    helper.make_node("Shape", ["X"], ["shape"]),
    helper.make_node("Gather", ["shape", "one"], ["n"], axis=0),
    helper.make_node("Concat", ["d", "n", "size"], ["wanted"], axis=0),
]
CONSTANTS = {"one": np.array([1]), "d": np.array([1]), "size": np.array([H]), "zero": np.zeros(1, np.float32)}


def gru(h: str, made: tuple[list[Any], dict[str, Array]], lens: str = "", **attributes: Any) -> onnx.ModelProto:
    case = Case("begins", "GRU", {}, ("B",), I=I, H=H)
    weights = {name: a for name, a in make_arrays(case).items() if name in "WRB"}
    node = helper.make_node("GRU", ["X", "W", "R", "B", lens, h], ["Y"], name="gru", hidden_size=H, **attributes)
    X = np.zeros((1, N, I), np.float32)
    return simple_model([*made[0], node], {"X": X}, ["Y"], weights | CONSTANTS | made[1], 17)


def stepwise(optional: bool = False) -> onnx.ModelProto:
    """x, h, c -> LSTM -> y, hn, cn; with a default for h."""
    case = Case("step", "LSTM", {}, ("B", "initial_h", "initial_c"), I=I, H=H)
    weights = {name: a for name, a in make_arrays(case).items() if name in "WRB"}
    node = helper.make_node("LSTM", ["x", "W", "R", "B", "", "h", "c"], ["y", "hn", "cn"], name="lstm", hidden_size=H)
    element = onnx.TensorProto.FLOAT
    state: list[int | str | None] = [1, "N", H]
    graph = helper.make_graph(
        [node],
        "stepwise",
        [
            helper.make_tensor_value_info("x", element, [None, "N", I]),
            *(helper.make_tensor_value_info(name, element, state) for name in "hc"),
        ],
        [
            helper.make_tensor_value_info("y", element, None),
            *(helper.make_tensor_value_info(name, element, state) for name in ("hn", "cn")),
        ],
        [numpy_helper.from_array(a, name) for name, a in weights.items()],
    )
    if optional:
        graph.initializer.append(numpy_helper.from_array(np.full((1, N, H), 0.5, np.float32), "h"))
    return make_model(graph)
