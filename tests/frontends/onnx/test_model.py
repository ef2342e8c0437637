"""Whole ONNX models: their layers, wherever they are, and their results."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx_models import LSTM, branches, case_model, lstm_node, make_graph, make_model, simple_model

from pyrnnx import ArgumentError, UnsupportedError, reference
from pyrnnx.frontends.onnx import Model, NodeLayer, read_model
from pyrnnx.testing.cases import expected_outputs, make_arrays
from pyrnnx.testing.numbers import assert_close, tolerance_of

node = helper.make_node
TOLERANCE = tolerance_of(LSTM.dtype)


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


def test_default_inputs() -> None:
    """Initializers that are inputs too, as all are below IR version 4: a call may replace them."""
    arrays: dict[str, Any] = make_arrays(LSTM)
    names = ("W", "R", "B")
    X, constants = arrays["X"], {name: arrays[name] for name in names}
    proto = simple_model([lstm_node("", ["Y"])], {"X": X, **constants}, ["Y"], constants, 9, ir_version=3)
    model = read_model(proto)
    assert [info.optional for info in model.inputs] == [False, True, True, True]
    (layer,) = model.layers.values()
    assert isinstance(layer, NodeLayer)
    expected = reference.lstm(X, **constants)
    other = {"R": constants["R"] * 0.5, "B": constants["B"] - 0.25}
    for _ in range(2):
        assert_close([model(X)["Y"]], expected[:1], TOLERANCE)
        assert_close([model({"X": X, **other})["Y"]], reference.lstm(X, **constants | other)[:1], TOLERANCE)


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


def test_unknown_operator_is_an_error_of_the_call() -> None:
    proto, given = case_model(LSTM)
    proto.graph.node.append(node("Nonsense", ["Y"], ["z"], name="it", domain="test"))
    proto.graph.output.append(onnx.ValueInfoProto(name="z"))
    proto.opset_import.append(helper.make_opsetid("test", 1))
    model = read_model(proto)
    assert len(model.layers) == 1
    with pytest.raises(UnsupportedError, match=r"^ONNX model: ONNX Runtime cannot run the model: .*test:Nonsense"):
        model(given)


def test_layer_that_does_not_fit_is_named() -> None:
    proto, given = case_model(LSTM)
    proto.graph.node[0].name = "wrong"
    proto.graph.node[0].attribute.append(helper.make_attribute("hidden_size", 6))
    with pytest.raises(ArgumentError, match="LSTM 'wrong': R has shape"):
        read_model(proto)(given)


def test_callers_model_is_not_changed(tmp_path: Path) -> None:
    proto, given = branches()
    before = proto.SerializeToString()
    model = read_model(proto)
    expected = model(given)
    assert proto.SerializeToString() == before
    del proto.graph.initializer[:]
    path = tmp_path / "m.onnx"
    path.write_bytes(before)
    for source in (path, str(path), before):
        for name, value in read_model(source)(given).items():
            np.testing.assert_array_equal(value, expected[name])
    np.testing.assert_array_equal(model(given)["Y"], expected["Y"])
    assert read_model(path).label == str(path)


def test_threads() -> None:
    proto, given = branches()
    expected = read_model(proto)(given)["Y"]
    model = read_model(proto)
    with ThreadPoolExecutor(8) as pool:
        for result in pool.map(lambda _: model(given)["Y"], range(32)):
            np.testing.assert_array_equal(result, expected)


def test_other_spelling_of_the_default_domain() -> None:
    proto, given = case_model(LSTM)
    proto.opset_import[0].domain = "ai.onnx"
    proto.graph.node[0].domain = "ai.onnx"
    model = read_model(proto)
    assert len(model.layers) == 1
    assert_close(list(model(given).values()), expected_outputs(LSTM, make_arrays(LSTM)), TOLERANCE)


def test_float_data_and_infinities() -> None:
    """Initializers that are no raw bytes; and results that are no numbers, without a warning."""
    proto, given = case_model(LSTM)
    for one in proto.graph.initializer:
        values = numpy_helper.to_array(one)
        one.CopyFrom(helper.make_tensor(one.name, one.data_type, values.shape, values.ravel()))
    nodes = [node("Div", ["Y", "Y_zero"], ["inf"]), node("Sub", ["Y", "Y"], ["Y_zero"])]
    proto.graph.node.extend(nodes)
    results = Model(proto)(given, outputs=["Y", "inf"])
    assert_close([results["Y"]], expected_outputs(LSTM, make_arrays(LSTM))[:1], TOLERANCE)
    assert np.isinf(results["inf"]).all()
