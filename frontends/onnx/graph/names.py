"""Names for nodes, each of which only one node of a model has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from .fold import FoldedGraph
from .rebuild import Place
from .walk import all_nodes, first_output, subgraphs


def named_nodes(folded: FoldedGraph, wanted: Callable[[Any], bool]) -> dict[str, Place]:
    """The wanted nodes of a graph and its bodies, by their own names, or by paths where those do not tell them apart.

    A path is the first output of each node on the way in, with the attribute that is the body, and then of the node
    itself: "y/then_branch/h"; and "#2" and so on behind one that is the name of another node.
    """
    counts = Counter(node.name for node in all_nodes(folded.graph.node))
    numbers: dict[str, int] = {}
    found: dict[str, Place] = {}
    for place, path in _walk(folded, wanted, ""):
        graph, index = place
        node = graph.nodes[index]
        name = node.name
        if not name or counts[name] > 1:
            stem = name = f"{path}{first_output(node) or node.op_type}"
            while name in counts or name in found:
                numbers[stem] = numbers.get(stem, 1) + 1
                name = f"{stem}#{numbers[stem]}"
        found[name] = place
    return found


def _walk(folded: FoldedGraph, wanted: Callable[[Any], bool], path: str) -> Iterator[tuple[Place, str]]:
    for index, node in enumerate(folded.nodes):
        if wanted(node):
            yield (folded, index), path
        for (attribute, _), body in zip(subgraphs(node), folded.bodies.get(index, ()), strict=True):
            yield from _walk(body, wanted, f"{path}{first_output(node)}/{attribute}/")
