"""Pass that computes the constant inputs of recurrent nodes: W, R, B and P, lengths and initial states.

    W8 -> DequantizeLinear -> W,  (x, W) -> LSTM -> y      W is known, as a value of the graph's constants

One ONNX Runtime session for each graph computes just the nodes that these values need, in it and the graphs around it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ..graph.constants import Constants, named
from ..graph.walk import Graph, Node, all_graphs, all_nodes, needed_nodes
from ..onnx_package import import_onnx
from ..operators.schemas import OPERATORS
from ..session import RANDOM, NotRunnable, constant_values

if TYPE_CHECKING:
    from onnx import ModelProto


def compute_constants(root: Graph, model: ModelProto, wanted: Mapping[Graph, Iterable[str]]) -> None:
    """Add wanted values that depend on constants only to the constants of a sorted graph and its bodies."""
    places = {
        body: (graph, k) for graph in all_graphs(root) for k, node in enumerate(graph.node) for _, body in node.bodies
    }
    missing: dict[Graph, set[str]] = {}
    for graph, names in wanted.items():
        for name in names:
            home = graph
            while name not in home.local and home in places:
                home = places[home][0]
            if name and home.constants.owner(name) is None:
                missing.setdefault(home, set()).add(name)
    for home, names in missing.items():
        nodes, graph = [*home.node], home
        while graph in places:
            graph, index = places[graph]
            nodes = [*graph.node[:index], *nodes]
        _compute(home.constants, nodes, names, model)


def _compute(constants: Constants, nodes: list[Node], wanted: set[str], model: ModelProto) -> None:
    """Compute wanted values of a graph from the nodes that it can see, and add them to its constants."""
    excluded = {*OPERATORS, *_random_operators(model)}
    computable: list[Node] = []
    known: set[str] = set()
    for index in needed_nodes(nodes, wanted)[0]:
        node = nodes[index]
        sources = node.needs - known
        if not node.bodies and node.op_type not in excluded and all(map(constants.owner, sources)):
            computable.append(node)
            known.update(node.output)
    names = sorted(known & wanted)
    if not names:
        return
    indices, needed = needed_nodes(computable, names)
    onnx = import_onnx()
    small = onnx.GraphProto(name="constants", node=[computable[index].proto for index in indices])
    values = ((name, constants.tensor(name)) for name in sorted(needed - known))
    small.initializer.extend(named(value, name) for name, value in values if value is not None)
    small.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    proto = onnx.ModelProto(
        ir_version=model.ir_version, graph=small, opset_import=model.opset_import, functions=model.functions
    )
    try:
        arrays = constant_values(proto, names)
    except NotRunnable:
        return
    constants.add(dict(zip(names, arrays, strict=True)))


def _random_operators(model: ModelProto) -> set[str]:
    """Return the operators whose results differ from call to call, and all functions if one contains such a node."""
    functions = {function.name for function in model.functions}
    inside = (node.op_type for function in model.functions for node in all_nodes(function.node))
    return {*RANDOM, *(functions if not RANDOM.isdisjoint(inside) else ())}
