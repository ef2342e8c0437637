"""Local functions of ONNX models: whether they can be inlined, and what would come of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyrnnx.errors import FormatError, PyrnnxError, UnsupportedError, shortened

from .walk import DEFAULT_DOMAINS, all_nodes, check_graph, node_label

if TYPE_CHECKING:
    from onnx import ModelProto

# What inlining may make: so much of any model, and so many times what the model is before.
_NODES, _BYTES, _TIMES = 20_000, 2**26, 10
_DEEPEST = 200  # calls within calls; onnx's inliner recurses

Key = tuple[str, str, str]


@dataclass(frozen=True)
class _Inlined:
    """What one call becomes."""

    nodes: int
    bytes: int
    depth: int


def _key(domain: str, name: str, overload: str) -> Key:
    return ("" if domain in DEFAULT_DOMAINS else domain, name, overload)


def _key_of_call(node: Any) -> Key:
    return _key(node.domain, node.op_type, getattr(node, "overload", ""))  # older onnx has no overloads


def _name(key: Key) -> str:
    return shortened(".".join(part for part in key if part))


def check_functions(model: ModelProto, label: str) -> None:
    """Reject functions that stand twice, call each other in a circle, or would become too many nodes.

    Raises
    ------
    FormatError
    UnsupportedError
        Too many nodes or bytes: by counting, without making them.
    """
    if not model.functions:
        return
    functions = {_key(one.domain, one.name, getattr(one, "overload", "")): one for one in model.functions}
    if len(functions) < len(model.functions):
        counts = Counter(_key(one.domain, one.name, getattr(one, "overload", "")) for one in model.functions)
        raise FormatError(f"{label}: the function {_name(counts.most_common(1)[0][0])} is defined twice")
    calls, sizes = {}, {}
    for key, function in functions.items():
        keys = Counter(_key_of_call(node) for node in all_nodes(function.node))
        calls[key] = {name: number for name, number in keys.items() if name in functions}
        sizes[key] = (sum(keys.values()), function.ByteSize())
    counted = _counted(label, calls, sizes)
    own = sum(1 for _ in all_nodes(model.graph.node)) + sum(nodes for nodes, _ in sizes.values())
    most = _Inlined(max(_NODES, _TIMES * own), _BYTES + _TIMES * model.ByteSize(), _DEEPEST)
    nodes = size = 0
    for key, one in counted.items():
        _check_size(label, f"the function {_name(key)}", one, most)
    for node in all_nodes(model.graph.node):
        called = counted.get(_key_of_call(node))
        if called is not None:
            nodes, size = nodes + called.nodes, size + called.bytes
    _check_size(label, "the graph with its functions", _Inlined(nodes, size, 0), most)


def _check_size(label: str, what: str, one: _Inlined, most: _Inlined) -> None:
    for name in ("nodes", "bytes"):
        count, allowed = getattr(one, name), getattr(most, name)
        if count > allowed:
            raise UnsupportedError(f"{label}: {what}, inlined, has {_number(count)} {name}; expected at most {allowed}")
    if one.depth > most.depth:
        raise UnsupportedError(f"{label}: {what} has calls {one.depth} deep; expected at most {most.depth}")


def _number(count: int) -> str:
    return str(count) if count < 10**18 else f"2^{count.bit_length() - 1} or more"


def _counted(
    label: str, calls: Mapping[Key, Mapping[Key, int]], sizes: Mapping[Key, tuple[int, int]]
) -> dict[Key, _Inlined]:
    """What each function becomes, those that it calls first."""
    callers: dict[Key, list[Key]] = {key: [] for key in calls}
    for key, called in calls.items():
        for one in called:
            callers[one].append(key)
    missing = {key: len(called) for key, called in calls.items()}
    ready = [key for key, number in missing.items() if number == 0]
    found: dict[Key, _Inlined] = {}
    while ready:
        key = ready.pop()
        nodes, size = sizes[key]
        for one, number in calls[key].items():
            nodes, size = nodes + number * (found[one].nodes - 1), size + number * found[one].bytes
        # More than any budget is enough to know; chains of thousands would make numbers of thousands of digits.
        depth = 1 + max((found[one].depth for one in calls[key]), default=0)
        found[key] = _Inlined(min(nodes, 2**200), min(size, 2**200), depth)
        for caller in callers[key]:
            missing[caller] -= 1
            if missing[caller] == 0:
                ready.append(caller)
    if len(found) < len(calls):
        names = ", ".join(sorted(_name(key) for key in calls if key not in found)[:20])
        raise FormatError(f"{label}: functions call each other in a circle; among {names}")
    return found


def inline(model: ModelProto, label: str) -> ModelProto:
    """The model with every call of a local function in its place.

    Raises
    ------
    PyrnnxError
        Functions that onnx cannot inline.
    """
    import onnx.inliner

    try:
        result = onnx.inliner.inline_local_functions(model, convert_version=True)
    except Exception as error:
        raise PyrnnxError(f"{label}: its functions cannot be inlined ({shortened(str(error))})") from error
    local = {_key(one.domain, one.name, "")[:2] for one in model.functions}
    for node in all_nodes(result.graph.node):
        if _key_of_call(node)[:2] in local:
            raise PyrnnxError(f"{label}: the function of {node_label(node)} cannot be inlined; its opset differs")
    check_graph(result.graph, label)
    return result
