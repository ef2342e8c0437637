"""Checks of a model: texts, tensors, opsets, handles, and names in graphs."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import TYPE_CHECKING, Any

from pyrnnx.errors import FormatError, shown
from pyrnnx.layers.custom_operators import DOMAIN

from ..messages import walk_messages
from .walk import DEFAULT_DOMAINS, Graph, Node, all_graphs, all_nodes, node_label

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

_FIRST_IR_WITH_OPSETS = 3


def opsets_of(model: ModelProto, label: str, graph: Graph | None = None) -> dict[str, int]:
    """Return the version of each domain; the default domain is "".

    Raises
    ------
    FormatError
        A node's default domain has no version; a domain has two versions, or one below 1.
    """
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


def check_model(model: ModelProto, graph: Graph, label: str) -> None:
    """Check the texts, tensors, opsets and handles of a model; `graph` is its graph.

    Raises
    ------
    FormatError
    """
    if not _has_sound_parts(model, graph):
        for message, texts in walk_messages(model):
            _check_message(message, texts, label)
    opsets_of(model, label, graph)
    _check_handles([*graph.every, *(node for function in model.functions for node in all_nodes(function.node))], label)


def _has_sound_parts(model: ModelProto, graph: Graph) -> bool:
    """Return whether all texts in use are UTF-8, and no tensor has a negative dimension.

    Searching all messages for the first mistake takes much longer.
    """
    parts = [*graph.input, *graph.output, *model.functions, *model.opset_import, *model.metadata_props]
    texts: list[str] = [model.producer_name, model.producer_version, model.domain, model.doc_string]
    for part in parts:
        for message, others in walk_messages(part):
            texts += others
            if type(message).__name__ == "TensorProto" and min(message.dims, default=0) < 0:
                return False
    for inner in all_graphs(graph):
        texts += (inner.proto.name, inner.proto.doc_string, *inner.local, *inner.needs)
        for node in inner.node:
            texts += (node.op_type, node.domain, node.name, *node.input)
            if node.bodies:
                texts += [node.proto.doc_string, *(attribute.doc_string for attribute in node.attribute)]
        for tensor in inner.tensors:
            texts.append(tensor.name)
            if min(tensor.dims, default=0) < 0:
                return False
    try:
        "".join(texts)
    except TypeError:  # bytes in place of a text
        return False
    return True


def _check_handles(nodes: Iterable[Node | NodeProto], label: str) -> None:
    """Reject handles in nodes of a file: they could run a layer or function of another model."""
    for node in nodes:
        if node.domain == DOMAIN and any(attribute.name == "handle" for attribute in node.attribute):
            raise FormatError(
                f"{label}: {node_label(node)} has a handle, which is valid only in the process that wrote it; "
                "expected the original model, or one that pyrnnx.onnxruntime.rewrite wrote"
            )


def _check_message(message: Any, texts: list[Any], label: str) -> None:
    """Reject texts that are not UTF-8, and negative dimensions, which would pass for dynamic ones."""
    kind = type(message).__name__
    for text in texts:
        if not isinstance(text, str):
            raise FormatError(f"{label}: the text {shown(text)} in a {kind} is not UTF-8")
    if kind == "TensorProto" and min(message.dims, default=0) < 0:
        raise FormatError(f"{label}: tensor {shown(message.name)} has dims {shown(list(message.dims))}, below 0")


def is_in_order(graph: Graph, visible: set[str] | None = None) -> bool:
    """Return whether each name of a graph and its bodies is defined once, before its use, as in nearly all files.

    `visible` are the names of the graphs around it.
    """
    visible = set() if visible is None else visible
    inputs = [value.name for value in graph.input]
    tensors = [tensor.name for tensor in graph.initializer]
    defined = {*inputs, *tensors}
    if graph.sparse_initializer or len(defined) < len(inputs) + len(tensors) or not visible.isdisjoint(defined):
        return False
    visible |= defined
    for node in graph.node:
        if not visible.issuperset(node.needs):
            return False
        for _, body in node.bodies:
            if not is_in_order(body, visible):
                return False
        for name in node.output:
            if name and name in visible:
                return False
            visible.add(name)
    graph.is_sorted = visible.issuperset(value.name for value in graph.output)
    visible -= graph.local
    return graph.is_sorted


def check_names(graph: Graph, label: str, visible: Set[str] = frozenset()) -> None:
    """Check the names of a graph and its bodies, and sort its nodes; `visible` are the names of the graphs around it.

    Raises
    ------
    FormatError
        A name is defined twice or never, or nodes form a cycle.
    """
    own: set[str] = set()

    def define(name: str, what: str) -> None:
        if name in own or name in visible:
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
    known = visible | own
    for node in graph.node:
        for name in filter(None, node.output):
            define(name, f"{node_label(node)}: the output")
    graph.sort(label)
    for node in graph.node:
        for name in filter(None, node.input):
            if name not in known:
                raise FormatError(
                    f"{label}: {node_label(node)} needs {shown(name)}, which is neither an input, nor an initializer, "
                    "nor an output of a node"
                )
        for _, body in node.bodies:
            check_names(body, f"{label}: {node_label(node)}", known)
        known |= {*node.output}
    for value in graph.output:
        if value.name not in known:
            raise FormatError(f"{label}: the output {shown(value.name)} is computed by no node")
