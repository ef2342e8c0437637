"""Places of nodes in a graph and its bodies, and unique names for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from .walk import Graph, Node, first_output, subgraphs

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto

Place = tuple[Graph, int]  # a node's graph, and its index there


def protos(graph: Graph, proto: GraphProto) -> Iterator[tuple[Place, GraphProto, NodeProto]]:
    """Yield the place of each node with the graph and the node at that place in a copy of the graph."""
    for index, node in enumerate(proto.node):
        yield (graph, index), proto, node
        if graph.node[index].bodies:  # other nodes may have bodies that nothing runs
            for (_, body), (_, inner) in zip(graph.node[index].bodies, subgraphs(node), strict=True):
                yield from protos(body, inner)


def named_nodes(graph: Graph, wanted: Callable[[Node], bool]) -> dict[str, Place]:
    """Return the wanted nodes of a graph and its bodies by name, or by path if the name is empty or not unique.

    A path consists of the first output and the body's attribute of each node on the way in, then the node's own first
    output: "y/then_branch/h". The suffixes "#2" and so on make it unique.
    """
    numbers: dict[str, int] = {}
    places: dict[str, Place] = {}
    visited = list(_walk(graph, wanted, ""))
    counts = Counter([node.name for node in graph.every] if visited else ())
    for place, path in visited:
        inner, index = place
        node = inner.node[index]
        name = node.name
        if not name or counts[name] > 1:
            stem = name = f"{path}{first_output(node) or node.op_type}"
            while name in counts or name in places:
                numbers[stem] = numbers.get(stem, 1) + 1
                name = f"{stem}#{numbers[stem]}"
        places[name] = place
    return places


def _walk(graph: Graph, wanted: Callable[[Node], bool], path: str) -> Iterator[tuple[Place, str]]:
    for index, node in enumerate(graph.node):
        if wanted(node):
            yield (graph, index), path
        for attribute, body in node.bodies:
            yield from _walk(body, wanted, f"{path}{first_output(node)}/{attribute}/")
