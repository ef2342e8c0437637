"""What makes a model sound: its texts, tensors, opsets and functions, and the names in its graphs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyrnnx.errors import FormatError, UnsupportedError, shown

from ..messages import walk_messages
from ..onnx_package import import_onnx
from ..schemas import SCHEMAS
from .local_functions import check_functions
from .signatures import signature_of
from .walk import DEFAULT_DOMAINS, Needs, all_nodes, node_label, sorted_nodes, subgraphs

if TYPE_CHECKING:
    from onnx import ModelProto

# Layers check their inputs themselves, and exporters leave out the roi of Resize-11, though its text requires it.
_LENIENT = {*SCHEMAS, "Resize"}
_FIRST_IR_WITH_OPSETS = 3


def opsets_of(model: ModelProto, label: str) -> dict[str, int]:
    """Version by domain; the default domain is "".

    Raises
    ------
    FormatError
        No version for the default domain, which a node is of; two versions of one domain, or one below 1.
    """
    versions: dict[str, int] = {}
    for one in model.opset_import:
        domain = "" if one.domain in DEFAULT_DOMAINS else one.domain
        if versions.setdefault(domain, one.version) != one.version:
            raise FormatError(
                f"{label}: opset_import has the versions {versions[domain]} and {one.version} of domain {shown(domain)}"
            )
        if one.version < 1:
            raise FormatError(
                f"{label}: opset_import has version {one.version} of domain {shown(domain)}; expected 1 or more"
            )
    if not versions and model.ir_version < _FIRST_IR_WITH_OPSETS:
        return {"": 1}
    if "" not in versions and any(node.domain in DEFAULT_DOMAINS for node in all_nodes(model.graph.node)):
        raise FormatError(f"{label}: opset_import has no version for the default domain")
    return versions


def check_model(model: ModelProto, label: str) -> dict[str, int]:
    """The opsets of a model whose texts, tensors, opsets, functions and names are sound.

    Raises
    ------
    FormatError
    """
    for message, texts in walk_messages(model):
        _check_message(message, texts, label)
    _check_newest(model, label)
    opsets = opsets_of(model, label)
    check_functions(model, label)
    check_graph(model.graph, label)
    _check_inputs(model, opsets, label)
    return opsets


def _check_newest(model: ModelProto, label: str) -> None:
    """What an opset that the onnx package does not know means is told by nothing here."""
    newest = import_onnx().defs.onnx_opset_version()
    for part in (model, *model.functions):
        for one in part.opset_import:
            if one.domain in DEFAULT_DOMAINS and one.version > newest:
                raise UnsupportedError(
                    f"{label}: opset_import has version {one.version} of the default domain; expected at most "
                    f"{newest}, the newest that the installed onnx package has"
                )


def _check_inputs(model: ModelProto, opsets: Mapping[str, int], label: str) -> None:
    """Reject nodes without an input that their operator needs; operators that onnx does not know may take any."""
    required: dict[tuple[str, str], list[str]] = {}
    for node in all_nodes(model.graph.node):
        domain = "" if node.domain in DEFAULT_DOMAINS else node.domain
        signature = signature_of(node, opsets.get(domain, 1))
        if signature is not None and all(node.input[: signature.required]) and len(node.input) >= signature.required:
            continue
        key = domain, node.op_type
        if key not in required:
            required[key] = _required_inputs(node.op_type, opsets.get(domain, 1), domain)
        for position, name in enumerate(required[key]):
            if position >= len(node.input) or not node.input[position]:
                raise FormatError(f"{label}: {node_label(node)}: its input {name} is missing; the operator needs it")


def _required_inputs(operator: str, version: int, domain: str) -> list[str]:
    """The inputs of an operator that are neither optional nor variadic: always its first ones."""
    defs = import_onnx().defs
    if operator in _LENIENT and not domain:
        return []
    try:
        schema = defs.get_schema(operator, version, domain)
    except Exception:  # of a class that differs between versions: no such operator
        return []
    return [one.name for one in schema.inputs if one.option == defs.OpSchema.FormalParameterOption.Single]


def _check_message(message: Any, texts: list[Any], label: str) -> None:
    """Texts that are not UTF-8 can be written nowhere; a negative dimension would be taken for one that is open."""
    kind = type(message).__name__
    for text in texts:
        if not isinstance(text, str):
            raise FormatError(f"{label}: the text {shown(text)} in a {kind} is not UTF-8")
    if kind == "TensorProto" and min(message.dims, default=0) < 0:
        raise FormatError(f"{label}: tensor {shown(message.name)} has dims {shown(list(message.dims))}, below 0")


def check_graph(graph: Any, label: str) -> None:
    """Reject a graph whose names do not fit together.

    Raises
    ------
    FormatError
        A name that is defined twice or never, nodes in a circle, or bodies too deep.
    """
    for _ in all_nodes(graph.node):  # rejects what is nested too deep for the recursion here
        pass
    _check_names(graph, label, set(), Needs())


def _check_names(graph: Any, label: str, visible: set[str], needs: Needs) -> None:
    """`visible` are the names of the graphs around it."""
    given, own = _definitions(graph, label, visible)
    visible |= given
    for node in sorted_nodes(graph, label, needs):
        for name in node.input:
            if name and name not in visible:
                raise FormatError(
                    f"{label}: {node_label(node)} needs {shown(name)}, which is neither an input, nor an initializer, "
                    "nor an output of a node"
                )
        for _, body in subgraphs(node):
            _check_names(body, f"{label}: {node_label(node)}", visible, needs)
        visible.update(node.output)
    for one in graph.output:
        if one.name not in visible:
            raise FormatError(f"{label}: the output {shown(one.name)} is computed by no node")
    visible -= own


def _definitions(graph: Any, label: str, visible: set[str]) -> tuple[set[str], set[str]]:
    """Names of inputs and initializers, and all names that the graph defines, each of them once."""
    own: set[str] = set()

    def define(name: str, what: str) -> None:
        if name in own or name in visible:
            raise FormatError(f"{label}: {what} {shown(name)} is defined twice; expected every name once")
        own.add(name)

    for one in graph.input:
        define(one.name, "the input")
    defaults = set(own)
    for name in (*(one.name for one in graph.initializer), *(one.values.name for one in graph.sparse_initializer)):
        if name in defaults:
            defaults.remove(name)  # the default of an input, of which there may be one
        else:
            define(name, "the initializer")
    given = set(own)
    for node in graph.node:
        for name in node.output:
            if name and (name in own or name in visible):  # the label of a node is for an error alone
                define(name, f"{node_label(node)}: the output")
            elif name:
                own.add(name)
    return given, own
