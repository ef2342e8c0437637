"""Whole ONNX models: their layers, wherever they are, and their results."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import LSTM, branches, make_graph, make_model, simple_model, weights_of
from rows import each_row

from pyrnnx import ArgumentError
from pyrnnx.frontends.onnx import read_model
from pyrnnx.testing.numbers import Array

node = helper.make_node


def test_inputs_and_outputs() -> None:
    graph = make_graph([node("Identity", ["x"], ["y"])], {"x": np.ones((2, 3), np.float32)}, ["y"])
    del graph.input[:]
    declared: list[tuple[str, int, list[str | int | None] | None]] = [
        ("x", onnx.TensorProto.FLOAT, ["batch", 3]),
        ("half", onnx.TensorProto.BFLOAT16, []),
        ("text", onnx.TensorProto.STRING, [None]),
        ("any", onnx.TensorProto.INT64, None),
        ("minus", onnx.TensorProto.INT64, [-1]),
    ]
    for name, element, shape in declared:
        graph.input.append(helper.make_tensor_value_info(name, element, shape))
    sequence = helper.make_tensor_sequence_value_info("sequence", onnx.TensorProto.FLOAT, None)
    graph.input.extend([sequence, onnx.ValueInfoProto(name="untyped")])
    model = read_model(make_model(graph))
    assert [(info.name, info.dtype, info.shape) for info in model.inputs] == [
        ("x", "float32", ("batch", 3)),
        ("half", "bfloat16", ()),
        ("text", "str", (None,)),
        ("any", "int64", None),
        ("minus", "int64", (None,)),
        ("sequence", None, None),
        ("untyped", None, None),
    ]
    assert [(info.name, info.dtype, info.optional) for info in model.outputs] == [("y", None, False)]


def test_intermediate_outputs() -> None:
    """Values that nothing needs, and constants, too."""
    nodes = [
        node("Add", ["a", "a"], ["twice"]),
        node("Mul", ["x", "twice"], ["scaled"]),
        node("Neg", ["x"], ["dead"]),
        node("Add", ["scaled", "a"], ["y"]),
    ]
    x, a = np.array([1.0, -2.0], np.float32), np.array([0.5, 3.0], np.float32)
    model = read_model(simple_model(nodes, {"x": x}, ["y"], {"a": a}))
    found = model(x, outputs=["dead", "twice", "y", "scaled", "a", "x"])
    wanted = {"dead": -x, "twice": 2 * a, "y": 2 * a * x + a, "scaled": 2 * a * x, "a": a, "x": x}
    assert list(found) == list(wanted)
    for name, value in wanted.items():
        np.testing.assert_array_equal(found[name], value)
    with pytest.raises(ArgumentError, match="outputs has 'nowhere'"):
        model(x, outputs=["nowhere"])


def test_copies(tmp_path: Path) -> None:
    """By the source, and no more: neither what is prepared nor what is inlined."""
    weights = np.random.default_rng(5).normal(size=(1, 512, 128)).astype(np.float32)
    arrays = {"W": weights, "R": weights}
    nodes = [node("LSTM", ["X", "W", "R"], ["Y"], name="lstm", hidden_size=128)]
    X = np.ones((2, 1, 128), np.float32)
    path = tmp_path / "some.onnx"
    path.write_bytes(simple_model(nodes, {"X": X}, ["Y"], arrays).SerializeToString())
    model = read_model(path)
    expected = model(X)["Y"]
    contents = pickle.dumps(model)
    assert len(contents) < path.stat().st_size + 1000
    path.unlink()
    for other in (pickle.loads(contents), copy.copy(model), copy.deepcopy(model)):
        assert (other.label, other.inputs, other.outputs) == (model.label, model.inputs, model.outputs)
        assert other.proto == model.proto
        np.testing.assert_array_equal(other(X)["Y"], expected)
        assert list(other.layers) == ["lstm"]


# Plans: the engine of each part, and the reason

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
