"""Walks over ONNX graphs: nodes and their bodies, needed names, topological order, places and names of nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any, TypeVar, overload

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import FormatError, shortened, shown

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto, NodeProto, SparseTensorProto, TensorProto

DEFAULT_DOMAINS = ("", "ai.onnx")  # synonyms
MOST_BODIES = 50  # protobuf reads no deeper than 33 of them
# Numbers of AttributeProto.AttributeType.
_GRAPH, _GRAPHS = 5, 10
_BODIES = {_GRAPH, _GRAPHS}
_TENSOR, _MANY_TENSORS, _SPARSE, _MANY_SPARSE = 4, 9, 11, 12
_TENSORS = {_TENSOR, _MANY_TENSORS, _SPARSE, _MANY_SPARSE}
# Operators of the default domain whose attributes can be graphs or tensors; in others, ONNX Runtime ignores them.
_WITH_PARTS = {"Constant", "ConstantOfShape", "If", "Loop", "Scan", "SequenceMap"}
AnyNode = TypeVar("AnyNode", "NodeProto", "Node")


def node_label(node: Node | NodeProto) -> str:
    operator = shortened(f"{node.domain}.{node.op_type}" if node.domain else node.op_type)
    if node.name:
        return f"{operator} {shown(node.name)}"
    output = first_output(node)
    return f"{operator} (output {shown(output)})" if output else operator


def first_output(node: Node | NodeProto) -> str:
    return next((name for name in node.output if name), "")


class Node:
    """Fields of an onnx.NodeProto, read once: each access to a protobuf message creates an object.

    `needs` are its inputs and the names that its bodies capture.
    """

    __slots__ = ("bodies", "domain", "input", "name", "needs", "op_type", "output", "proto")

    def __init__(self, proto: NodeProto, depth: int, tensors: list[TensorProto]) -> None:
        self.proto, self.op_type, self.domain, self.name = proto, proto.op_type, proto.domain, proto.name
        self.input, self.output = proto.input[:], proto.output[:]  # slicing is twice as fast as iterating
        self.bodies: tuple[tuple[str, Graph], ...] = ()
        self.needs = set(self.input)
        self.needs.discard("")
        has_bodies = False
        if self.domain in DEFAULT_DOMAINS and self.op_type not in _WITH_PARTS:
            return
        for attribute in self.attribute:
            kind = attribute.type
            if kind in _TENSORS:
                tensors += _tensors(attribute, kind)
            elif kind in _BODIES:
                has_bodies = True
        if has_bodies:
            if depth > MOST_BODIES:
                raise FormatError(f"{node_label(self)} is in {depth} bodies; expected at most {MOST_BODIES}")
            self.bodies = tuple((name, Graph(body, depth + 1)) for name, body in subgraphs(proto))
            self.needs.update(*(body.needs for _, body in self.bodies))

    @property
    def attribute(self) -> list[AttributeProto]:
        return self.proto.attribute[:]


class Graph:
    """Fields of an onnx.GraphProto, read once.

    `arrays` are values of initializers that are not in their messages, `tensors` also the parts of sparse initializers
    and the tensors in attributes of nodes. `local` are the names that it defines, `needs` those that it captures.
    `every` has the nodes in bodies at any depth, too, and `kinds` the domains and operators of these.
    """

    __slots__ = (
        *("arrays", "constants", "every", "initializer", "input", "kinds", "local", "needs", "node"),
        *("output", "proto", "sparse_initializer", "tensors"),
    )

    def __init__(self, proto: GraphProto, depth: int = 1) -> None:
        self.proto, self.input, self.output = proto, proto.input[:], proto.output[:]
        self.initializer, self.sparse_initializer = proto.initializer[:], proto.sparse_initializer[:]
        self.arrays: Mapping[str, AnyArray] = {}
        self.constants: Any
        self.tensors = [*self.initializer, *(part for tensor in self.sparse_initializer for part in _parts(tensor))]
        self.node = [Node(node, depth, self.tensors) for node in proto.node[:]]
        self.local = local_names(self)
        self.every = [*self.node]
        for node in self.node:
            for _, body in node.bodies:
                self.every += body.every
        self.kinds = {(node.domain, node.op_type) for node in self.every}
        self.needs = {value.name for value in self.output}.union(*(node.needs for node in self.node))
        self.needs -= self.local
        self.needs.discard("")


def _tensors(attribute: AttributeProto, kind: int) -> list[TensorProto]:
    if kind == _TENSOR:
        return [attribute.t]
    if kind == _MANY_TENSORS:
        return list(attribute.tensors)
    sparse = [attribute.sparse_tensor] if kind == _SPARSE else attribute.sparse_tensors
    return [part for tensor in sparse for part in _parts(tensor)]


def _parts(tensor: SparseTensorProto) -> tuple[TensorProto, TensorProto]:
    return tensor.values, tensor.indices


@overload
def subgraphs(node: NodeProto) -> Iterator[tuple[str, GraphProto]]: ...
@overload
def subgraphs(node: Node) -> Iterator[tuple[str, Graph]]: ...
def subgraphs(node: Node | NodeProto) -> Iterator[tuple[str, Graph | GraphProto]]:
    """Yield the bodies of a node (If, Loop, Scan), with the names of their attributes."""
    if type(node) is Node:
        yield from node.bodies
        return
    for attribute in node.attribute:
        if attribute.type == _GRAPH:
            yield attribute.name, attribute.g
        elif attribute.type == _GRAPHS:
            for index, graph in enumerate(attribute.graphs):
                yield f"{attribute.name}[{index}]", graph


def all_nodes(nodes: Iterable[AnyNode]) -> Iterator[AnyNode]:
    """Yield the nodes and those in their bodies."""
    for node in nodes:
        yield node
        for _, body in subgraphs(node):
            yield from all_nodes(body.node)


def local_names(graph: Graph | GraphProto) -> set[str]:
    names = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    names |= {tensor.values.name for tensor in graph.sparse_initializer}
    for node in graph.node:
        names.update(node.output)
    return names - {""}


def needed_names(node: Node | NodeProto) -> set[str]:
    """Return the inputs of a node, and the names that its bodies capture."""
    if type(node) is Node:
        return node.needs
    names = set(node.input)
    names.discard("")
    if node.domain in DEFAULT_DOMAINS and node.op_type not in _WITH_PARTS:
        return names
    for _, graph in subgraphs(node):
        inside = {value.name for value in graph.output}
        for inner in graph.node:
            inside |= needed_names(inner)
        names |= inside - local_names(graph)
    return names - {""}


def needed_nodes(nodes: Sequence[AnyNode], outputs: Iterable[str]) -> tuple[list[int], set[str]]:
    """Return the indices of the nodes on which values depend, and the names of these values and all that they need."""
    needed, indices = set(outputs), list[int]()
    for index in reversed(range(len(nodes))):
        node = nodes[index]
        if not needed.isdisjoint(node.output):
            needed |= needed_names(node)
            indices.append(index)
    return indices[::-1], needed


def prune(graph: GraphProto) -> None:
    """Drop nodes and initializers that no output needs, also in bodies."""
    for node in graph.node:
        if node.op_type in _WITH_PARTS:
            for _, body in subgraphs(node):
                prune(body)
    indices, needed = needed_nodes(graph.node, (value.name for value in graph.output))
    for index in sorted({*range(len(graph.node))}.difference(indices), reverse=True):
        del graph.node[index]
    needed.update(value.name for value in graph.input)
    for index in reversed(range(len(graph.initializer))):
        if graph.initializer[index].name not in needed:
            del graph.initializer[index]


def fresh_name(wanted: str, taken: set[str]) -> str:
    """Return a name that is not taken, and add it to these."""
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}#{number}"
    taken.add(name)
    return name


def all_graphs(graph: Graph) -> Iterator[Graph]:
    """Yield the graph, and the bodies of its nodes at any depth."""
    yield graph
    for node in graph.node:
        for _, body in node.bodies:
            yield from all_graphs(body)


def sorted_nodes(graph: Graph, label: str) -> list[Node]:
    """Return the nodes in topological order: the graph's own order if valid."""
    nodes = list(graph.node)
    producers = {name: index for index, node in enumerate(nodes) for name in node.output if name}
    known = producers.keys()
    before = [{producers[name] for name in known & needed_names(node)} for node in nodes]
    if all(not places or max(places) < index for index, places in enumerate(before)):
        return nodes
    try:
        return [nodes[index] for index in TopologicalSorter(dict(enumerate(before))).static_order()]
    except CycleError as error:
        stuck = nodes[min(error.args[1])]
        raise FormatError(f"{label}: {node_label(stuck)} is in a cycle, or depends on one") from None


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
