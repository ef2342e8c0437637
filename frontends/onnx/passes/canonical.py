"""Pass that gives a model unique names and nodes in topological order, as ONNX wants and ONNX Runtime does not.

ONNX Runtime takes the innermost of several values of one name, so the values of bodies that hide others are renamed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..graph.check import check_model, check_names, is_in_order
from ..graph.walk import Graph, all_graphs, fresh_name, local_names, subgraphs
from ..messages import copied

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto


def canonical(model: ModelProto, graph: Graph, label: str) -> tuple[ModelProto, Graph]:
    """Return a model with unique names and sorted nodes, the model itself if it has them, and its graph.

    Parameters
    ----------
    model : onnx.ModelProto
    graph : Graph
        Its graph.
    label : str
        How errors name the model.

    Raises
    ------
    FormatError
        Texts, tensors, opsets or handles are wrong; a name is defined twice in one graph, or never; or nodes form a
        cycle.
    """
    check_model(model, graph, label)
    if is_in_order(graph):
        return model, graph
    model = copied(model)
    rename_hidden(model.graph, {}, set(), {name for inner in all_graphs(graph) for name in inner.local})
    graph = Graph(model.graph)
    check_names(graph, label)
    for inner in reversed([*all_graphs(graph)]):
        nodes = [copied(node.proto) for node in inner.node]
        del inner.proto.node[:]
        inner.proto.node.extend(nodes)
    return model, Graph(model.graph)


def rename_hidden(graph: GraphProto, names: Mapping[str, str], around: set[str], taken: set[str]) -> None:
    """Rename the values of a body that hide others, in place; `names` are the new names of values around it."""
    own = local_names(graph)
    new = {name: fresh_name(name, taken) for name in sorted(own & around)}
    names = {old: name for old, name in names.items() if old not in own} | new
    for node in graph.node:
        for field in (node.input, node.output):
            field[:] = [names.get(name, name) for name in field]
        for _, body in subgraphs(node):
            rename_hidden(body, names, around | own, taken)
    values = (graph.input, graph.output, graph.value_info, graph.initializer)
    for value in (*(value for field in values for value in field), *(t.values for t in graph.sparse_initializer)):
        value.name = names.get(value.name, value.name)
    for entry in graph.quantization_annotation:
        entry.tensor_name = names.get(entry.tensor_name, entry.tensor_name)
