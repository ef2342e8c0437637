"""A layer as a node: its attributes and weights as ONNX has them."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyrnnx.conventions import CANONICAL, convert_weights
from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import UnsupportedError
from pyrnnx.layer import Layer
from pyrnnx.op import CELLS, Direction, RecurrentOp
from pyrnnx.reduced import Quantized

from .schemas import Schema, schema

LARGEST = float(np.finfo(np.float32).max)  # attributes are float32 in ONNX


def node_schema(layer: Layer, opset: int) -> Schema:
    """The definition of a layer's operator in an opset that can express it.

    Raises
    ------
    UnsupportedError
        What the opset's operator has no dtype or attribute for; a layer that computes something else.
    """
    label, op = layer.label, layer.op
    if type(layer).run is not Layer.run or any(isinstance(one, Quantized) for one in layer._kept.values()):
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
    """Those of a node that are not the operator's defaults, and hidden_size.

    Raises
    ------
    UnsupportedError
        A number that float32 does not hold.
    """
    attributes: dict[str, Any] = {"hidden_size": op.hidden_size}
    if op.direction is not Direction.FORWARD:
        attributes["direction"] = op.direction.value
    functions = [function for direction in op.activations for function in direction]
    names = [one.name for one in functions]
    if names != [*CELLS[op.cell].activations] * op.num_directions:
        attributes["activations"] = names
    for parameter in ("alpha", "beta"):
        name = f"activation_{parameter}"
        values = [getattr(one, parameter) for one in functions if getattr(one, parameter) is not None]
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
    """The value as an attribute holds it: rounded, but not to an infinity."""
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
