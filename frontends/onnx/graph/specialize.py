"""A graph for calls whose constants and sizes are known.

An input that has the same value in every call becomes an initializer. An If whose condition is then constant becomes
the nodes of its branch. The results stay equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, shown

from ..messages import copied
from ..onnx_package import import_onnx
from .fold import Evaluate, FoldedGraph, fold
from .rebuild import rebuild
from .walk import subgraphs

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto

_DOMAINS = ("", "ai.onnx")


def specialized(
    source: ModelProto,
    label: str,
    opsets: Mapping[str, int],
    evaluate: Evaluate,
    constants: Mapping[str, AnyArray],
    sizes: Mapping[str, Sequence[int | None]],
) -> ModelProto:
    """Return a copy of a model for calls with these constants and sizes.

    Parameters
    ----------
    source : onnx.ModelProto
        Model without functions.
    label : str
        How errors name the model.
    opsets : mapping
        Version by domain.
    evaluate : callable
        Function that computes a node: see `fold`.
    constants : mapping
        Values of inputs, of the declared dtypes.
    sizes : mapping
        Sizes of inputs, None for an open one.

    Raises
    ------
    ArgumentError
        Sizes of no input, of another rank than declared, or negative.
    """
    proto = copied(source)
    _check_sizes(label, proto.graph, sizes)
    _bind(proto.graph, constants, sizes)
    is_new = True
    while is_new:
        folded = fold(proto.graph, opsets, evaluate, label)
        graph = rebuild(folded)
        is_new = _inline_choices(graph, folded)
        proto.graph.CopyFrom(graph)
    return proto


def _check_sizes(label: str, graph: GraphProto, sizes: Mapping[str, Sequence[int | None]]) -> None:
    infos = {info.name: info for info in graph.input}
    for name, given in sizes.items():
        if name not in infos:
            raise ArgumentError(f"{label}: sizes has {shown(name)}; expected inputs: {', '.join(map(shown, infos))}")
        tensor = infos[name].type.tensor_type
        known = (
            [size.dim_value or None for size in tensor.shape.dim] if tensor.HasField("shape") else [None] * len(given)
        )
        if len(given) != len(known) or not all(map(_fits, given, known)):
            raise ArgumentError(
                f"{label}: sizes of input {shown(name)} are {shown(given)}; expected {shown(known)}, with None for an "
                "open size"
            )


def _fits(size: int | None, declared: int | None) -> bool:
    return size is None or (size >= 0 and declared in (None, size))


def _bind(graph: GraphProto, constants: Mapping[str, AnyArray], sizes: Mapping[str, Sequence[int | None]]) -> None:
    onnx = import_onnx()
    inputs = [info for info in graph.input if info.name not in constants]
    for info in inputs:
        if info.name in sizes:
            shape = info.type.tensor_type.shape
            given = sizes[info.name]
            while len(shape.dim) < len(given):
                shape.dim.add()
            for dimension, size in zip(shape.dim, given, strict=True):
                if size is not None:
                    dimension.dim_value = size
    tensors = [tensor for tensor in graph.initializer if tensor.name not in constants]
    tensors += [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    inputs, tensors = list(map(copied, inputs)), list(map(copied, tensors))
    del graph.input[:], graph.initializer[:]
    graph.input.extend(inputs)
    graph.initializer.extend(tensors)


def _inline_choices(graph: GraphProto, folded: FoldedGraph) -> bool:
    """Replace each If whose condition is constant by its branch, unless names collide; return whether there was one."""
    nodes: list[NodeProto] = []
    for node in graph.node:
        branch = _branch(node, folded)
        if branch is None or branch.sparse_initializer:
            nodes.append(node)
            continue
        others = (name for other in graph.node if other is not node for name in _defined_by(other))
        if not set(_defined_in(branch)).isdisjoint([*others, *_own_names(graph), *node.output]):
            nodes.append(node)
            continue
        graph.initializer.extend(branch.initializer)
        nodes += branch.node
        for value, name in zip(branch.output, node.output, strict=True):
            if name:
                nodes.append(import_onnx().helper.make_node("Identity", [value.name], [name]))
    if len(nodes) == len(graph.node) and all(a is b for a, b in zip(nodes, graph.node, strict=True)):
        return False
    _replace_nodes(graph, nodes)
    return True


def _replace_nodes(graph: GraphProto, nodes: Sequence[NodeProto]) -> None:
    kept = list(map(copied, nodes))
    del graph.node[:]
    graph.node.extend(kept)


def _branch(node: NodeProto, folded: FoldedGraph) -> GraphProto | None:
    if node.op_type != "If" or node.domain not in _DOMAINS:
        return None
    condition = folded.constants.value(node.input[0])
    if condition is None:
        return None
    wanted = "then_branch" if condition.any() else "else_branch"
    return next((body for name, body in subgraphs(node) if name == wanted), None)


def _own_names(graph: GraphProto) -> Iterator[str]:
    yield from (info.name for info in graph.input)
    yield from (tensor.name for tensor in graph.initializer)


def _defined_in(graph: GraphProto) -> Iterator[str]:
    """Yield the names that a graph and its bodies define."""
    yield from _own_names(graph)
    for node in graph.node:
        yield from _defined_by(node)


def _defined_by(node: NodeProto) -> Iterator[str]:
    yield from filter(None, node.output)
    for _, body in subgraphs(node):
        yield from _defined_in(body)
