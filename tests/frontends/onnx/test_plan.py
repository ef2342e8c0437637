"""Plans of models: the engine of each part, and the reason."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import helper
from onnx_models import LSTM, branches, simple_model, weights_of
from rows import each_row

from pyrnnx.frontends.onnx import read_model
from pyrnnx.testing.numbers import Array

node = helper.make_node
ORT, OURS = "ONNX Runtime", "pyrnnx"
X = np.linspace(-1, 1, LSTM.T * LSTM.N * LSTM.I, dtype=np.float32).reshape(LSTM.T, LSTM.N, LSTM.I)


def lstm(source: str, result: str, name: str = "lstm") -> onnx.NodeProto:
    return node("LSTM", [source, "W", "R", "B"], [result], hidden_size=LSTM.H, name=name)


def around(before: str, after: str, *, dtype: Any = np.float32, opset: int = 17) -> tuple[onnx.ModelProto, Array]:
    """An operator, an LSTM, an operator."""
    nodes = [node(before, ["x"], ["a"], name="before"), lstm("a", "b"), node(after, ["b"], ["y"], name="after")]
    weights = {name: array.astype(dtype) for name, array in weights_of(LSTM).items()}
    inputs = X.astype(dtype)
    return simple_model(nodes, {"x": inputs}, ["y"], weights, opset), inputs


def computed() -> tuple[onnx.ModelProto, Array]:
    """Weights that depend on the input."""
    one = np.ones(1, np.float32)
    nodes = [
        *(node("ReduceMax", ["x"], ["m"]), node("Div", ["m", "m"], ["one"]), node("Mul", ["W", "one"], ["W1"])),
        *(node("LSTM", ["x", "W1", "R", "B"], ["b"], hidden_size=LSTM.H, name="lstm"), node("Mul", ["b", "k"], ["y"])),
    ]
    return simple_model(nodes, {"x": X}, ["y"], {**weights_of(LSTM), "k": -one}), X


COMPUTED = "its weights are computed; each call builds a layer"
Rows = list[tuple[str, str, str]]
WHOLE: Rows = [(ORT, "Relu, Neg", ""), (OURS, "LSTM 'lstm'", "")]
PLANS: dict[str, tuple[Callable[[], tuple[onnx.ModelProto, Array]], Rows]] = {
    "float32": (lambda: around("Relu", "Neg"), WHOLE),
    "float64": (lambda: around("Relu", "Neg", dtype=np.float64), WHOLE),
    "opset 1": (lambda: around("Relu", "Neg", opset=1), WHOLE),
    "computed": (computed, [(ORT, "2 Mul, ReduceMax, Div", ""), (OURS, "LSTM 'lstm'", COMPUTED)]),
}


@each_row("name", PLANS)
def test_who_runs_what(name: str) -> None:
    """A copy of the plan, and of the model, has the same one."""
    make, rows = PLANS[name]
    proto, inputs = make()
    model = read_model(proto)
    for plan in (model.plan, pickle.loads(pickle.dumps(model.plan)), pickle.loads(pickle.dumps(model)).plan):
        assert plan.rows() == rows
        assert repr(plan) == "<Plan: 1 session of ONNX Runtime, 1 recurrent layer>"
    assert model(inputs)["y"].dtype == inputs.dtype


def test_printed_with_bodies() -> None:
    proto, _ = branches()
    assert str(read_model(proto).plan).splitlines() == [
        "ONNX Runtime  If (2 Recurrent)",
        "pyrnnx        LSTM 'Y/else_branch/h'",
        "pyrnnx        LSTM 'Y/then_branch/h'",
        "pyrnnx        LSTM 'own'",
        "pyrnnx        LSTM 'V'",
    ]
