"""Unique names for the nodes of a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from .fold import FoldedGraph
from .rebuild import Place
from .walk import Node, first_output


def named_nodes(folded: FoldedGraph, wanted: Callable[[Node], bool]) -> dict[str, Place]:
    """Return the wanted nodes of a graph and its bodies by name, or by path if the name is empty or not unique.

    A path consists of the first output and the body's attribute of each node on the way in, then the node's own first
    output: "y/then_branch/h". The suffixes "#2" and so on make it unique.
    """
    numbers: dict[str, int] = {}
    places: dict[str, Place] = {}
    visited = list(_walk(folded, wanted, ""))
    counts = Counter([node.name for node in folded.graph.every] if visited else ())
    for place, path in visited:
        graph, index = place
        node = graph.nodes[index]
        name = node.name
        if not name or counts[name] > 1:
            stem = name = f"{path}{first_output(node) or node.op_type}"
            while name in counts or name in places:
                numbers[stem] = numbers.get(stem, 1) + 1
                name = f"{stem}#{numbers[stem]}"
        places[name] = place
    return places


def _walk(folded: FoldedGraph, wanted: Callable[[Node], bool], path: str) -> Iterator[tuple[Place, str]]:
    for index, node in enumerate(folded.nodes):
        if wanted(node):
            yield (folded, index), path
        if not node.bodies:
            continue
        for (attribute, _), body in zip(node.bodies, folded.bodies[index], strict=True):
            yield from _walk(body, wanted, f"{path}{first_output(node)}/{attribute}/")
