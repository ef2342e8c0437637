"""Checks of a model: texts, tensors, opsets, functions, and names in graphs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from pyrnnx.errors import FormatError, UnsupportedError, shown

from ..messages import walk_messages
from ..onnx_package import import_onnx
from ..schemas import OPERATORS
from .local_functions import check_functions
from .signatures import signature_of
from .walk import DEFAULT_DOMAINS, Graph, Node, all_graphs, all_nodes, node_label

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

# Layers check their own inputs, and exporters omit the roi of Resize-11 although ONNX requires it.
_LENIENT = {("", "Resize"), *((operator.domain, operator.name) for operator in OPERATORS.values())}
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


def check_model(model: ModelProto, label: str) -> dict[str, int]:
    """Check the texts, tensors, opsets, functions and names of a model; return its opsets.

    Raises
    ------
    FormatError
    """
    return sound_graph(model, label)[1]


def sound_graph(model: ModelProto, label: str, graph: Graph | None = None) -> tuple[Graph, dict[str, int]]:
    """Check a model as `check_model`; return its graph in topological order, and its opsets.

    Parameters
    ----------
    model : onnx.ModelProto
    label : str
        How errors name the model.
    graph : Graph, optional
        Its graph, if already read.

    Raises
    ------
    FormatError
    """
    graph = Graph(model.graph) if graph is None else graph
    if not _has_sound_parts(model, graph):
        for message, texts in walk_messages(model):
            _check_message(message, texts, label)
    _check_newest(model, label)
    opsets = opsets_of(model, label, graph)
    check_functions(model, label)
    check_graph(graph, label)
    _check_attributes(chain(graph.every, *(all_nodes(function.node) for function in model.functions)), label)
    _check_inputs(graph, opsets, label)
    return graph, opsets


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
            texts += [attribute.name for attribute in node.attribute]
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


def _check_newest(model: ModelProto, label: str) -> None:
    """Reject a default opset that the installed onnx package does not know."""
    newest = import_onnx().defs.onnx_opset_version()
    for opsets in (model.opset_import, *(function.opset_import for function in model.functions)):
        for entry in opsets:
            if entry.domain in DEFAULT_DOMAINS and entry.version > newest:
                raise UnsupportedError(
                    f"{label}: opset_import has version {entry.version} of the default domain; expected at most "
                    f"{newest}, the newest that the installed onnx package has"
                )


def _check_attributes(nodes: Iterable[Node | NodeProto], label: str) -> None:
    """Reject nodes with an attribute twice."""
    for node in nodes:
        if len(node.attribute) > 1:
            names = [attribute.name for attribute in node.attribute]
            if len(set(names)) < len(names):
                name = max(names, key=names.count)
                problem = f"attribute {shown(name)} is there {names.count(name)} times"
                raise FormatError(f"{label}: {node_label(node)}: {problem}")


def _check_inputs(graph: Graph, opsets: Mapping[str, int], label: str) -> None:
    """Reject nodes without an input that their operator needs. Unknown operators may have any inputs."""
    least: dict[tuple[str, str], int] = {}  # upper bound of required inputs
    required: dict[tuple[str, str], list[str]] = {}
    for node in graph.every:
        key = "" if node.domain in DEFAULT_DOMAINS else node.domain, node.op_type
        version = opsets.get(key[0], 1)
        if key not in least:
            signature = signature_of(node, version)
            least[key] = _MANY if signature is None else signature.required
        if len(node.input) >= least[key] and "" not in node.input[: least[key]]:
            continue
        if key not in required:
            required[key] = _required_inputs(node.op_type, version, key[0])
        for position, name in enumerate(required[key]):
            if position >= len(node.input) or not node.input[position]:
                raise FormatError(f"{label}: {node_label(node)}: its input {name} is missing; the operator needs it")


_MANY = 2**31


def _required_inputs(operator: str, version: int, domain: str) -> list[str]:
    """Return the inputs of an operator that are neither optional nor variadic; they come first."""
    defs = import_onnx().defs
    if (domain, operator) in _LENIENT:
        return []
    try:
        schema = defs.get_schema(operator, version, domain)
    except Exception:  # no such operator; the class differs between versions
        return []
    return [formal.name for formal in schema.inputs if formal.option == defs.OpSchema.FormalParameterOption.Single]


def _check_message(message: Any, texts: list[Any], label: str) -> None:
    """Reject texts that are not UTF-8, and negative dimensions, which would pass for dynamic ones."""
    kind = type(message).__name__
    for text in texts:
        if not isinstance(text, str):
            raise FormatError(f"{label}: the text {shown(text)} in a {kind} is not UTF-8")
    if kind == "TensorProto" and min(message.dims, default=0) < 0:
        raise FormatError(f"{label}: tensor {shown(message.name)} has dims {shown(list(message.dims))}, below 0")


def check_graph(graph: Graph, label: str) -> None:
    """Check the names of a graph, and sort its nodes.

    Raises
    ------
    FormatError
        A name is defined twice or never, or nodes form a cycle.
    """
    if not _is_in_order(graph, set()):
        _check_names(graph, (), label, set())


def check_splits(graph: Graph, label: str) -> None:
    """Check that each Split has `num_outputs` outputs: onnx and ONNX Runtime end the process as they infer its sizes.

    Raises
    ------
    FormatError
    """
    if graph.kinds.isdisjoint((domain, "Split") for domain in DEFAULT_DOMAINS):
        return
    for node in graph.every:
        for attribute in node.attribute if node.op_type == "Split" and node.domain in DEFAULT_DOMAINS else ():
            if attribute.name == "num_outputs" and attribute.i != len(node.output):
                problem = f"num_outputs is {attribute.i}; the node has {len(node.output)} outputs"
                raise FormatError(f"{label}: {node_label(node)}: {problem}")


def _is_in_order(graph: Graph, visible: set[str]) -> bool:
    """Return whether the names are sound and the nodes sorted, as in nearly all files."""
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
            if not _is_in_order(body, visible):
                return False
        for name in node.output:
            if name and name in visible:
                return False
            visible.add(name)
    graph.is_sorted = visible.issuperset(value.name for value in graph.output)
    visible -= graph.local
    return graph.is_sorted


def _check_names(graph: Graph, around: tuple[Node, ...], label: str, visible: set[str]) -> None:
    """Check a body of the nodes `around` it; `visible` are the names of the outer graphs."""
    defined, own = _definitions(graph, around, label, visible)
    visible |= defined
    try:
        graph.sort("")
    except FormatError as error:
        raise FormatError(f"{_label(label, around)}{error}") from None
    for node in graph.node:
        if not visible.issuperset(node.needs):
            for name in node.input:
                if name and name not in visible:
                    raise FormatError(
                        f"{_label(label, around)}: {node_label(node)} needs {shown(name)}, which is neither an input, "
                        "nor an initializer, nor an output of a node"
                    )
        for _, body in node.bodies:
            _check_names(body, (*around, node), label, visible)
        visible.update(node.output)
    for value in graph.output:
        if value.name not in visible:
            raise FormatError(f"{_label(label, around)}: the output {shown(value.name)} is computed by no node")
    visible -= own


def _label(label: str, around: Sequence[Node]) -> str:
    return ": ".join((label, *map(node_label, around)))


def _definitions(graph: Graph, around: tuple[Node, ...], label: str, visible: set[str]) -> tuple[set[str], set[str]]:
    """Return the names of inputs and initializers, and all names that the graph defines."""
    own: set[str] = set()

    def define(name: str, what: str) -> None:
        if name in own or name in visible:
            where = _label(label, around)
            raise FormatError(f"{where}: {what} {shown(name)} is defined twice; expected every name once")
        own.add(name)

    for value in graph.input:
        define(value.name, "the input")
    defaults = set(own)
    tensors = (*graph.initializer, *(tensor.values for tensor in graph.sparse_initializer))
    for name in (tensor.name for tensor in tensors):
        if name in defaults:
            defaults.remove(name)  # the default of an input; a second one is an error
        else:
            define(name, "the initializer")
    sources = set(own)
    for node in graph.node:
        for name in node.output:
            if name and (name in own or name in visible):  # builds the label only for an error
                define(name, f"{node_label(node)}: the output")
            elif name:
                own.add(name)
    return sources, own
