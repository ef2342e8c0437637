"""Walking ONNX graphs: nodes and their bodies, the names they need, and an order in which they can run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from typing import Any

from pyrnnx.errors import FormatError, shortened, shown

DEFAULT_DOMAINS = ("", "ai.onnx")  # two names of one domain
MOST_BODIES = 50  # protobuf reads no deeper than 33 of them


def node_label(node: Any) -> str:
    """How errors name a node: its operator, and its name or its first output."""
    operator = shortened(f"{node.domain}.{node.op_type}" if node.domain else node.op_type)
    if node.name:
        return f"{operator} {shown(node.name)}"
    output = first_output(node)
    return f"{operator} (output {shown(output)})" if output else operator


def first_output(node: Any) -> str:
    """The first output that has a name; "" where none has."""
    return next((name for name in node.output if name), "")


def subgraphs(node: Any) -> Iterator[tuple[str, Any]]:
    """The graphs among the attributes of a node (bodies of If, Loop, Scan), with the attributes' names."""
    for attribute in node.attribute:
        if attribute.type == attribute.GRAPH:
            yield attribute.name, attribute.g
        elif attribute.type == attribute.GRAPHS:
            for index, graph in enumerate(attribute.graphs):
                yield f"{attribute.name}[{index}]", graph


def all_nodes(nodes: Any) -> Iterator[Any]:
    """The nodes, and those in the bodies of nodes, at any depth that `MOST_BODIES` allows.

    Raises
    ------
    FormatError
        Bodies that are nested deeper: beyond what a file can hold, and what a recursion can visit.
    """
    left = [iter(nodes)]
    while left:
        node = next(left[-1], None)
        if node is None:
            left.pop()
            continue
        yield node
        bodies = [graph.node for _, graph in subgraphs(node)]
        if bodies:
            if len(left) > MOST_BODIES:
                raise FormatError(f"{node_label(node)} is in {len(left)} bodies; expected at most {MOST_BODIES}")
            left.append(chain.from_iterable(bodies))


def local_names(graph: Any) -> set[str]:
    """The names that a graph itself defines."""
    names = {one.name for one in graph.input} | {one.name for one in graph.initializer}
    names |= {one.values.name for one in graph.sparse_initializer}
    for node in graph.node:
        names.update(node.output)
    return names - {""}


class Needs:
    """What the nodes of a graph and of its bodies need: for passes that ask for each body and for what is around it."""

    def __init__(self) -> None:
        # The nodes are held: only then their identity is theirs.
        self._found: dict[int, tuple[Any, set[str]]] = {}

    def __call__(self, node: Any) -> set[str]:
        if id(node) not in self._found:
            self._found[id(node)] = node, needed_names(node, self)
        return self._found[id(node)][1]


def needed_names(node: Any, needs: Callable[[Any], set[str]] | None = None) -> set[str]:
    """The names that must be known before a node can run: its inputs, and what its bodies take from outside."""
    names = set(node.input)
    for _, graph in subgraphs(node):
        inside = {one.name for one in graph.output}
        for inner in graph.node:
            inside |= (needs or needed_names)(inner)
        names |= inside - local_names(graph)
    names.discard("")
    return names


def sorted_nodes(graph: Any, label: str, needs: Callable[[Any], set[str]] = needed_names) -> list[Any]:
    """The nodes so that each comes after those that it needs: the graph's own order wherever that is sound.

    Raises
    ------
    FormatError
        Nodes that need each other in a circle.
    """
    nodes = list(graph.node)
    producers = {name: index for index, node in enumerate(nodes) for name in node.output if name}
    before = [{producers[name] for name in needs(node) if name in producers} for node in nodes]
    if all(max(one, default=-1) < index for index, one in enumerate(before)):
        return nodes
    try:
        return [nodes[index] for index in TopologicalSorter(dict(enumerate(before))).static_order()]
    except CycleError as error:
        stuck = nodes[min(error.args[1])]
        raise FormatError(f"{label}: {node_label(stuck)} is in, or behind, a cycle: it needs its own results") from None
