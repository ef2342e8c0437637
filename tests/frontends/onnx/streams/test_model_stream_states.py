"""States that a stream of an ONNX model keeps, compared with layers that are called by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import make_graph, simple_model
from onnx_streams import SHAPE, H, N, gru

from pyrnnx import ArgumentError
from pyrnnx.frontends.onnx import read_model
from pyrnnx.testing.cases import Case, make_arrays

WEIGHTS: dict[str, Any] = {
    name: a for name, a in make_arrays(Case("state", "RNN", {}, (), I=H, H=H)).items() if name in "WR"
}
ZEROS = np.zeros((1, N, H), np.float32)
X = np.linspace(-1, 1, 2 * N * H, dtype=np.float32).reshape(2, N, H)


def rnn(x: str, *others: str, outputs: tuple[str, ...]) -> onnx.NodeProto:
    return helper.make_node("RNN", [x, "W", "R", "", *others], outputs, name="rnn", hidden_size=H)


def fed_and_carried() -> onnx.ModelProto:
    """hn is what the layer goes on with, and what is added to x in the next push."""
    nodes = [helper.make_node("Add", ["x", "prev"], ["sum"]), rnn("sum", outputs=("", "hn"))]
    return simple_model(nodes, {"x": ZEROS, "prev": ZEROS}, ["hn"], WEIGHTS)


def test_an_output_that_is_fed_back_and_carried() -> None:
    model = read_model(fed_and_carried())
    stream = model.stream({"hn": "prev"}, initial={"prev": ZEROS})
    layer: Any = model.layers["rnn"]
    before = ZEROS
    for _ in range(4):
        before = layer(X[:1] + before, initial_h=before)[1]
        np.testing.assert_allclose(stream.push(X[:1])["hn"], before, rtol=0, atol=1e-6)
    assert list(stream.state) == ["prev", "rnn.initial_h"]


def test_states_are_not_pushed_after_a_reset() -> None:
    """Whatever the inputs of the session are called."""
    nodes = [rnn("x", outputs=("y",)), helper.make_node("Add", ["x", "s"], ["sn"])]
    proto = simple_model(nodes, {"x": ZEROS, "s": ZEROS}, ["y", "sn"], WEIGHTS)
    for place, own in enumerate("xs"):
        proto.graph.input[place].CopyFrom(helper.make_tensor_value_info(own, onnx.TensorProto.FLOAT, [1, "N", H]))
    stream = read_model(proto).stream({"sn": "s"})
    x = X[:1]
    for _ in range(5):
        stream.push(x)
    stream.reset()
    for name, why in (("s", "is fed back"), ("rnn.initial_h", "is unknown")):
        with pytest.raises(ArgumentError, match=f"input '{name}' {why}; expected x"):
            stream.push({"x": x, name: ZEROS})


def test_zeros_that_are_joined_again_and_again() -> None:
    """Each value is looked at once, not once for each of the 2**40 ways to it."""
    nodes = [*SHAPE, helper.make_node("ConstantOfShape", ["wanted"], ["c0"])]
    nodes += [helper.make_node("Concat", [f"c{k}", f"c{k}"], [f"c{k + 1}"], axis=0) for k in range(40)]
    nodes.append(helper.make_node("Slice", ["c40", "zero", "one"], ["h"]))
    model = read_model(gru("h", (nodes, {"zero": np.array([0])})))
    assert [info.name for info in model.stream().state_infos] == ["gru.initial_h"]


LSTM_WEIGHTS: dict[str, Any] = {
    name: a for name, a in make_arrays(Case("fed", "LSTM", {}, ("B",), I=H, H=H)).items() if name in "WRB"
}


def lstm_states(lens: str = "", *, inside: bool = False) -> onnx.ModelProto:
    """h and c in one input, [2, 1, N, H], and in one output; the layer by itself, or in both branches of an If."""
    inputs = ["x", "W", "R", "B", lens, "h", "c"]
    lstm = helper.make_node("LSTM", inputs, ["y", "hn", "cn"], name="lstm", hidden_size=H)
    if inside:
        bodies = []
        for k in range(2):
            names = [f"{one}{k}" for one in ("y", "hn", "cn")]
            one = helper.make_node("LSTM", inputs, names, name=f"lstm{k}", hidden_size=H)
            bodies.append(make_graph([one], {}, names))
        lstm = helper.make_node("If", ["go"], ["y", "hn", "cn"], then_branch=bodies[0], else_branch=bodies[1])
    nodes = [
        helper.make_node("Split", ["state"], ["h1", "c1"], axis=0),
        *(helper.make_node("Squeeze", [f"{one}1", "zero"], [one]) for one in "hc"),
        lstm,
        *(helper.make_node("Unsqueeze", [f"{one}n", "zero"], [f"{one}2"]) for one in "hc"),
        helper.make_node("Concat", ["h2", "c2"], ["new_state"], axis=0),
    ]
    given: dict[str, Any] = {"x": ZEROS, "state": np.zeros((2, 1, N, H), np.float32)}
    given |= {"lens": np.zeros(N, np.int32)} if lens else {}
    given |= {"go": np.array(True)} if inside else {}
    return simple_model(nodes, given, ["y", "new_state"], {**LSTM_WEIGHTS, "zero": np.array([0])})


@pytest.mark.parametrize("layers", [True, False])
@pytest.mark.parametrize("inside", [False, True], ids=["a layer", "in branches"])
def test_no_steps_leave_states_that_are_fed_back(inside: bool, layers: bool) -> None:
    """Whatever lies between the layer and the inputs and outputs that are fed back."""
    model, more = read_model(lstm_states(inside=inside)), [np.array(True)] if inside else []
    begin = np.linspace(-1, 1, 2 * N * H, dtype=np.float32).reshape(2, 1, N, H)
    stream = model.stream({"new_state": "state"}, initial={"state": begin}, layers=layers)
    np.testing.assert_array_equal(stream.push(X[:0], *more)["new_state"], begin)
    whole = model(X, begin, *more)
    parts = []
    for first, last in ((0, 1), (1, 1), (1, 2), (2, 2)):
        pushed = stream.push(X[first:last], *more)
        assert not np.shares_memory(pushed["new_state"], stream._values["state"])
        parts.append(pushed["y"])
    np.testing.assert_allclose(np.concatenate(parts), whole["y"], rtol=0, atol=1e-6)
    np.testing.assert_allclose(stream.state["state"], whole["new_state"], rtol=0, atol=1e-6)


def test_rows_without_steps_keep_their_states() -> None:
    model = read_model(lstm_states("lens"))
    begin = np.linspace(-1, 1, 2 * N * H, dtype=np.float32).reshape(2, 1, N, H)
    stream = model.stream({"new_state": "state"}, initial={"state": begin})
    lens = np.array([2, 0, 1], np.int32)
    expected = model(X, begin, lens)["new_state"]
    assert not expected[:, :, 1].any()
    expected[:, :, 1] = begin[:, :, 1]
    np.testing.assert_allclose(stream.push(X, lens)["new_state"], expected, rtol=0, atol=1e-6)
