"""Pass that computes the constant inputs of recurrent nodes: W, R, B and P, lengths and initial states.

    W8 -> DequantizeLinear -> W,  (x, W) -> LSTM -> y      W is known, as a value of the graph's constants

One ONNX Runtime session computes just the nodes that these values need, in the graph and its bodies.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from ..graph.constants import named
from ..graph.walk import Graph, Node, all_graphs, all_nodes
from ..messages import copied
from ..onnx_package import import_onnx
from ..operators.schemas import OPERATORS
from ..session import RANDOM, NotRunnable, constant_values

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

Value = tuple[Graph, str]  # a name, in the graph that defines it


def compute_constants(root: Graph, model: ModelProto, wanted: Mapping[Graph, Iterable[str]]) -> None:
    """Add values that depend on constants only to the constants of a graph and its bodies.

    Parameters
    ----------
    root : Graph
        The graph of the model, modified in place.
    model : onnx.ModelProto
    wanted : mapping
        Names of values in each graph. Those that depend on an input stay unknown.
    """
    values = [
        (graph, name)
        for graph, names in wanted.items()
        for name in dict.fromkeys(names)
        if name and graph.constants.owner(name) is None
    ]
    if values:
        search = _Search(root, _random_operators(model))
        search.run(list(dict.fromkeys(search.home(*value) for value in values)), model)


def _random_operators(model: ModelProto) -> set[str]:
    """Return the operators whose results differ from call to call, and all functions if one contains such a node."""
    functions = {function.name for function in model.functions}
    inside = (node.op_type for function in model.functions for node in all_nodes(function.node))
    return {*RANDOM, *(functions if not RANDOM.isdisjoint(inside) else ())}


class _Search:
    def __init__(self, root: Graph, random: Collection[str]) -> None:
        self._random = random
        self._numbers = {graph: number for number, graph in enumerate(all_graphs(root))}
        self._parents = {body: graph for graph in self._numbers for node in graph.node for _, body in node.bodies}
        self._producers: dict[Graph, dict[str, Node]] = {}

    def home(self, graph: Graph, name: str) -> Value:
        """Return a name that is visible in a graph with the graph that defines it."""
        while name not in graph.local and graph in self._parents:
            graph = self._parents[graph]
        return graph, name

    def run(self, wanted: list[Value], model: ModelProto) -> None:
        is_known: dict[Value, bool] = {}
        nodes: list[tuple[Graph, Node]] = []
        left = wanted[::-1]
        while left:
            value = left[-1]
            if value in is_known:
                left.pop()
                continue
            graph, name = value
            node = self._producer(graph, name)
            is_constant = graph.constants.owner(name) is not None
            if is_constant or node is None:
                is_known[value] = is_constant
                continue
            sources = [self.home(graph, source) for source in node.needs]
            unknown = [source for source in sources if source not in is_known]
            if unknown:
                left += unknown
                continue
            known = all(is_known[source] for source in sources)
            is_known |= {(graph, output): known for output in node.output}
            if known:
                nodes.append((graph, node))
        results = [value for value in wanted if is_known[value] and value[0].constants.owner(value[1]) is None]
        if results:
            self._compute(nodes, results, model)

    def _producer(self, graph: Graph, name: str) -> Node | None:
        """Return the node that computes a value, if that can be done once."""
        if graph not in self._producers:
            self._producers[graph] = {output: node for node in graph.node for output in node.output}
        node = self._producers[graph].get(name)
        if node is None or node.bodies or node.op_type in self._random or node.op_type in OPERATORS:
            return None
        return node

    def _compute(self, nodes: list[tuple[Graph, Node]], results: list[Value], model: ModelProto) -> None:
        onnx = import_onnx()
        small = onnx.GraphProto(name="constants", node=[self._renamed(*place) for place in nodes])
        made = {(graph, output) for graph, node in nodes for output in node.output}
        needed = {self.home(graph, name) for graph, node in nodes for name in node.needs} - made
        for graph, name in sorted(needed, key=self._name):
            value = graph.constants.tensor(name)
            assert value is not None  # the search found it
            small.initializer.append(named(value, self._name((graph, name))))
        names = [self._name(value) for value in results]
        small.output.extend(onnx.ValueInfoProto(name=name) for name in names)
        proto = onnx.ModelProto(
            ir_version=model.ir_version, graph=small, opset_import=model.opset_import, functions=model.functions
        )
        try:
            arrays = constant_values(proto, names)
        except NotRunnable:
            return
        for (graph, name), array in zip(results, arrays, strict=True):
            graph.constants.add({name: array})

    def _name(self, value: Value) -> str:
        graph, name = value
        return f"{self._numbers[graph]}/{name}"

    def _renamed(self, graph: Graph, node: Node) -> NodeProto:
        """Return a copy of a node with names that all graphs share."""
        proto = copied(node.proto)
        for field in (proto.input, proto.output):
            field[:] = [self._name(self.home(graph, name)) if name else "" for name in field]
        return proto
