"""Small ONNX models that take one frame of each row and their states, and the error of a batch of eight."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

FRAME, CONTEXT, HIDDEN = 4, 2, 3
SIZE = CONTEXT + FRAME
DIFFERS, ONE_ROW = "in a batch of", "expected 1"
_RNG = np.random.default_rng(3)


def _weights(*shape: int) -> Any:
    return _RNG.uniform(-0.6, 0.6, shape).astype(np.float32)


CONSTANTS = {
    "W": _weights(1, 3 * HIDDEN, SIZE),
    "R": _weights(1, 3 * HIDDEN, HIDDEN),
    "A": _weights(SIZE, HIDDEN),
    "U": _weights(HIDDEN, HIDDEN),
    "C1": _weights(2, 1, 4),  # of stride 2: windows of whole blocks
    "C2": _weights(HIDDEN, 2, 3),
    "c": _weights(HIDDEN),
    "zero": np.array([0]),
    "one": np.array([1]),
    "zero0": np.array(0),
    "one0": np.array(1),
    "rate": np.array(16_000),
    "flat": np.array([0, -1]),
}
GRU = (
    "F = Unsqueeze (frame, zero) Y, state_out = GRU <hidden_size = 3> (F, W, R, , , state) "
    "y = Squeeze (state_out, zero)"
)
CELL = "a = MatMul (frame, A) b = MatMul (state, U) s = Add (a, b) state_out = Tanh (s)"


class Graph(NamedTuple):
    """Model of a push, and how score runs it.

    Attributes
    ----------
    inputs : str
        Declarations of "frame", of "state" and of others.
    nodes : str
    error : str
        Words of the error of a batch; "" if there is none.
    state : tuple of int
        Shape of the state of one row; () if a layer has it inside.
    axis : int
        Axis of rows of `state`.
    options : dict
        Of `pyrnnx.score`.
    """

    inputs: str
    nodes: str
    error: str = ""
    state: tuple[int, ...] = (1, 1, HIDDEN)
    axis: int = 1
    options: Mapping[str, Any] = MappingProxyType({})


FRAMES, STATE = "float[N, 6] frame", "float[1, N, 3] state"
GRAPHS: dict[str, Graph] = {
    "a state of symbols": Graph(f"{FRAMES}, {STATE}", f"{GRU} y1 = Sigmoid (y)"),
    "open sizes": Graph("float[?, ?] frame, float[1, ?, 3] state", f"{GRU} y1 = Sigmoid (y)"),
    "rows first": Graph(f"{FRAMES}, float[N, 3] state", f"{CELL} y1 = Sigmoid (state_out)", state=(1, HIDDEN), axis=0),
    "convolutions": Graph(
        "float[N, S] frame, float[N, 3] state",
        "x = Unsqueeze (frame, one) u = Conv <strides = [2]> (x, C1) v = Conv <pads = [1, 1]> (u, C2, c) "
        "w = ReduceMean <axes = [2], keepdims = 0> (v) b = MatMul (state, U) s = Add (w, b) state_out = Tanh (s) "
        "y1 = Flatten (v)",
        state=(1, HIDDEN),
        axis=0,
    ),
    "a choice by a constant": Graph(
        f"{FRAMES}, float[N, 3] state, int64 sr",
        "is = Equal (sr, rate) state_out = If (is) <"
        f"then_branch = g1 () => (float[N, 3] t) {{ {CELL.replace('state_out', 't')} }}, "
        f"else_branch = g2 () => (float[N, 3] e) {{ e = Identity (state) }}> y1 = Sigmoid (state_out)",
        state=(1, HIDDEN),
        axis=0,
        options={"inputs": {"sr": 16_000}},
    ),
    "a choice by the rank": Graph(
        f"{FRAMES}, {STATE}",
        "S = Shape (frame) n = Size (S) two = Add (one0, one0) is = Equal (n, two) no = Not (is) F = If (no) <"
        "then_branch = g1 () => (float[1, N, 6] t) { t = Identity (frame) }, "
        "else_branch = g2 () => (float[1, N, 6] e) { e = Unsqueeze (frame, zero) }> "
        "Y, state_out = GRU <hidden_size = 3> (F, W, R, , , state) y1 = Squeeze (state_out, zero)",
    ),
    "a choice by the number of rows": Graph(
        f"{FRAMES}, float[N, 3] state",
        "S = Shape (frame) n = Gather (S, zero0) is = Equal (n, one0) k = If (is) <"
        "then_branch = g1 () => (float[N, 3] t) { t = Identity (state) }, "
        f"else_branch = g2 () => (float[N, 3] e) {{ e = Neg (state) }}> {CELL} y1 = Add (state_out, k)",
        DIFFERS,
        state=(1, HIDDEN),
        axis=0,
    ),
    "a mean of all rows": Graph(
        f"{FRAMES}, float[N, 3] state",
        f"{CELL} m = ReduceMean <axes = [0]> (state_out) y1 = Sub (state_out, m)",
        DIFFERS,
        state=(1, HIDDEN),
        axis=0,
    ),
    "a state that mixes rows": Graph(
        f"{FRAMES}, float[N, 3] state",
        "a = MatMul (frame, A) m = ReduceMax <axes = [0]> (state) s = Add (a, m) state_out = Tanh (s) y1 = Sigmoid (a)",
        state=(1, HIDDEN),
        axis=0,
    ),
    "a state of one row": Graph(f"{FRAMES}, float[1, 1, 3] state", f"{GRU} y1 = Sigmoid (y)", "fails with sequences"),
    "one row": Graph("float[1, 6] frame, float[1, 1, 3] state", f"{GRU} y1 = Sigmoid (y)", ONE_ROW),
    "no rows": Graph("float[6] frame, float[3] state", f"{CELL} y1 = Sigmoid (state_out)", ONE_ROW, (HIDDEN,), -1),
    "an initial state": Graph(
        f"{FRAMES}, {STATE}", f"{GRU} y1 = Sigmoid (y)", options={"inputs": {"state": np.ones((1, 1, HIDDEN), "f4")}}
    ),
    "a layer's own state": Graph(
        "float[T, N, 6] frame", "Y, h = GRU <hidden_size = 3> (frame, W, R) y1 = Squeeze (Y, one)", state=()
    ),
    "one axis more": Graph(
        "float[N, 1, 6] frame, float[N, 3] state",
        f"g = Squeeze (frame, one) {CELL.replace('frame', 'g')} y1 = Sigmoid (state_out)",
        state=(1, HIDDEN),
        axis=0,
        options={"axes": "NCI"},
    ),
}


def model_of(graph: Graph) -> Any:
    outputs = "float y1" + (", float state_out" if graph.state else "")
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> m ({graph.inputs}) => ({outputs}) {{ {graph.nodes} }}'
    )
    used = str(model.graph)
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(np.asarray(value), name)
        for name, value in CONSTANTS.items()
        if f'"{name}"' in used
    )
    declared = {"state": "state_out"} if graph.state else {}
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
        if output.name in declared.values():
            shape = next(info for info in model.graph.input if info.name == "state").type.tensor_type.shape
            output.type.tensor_type.shape.CopyFrom(shape)
    return model
