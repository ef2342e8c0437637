"""The search: hidden layers become recurrent nodes; what is only nearly one stays, with the reason."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import FormatError

from ..graph.constants import named, set_constants
from ..graph.inference import Types, inferred_types
from ..graph.walk import Graph, Node, all_graphs, needed_nodes, prune, sorted_nodes
from ..messages import copied
from .bodies import emit_loop, layers_of
from .builder import Builder, Step
from .loops import read_loop
from .scope import Scope
from .unrolled import Unrolled, emit_chain

if TYPE_CHECKING:
    from onnx import ModelProto


def recognise(model: ModelProto, label: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """Replace the layers that are unrolled or in loops by recurrent nodes, in place.

    The model is one that ONNX Runtime simplified: its constants are initializers, its nodes sorted. Return where each
    new node comes from, by its name, and what is missing in other parts, the most frequent first.
    """
    search = _Search(model, label)
    search.run()
    return search.origins, tuple(reason for reason, _ in search.reasons.most_common())


class _Search:
    def __init__(self, model: ModelProto, label: str) -> None:
        self._graph = set_constants(Graph(model.graph), label)
        self._opset = next(entry.version for entry in model.opset_import if not entry.domain)
        self._taken = {name for graph in all_graphs(self._graph) for name in graph.local}
        self._taken |= {node.name for node in self._graph.every}
        self._types: Callable[[], Types] = cache(partial(inferred_types, model))
        self.origins: dict[str, str] = {}
        self.reasons: Counter[str] = Counter()

    def run(self) -> None:
        self._search(Scope(self._graph, self._opset, self._types))

    def _search(self, scope: Scope) -> bool:
        """Replace the layers of a graph and of its bodies; return whether there are any."""
        new = _New(scope.graph)
        for index, node in enumerate(scope.graph.node):
            for _, body in node.bodies:
                if self._search(scope.body(body)):
                    new.read_again(index)
        self._loops(scope, new)
        self._unrolled(scope, new)
        if new.is_changed:
            new.write()
        return new.is_changed

    def _loops(self, scope: Scope, new: _New) -> None:
        for node in scope.graph.node:
            if node.op_type not in ("Loop", "Scan") or node.domain:
                continue
            loop = read_loop(scope, node, node.bodies[0][1])
            layers = loop if isinstance(loop, str) else layers_of(loop)
            builder = Builder(scope, self._taken)
            why = layers if isinstance(loop, str) or isinstance(layers, str) else emit_loop(builder, loop, layers)
            self._apply(new, builder, str(why), [[name] for name in node.output if name])

    def _unrolled(self, scope: Scope, new: _New) -> None:
        unrolled = Unrolled(scope)
        done: dict[str, Step] = {}
        for chain in unrolled.chains():
            if any(cell.new_h.name in done for cell in chain.cells):
                continue
            builder, attempt = Builder(scope, self._taken), dict(done)
            why = emit_chain(builder, chain, attempt)
            if self._apply(new, builder, why, [[node.output[0] for node in products] for products in chain.products]):
                done = attempt
        self.reasons.update(unrolled.reasons)

    def _apply(self, new: _New, builder: Builder, why: str, old: Iterable[list[str]]) -> bool:
        """Add the nodes of a builder to a graph if it then does without one of each `old` values; return whether."""
        if why or not new.add(builder, old):
            self.reasons[why or "a value inside of the steps is used elsewhere"] += 1
            return False
        self.origins |= builder.layers
        return True


class _New:
    """Nodes of a graph with those of its new layers."""

    def __init__(self, graph: Graph) -> None:
        self._graph, self._nodes = graph, [*graph.node]
        self._constants: dict[str, AnyArray] = {}
        self.is_changed = False

    def read_again(self, index: int) -> None:
        """Read a node again, whose body is another one now."""
        self._nodes[index] = Node(self._nodes[index].proto, 1, [])
        self.is_changed = True

    def add(self, builder: Builder, old: Iterable[list[str]]) -> bool:
        """Add the nodes of a builder; return False if they depend on their own results, or all of some values stay."""
        graph = copy.copy(self._graph)
        graph.node = [_renamed(node, builder.replaced) for node in self._nodes]
        graph.node += [Node(proto, 1, []) for proto in builder.nodes]
        try:
            nodes = sorted_nodes(graph, "")
        except FormatError:
            return False
        indices, needed = needed_nodes(nodes, (value.name for value in graph.output))
        if any(needed.issuperset(builder.replaced.get(name, name) for name in equal) for equal in old):
            return False
        self._nodes = [nodes[index] for index in indices]
        self._constants |= builder.constants
        self.is_changed = True
        return True

    def write(self) -> None:
        proto, protos = self._graph.proto, [copied(node.proto) for node in self._nodes]
        del proto.node[:]
        proto.node.extend(protos)
        proto.initializer.extend(named(array, name) for name, array in self._constants.items())
        prune(proto)


def _renamed(node: Node, names: Mapping[str, str]) -> Node:
    if names.keys().isdisjoint(node.output):
        return node
    new = copy.copy(node)
    new.output = [names.get(name, name) for name in node.output]
    new.proto = copied(node.proto)
    del new.proto.output[:]
    new.proto.output.extend(new.output)
    return new
