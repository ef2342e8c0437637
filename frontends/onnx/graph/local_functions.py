"""Size of inlined local functions, by counting."""

from __future__ import annotations

from collections import Counter
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, NamedTuple

from pyrnnx.errors import FormatError, UnsupportedError, shortened

from .walk import DEFAULT_DOMAINS, all_nodes

if TYPE_CHECKING:
    from onnx import FunctionProto, ModelProto, NodeProto

# Limits of inlining: for any model, and as a multiple of its original size.
_NODES, _BYTES, _TIMES = 20_000, 2**26, 10
_DEEPEST = 200  # calls within calls; onnx's inliner recurses
_CAP = 2**200  # beyond any limit: long chains of calls would make numbers of thousands of digits

Key = tuple[str, str, str]


class _Size(NamedTuple):
    """Size of an inlined call."""

    nodes: int
    bytes: int
    depth: int


def _key(domain: str, name: str, function: FunctionProto | NodeProto) -> Key:
    """Return the key that matches functions and their calls; older versions of onnx have no overloads."""
    return "" if domain in DEFAULT_DOMAINS else domain, name, getattr(function, "overload", "")


def _name(key: Key) -> str:
    return shortened(".".join(part for part in key if part))


def check_functions(model: ModelProto, label: str) -> None:
    """Reject functions that are defined twice, recursive, or too large when inlined.

    Raises
    ------
    FormatError
    UnsupportedError
        Too many nodes or bytes, counted without inlining.
    """
    calls: dict[Key, Counter[Key]] = {}
    own: dict[Key, int] = {}
    for function in model.functions:
        key = _key(function.domain, function.name, function)
        if key in calls:
            raise FormatError(f"{label}: the function {_name(key)} is defined twice")
        calls[key] = Counter(_key(node.domain, node.op_type, node) for node in all_nodes(function.node))
        own[key] = function.ByteSize()
    graph = Counter(_key(node.domain, node.op_type, node) for node in all_nodes(model.graph.node))
    nodes = sum(count.total() for count in (graph, *calls.values()))
    most = _Size(max(_NODES, _TIMES * nodes), _BYTES + _TIMES * model.ByteSize(), _DEEPEST)
    sizes: dict[Key, _Size] = {}
    try:
        order = tuple(TopologicalSorter({key: calls[key].keys() & calls for key in calls}).static_order())
    except CycleError as error:
        names = ", ".join(sorted({_name(key) for key in error.args[1]})[:20])
        raise FormatError(f"{label}: functions call each other in a cycle; among {names}") from None
    for key in order:  # those that are called first
        sizes[key] = _inlined(calls[key], own[key], sizes)
        _check_size(label, f"the function {_name(key)}", sizes[key], most)
    whole = _inlined(Counter({key: count for key, count in graph.items() if key in sizes}), 0, sizes)
    _check_size(label, "the graph with its functions", whole._replace(depth=0), most)


def _inlined(calls: Counter[Key], own: int, sizes: dict[Key, _Size]) -> _Size:
    """Return the size of nodes, by the functions that they call."""
    called = [(sizes[key], count) for key, count in calls.items() if key in sizes]
    nodes = calls.total() + sum(count * (size.nodes - 1) for size, count in called)
    total = own + sum(count * size.bytes for size, count in called)
    return _Size(min(nodes, _CAP), min(total, _CAP), 1 + max((size.depth for size, _ in called), default=0))


def _check_size(label: str, what: str, inlined: _Size, most: _Size) -> None:
    for name in ("nodes", "bytes"):
        count, allowed = getattr(inlined, name), getattr(most, name)
        if count > allowed:
            number = str(count) if count < 10**18 else f"2^{count.bit_length() - 1} or more"
            raise UnsupportedError(f"{label}: {what}, inlined, has {number} {name}; expected at most {allowed}")
    if inlined.depth > most.depth:
        raise UnsupportedError(f"{label}: {what} has calls {inlined.depth} deep; expected at most {most.depth}")
