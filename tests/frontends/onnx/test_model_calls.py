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
