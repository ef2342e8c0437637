"""Pass that inlines the functions of a model that contain recurrent nodes, or call functions that do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from pyrnnx.errors import FormatError, PyrnnxError, UnsupportedError, shortened

from ..graph.walk import DEFAULT_DOMAINS, all_nodes
from ..operators.schemas import OPERATORS

if TYPE_CHECKING:
    from onnx import FunctionProto, ModelProto, NodeProto

# Most nodes of an inlined function: of any model, and as a multiple of the model's own.
_MOST_NODES, _TIMES = 20_000, 10
_DEEPEST = 200  # calls within calls; onnx's inliner recurses
Key = tuple[str, str, str]


def has_recurrent(nodes: Iterable[NodeProto]) -> bool:
    return any(
        node.op_type in OPERATORS and node.domain in (*DEFAULT_DOMAINS, OPERATORS[node.op_type].domain)
        for node in all_nodes(nodes)
    )


def inline_functions(model: ModelProto, label: str, *, every: bool = False) -> ModelProto:
    """Return the model without functions that contain recurrent nodes, or without any.

    It is the model itself if it has none, or if an attribute of a function has a default, which onnx would drop. onnx
    leaves functions of another opset than the graph.
    """
    if not any(every or has_recurrent(function.node) for function in model.functions):
        return model
    _check_functions(model, label)
    if any(function.attribute_proto for function in model.functions):
        return model
    import onnx.inliner

    try:
        result: ModelProto = onnx.inliner.inline_local_functions(model)
    except Exception as error:
        raise PyrnnxError(f"{label}: its functions cannot be inlined ({shortened(str(error))})") from error
    return result


def _key(domain: str, name: str, function: FunctionProto | NodeProto) -> Key:
    """Return the key that matches functions and their calls; older versions of onnx have no overloads."""
    return "" if domain in DEFAULT_DOMAINS else domain, name, getattr(function, "overload", "")


def _check_functions(model: ModelProto, label: str) -> None:
    """Reject functions that are defined twice, recursive, or too large when inlined, which is counted first."""
    calls: dict[Key, Counter[Key]] = {}
    for function in model.functions:
        key = _key(function.domain, function.name, function)
        if key in calls:
            raise FormatError(f"{label}: the function {_name(key)} is defined twice")
        calls[key] = Counter(_key(node.domain, node.op_type, node) for node in all_nodes(function.node))
    graph: Key = ("", "", "")
    calls[graph] = Counter(_key(node.domain, node.op_type, node) for node in all_nodes(model.graph.node))
    most = max(_MOST_NODES, _TIMES * sum(count.total() for count in calls.values()))
    try:
        order = tuple(TopologicalSorter({key: calls[key].keys() & calls for key in calls}).static_order())
    except CycleError as error:
        names = ", ".join(sorted({_name(key) for key in error.args[1]})[:20])
        raise FormatError(f"{label}: functions call each other in a cycle; among {names}") from None
    nodes: dict[Key, int] = {}
    depths: dict[Key, int] = {}
    for key in order:  # those that are called first
        what = "the graph with its functions" if key == graph else f"the function {_name(key)}"
        nodes[key] = sum(count * nodes.get(called, 1) for called, count in calls[key].items())
        depths[key] = 1 + max((depths.get(called, 0) for called in calls[key]), default=0)
        if nodes[key] > most:
            raise UnsupportedError(f"{label}: {what}, inlined, has {nodes[key]} nodes; expected at most {most}")
        if depths[key] > _DEEPEST:
            raise UnsupportedError(f"{label}: {what} has calls {depths[key]} deep; expected at most {_DEEPEST}")


def _name(key: Key) -> str:
    return shortened(".".join(part for part in key if part))
