"""Layers of ONNX models that cannot be streamed, and their messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx_models import branches, simple_model
from onnx_streams import SHAPE, H, I, N, gru, stack, stepwise

from pyrnnx import ArgumentError, UnsupportedError
from pyrnnx.frontends.onnx import read_model
from pyrnnx.testing.cases import Case, make_arrays

EXAMPLES = Path(__file__).parents[4] / "examples"


def computed_weights() -> onnx.ModelProto:
    model = gru("", ([], {}))
    model.graph.input.append(helper.make_tensor_value_info("scale", onnx.TensorProto.FLOAT, [1]))
    model.graph.node.insert(0, helper.make_node("Mul", ["W", "scale"], ["scaled"]))
    model.graph.node[1].input[1] = "scaled"
    return model


def in_both_directions() -> onnx.ModelProto:
    case = Case("both", "GRU", {"direction": "bidirectional"}, ("B",), I=I, H=H)
    weights = {name: a for name, a in make_arrays(case).items() if name in "WRB"}
    node = helper.make_node("GRU", ["X", "W", "R", "B"], ["Y"], name="gru", hidden_size=H, direction="bidirectional")
    return simple_model([node], {"X": np.zeros((1, N, I), np.float32)}, ["Y"], weights, 17)


INT32 = onnx.TensorProto.INT32
MEAN = helper.make_node("ReduceMean", ["X"], ["mean"], axes=[0, 2], keepdims=1)
MOST = helper.make_node("ReduceMax", ["X"], ["most"], axes=[0, 2], keepdims=0)
HALF = {"half": np.array([0.5], np.float32)}
ERRORS: dict[str, tuple[Any, str]] = {
    "reverse": (lambda: gru("", ([], {}), direction="reverse"),
        "GRU 'gru': stream: direction is reverse; expected for"),
    "both directions": (in_both_directions, "GRU 'gru': stream: direction is bidirectional; expected forward"),
    "body": (lambda: branches()[0],
        "LSTM .*: stream: it is inside a body of If 'choice'; expected a layer at the top level"),
    "state": (lambda: gru("h", ([MEAN, *SHAPE, helper.make_node("Expand", ["mean", "wanted"], ["h"])], {})),
        "GRU 'gru': stream: initial_h .'h'. is computed in every call, or an input; expected zeros"),
    "state of a constant": (lambda: gru("h", ([*SHAPE, helper.make_node("Expand", ["half", "wanted"], ["h"])], HALF)),
        "GRU 'gru': stream: initial_h .'h'. is computed in every call, or"),
    "lengths": (lambda: gru("", ([MOST, helper.make_node("Cast", ["most"], ["lens"], to=INT32)], {}), "lens"),
        "GRU 'gru': stream: sequence_lens is computed from the model's inputs; expected none"),
    "weights": (computed_weights, "GRU 'gru': stream: its weights are computed in every call; expected constants"),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_layers_that_cannot_go_on(name: str) -> None:
    make, message = ERRORS[name]
    model = read_model(make())
    with pytest.raises(UnsupportedError, match=f"{message}.*`layers`"):
        model.stream()
    with pytest.raises(ArgumentError, match="there are no states"):  # and not that of the layer
        model.stream(layers=False)


def renamed(**names: str) -> onnx.ModelProto:
    """x, h, c -> LSTM -> y, hn, cn under other names."""
    proto = stepwise()
    for one in (*proto.graph.input, *proto.graph.output):
        one.name = names.get(one.name, one.name)
    for node in proto.graph.node:
        for each in (node.input, node.output):
            each[:] = [names.get(name, name) for name in each]
    return proto


@pytest.mark.parametrize(
    ("names", "states", "state"),
    [
        ({"h": "h1", "c": "c1", "hn": "o1", "cn": "o2"}, None, r"initial_h \('h1'\)"),
        ({"hn": "h_out", "cn": "c_out"}, {"h_out": "h"}, r"initial_c \('c'\)"),
    ],
)
def test_inputs_that_are_not_fed_back(names: dict[str, str], states: dict[str, str] | None, state: str) -> None:
    with pytest.raises(UnsupportedError, match=rf"LSTM 'lstm': stream: {state} is .* or an input; .*`layers`"):
        read_model(renamed(**names)).stream(states)


def test_weights_that_are_inputs_with_a_default() -> None:
    """Pushes that pass others would need another layer."""
    proto = stack(("GRU",))
    graph = proto.graph
    graph.input.extend(
        helper.make_tensor_value_info(one.name, one.data_type, one.dims)
        for one in graph.initializer
        if one.name == "W0"
    )
    graph.input.append(helper.make_tensor_value_info("shift", onnx.TensorProto.FLOAT, [1]))
    graph.initializer.append(numpy_helper.from_array(np.zeros(1, np.float32), "shift"))
    graph.node.append(helper.make_node("Add", ["x1", "shift"], ["shifted"]))
    graph.output[0].name = "shifted"
    model, X = read_model(proto), np.ones((2, N, I), np.float32)
    W = next(numpy_helper.to_array(one) for one in graph.initializer if one.name == "W0")
    stream = model.stream()
    expected = np.concatenate([stream.push(x)["shifted"] for x in (X, X)])
    np.testing.assert_allclose(expected, model(np.ones((4, N, I), np.float32))["shifted"], rtol=0, atol=1e-6)
    others: list[dict[str, Any]] = [{"shift": np.ones(1, np.float32)}, {"W0": 2 * W}]
    for other in others:
        with pytest.raises(UnsupportedError, match="GRU 'layer0': stream: its weights are inputs with a default"):
            stream.push(X, **other)


def test_fed_back_states_of_a_backward_layer() -> None:
    model = read_model(EXAMPLES / "small_rnn.onnx")
    with pytest.raises(UnsupportedError, match=r"the states of RNN 'small_rnn' are fed back, .* direction forward"):
        model.stream()
    assert model.stream(states={"Y_h": "initial_h"}).states == {"Y_h": "initial_h"}
