"""A layer as a node of a graph that is written, and a graph of that node alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import UnsupportedError
from pyrnnx.layers.layer import Layer
from pyrnnx.operator import check
from pyrnnx.operator.conventions import CANONICAL, convert_weights, rearrange
from pyrnnx.operator.op import CELLS, Direction, RecurrentOp
from pyrnnx.operator.quantized import Quantized

from ..operators.schemas import Schema, schema
from .graph import Dimension, GraphWriter

SEQ_LENGTH, BATCH_SIZE = "seq_length", "batch_size"
LARGEST = float(np.finfo(np.float32).max)  # attributes are float32 in ONNX


def write_node(
    graph: GraphWriter, layer: Layer, name: str, sources: Mapping[str, str], outputs: Mapping[str, str]
) -> None:
    """Write the node of a layer, with its weights; `sources` and `outputs` are the other names, by argument."""
    definition = _schema_of(layer, graph.opset)
    weights = convert_weights(layer.op, layer.weights, layer.convention, CANONICAL, layer.label)
    given = {key: graph.constant(f"{name}.{key}", np.ascontiguousarray(array)) for key, array in weights.items()}
    given |= sources
    graph.node(
        layer.op.cell,
        [given.get(key, "") for key in definition.inputs],
        [outputs[key] for key in definition.outputs],
        name,
        **node_attributes(layer.label, layer.op, definition),
    )


def node_name(graph: GraphWriter, layer: Layer, place: int = 0) -> str:
    """Return the layer's name, if present and unique."""
    return graph.unique(layer.name or f"{layer.op.cell.lower()}_{place}")


def write_layer(graph: GraphWriter, layer: Layer, asked: Collection[str]) -> None:
    """Write a graph of one node; `asked` are the inputs in addition to X."""
    constants, rows = _constants(layer)
    op = layer.op
    sizes: dict[str, Dimension] = {"T": SEQ_LENGTH, "N": BATCH_SIZE, "I": layer.input_size}
    sizes |= {"D": op.num_directions, "H": op.hidden_size, **rows}

    def shape(key: str) -> list[Dimension]:
        return [sizes[axis] for axis in CANONICAL.axes_of(key)]

    sources = {"X": "X", **{key: graph.constant(key, array) for key, array in constants.items()}}
    for key in ("X", *asked):
        dtype = np.dtype(np.int32) if key == "sequence_lens" else None
        sources[key] = graph.input(key, shape(key), dtype)
    names = {key: key for key in layer.output_names}
    write_node(graph, layer, node_name(graph, layer), sources, names)
    for key in names:
        graph.output(key, shape(key))


def _constants(layer: Layer) -> tuple[dict[str, AnyArray], dict[str, int]]:
    """Return the constants of a layer in ONNX layout, and {"N": batch_size} if there are any."""
    own: dict[str, AnyArray] = {}
    sizes: dict[str, int] = {}
    for key, array in layer.constants.items():
        axes = layer.convention.axes_of(key)
        check.shape(layer.label, layer.convention.name_of(key), array.shape, axes, sizes)
        sizes.update({axis: size for axis, size in zip(axes, array.shape, strict=True) if axis == "N"})
        if key == "sequence_lens":
            own[key] = array.astype(np.int32)
        else:
            own[key] = np.ascontiguousarray(rearrange(array, axes, CANONICAL.axes_of(key)))
    return own, sizes


def _schema_of(layer: Layer, opset: int) -> Schema:
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
    """Return the attributes of a node that are not defaults, and hidden_size."""
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
