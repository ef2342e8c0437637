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
        r"Gather 'table' failed: .* 'a' float32 \(2, 3\); 'x' int64 \(1, 2\) from 0 to 7 \(IndexError",
    ),
    "shapes": (node("MatMul", ["x", "a"], ["y"], name="m"), X, r"MatMul 'm' failed: .* 'x' float32 \(2, 3\)"),
    "a shape": (node("Reshape", ["a", "x"], ["y"]), np.array([5, 7]), r"Reshape .* 'x' int64 \(2,\) from 5 to 7"),
    "an axis": (node("Concat", ["a", "x"], ["y"], axis=0), np.ones(3, np.float32), r"Concat .* 'x' float32 \(3,\)"),
    "a division": (node("Range", ["zero", "zero", "x"], ["y"]), np.array(0), r"Range .* \((ZeroDivision|Value)Error"),
}


@pytest.mark.parametrize("name", UNFIT)
def test_values_that_an_operator_does_not_take(name: str) -> None:
    one, value, message = UNFIT[name]
    model = read_model(simple_model([one], {"x": value}, ["y"], {"a": X, "zero": np.array(0)}))
    with pytest.raises(ArgumentError, match=rf"^ONNX model: {message}"):
        model(value)


def test_what_the_evaluator_has_not_is_unsupported() -> None:
    model = read_model(
        simple_model([node("ImageDecoder", ["x"], ["y"])], {"x": np.zeros(4, np.uint8)}, ["y"], opset=20)
    )
    with pytest.raises(PyrnnxError, match=r"ImageDecoder \(output 'y'\) failed"):
        model(np.zeros(4, np.uint8))


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


def long_opset_domain(model: onnx.ModelProto) -> None:
    model.opset_import.add(domain=LONG, version=0)


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
    [long_name, long_tensor, long_operator, long_opset_domain, long_functions, long_value, no_utf8],
    ids=lambda function: function.__name__,
)
def test_messages_are_bounded(break_it: Callable[[onnx.ModelProto], None]) -> None:
    model = sound()
    break_it(model)
    with pytest.raises(PyrnnxError) as caught:
        read_model(model)(X)
    assert len(str(caught.value)) < 2000


def test_groups_in_the_evaluator() -> None:
    """ConvTranspose: onnx 1.23 mixes up the biases of groups, and fails if a group has several channels."""
    pytest.importorskip("onnxruntime")
    values = np.linspace(-1, 1, 48, dtype=np.float32)
    constants = {"W": values[:24].reshape(4, 2, 3), "B": values[:4]}
    convolution = helper.make_node("ConvTranspose", ["X", "W", "B"], ["Y"], group=2, strides=[2])
    arrays = {"X": values[:20].reshape(1, 4, 5)}
    model = simple_model([convolution], arrays, ["Y"], constants)
    ours, theirs = (read_model(model, runtime=runtime)(arrays)["Y"] for runtime in ("reference", "onnxruntime"))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6)  # sums of 6 products of at most 1


def test_what_the_evaluator_computes_wrongly() -> None:
    """GridSample, cubic, border: off by some hundredths in onnx 1.23."""
    sample = helper.make_node("GridSample", ["X", "grid"], ["Y"], mode="cubic", padding_mode="border")
    arrays = {"X": np.ones((1, 1, 4, 5), np.float32), "grid": np.zeros((1, 2, 3, 2), np.float32)}
    model = simple_model([sample], arrays, ["Y"], opset=20)
    with pytest.raises(PyrnnxError, match=r"GridSample .*: mode cubic with padding_mode border is wrong"):
        read_model(model, runtime="reference")(arrays)
