"""Whole ONNX models: their layers, wherever they are, and their results."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import make_graph, make_model, simple_model

from pyrnnx import ArgumentError
from pyrnnx.frontends.onnx import read_model

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
