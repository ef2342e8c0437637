"""Nodes, initializers, opsets and attributes in every accepted form, and the length of messages about them."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from rows import each_row

import pyrnnx
import pyrnnx.frontends.onnx as frontend
from pyrnnx import ArgumentError, UnsupportedError
from pyrnnx.frontends.onnx.operators.schemas import NEWEST_OPSET
from pyrnnx.testing.cases import OPERATORS, OPTIONAL, Case, make_arrays


def good(operator: str) -> dict[str, Any]:
    """All inputs of T=4, N=3, I=2, H=5, float32."""
    return dict(make_arrays(Case("good", operator, {}, OPTIONAL[operator], (4, 2, 1), I=2)))


@each_row("node", [None, "LSTM", onnx.NodeProto, onnx.ModelProto(), onnx.AttributeProto()])
def test_what_is_no_node(node: Any) -> None:
    message = rf"^from_node: node is {type(node).__name__} .*; expected an onnx\.NodeProto$"
    with pytest.raises(ArgumentError, match=message):
        frontend.from_node(node, {})


def test_attributes_that_are_broken() -> None:
    node = onnx.helper.make_node("RNN", ["X", "W", "R"], ["Y"], hidden_size=5)
    node.attribute.append(node.attribute[0])
    with pytest.raises(ArgumentError, match="RNN: attribute 'hidden_size' is defined twice"):
        frontend.from_node(node, good("RNN"))
    del node.attribute[:]
    node.attribute.add(name="hidden_size")
    with pytest.raises(ArgumentError, match="attribute 'hidden_size' is 'a value of type UNDEFINED'; expected an inte"):
        frontend.from_node(node, good("RNN"))


INITIALIZERS: list[tuple[Any, str]] = [
    (None, "initializers is NoneType; expected a mapping of arrays"),
    ([np.ones(1)], "initializers is list; expected a mapping of arrays"),
    ({"W": "abc"}, "W has dtype"),
    ({"W": onnx.TensorProto()}, "W has dtype object"),
    ({"W": [[1.0], [1.0, 2.0]]}, "W cannot be converted to an array"),
]


@each_row(("initializers", "message"), INITIALIZERS)
def test_what_are_no_initializers(initializers: Any, message: str) -> None:
    initializers = good("LSTM") | initializers if isinstance(initializers, dict) else initializers
    with pytest.raises(ArgumentError, match=f"^LSTM: {message}"):
        frontend.from_node(onnx.helper.make_node("LSTM", ["X", "W", "R"], ["Y"]), initializers)


NEWEST = max(NEWEST_OPSET, onnx.defs.onnx_opset_version())


@pytest.mark.parametrize("operator", OPERATORS)
def test_opsets_that_nobody_knows(operator: str) -> None:
    function = getattr(frontend, operator.lower())
    function(**good(operator), opset=NEWEST)
    for opset in (NEWEST + 1, 99, 2**62, 10**5000):
        with pytest.raises(UnsupportedError, match=rf"^{operator}: opset is .*; expected at most {NEWEST}, the newest"):
            function(**good(operator), opset=opset)


def test_numpy_scalars_and_arrays_are_attributes() -> None:
    arrays = good("LSTM")
    functions = ["HardSigmoid", "Tanh", "Tanh"]
    attributes: dict[str, Any] = {
        "activations": np.array(functions),
        "activation_alpha": np.array([0.25]),
        "activation_beta": np.array([0.5], np.float32),
        "direction": np.str_("reverse"),
        "clip": np.array(2.0, ml_dtypes.bfloat16),
        "hidden_size": np.array(5),
        "input_forget": np.int64(1),
        "opset": np.int64(14),
    }
    plain: dict[str, Any] = {
        "activation_alpha": [0.25],
        "activation_beta": [0.5],
        "direction": "reverse",
        "clip": 2.0,
        "hidden_size": 5,
    }
    expected = frontend.lstm(**arrays, activations=functions, input_forget=1, opset=14, **plain)
    for result, other in zip(frontend.lstm(**arrays, **attributes), expected, strict=True):
        np.testing.assert_array_equal(result, other)
    with pytest.raises(ArgumentError, match="activation_alpha is array"):
        frontend.lstm(**arrays, **attributes | {"activation_alpha": np.array(0.25)})


LONG = "x" * 5_000_000
LONG_ATTRIBUTES: dict[str, dict[str, Any]] = {
    "direction": {"direction": LONG},
    "activations": {"activations": [LONG] * 3},
    "many activations": {"activations": ["Tanh"] * 1_000_000},
    "clip": {"clip": LONG},
    "hidden_size": {"hidden_size": [1] * 1_000_000},
    "attribute": {LONG: 1},
    "opset": {"opset": LONG},
    "layout": {"layout": 10**100_000},
    "left over": {"activation_alpha": [1.0] * 100_000},
}


@each_row("name", LONG_ATTRIBUTES)
def test_messages_are_bounded(name: str) -> None:
    with pytest.raises((pyrnnx.PyrnnxError, pyrnnx.PyrnnxWarning)) as caught:
        frontend.lstm(**good("LSTM"), **LONG_ATTRIBUTES[name])
    assert len(str(caught.value)) < 2_000


def test_names_in_messages_are_bounded() -> None:
    for node in (
        onnx.helper.make_node("LSTM", ["X", LONG, "R"], ["Y"]),
        onnx.helper.make_node("LSTM", ["X", "W", ""], ["Y"], name=LONG),
        onnx.helper.make_node("LSTM", ["X", "W", "R"], ["Y"], domain=LONG),
        onnx.helper.make_node(LONG, ["X", "W", "R"], ["Y"]),
    ):
        with pytest.raises(pyrnnx.PyrnnxError) as caught:
            frontend.from_node(node, good("LSTM"))
        assert len(str(caught.value)) < 1_000


@pytest.mark.parametrize("name", ["activations", "activation_alpha", "activation_beta"])
def test_lists_of_any_length_are_not_read_to_their_end(name: str) -> None:
    values: tuple[Any, ...] = (
        itertools.repeat("tanh" if name == "activations" else 0.5),
        np.broadcast_to(np.float32(1), 1 << 40),
    )
    for endless in values:
        with pytest.raises(ArgumentError, match=rf"LSTM: {name} is .*; expected a list of \w+, at most 1000"):
            frontend.lstm(**good("LSTM"), **{name: endless})
