"""Node of a layer: its attributes and weights in ONNX form."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import UnsupportedError
from pyrnnx.layers.layer import Layer
from pyrnnx.operator.conventions import CANONICAL, convert_weights
from pyrnnx.operator.op import CELLS, Direction, RecurrentOp
from pyrnnx.operator.quantized import Quantized

from .schemas import Schema, schema

LARGEST = float(np.finfo(np.float32).max)  # attributes are float32 in ONNX


def node_schema(layer: Layer, opset: int) -> Schema:
    """Return the definition of a layer's operator in an opset that can express it.

    Raises
    ------
    UnsupportedError
        What the opset's operator has no dtype or attribute for; a layer that computes something else.
    """
    label, op = layer.label, layer.op
    if type(layer).run is not Layer.run or any(isinstance(weight, Quantized) for weight in layer._kept.values()):
        raise UnsupportedError(
            f"{label}: {type(layer).__name__} computes something else than an operator of ONNX's own; expected a layer "
            "of an RNN, GRU or LSTM"
        )
    definition = schema(op.cell, opset)
    if layer.dtype.name not in definition.dtypes:
        raise UnsupportedError(
            f"{label}: the weights have dtype {layer.dtype}; {definition} (opset {opset}) has "
            f"{', '.join(definition.dtypes)}"
        )
    for name in ("linear_before_reset", "input_forget"):
        if getattr(op, name) and name not in definition.attributes:
            raise UnsupportedError(f"{label}: {name} is True; {definition} (opset {opset}) has no such attribute")
    return definition


def node_attributes(label: str, op: RecurrentOp, definition: Schema) -> dict[str, Any]:
    """Return the attributes of a node that are not defaults, and hidden_size.

    Raises
    ------
    UnsupportedError
        A number is out of float32's range.
    """
    attributes: dict[str, Any] = {"hidden_size": op.hidden_size}
    if op.direction is not Direction.FORWARD:
        attributes["direction"] = op.direction.value
    functions = [function for direction in op.activations for function in direction]
    names = [function.name for function in functions]
    if names != [*CELLS[op.cell].activations] * op.num_directions:
        attributes["activations"] = names
    for parameter in ("alpha", "beta"):
        name = f"activation_{parameter}"
        values = [getattr(function, parameter) for function in functions if getattr(function, parameter) is not None]
        if values:
            attributes[name] = [_float32(label, name, value) for value in values]
    if op.clip is not None:
        attributes["clip"] = _float32(label, "clip", op.clip)
        if not attributes["clip"]:
            raise UnsupportedError(f"{label}: clip is {op.clip}; ONNX holds it in float32, expected 1.2e-38 to 3.4e38")
    for name in ("linear_before_reset", "input_forget"):
        if getattr(op, name):
            attributes[name] = 1
    if "output_sequence" in definition.attributes:
        attributes["output_sequence"] = 1  # without it, Y is no output
    return attributes


def _float32(label: str, name: str, value: float) -> float:
    """Return the value rounded to float32, but not to an infinity."""
    if abs(value) > LARGEST:
        raise UnsupportedError(f"{label}: {name} is {value}; ONNX holds it in float32, expected at most 3.4e38")
    return float(np.float32(value))


def node_weights(layer: Layer) -> dict[str, AnyArray]:
    """W, R, and B and P where the layer has them, in their dtype, as ONNX arranges them.

    Raises
    ------
    UnsupportedError
        Coupled gates that ONNX cannot express.
    """
    weights = convert_weights(layer.op, layer.weights, layer.convention, CANONICAL, layer.label)
    return {name: np.ascontiguousarray(array) for name, array in weights.items()}
