"""The pass: hidden layers become recurrent nodes; what is only nearly one stays, with the reason."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from graphlib import CycleError, TopologicalSorter

from ..graph.fold import Evaluate, FoldedGraph
from ..graph.walk import Node, all_graphs
from ..messages import copied
from .bodies import emit_loop, layers_of
from .builder import Builder
from .emission import Step
from .inferred import Inferred, inferred
from .loops import read_loop
from .scope import Scope
from .unrolled import LEAST_STEPS, PRODUCTS, Unrolled, emit_chain, likeness
from .values import FUNCTIONS, filler


@dataclass(frozen=True)
class Recognised:
    """A folded graph whose hidden layers are recurrent nodes.

    Attributes
    ----------
    folded : FoldedGraph
    origins : mapping
        Where each recognised layer comes from, by the name of its node.
    reasons : tuple of str
        What the others lack, the most frequent first.
    """

    folded: FoldedGraph
    origins: Mapping[str, str]
    reasons: tuple[str, ...] = ()


def recognised(folded: FoldedGraph, opsets: Mapping[str, int], evaluate: Evaluate) -> Recognised:
    """Return a graph with recurrent nodes in place of the layers that are unrolled or in loops.

    Parameters
    ----------
    folded : FoldedGraph
    opsets : mapping
        Version by domain.
    evaluate : callable
        Function that computes a node.
    """
    if not _may_have_layers(folded):
        return Recognised(folded, {}, _why_one_step(folded))
    try:
        return _Pass(folded, opsets, evaluate).result()
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        return Recognised(folded, {})  # an invalid graph: who runs it says what is wrong


def _may_have_layers(folded: FoldedGraph) -> bool:
    """Return whether a graph can have a layer: activations, and products in a loop or with a common factor."""
    kinds = folded.graph.kinds
    if not any(("", function) in kinds for function in FUNCTIONS) or not any(
        ("", product) in kinds for product in PRODUCTS
    ):
        return False
    if ("", "Loop") in kinds or ("", "Scan") in kinds:
        return True
    return any(count >= LEAST_STEPS for graph in _graphs(folded) for count in _factors(graph).values())


def _why_one_step(folded: FoldedGraph) -> tuple[str, ...]:
    """Return a reason if a product multiplies a state of zeros in a graph without other steps; else ()."""
    makers = {name: node for node in folded.nodes for name in node.output}
    for product in (node for node in folded.nodes if node.op_type in PRODUCTS):
        node = makers.get(product.input[0])
        while node is not None and node.op_type in ("Cast", "Identity"):
            node = makers.get(node.input[0])
        if node is not None and node.op_type == "ConstantOfShape" and not filler(node).any():
            return (
                "a matrix product multiplies a state of zeros, as if an exporter ran a recurrent layer for one time "
                "step; the file computes no other steps: export it with the number of steps of your inputs",
            )
    return ()


def _graphs(folded: FoldedGraph) -> Iterator[FoldedGraph]:
    yield folded
    for bodies in folded.bodies.values():
        for body in bodies:
            yield from _graphs(body)


def _factors(folded: FoldedGraph) -> Counter[tuple[object, ...]]:
    """Count the products of a graph by their constant factors."""
    counts: Counter[tuple[object, ...]] = Counter()
    for node in folded.nodes:
        array = folded.constants.value(node.input[1]) if node.op_type in PRODUCTS and len(node.input) > 1 else None
        if array is not None and array.ndim == 2:
            counts[likeness(array)] += 1
    return counts


class _Pass:
    def __init__(self, folded: FoldedGraph, opsets: Mapping[str, int], evaluate: Evaluate) -> None:
        self._folded, self._opsets, self._evaluate = folded, opsets, evaluate
        self._taken = {name for graph in all_graphs(folded.graph) for name in graph.local}
        self._taken |= {node.name for node in folded.graph.every}
        self._types: Callable[[], Inferred] = cache(partial(inferred, folded, opsets))
        self._origins: dict[str, str] = {}
        self._reasons: Counter[str] = Counter()

    def result(self) -> Recognised:
        scope = Scope(self._folded, self._opsets, self._evaluate, self._types)
        folded = self._graph(scope)
        return Recognised(folded, self._origins, tuple(reason for reason, _ in self._reasons.most_common()))

    def _graph(self, scope: Scope) -> FoldedGraph:
        folded = scope.graph
        bodies = {
            index: tuple(self._graph(scope.body(body)) for body in inner) for index, inner in folded.bodies.items()
        }
        if any(a is not b for index in bodies for a, b in zip(bodies[index], folded.bodies[index], strict=True)):
            folded = replace(folded, bodies=bodies)
        folded = self._loops(scope, folded)
        unrolled = Unrolled(scope)
        done: dict[str, Step] = {}
        for chain in unrolled.chains():
            if any(cell.new_h.name in done for cell in chain.cells):
                continue
            builder, attempt = Builder(scope, self._taken), dict(done)
            why = emit_chain(builder, chain, attempt)
            new = self._applied(folded, builder, why, [node.output[0] for node in chain.products])
            if new is not None:
                folded, done = new, attempt
        self._reasons.update(unrolled.reasons)
        return folded

    def _loops(self, scope: Scope, folded: FoldedGraph) -> FoldedGraph:
        for index, node in enumerate(scope.graph.nodes):
            if node.op_type not in ("Loop", "Scan") or node.domain:
                continue
            loop = read_loop(scope, node, scope.graph.bodies[index][0])
            layers = loop if isinstance(loop, str) else layers_of(loop)
            builder = Builder(scope, self._taken)
            why = layers if isinstance(loop, str) or isinstance(layers, str) else emit_loop(builder, loop, layers)
            new = self._applied(folded, builder, str(why), [name for name in node.output if name])
            folded = folded if new is None else new
        return folded

    def _applied(self, folded: FoldedGraph, builder: Builder, why: str, old: Iterable[str]) -> FoldedGraph | None:
        """Return a graph with the nodes of a builder; None if it still needs the `old` values."""
        new = None if why else _applied(folded, builder)
        if new is None or not _is_dead(new, [builder.replaced.get(name, name) for name in old]):
            self._reasons[why or "a value inside of the steps is used elsewhere"] += 1
            return None
        new.constants.add(builder.constants)
        self._origins |= builder.layers
        return new


def _applied(folded: FoldedGraph, builder: Builder) -> FoldedGraph | None:
    """Return a graph with the nodes of a builder; None if they depend on their own results."""
    nodes = [_renamed(node, builder.replaced) for node in folded.nodes]
    nodes += [Node(proto, 1, []) for proto in builder.nodes]
    order = _sorted(nodes)
    if order is None:
        return None
    places = {k: place for place, k in enumerate(order)}
    graph = copy.copy(folded.graph)
    graph.node = [nodes[k] for k in order]
    graph.local = folded.graph.local | set(builder.constants) | {name for node in nodes for name in node.output if name}
    graph.every = [*graph.node]
    for node in graph.node:
        for _, body in node.bodies:
            graph.every += body.every
    graph.kinds = {(node.domain, node.op_type) for node in graph.every}
    return FoldedGraph(
        graph,
        tuple(graph.node),
        folded.constants,
        frozenset(places[k] for k in folded.folded),
        {places[k]: bodies for k, bodies in folded.bodies.items()},
        {places[k]: size for k, size in folded.large.items()},
    )


def _renamed(node: Node, names: Mapping[str, str]) -> Node:
    """Return a node with other names of its outputs."""
    if names.keys().isdisjoint(node.output):
        return node
    new = copy.copy(node)
    new.output = [names.get(name, name) for name in node.output]
    new.proto = copied(node.proto)
    del new.proto.output[:]
    new.proto.output.extend(new.output)
    return new


def _sorted(nodes: list[Node]) -> list[int] | None:
    """Return the indices of nodes in topological order; None if they form a cycle."""
    producers = {name: index for index, node in enumerate(nodes) for name in node.output if name}
    before = {index: {producers[name] for name in node.needs if name in producers} for index, node in enumerate(nodes)}
    try:
        return list(TopologicalSorter(before).static_order())
    except CycleError:
        return None


def _is_dead(folded: FoldedGraph, names: Iterable[str]) -> bool:
    """Return whether the outputs of a graph need none of these values."""
    needed = {value.name for value in folded.graph.output}
    for index in reversed(range(len(folded.nodes))):
        node = folded.nodes[index]
        if index not in folded.folded and not needed.isdisjoint(node.output):
            needed |= node.needs
    return needed.isdisjoint(names)
