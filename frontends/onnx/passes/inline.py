"""Pass that inlines the functions of a model that contain recurrent nodes, or call functions that do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pyrnnx.errors import PyrnnxError, shortened

from ..graph.local_functions import check_functions, function_key, key_of_call
from ..graph.walk import DEFAULT_DOMAINS, all_nodes
from ..messages import copied
from ..onnx_package import import_onnx
from ..operators.schemas import OPERATORS, SCHEMAS

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto


def has_recurrent(nodes: Iterable[NodeProto]) -> bool:
    """Return whether a recurrent node is among nodes or in their bodies."""
    return any(
        node.op_type in OPERATORS and node.domain in (*DEFAULT_DOMAINS, OPERATORS[node.op_type].domain)
        for node in all_nodes(nodes)
    )


def inline_functions(model: ModelProto, label: str, *, every: bool = False) -> ModelProto:
    """Return the model without functions that contain recurrent nodes, or without any.

    It is the model itself if it has none, or if onnx would inline them otherwise than ONNX Runtime runs them.

    Raises
    ------
    PyrnnxError
        onnx cannot inline a function; functions are recursive, or too large when inlined.
    """
    calling = {
        function_key(function.domain, function.name, "")[:2]
        for function in model.functions
        if every or has_recurrent(function.node)
    }
    if not calling:
        return model
    check_functions(model, label)
    before = 0
    while len(calling) > before:  # and functions that call them
        before = len(calling)
        calling |= {
            function_key(function.domain, function.name, "")[:2]
            for function in model.functions
            if any(key_of_call(node)[:2] in calling for node in all_nodes(function.node))
        }
    aligned = _with_one_opset(model)
    ready = None if aligned is None else _with_default_attributes(aligned)
    if ready is None:
        return model
    import onnx.inliner

    try:
        result: ModelProto = onnx.inliner.inline_local_functions(ready)
    except Exception as error:
        raise PyrnnxError(f"{label}: its functions cannot be inlined ({shortened(str(error))})") from error
    return result


def _with_default_attributes(model: ModelProto) -> ModelProto | None:
    """Return the model whose calls of functions have all attributes that have a default, which onnx would drop.

    None if a call has such an attribute of the function around it, which may lack it.
    """
    defaults = {
        function_key(function.domain, function.name, getattr(function, "overload", "")): function.attribute_proto
        for function in model.functions
        if function.attribute_proto
    }
    model = copied(model) if defaults else model
    for nodes in (model.graph.node, *(function.node for function in model.functions)) if defaults else ():
        for node in all_nodes(nodes):
            own = {attribute.name: attribute for attribute in defaults.get(key_of_call(node), ())}
            if any(attribute.ref_attr_name and attribute.name in own for attribute in node.attribute):
                return None
            given = {attribute.name for attribute in node.attribute}
            node.attribute.extend(attribute for name, attribute in own.items() if name not in given)
    return model


def _with_one_opset(model: ModelProto) -> ModelProto | None:
    """Return the model whose functions have the opsets of its graph; None if an operator differs between them."""
    versions = {entry.domain: entry.version for entry in model.opset_import}
    result = copied(model)
    for function in result.functions:
        for entry in function.opset_import:
            version = versions.setdefault(entry.domain, entry.version)
            nodes = (node for node in all_nodes(function.node) if node.domain == entry.domain)
            if version != entry.version and not all(_is_same(node, entry.version, version) for node in nodes):
                return None
            entry.version = version
    return result


def _is_same(node: NodeProto, first: int, second: int) -> bool:
    """Return whether an operator is the same in two opsets."""
    if node.op_type in OPERATORS and node.domain in DEFAULT_DOMAINS:
        schemas = SCHEMAS[node.op_type]
        newest = (max(since for since in schemas if since <= version) for version in (first, second))
        return len({schemas[since].attributes for since in newest}) == 1
    try:
        get = import_onnx().defs.get_schema
        return bool(get(node.op_type, first).since_version == get(node.op_type, second).since_version)
    except Exception:  # no such operator
        return False
