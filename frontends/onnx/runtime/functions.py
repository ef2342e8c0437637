"""Python functions that an ONNX Runtime session calls for single nodes, from input arrays to output arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx.layers.layer import Layer

from ..graph.walk import all_nodes, node_label
from ..makers import MAKERS
from ..nodes import check_count
from ..schemas import OPERATORS
from ..stream_layer import StreamLayer
from .evaluator import Evaluator
from .memory import ask, forgotten
from .recurrent import Call, called_ops, is_cell, packed_bytes, result_bytes
from .session import nodes_model
from .settings import Settings
from .types import Tensors, Types, without_shape

if TYPE_CHECKING:
    from onnx import NodeProto

Function = Callable[..., Sequence[Any]]


def evaluated(settings: Settings, node: NodeProto, inputs: Sequence[str], types: Types, constants: Tensors) -> Function:
    """Return a function that runs a node and its bodies in onnx's ReferenceEvaluator.

    Parameters
    ----------
    settings : Settings
    node : onnx.NodeProto
    inputs : sequence of str
        Names of the function's arguments: the needed values that are not in `constants`.
    types : mapping
        onnx.TypeProto by name.
    constants : mapping
        onnx.TensorProto or array by name.

    Raises
    ------
    UnsupportedError
        An operator that the evaluator lacks.
    """
    outputs = [name for name in node.output if name]
    evaluator = new_evaluator(settings, [node], inputs, types, outputs, constants)

    def run(*arrays: Any) -> Sequence[Any]:
        with forgotten():
            return evaluator.run(dict(zip(inputs, arrays, strict=True)), outputs)

    return run


def new_evaluator(
    settings: Settings,
    nodes: Sequence[NodeProto],
    inputs: Sequence[str],
    types: Types,
    outputs: Sequence[str],
    constants: Tensors,
) -> Evaluator:
    """Return an evaluator of nodes; the parameters are those of `evaluated`."""
    known = {name: without_shape(types[name]) for name in inputs if name in types}
    model = nodes_model(nodes, inputs, known, outputs, constants, settings.opsets)
    operators = called_ops(settings.calls, all_nodes(nodes))
    return Evaluator(model, settings.opsets, settings.label, settings.layers, operators)


def unbound(settings: Settings, node: NodeProto) -> Function:
    """Return a function that runs a recurrent node with computed weights; each call builds a layer."""
    row, maker = OPERATORS[node.op_type], MAKERS[node.op_type]
    opset = settings.opsets.get(node.domain, 1)
    check_count(node_label(node), "input", node.input, row.inputs)
    places = [place for place, name in enumerate(node.output) if name]
    names = [name for name in node.input if name]
    arguments = [argument for argument, name in zip(row.inputs, node.input, strict=False) if name]
    sources = dict(zip(arguments, names, strict=True))

    def run(*arrays: Any) -> Sequence[Any]:
        values = dict(zip(arguments, arrays, strict=True))
        ask(node, packed_bytes(values.get("W"), values.get("R")))
        constants = {sources[name]: values[name] for name in row.weights if name in sources}
        layer: Layer = maker.layer(node, constants, opset)
        X = values.get("X")
        ask(node, result_bytes(layer.op, layer.convention, X))
        results = layer.run(X, values.get("sequence_lens"), values.get("initial_h"), values.get("initial_c"))
        return [results[place] for place in places]

    return run


def called(node: NodeProto, call: Call) -> Function:
    """Return a function that runs a node of another domain by `call`, with None for absent inputs."""
    present = [bool(name) for name in node.input]
    places = [place for place, name in enumerate(node.output) if name]

    def run(*arrays: Any) -> Sequence[Any]:
        remaining = iter(arrays)
        results = call(node, [next(remaining) if is_present else None for is_present in present])
        return [results[place] for place in places]

    return run


def layer_run(layer: Layer | StreamLayer, inputs: Sequence[str], outputs: Sequence[str]) -> Function:
    """Return a function that runs a layer; absent arguments and results have empty names."""
    places = [place for place, name in enumerate(inputs) if name]
    wanted = [place for place, name in enumerate(outputs) if name]
    missing = 1 if is_cell(layer) else 0  # a cell has no Y

    def run(*arrays: Any) -> Sequence[Any]:
        arguments: list[Any] = [None] * 4
        for place, array in zip(places, arrays, strict=True):
            arguments[place] = array
        ask(layer.label, result_bytes(layer.op, layer.convention, arguments[0]))
        results = layer.run(*arguments)
        return [results[place - missing] for place in wanted]

    return run


def narrowed(function: Function, halves: Sequence[bool]) -> Function:
    """Return a function that casts float32 arguments back to float16 where `halves` is true.

    ONNX Runtime runs float16 nodes in float32 between nodes that lack float16 kernels.
    """

    def run(*arrays: Any) -> Sequence[Any]:
        pairs = zip(arrays, halves, strict=True)
        return function(*(array.astype(np.float16, copy=False) if is_half else array for array, is_half in pairs))

    return run
