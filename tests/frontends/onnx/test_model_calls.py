"""Rejected calls of ONNX models, and the length of the messages."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import simple_model

from pyrnnx import ArgumentError, PyrnnxError
from pyrnnx.frontends.onnx import read_model
from pyrnnx.testing.numbers import Array

node = helper.make_node
X = np.ones((2, 3), np.float32)


def sound() -> onnx.ModelProto:
    nodes = [node("Neg", ["x"], ["u"], name="first"), node("Add", ["u", "a"], ["y"], name="second")]
    return simple_model(nodes, {"x": X}, ["y"], {"a": X * 2})


CALLS = {
    "none": ((), "input 'x' is missing"),
    "two": ((X, X), "2 arrays were given; expected at most 1: x"),
    "unknown": (({"x": X, "z": X},), "input 'z' is unknown"),
    "dtype": ((X.astype(np.float64),), "input 'x' has dtype float64; expected float32"),
    "rank": ((X[0],), r"input 'x' has shape \(3,\)"),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name: str) -> None:
    arrays, message = CALLS[name]
    with pytest.raises(ArgumentError, match=f"^ONNX model: {message}"):
        read_model(sound())(*arrays)


# Inputs that an operator rejects during a call: the node, the input, and the message.
UNFIT: dict[str, tuple[onnx.NodeProto, Array, str]] = {
    "a token beyond the table": (
        node("Gather", ["a", "x"], ["y"], name="table"),
        np.array([[0, 7]]),
        "Gather node. Name:'table' .*idx=7 must be within",
    ),
    "shapes": (node("MatMul", ["x", "a"], ["y"], name="m"), X, "MatMul node. Name:'m' .*dimension mismatch"),
    "a shape": (node("Reshape", ["a", "x"], ["y"]), np.array([5, 7]), "Reshape node.* cannot be reshaped"),
    "an axis": (
        node("Concat", ["a", "x"], ["y"], axis=0),
        np.ones((1, 2), np.float32),
        "Concat node.*dimensions must match",
    ),
    "a division": (
        node("Range", ["zero", "zero", "x"], ["y"]),
        np.array(0),
        "Range node.*delta in Range operator can not be zero",
    ),
}


@pytest.mark.parametrize("name", UNFIT)
def test_values_that_an_operator_does_not_take(name: str) -> None:
    one, value, message = UNFIT[name]
    model = read_model(simple_model([one], {"x": value}, ["y"], {"a": X, "zero": np.array(0)}))
    with pytest.raises(ArgumentError, match=f"^ONNX model: the call failed in ONNX Runtime: .*{message}"):
        model(value)


def test_operators_that_onnx_defines_as_functions_of_their_inputs_types() -> None:
    """If no type is declared, onnx builds these functions when they run."""
    nodes = [node("Neg", ["x"], ["u"]), node("Gelu", ["u"], ["v"]), node("Gelu", ["v"], ["y"])]
    model = simple_model(nodes, {"x": X}, ["y"], opset=20)
    for _ in range(2):
        np.testing.assert_allclose(read_model(model)(X)["y"], np.full((2, 3), -0.069326), atol=1e-5)  # float32


LONG = "x" * 1_000_000


def long_name(model: onnx.ModelProto) -> None:
    model.graph.node[1].name = LONG
    model.graph.node[1].input[1] = LONG


def long_tensor(model: onnx.ModelProto) -> None:
    model.graph.initializer[0].name = LONG
    model.graph.initializer[0].dims[0] = -1


def long_operator(model: onnx.ModelProto) -> None:
    model.graph.node[1].op_type = model.graph.node[1].domain = LONG
    model.opset_import.add(domain=LONG, version=1)


def long_functions(model: onnx.ModelProto) -> None:
    call = node(LONG, ["p"], ["q"], domain="test")
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("test", 1)]
    model.functions.append(helper.make_function("test", LONG, ["p"], ["q"], [call], imports))
    model.opset_import.add(domain="test", version=1)


def long_value(model: onnx.ModelProto) -> None:
    model.graph.node[1].op_type = "Resize"
    model.graph.node[1].attribute.append(helper.make_attribute("mode", LONG))


def no_utf8(model: onnx.ModelProto) -> None:
    model.graph.output[0].name = LONG


@pytest.mark.parametrize(
    "break_it",
    [long_name, long_tensor, long_operator, long_functions, long_value, no_utf8],
    ids=lambda function: function.__name__,
)
def test_messages_are_bounded(break_it: Callable[[onnx.ModelProto], None]) -> None:
    model = sound()
    break_it(model)
    with pytest.raises(PyrnnxError) as caught:
        read_model(model)(X)
    assert len(str(caught.value)) < 2000
