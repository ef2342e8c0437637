"""A graph as its folded one has it: only what its outputs need, and constants in place of the nodes that made them.

From the last node to the first, a node is kept if anything needs one of its outputs, and what it needs is then needed:

    y needed  ->  MatMul(x, W) is kept  ->  x, W needed  ->  Cast(W8) = W was folded: W becomes an initializer, W8 goes
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from ..onnx_package import import_onnx
from .fold import FoldedGraph
from .walk import local_names, subgraphs

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto

Place = tuple[FoldedGraph, int]  # of a node: its graph, and where in its `nodes`


@dataclass(frozen=True)
class Edit:
    """What is different in the new graph about a node.

    Attributes
    ----------
    name : str
    dropped : tuple of int
        Inputs, by position, that it has no more.
    inputs, outputs : mapping
        Names of those that it has instead, or more, by position.
    """

    name: str
    dropped: tuple[int, ...] = ()
    inputs: Mapping[int, str] = field(default_factory=dict)
    outputs: Mapping[int, str] = field(default_factory=dict)

    def apply(self, node: NodeProto) -> None:
        node.name = self.name
        for position in self.dropped:
            node.input[position] = ""
        for names, changes in ((node.input, self.inputs), (node.output, self.outputs)):
            names.extend("" for _ in range(len(names), max(changes, default=-1) + 1))
            for position, name in changes.items():
                names[position] = name


def rebuild(
    folded: FoldedGraph, keep: Iterable[str] = (), edits: Mapping[Place, Edit] = MappingProxyType({})
) -> GraphProto:
    """A new graph with what its outputs need, and the names to keep."""
    return _rebuilt(folded, keep, edits)[0]


def large_results(folded: FoldedGraph, graph: GraphProto) -> list[tuple[NodeProto, int]]:
    """Nodes of a rebuilt graph that make results of so many bytes at every run, whatever the inputs."""
    kept = {node.output[0] for node in graph.node if node.output}
    nodes = [(folded.nodes[index], size) for index, size in folded.large.items()]
    return [(node, size) for node, size in nodes if size and node.output[0] in kept]


def with_graph(model: ModelProto, graph: GraphProto) -> ModelProto:
    """The model with another graph, and without functions."""
    result = type(model)()
    for one, value in model.ListFields():
        if one.name in ("graph", "functions"):
            continue
        if isinstance(value, (int, str)):
            setattr(result, one.name, value)
        else:
            getattr(result, one.name).extend(value)
    result.graph.CopyFrom(graph)
    return result


def _rebuilt(folded: FoldedGraph, keep: Iterable[str], edits: Mapping[Place, Edit]) -> tuple[GraphProto, set[str]]:
    """The graph, and the names that it takes from the graphs around it."""
    needed = {one.name for one in folded.graph.output} | set(keep)
    nodes = []
    for index in reversed(range(len(folded.nodes))):
        node = folded.nodes[index]
        if index in folded.folded or needed.isdisjoint(name for name in node.output if name):
            continue
        copy = type(node)()
        copy.CopyFrom(node)
        edit = edits.get((folded, index))
        if edit is not None:
            edit.apply(copy)
        for (_, target), body in zip(subgraphs(copy), folded.bodies.get(index, ()), strict=True):
            graph, outside = _rebuilt(body, (), edits)
            target.CopyFrom(graph)
            needed |= outside
        needed.update(copy.input)
        nodes.append(copy)
    needed.discard("")
    local = local_names(folded.graph)
    return _assembled(folded, nodes[::-1], needed, local), needed - local


def _assembled(folded: FoldedGraph, nodes: list[NodeProto], needed: set[str], local: set[str]) -> GraphProto:
    onnx, old = import_onnx(), folded.graph
    new: GraphProto = onnx.GraphProto(name=old.name)
    if old.doc_string:
        new.doc_string = old.doc_string
    new.input.extend(old.input)
    new.output.extend(old.output)
    new.node.extend(nodes)
    inputs = {one.name for one in old.input}
    new.initializer.extend(one for one in old.initializer if one.name in needed or one.name in inputs)
    new.sparse_initializer.extend(one for one in old.sparse_initializer if one.values.name in needed)
    made = {name for node in nodes for name in node.output}
    for name, value in folded.constants.computed():
        if name in needed and name not in made:
            if isinstance(value, np.ndarray):
                new.initializer.append(onnx.numpy_helper.from_array(value, name))
            else:
                new.initializer.add().CopyFrom(value)
                new.initializer[-1].name = name
    new.value_info.extend(one for one in old.value_info if one.name in needed and one.name in local)
    new.quantization_annotation.extend(one for one in old.quantization_annotation if one.tensor_name in needed)
    if hasattr(old, "metadata_props"):
        new.metadata_props.extend(old.metadata_props)
    return new
