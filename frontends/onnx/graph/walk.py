"""Walking ONNX graphs: nodes and their bodies, the names they need, and what makes a graph sound."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import chain
from typing import Any

from pyrnnx.errors import FormatError, shortened, shown

# Numbers in onnx.AttributeProto.AttributeType; written down here so that onnx need not be imported.
_GRAPH, _GRAPHS = 5, 10
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
        if attribute.type == _GRAPH:
            yield attribute.name, attribute.g
        elif attribute.type == _GRAPHS:
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


def needed_names(node: Any) -> set[str]:
    """The names that must be known before a node can run: its inputs, and what its bodies take from outside."""
    names = set(node.input)
    for _, graph in subgraphs(node):
        inside = {one.name for one in graph.output}
        for inner in graph.node:
            inside |= needed_names(inner)
        names |= inside - local_names(graph)
    return names - {""}


def sorted_nodes(graph: Any, label: str) -> list[Any]:
    """The nodes so that each comes after those that it needs: the graph's own order wherever that is sound.

    Raises
    ------
    FormatError
        Nodes that need each other in a circle.
    """
    nodes = list(graph.node)
    producers = {name: index for index, node in enumerate(nodes) for name in node.output if name}
    needs = [{producers[name] for name in needed_names(node) if name in producers} for node in nodes]
    if all(max(before, default=-1) < index for index, before in enumerate(needs)):
        return nodes
    users: list[list[int]] = [[] for _ in nodes]
    for index, before in enumerate(needs):
        for one in before:
            users[one].append(index)
    missing = [len(before) for before in needs]
    ready = deque(index for index, count in enumerate(missing) if count == 0)
    order = []
    while ready:
        index = ready.popleft()
        order.append(index)
        for user in users[index]:
            missing[user] -= 1
            if missing[user] == 0:
                ready.append(user)
    if len(order) < len(nodes):
        stuck = next(index for index, count in enumerate(missing) if count)
        raise FormatError(f"{label}: {node_label(nodes[stuck])} is in, or behind, a cycle: it needs its own results")
    return [nodes[index] for index in order]


def check_graph(graph: Any, label: str, visible: set[str] | None = None) -> None:
    """Reject a graph whose names do not fit together; `visible` are the names of the graphs around it.

    Raises
    ------
    FormatError
        A name that is defined twice or never, nodes in a circle, or bodies too deep.
    """
    if visible is None:
        for _ in all_nodes(graph.node):  # so that what follows may recurse
            pass
    visible = set() if visible is None else visible
    given, own = _definitions(graph, label, visible)
    visible |= given
    for node in sorted_nodes(graph, label):
        for name in node.input:
            if name and name not in visible:
                raise FormatError(
                    f"{label}: {node_label(node)} needs {shown(name)}, which is neither an input, nor an initializer, "
                    "nor an output of a node"
                )
        for _, body in subgraphs(node):
            check_graph(body, f"{label}: {node_label(node)}", visible)
        visible.update(node.output)
    for one in graph.output:
        if one.name not in visible:
            raise FormatError(f"{label}: the output {shown(one.name)} is computed by no node")
    visible -= own


def _definitions(graph: Any, label: str, visible: set[str]) -> tuple[set[str], set[str]]:
    """Names of inputs and initializers, and all names that the graph defines, each of them once."""
    own: set[str] = set()

    def define(name: str, what: str) -> None:
        if name in own or name in visible:
            raise FormatError(f"{label}: {what} {shown(name)} is defined twice; expected every name once")
        own.add(name)

    for one in graph.input:
        define(one.name, "the input")
    defaults = set(own)
    for name in (*(one.name for one in graph.initializer), *(one.values.name for one in graph.sparse_initializer)):
        if name in defaults:
            defaults.remove(name)  # a default value; a second one would be too many
        else:
            define(name, "the initializer")
    given = set(own)
    for node in graph.node:
        for name in node.output:
            if name:
                define(name, f"{node_label(node)}: the output")
    return given, own
