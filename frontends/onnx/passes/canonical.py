"""Pass that checks a model, and gives it unique names and nodes in topological order.

ONNX wants that, and ONNX Runtime does not. It takes the innermost of several values of one name, so the values of
bodies that hide others are renamed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyrnnx.errors import FormatError, shown
from pyrnnx.layers.custom_operators import DOMAIN

from ..file import tensors_of
from ..graph.walk import (
    DEFAULT_DOMAINS,
    Graph,
    Node,
    all_graphs,
    all_nodes,
    fresh_name,
    local_names,
    node_label,
    sorted_nodes,
    subgraphs,
)
from ..messages import copied

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto

_FIRST_IR_WITH_OPSETS = 3


def canonical(model: ModelProto, graph: Graph, label: str) -> tuple[ModelProto, Graph]:
    """Return a model with unique names and sorted nodes, the model itself if it has them, and its graph."""
    _check_parts(model, graph, label)
    opsets_of(model, label, graph)
    if _check_names(graph, label, set()):
        return model, graph
    model = copied(model)
    rename_hidden(model.graph, {}, set(), {name for inner in all_graphs(graph) for name in inner.local})
    for inner in reversed([*all_graphs(Graph(model.graph))]):
        nodes = [copied(node.proto) for node in sorted_nodes(inner, label)]
        del inner.proto.node[:]
        inner.proto.node.extend(nodes)
    return model, Graph(model.graph)


def opsets_of(model: ModelProto, label: str, graph: Graph | None = None) -> dict[str, int]:
    """Return the version of each domain; the default domain is ""."""
    versions: dict[str, int] = {}
    for entry in model.opset_import:
        domain = "" if entry.domain in DEFAULT_DOMAINS else entry.domain
        if versions.setdefault(domain, entry.version) != entry.version:
            raise FormatError(
                f"{label}: opset_import has the versions {versions[domain]} and {entry.version} of domain "
                f"{shown(domain)}"
            )
        if entry.version < 1:
            raise FormatError(
                f"{label}: opset_import has version {entry.version} of domain {shown(domain)}; expected 1 or more"
            )
    if not versions and model.ir_version < _FIRST_IR_WITH_OPSETS:
        return {"": 1}
    if "" not in versions and any(node.domain in DEFAULT_DOMAINS for node in (graph or Graph(model.graph)).every):
        raise FormatError(f"{label}: opset_import has no version for the default domain")
    return versions


def _check_parts(model: ModelProto, graph: Graph, label: str) -> None:
    """Reject names that are not UTF-8, negative dimensions, which would pass for dynamic ones, and handles.

    A handle in a file could run a layer or function of another model.
    """
    nodes: list[Node | NodeProto] = [*graph.every]
    names: list[Any] = [entry.domain for entry in model.opset_import]
    for function in model.functions:
        names += (function.name, function.domain)
        nodes += all_nodes(function.node)
    for inner in all_graphs(graph):
        names += (*inner.local, *inner.needs, *(tensor.name for tensor in inner.tensors))
    for node in nodes:
        names += (node.op_type, node.domain, node.name, *node.input, *node.output)
        if node.domain == DOMAIN and any(attribute.name == "handle" for attribute in node.attribute):
            raise FormatError(
                f"{label}: {node_label(node)} has a handle, which is valid only in the process that wrote it; "
                "expected the original model, or one that pyrnnx.onnxruntime.rewrite wrote"
            )
    for name in names:
        if not isinstance(name, str):
            raise FormatError(f"{label}: the name {shown(name)} is not UTF-8")
    for tensor in tensors_of(model, graph):
        if min(tensor.dims, default=0) < 0:
            raise FormatError(f"{label}: tensor {shown(tensor.name)} has dims {shown(list(tensor.dims))}, below 0")


def _check_names(graph: Graph, label: str, known: set[str]) -> bool:
    """Check the names of a graph and its bodies, and sort its nodes; `known` are the names of the graphs around it.

    Return whether the nodes were sorted, and no name is among the known ones.
    """
    own: set[str] = set()

    def define(name: str, what: str) -> None:
        if name in own:
            raise FormatError(f"{label}: {what} {shown(name)} is defined twice; expected every name once")
        own.add(name)

    for value in graph.input:
        define(value.name, "the input")
    defaults = set(own)
    for tensor in (*graph.initializer, *(tensor.values for tensor in graph.sparse_initializer)):
        if tensor.name in defaults:
            defaults.remove(tensor.name)  # the default of an input; a second one is an error
        else:
            define(tensor.name, "the initializer")
    first = own - known
    for node in graph.node:
        for name in filter(None, node.output):
            define(name, f"{node_label(node)}: the output")
    before, graph.node = graph.node, sorted_nodes(graph, label)
    is_canonical, new = before == graph.node and known.isdisjoint(own), own - known
    known |= first
    for node in graph.node:
        for name in node.input:
            if name and name not in known:
                raise FormatError(
                    f"{label}: {node_label(node)} needs {shown(name)}, which is neither an input, nor an initializer, "
                    "nor an output of a node"
                )
        for _, body in node.bodies:
            is_canonical &= _check_names(body, f"{label}: {node_label(node)}", known)
        known.update(node.output)
    for value in graph.output:
        if value.name not in known:
            raise FormatError(f"{label}: the output {shown(value.name)} is computed by no node")
    known -= new
    return is_canonical


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
