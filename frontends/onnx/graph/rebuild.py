"""Graphs rebuilt after folding: only what the outputs need, with constants in place of folded nodes.

From the last node to the first, a node stays if a later node or an output needs it; its inputs are then needed too:

    y needed  ->  MatMul(x, W) stays  ->  x, W needed  ->  Cast(W8) = W was folded: W becomes an initializer, W8 goes

Without values, large constants of bodies are lifted to the top level, if their names are unique: a session takes
constants from there without copies.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, groupby
from types import MappingProxyType
from typing import TYPE_CHECKING

from ..messages import copy_fields
from ..onnx_package import import_onnx
from .constants import add_without_values, named, shape_of
from .fold import FoldedGraph
from .walk import Graph, Node, all_graphs

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto

    from .constants import Tensor

_LARGE = 1024  # elements
Place = tuple[FoldedGraph, int]  # a node's graph, and its index in `nodes`


@dataclass(frozen=True)
class Edit:
    """Changes of a node in the new graph.

    Attributes
    ----------
    name : str
    dropped : tuple of int
        Positions of removed inputs.
    inputs, outputs : mapping
        Names of replaced or added inputs and outputs, by position.
    """

    name: str
    dropped: tuple[int, ...] = ()
    inputs: Mapping[int, str] = field(default_factory=dict)
    outputs: Mapping[int, str] = field(default_factory=dict)

    def inputs_of(self, node: NodeProto | Node) -> list[str]:
        """Return the inputs of the node in the new graph."""
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
    """Return a new graph with all that its outputs and the names in `keep` need.

    Without `values` it has no `value_info`, and its top-level initializers have only names and types; `tensors_of`
    returns their values.
    """
    part = _needed(folded, keep, edits)
    return _write(part, edits, None if values else _Lifted(folded.graph), import_onnx().GraphProto())


def tensors_of(folded: FoldedGraph, graph: GraphProto) -> dict[str, Tensor]:
    """Return the initializers of a rebuilt graph by name, without copies."""
    tensors = _all_tensors(folded)
    return {stub.name: tensors[stub.name] for stub in graph.initializer}


def _all_tensors(folded: FoldedGraph) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = {}
    for body in chain.from_iterable(folded.bodies.values()):
        tensors |= _all_tensors(body)
    tensors |= {tensor.name: tensor for tensor in folded.graph.initializer}
    tensors |= folded.graph.arrays
    tensors |= folded.constants.own()
    return tensors


def large_results(folded: FoldedGraph, graph: GraphProto) -> list[tuple[Node, int]]:
    """Return nodes of a rebuilt graph whose results have a fixed size, with their bytes."""
    if not folded.large:
        return []
    names = {node.output[0] for node in graph.node if node.output}
    nodes = [(folded.nodes[index], size) for index, size in folded.large.items()]
    return [(node, size) for node, size in nodes if size and node.output[0] in names]


def with_graph(model: ModelProto, graph: GraphProto) -> ModelProto:
    """Return the model with another graph, and without functions."""
    result = type(model)()
    copy_fields(model, result, {"graph", "functions"})
    result.graph.CopyFrom(graph)
    return result


@dataclass(frozen=True)
class _Needed:
    """Needed part of a graph.

    Attributes
    ----------
    folded : FoldedGraph
    nodes : list of int
        Indices of the needed nodes.
    needed : set of str
        Names that these nodes, the outputs and the caller need.
    bodies : mapping
        Needed parts of the bodies of nodes, by index of the node.
    """

    folded: FoldedGraph
    nodes: list[int]
    needed: set[str]
    bodies: Mapping[int, list[_Needed]]


def _needed(folded: FoldedGraph, keep: Iterable[str], edits: Mapping[Place, Edit]) -> _Needed:
    needed = {value.name for value in folded.graph.output} | set(keep)
    needed.discard("")
    nodes, bodies = [], {}
    for index in reversed(range(len(folded.nodes))):
        node = folded.nodes[index]
        if index in folded.folded or needed.isdisjoint(node.output):
            continue
        bodies[index] = [_needed(body, (), edits) for body in folded.bodies[index]] if index in folded.bodies else []
        for body in bodies[index]:
            needed |= body.needed - body.folded.graph.local
        needed.update(edits[folded, index].inputs_of(node) if edits and (folded, index) in edits else node.input)
        needed.discard("")
        nodes.append(index)
    return _Needed(folded, nodes[::-1], needed - {""}, bodies)


class _Lifted:
    """Constants of bodies that the top level gets."""

    def __init__(self, graph: Graph) -> None:
        self.tensors: dict[str, Tensor] = {}
        self._counts = Counter(chain.from_iterable(inner.local for inner in all_graphs(graph)))

    def take(self, name: str, tensor: Tensor) -> bool:
        """Take a constant if it is large and no other graph has a value of this name; return whether it was taken."""
        if math.prod(shape_of(tensor)) < _LARGE or self._counts[name] > 1:
            return False
        self.tensors[name] = tensor
        return True


def _write(
    part: _Needed, edits: Mapping[Place, Edit], lifted: _Lifted | None, new: GraphProto, *, is_body: bool = False
) -> GraphProto:
    """Write the needed part to an empty graph, bodies in place to avoid copying them twice."""
    folded, needed, old = part.folded, part.needed, part.folded.graph.proto
    new.name = old.name
    if old.doc_string:
        new.doc_string = old.doc_string
    new.input.extend(old.input)
    new.output.extend(old.output)
    for plain, group in groupby(part.nodes, lambda index: not part.bodies[index]):
        if plain:  # all at once is much faster
            new.node.extend([folded.nodes[index].proto for index in group])
            continue
        for index in group:
            writers = [partial(_write, body, edits, lifted, is_body=True) for body in part.bodies[index]]
            _copy(folded.nodes[index].proto, new.node.add(), writers)
    for place, index in enumerate(part.nodes if edits else ()):
        if (folded, index) in edits:
            edits[folded, index].apply(new.node[place])
    inputs = {value.name for value in old.input}
    results = {name for index in part.nodes for name in folded.nodes[index].output}
    arrays, kept = folded.graph.arrays, needed | inputs
    tensors: list[tuple[str, Tensor]] = [
        (name, arrays.get(name, tensor)) for tensor in folded.graph.initializer if (name := tensor.name) in kept
    ]
    tensors += [(name, t) for name, t in folded.constants.computed() if name in needed and name not in results]
    if lifted is not None and not is_body:
        for name, tensor in chain(tensors, lifted.tensors.items()):
            add_without_values(new.initializer, tensor, name)
    else:
        own, local = inputs.union(value.name for value in old.output), folded.graph.local
        left = [(name, t) for name, t in tensors if name in own or lifted is None or not lifted.take(name, t)]
        new.initializer.extend([named(tensor, name) for name, tensor in left])
        new.value_info.extend(value for value in old.value_info if value.name in needed and value.name in local)
    new.sparse_initializer.extend(tensor for tensor in old.sparse_initializer if tensor.values.name in needed)
    new.quantization_annotation.extend(entry for entry in old.quantization_annotation if entry.tensor_name in needed)
    if hasattr(old, "metadata_props"):
        new.metadata_props.extend(old.metadata_props)
    return new


def _copy(old: NodeProto, new: NodeProto, bodies: Sequence[Callable[[GraphProto], object]]) -> None:
    """Copy a node whose bodies these functions write, in the order of `subgraphs`."""
    writers = iter(bodies)
    copy_fields(old, new, {"attribute"})
    for attribute in old.attribute:
        copy = new.attribute.add()
        copy_fields(attribute, copy, {"g", "graphs"})
        if attribute.type == attribute.GRAPH:
            next(writers)(copy.g)
        elif attribute.type == attribute.GRAPHS:
            for _ in attribute.graphs:
                next(writers)(copy.graphs.add())
