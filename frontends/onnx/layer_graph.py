"""A layer as a node of a graph that is written, and a graph of that node alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.layers.layer import Layer
from pyrnnx.operator import check
from pyrnnx.operator.conventions import CANONICAL, rearrange

from .graph_writer import Dimension, GraphWriter
from .node_writer import node_attributes, node_schema, node_weights

SEQ_LENGTH, BATCH_SIZE = "seq_length", "batch_size"


def write_node(
    graph: GraphWriter, layer: Layer, name: str, sources: Mapping[str, str], outputs: Mapping[str, str]
) -> None:
    """Write the node of a layer.

    Parameters
    ----------
    graph : GraphWriter
    layer : Layer
    name : str
        Of the node, which no other has: those of its weights begin with it.
    sources : mapping
        The values that are X, sequence_lens and the states; those that it lacks are left out.
    outputs : mapping
        The names of Y, Y_h and Y_c.

    Raises
    ------
    PyrnnxError
        As of `write_model`.
    """
    definition = node_schema(layer, graph.opset)
    given = {key: graph.constant(f"{name}.{key}", array) for key, array in node_weights(layer).items()} | dict(sources)
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
    constants = _constants(layer)
    states = constants.keys() & {"initial_h", "initial_c"}
    rows: Dimension = BATCH_SIZE
    for key, array in constants.items():
        rows = array.shape[1 if key in states else 0]
    op = layer.op
    sizes: dict[str, Dimension] = {
        "T": SEQ_LENGTH,
        "N": rows,
        "D": op.num_directions,
        "I": layer.input_size,
        "H": op.hidden_size,
    }

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


def _constants(layer: Layer) -> dict[str, AnyArray]:
    """Return the constants of a layer in ONNX layout; they fix batch_size.

    Raises
    ------
    ArgumentError
        They do not.
    """
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
    return own
