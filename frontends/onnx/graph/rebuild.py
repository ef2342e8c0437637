"""A graph as its folded one has it: only what its outputs need, and constants in place of the nodes that made them.

From the last node to the first, a node is kept if anything needs one of its outputs, and what it needs is then needed:

    y needed  ->  MatMul(x, W) is kept  ->  x, W needed  ->  Cast(W8) = W was folded: W becomes an initializer, W8 goes
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ..onnx_package import import_onnx
from .constants import named, without_values
from .fold import FoldedGraph
from .walk import local_names

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto

    from .constants import Tensor

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

    def inputs_of(self, node: NodeProto) -> list[str]:
        """Those of the node in the new graph."""
        return _changed(node.input, {**dict.fromkeys(self.dropped, ""), **self.inputs})

    def apply(self, node: NodeProto) -> None:
        node.name = self.name
        for names, new in ((node.input, self.inputs_of(node)), (node.output, _changed(node.output, self.outputs))):
            del names[:]
            names.extend(new)


def _changed(names: Iterable[str], changes: Mapping[int, str]) -> list[str]:
    changed = list(names)
    changed += [""] * (max(changes, default=-1) + 1 - len(changed))
    for position, name in changes.items():
        changed[position] = name
    return changed


def rebuild(
    folded: FoldedGraph,
    keep: Iterable[str] = (),
    edits: Mapping[Place, Edit] = MappingProxyType({}),
    *,
    values: bool = True,
) -> GraphProto:
    """A new graph with what its outputs need, and the names to keep.

    Without `values` its initializers, not those of bodies, have only names and types: `tensors_of` has the rest.
    """
    return _write(_kept(folded, keep, edits), edits, values, import_onnx().GraphProto())


def tensors_of(folded: FoldedGraph, graph: GraphProto) -> dict[str, Tensor]:
    """The initializers of a rebuilt graph by name, as the folded one has them: no copies."""
    tensors: dict[str, Tensor] = {one.name: one for one in folded.graph.initializer}
    tensors |= folded.constants.own()
    return {one.name: tensors[one.name] for one in graph.initializer}


def large_results(folded: FoldedGraph, graph: GraphProto) -> list[tuple[NodeProto, int]]:
    """Nodes of a rebuilt graph that make results of so many bytes at every run, whatever the inputs."""
    kept = {node.output[0] for node in graph.node if node.output}
    nodes = [(folded.nodes[index], size) for index, size in folded.large.items()]
    return [(node, size) for node, size in nodes if size and node.output[0] in kept]


def with_graph(model: ModelProto, graph: GraphProto) -> ModelProto:
    """The model with another graph, and without functions."""
    result = type(model)()
    _copy_fields(model, result, {"graph", "functions"})
    result.graph.CopyFrom(graph)
    return result


@dataclass(frozen=True)
class _Kept:
    """What is kept of a graph.

    Attributes
    ----------
    folded : FoldedGraph
    nodes : list of int
        Their places.
    needed : set of str
        Names that they, the outputs and the caller need.
    bodies : mapping
        What is kept of the bodies of nodes, by the nodes' places.
    """

    folded: FoldedGraph
    nodes: list[int]
    needed: set[str]
    bodies: Mapping[int, list[_Kept]]


def _kept(folded: FoldedGraph, keep: Iterable[str], edits: Mapping[Place, Edit]) -> _Kept:
    needed = {one.name for one in folded.graph.output} | set(keep)
    nodes, bodies = [], {}
    for index in reversed(range(len(folded.nodes))):
        node = folded.nodes[index]
        if index in folded.folded or needed.isdisjoint(name for name in node.output if name):
            continue
        bodies[index] = [_kept(body, (), edits) for body in folded.bodies.get(index, ())]
        for body in bodies[index]:
            needed |= body.needed - local_names(body.folded.graph)
        needed.update(edits[folded, index].inputs_of(node) if (folded, index) in edits else node.input)
        nodes.append(index)
    return _Kept(folded, nodes[::-1], needed - {""}, bodies)


def _write(kept: _Kept, edits: Mapping[Place, Edit], values: bool, new: GraphProto) -> GraphProto:
    """What is kept, into an empty graph: bodies where they belong, for a copy of one would copy what is in it."""
    folded, needed, old = kept.folded, kept.needed, kept.folded.graph
    new.name = old.name
    if old.doc_string:
        new.doc_string = old.doc_string
    new.input.extend(old.input)
    new.output.extend(old.output)
    for index in kept.nodes:
        node = new.node.add()
        _copy(folded.nodes[index], node, [partial(_write, one, edits, True) for one in kept.bodies[index]])
        if (folded, index) in edits:
            edits[folded, index].apply(node)
    inputs, made = {one.name for one in old.input}, {name for node in new.node for name in node.output}
    convert = named if values else without_values
    given = [(one.name, one) for one in old.initializer if one.name in needed or one.name in inputs]
    computed = [(name, one) for name, one in folded.constants.computed() if name in needed and name not in made]
    new.initializer.extend(convert(one, name) for name, one in (*given, *computed))
    new.sparse_initializer.extend(one for one in old.sparse_initializer if one.values.name in needed)
    local = local_names(old)
    new.value_info.extend(one for one in old.value_info if one.name in needed and one.name in local)
    new.quantization_annotation.extend(one for one in old.quantization_annotation if one.tensor_name in needed)
    if hasattr(old, "metadata_props"):
        new.metadata_props.extend(old.metadata_props)
    return new


def _copy(old: NodeProto, new: NodeProto, bodies: Sequence[Callable[[GraphProto], object]]) -> None:
    """A node whose bodies are written by these functions, in the order of `subgraphs`."""
    if not bodies:
        new.CopyFrom(old)
        return
    writers = iter(bodies)
    _copy_fields(old, new, {"attribute"})
    for attribute in old.attribute:
        copy = new.attribute.add()
        _copy_fields(attribute, copy, {"g", "graphs"})
        if attribute.type == attribute.GRAPH:
            next(writers)(copy.g)
        elif attribute.type == attribute.GRAPHS:
            for _ in attribute.graphs:
                next(writers)(copy.graphs.add())


def _copy_fields(old: Any, new: Any, left_out: Collection[str]) -> None:
    for one, value in old.ListFields():
        if one.name in left_out:
            continue
        if isinstance(value, (int, float, str, bytes)):
            setattr(new, one.name, value)
        elif hasattr(value, "extend"):
            getattr(new, one.name).extend(value)
        else:
            getattr(new, one.name).CopyFrom(value)
