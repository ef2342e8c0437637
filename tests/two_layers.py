"""An ONNX model of two recurrent layers with a Squeeze between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
H, I = 5, 4


def two_layers(
    cell: str, *, activations: Sequence[str] = (), lengths: bool = False, static: bool = False, bias: float = 0.0
) -> onnx.ModelProto:
    """X [T, N, 4], and lens [N] with `lengths`, to Y [T, 1, N, 5] and Y_h; the layers are "first" and "second".

    The activations are those of the second layer, whose biases are `bias`.
    """
    rng, G = np.random.default_rng(0), GATES[cell]
    shapes = {"W": (1, G * H, I), "R": (1, G * H, H), "B": (1, 2 * G * H), "W2": (1, G * H, H), "R2": (1, G * H, H)}
    arrays: dict[str, Any] = {name: rng.uniform(-0.5, 0.5, shape).astype("f4") for name, shape in shapes.items()}
    arrays |= {"B2": np.full((1, 2 * G * H), bias, "f4"), "axis": np.array([1])}
    lens = ["lens"] if lengths else []
    attributes: dict[str, Any] = {"activations": list(activations)} if activations else {}
    nodes = [
        helper.make_node(cell, ["X", "W", "R", "B", *lens], ["Y1"], name="first", hidden_size=H),
        helper.make_node("Squeeze", ["Y1", "axis"], ["rows"]),
        helper.make_node(
            cell, ["rows", "W2", "R2", "B2", *lens], ["Y", "Y_h"], name="second", hidden_size=H, **attributes
        ),
    ]
    T, N = (6, 3) if static else ("T", "N")
    inputs = [helper.make_tensor_value_info("X", 1, [T, N, I])]
    if lengths:
        inputs.append(helper.make_tensor_value_info("lens", 6, [N]))
    outputs = [helper.make_tensor_value_info("Y", 1, [T, 1, N, H]), helper.make_tensor_value_info("Y_h", 1, [1, N, H])]
    held = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    graph = helper.make_graph(nodes, "two layers", inputs, outputs, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
