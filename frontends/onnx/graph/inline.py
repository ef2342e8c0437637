"""Inlining of local functions: their nodes replace each call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyrnnx.errors import PyrnnxError, shortened

from ..messages import copied
from .check import check_graph, check_splits, opsets_of
from .local_functions import function_key, key_of_call
from .walk import DEFAULT_DOMAINS, Graph, all_nodes, node_label

if TYPE_CHECKING:
    from onnx import ModelProto


def inlined(
    model: ModelProto, opsets: Mapping[str, int], label: str, graph: Graph | None = None
) -> tuple[ModelProto, Mapping[str, int]]:
    """Return the model without local functions and with the default domain "", and its opsets.

    Parameters
    ----------
    model : onnx.ModelProto
        Returned itself if nothing changes.
    opsets : mapping
        Its opsets, as `opsets_of` returns them.
    label : str
        How errors name the model.
    graph : Graph, optional
        Its graph, if already read.

    Raises
    ------
    PyrnnxError
        A function cannot be inlined, or `check_splits` refuses the graph.
    """
    result, graph = model, Graph(model.graph) if graph is None else graph
    if model.functions:
        result = _without_functions(model, label)
        opsets, graph = opsets_of(result, label), Graph(result.graph)
    check_splits(graph, label)
    imports = {(entry.domain, entry.version) for entry in result.opset_import}
    if imports != set(opsets.items()) or any(domain == DEFAULT_DOMAINS[1] for domain, _ in graph.kinds):
        if result is model:
            result = copied(model)
        del result.opset_import[:]
        for domain, version in opsets.items():
            result.opset_import.add(domain=domain, version=version)
        for node in all_nodes(result.graph.node):
            if node.domain == DEFAULT_DOMAINS[1]:
                node.domain = ""
    return result, opsets


def _without_functions(model: ModelProto, label: str) -> ModelProto:
    """Return the model with its local functions inlined.

    Raises
    ------
    PyrnnxError
        onnx cannot inline a function.
    """
    import onnx.inliner

    try:
        result = onnx.inliner.inline_local_functions(model, convert_version=True)
    except Exception as error:
        raise PyrnnxError(f"{label}: its functions cannot be inlined ({shortened(str(error))})") from error
    local = {function_key(function.domain, function.name, "")[:2] for function in model.functions}
    for node in all_nodes(result.graph.node):
        if key_of_call(node)[:2] in local:
            raise PyrnnxError(f"{label}: the function of {node_label(node)} cannot be inlined; its opset differs")
    check_graph(Graph(result.graph), label)
    return result
