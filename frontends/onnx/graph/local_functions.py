"""Size of inlined local functions, by counting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from pyrnnx.errors import FormatError, UnsupportedError, shortened

from .walk import DEFAULT_DOMAINS, all_nodes

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

# Limits of inlining: for any model, and as a multiple of its original size.
_NODES, _BYTES, _TIMES = 20_000, 2**26, 10
_DEEPEST = 200  # calls within calls; onnx's inliner recurses

Key = tuple[str, str, str]


@dataclass(frozen=True)
class _Inlined:
    """Size of an inlined call."""

    nodes: int
    bytes: int
    depth: int


def function_key(domain: str, name: str, overload: str) -> Key:
    """Return the key that matches functions and their calls."""
    return ("" if domain in DEFAULT_DOMAINS else domain, name, overload)


def key_of_call(node: NodeProto) -> Key:
    """Return the key of the function that a node may call."""
    return function_key(node.domain, node.op_type, getattr(node, "overload", ""))  # older onnx has no overloads


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
    if not model.functions:
        return
    functions = {
        function_key(function.domain, function.name, getattr(function, "overload", "")): function
        for function in model.functions
    }
    if len(functions) < len(model.functions):
        counts = Counter(
            function_key(function.domain, function.name, getattr(function, "overload", ""))
            for function in model.functions
        )
        raise FormatError(f"{label}: the function {_name(counts.most_common(1)[0][0])} is defined twice")
    calls, sizes = {}, {}
    for key, function in functions.items():
        keys = Counter(key_of_call(node) for node in all_nodes(function.node))
        calls[key] = {name: number for name, number in keys.items() if name in functions}
        sizes[key] = (sum(keys.values()), function.ByteSize())
    counted = _counted(label, calls, sizes)
    own = sum(1 for _ in all_nodes(model.graph.node)) + sum(nodes for nodes, _ in sizes.values())
    most = _Inlined(max(_NODES, _TIMES * own), _BYTES + _TIMES * model.ByteSize(), _DEEPEST)
    nodes = size = 0
    for key, inlined in counted.items():
        _check_size(label, f"the function {_name(key)}", inlined, most)
    for node in all_nodes(model.graph.node):
        called = counted.get(key_of_call(node))
        if called is not None:
            nodes, size = nodes + called.nodes, size + called.bytes
    _check_size(label, "the graph with its functions", _Inlined(nodes, size, 0), most)


def _check_size(label: str, what: str, inlined: _Inlined, most: _Inlined) -> None:
    for name in ("nodes", "bytes"):
        count, allowed = getattr(inlined, name), getattr(most, name)
        if count > allowed:
            raise UnsupportedError(f"{label}: {what}, inlined, has {_number(count)} {name}; expected at most {allowed}")
    if inlined.depth > most.depth:
        raise UnsupportedError(f"{label}: {what} has calls {inlined.depth} deep; expected at most {most.depth}")


def _number(count: int) -> str:
    return str(count) if count < 10**18 else f"2^{count.bit_length() - 1} or more"


def _counted(
    label: str, calls: Mapping[Key, Mapping[Key, int]], sizes: Mapping[Key, tuple[int, int]]
) -> dict[Key, _Inlined]:
    """Return the size of each inlined function, callees first."""
    try:
        order = tuple(TopologicalSorter(calls).static_order())
    except CycleError as error:
        names = ", ".join(sorted({_name(key) for key in error.args[1]})[:20])
        raise FormatError(f"{label}: functions call each other in a cycle; among {names}") from None
    inlined: dict[Key, _Inlined] = {}
    for key in order:
        nodes, size = sizes[key]
        for callee, number in calls[key].items():
            nodes, size = nodes + number * (inlined[callee].nodes - 1), size + number * inlined[callee].bytes
        # Capped beyond any budget: long chains would make numbers of thousands of digits.
        depth = 1 + max((inlined[callee].depth for callee in calls[key]), default=0)
        inlined[key] = _Inlined(min(nodes, 2**200), min(size, 2**200), depth)
    return inlined
