"""Graphs with the constants that are visible in them and in their bodies, and unique names for their nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .constants import Constants
from .walk import Graph, Node, first_output

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto, TensorProto

from .walk import subgraphs


@dataclass(frozen=True, eq=False)
class ScopedGraph:
    """A graph or a body, with its constants.

    Attributes
    ----------
    graph : Graph
    constants : Constants
        Initializers and results of Constant nodes; other values can be added.
    bodies : mapping
        Bodies of its nodes, by index of the node.
    """

    graph: Graph
    constants: Constants
    bodies: Mapping[int, tuple[ScopedGraph, ...]]

    @property
    def nodes(self) -> list[Node]:
        """Nodes in the order of the graph."""
        return self.graph.node


Place = tuple[ScopedGraph, int]  # a node's graph, and its index there


def scoped(graph: Graph, label: str, outer: Constants | None = None) -> ScopedGraph:
    """Return a graph and its bodies with their constants; `label` is the model's name in errors."""
    constants = Constants(graph, outer, label)
    bodies = {}
    for index, node in enumerate(graph.node):
        if node.bodies:
            bodies[index] = tuple([scoped(body, label, constants) for _, body in node.bodies])
        elif node.op_type == "Constant" and (tensor := _constant_tensor(node)) is not None:
            constants.add({node.output[0]: tensor})
    return ScopedGraph(graph, constants, bodies)


def _constant_tensor(node: Node) -> TensorProto | None:
    if node.domain or not node.attribute or node.attribute[0].name != "value" or not node.output:
        return None
    tensor: TensorProto = node.attribute[0].t
    return None if tensor.data_location else tensor


def all_scoped(graph: ScopedGraph) -> Iterator[ScopedGraph]:
    """Yield the graph and the bodies of its nodes at any depth, outer ones first."""
    yield graph
    for bodies in graph.bodies.values():
        for body in bodies:
            yield from all_scoped(body)


def protos(graph: ScopedGraph, proto: GraphProto) -> Iterator[tuple[Place, GraphProto, NodeProto]]:
    """Yield the place of each node with the graph and the node at that place in a copy of the graph."""
    for index, node in enumerate(proto.node):
        yield (graph, index), proto, node
        if index in graph.bodies:  # other nodes may have bodies that nothing runs
            for body, (_, inner) in zip(graph.bodies[index], subgraphs(node), strict=True):
                yield from protos(body, inner)


def named_nodes(graph: ScopedGraph, wanted: Callable[[Node], bool]) -> dict[str, Place]:
    """Return the wanted nodes of a graph and its bodies by name, or by path if the name is empty or not unique.

    A path consists of the first output and the body's attribute of each node on the way in, then the node's own first
    output: "y/then_branch/h". The suffixes "#2" and so on make it unique.
    """
    numbers: dict[str, int] = {}
    places: dict[str, Place] = {}
    visited = list(_walk(graph, wanted, ""))
    counts = Counter([node.name for node in graph.graph.every] if visited else ())
    for place, path in visited:
        inner, index = place
        node = inner.nodes[index]
        name = node.name
        if not name or counts[name] > 1:
            stem = name = f"{path}{first_output(node) or node.op_type}"
            while name in counts or name in places:
                numbers[stem] = numbers.get(stem, 1) + 1
                name = f"{stem}#{numbers[stem]}"
        places[name] = place
    return places


def _walk(graph: ScopedGraph, wanted: Callable[[Node], bool], path: str) -> Iterator[tuple[Place, str]]:
    for index, node in enumerate(graph.nodes):
        if wanted(node):
            yield (graph, index), path
        if not node.bodies:
            continue
        for (attribute, _), body in zip(node.bodies, graph.bodies[index], strict=True):
            yield from _walk(body, wanted, f"{path}{first_output(node)}/{attribute}/")
