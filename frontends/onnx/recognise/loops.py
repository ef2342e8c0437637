"""Loops and Scans whose body is one step of recurrent layers.

X, h0 -> Scan (x, h -> LSTM cell -> h') -> Y, h        becomes      X, h0 -> LSTM -> Y, h
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..graph.walk import Graph, Node
from ..onnx_package import import_onnx
from .scope import Scope, attribute_of
from .values import Values

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto

_MOST_TRIPS = 2**63 - 1  # the most iterations that a Loop can have
# Element types that count far enough for any loop: float32 and float64, int32 and wider integers.
_COUNTING = {1, 6, 7, 11, 12, 13}
_FIRST_STATES = {"Loop": (2, 1), "Scan": (0, 0)}  # places of the first state among the body's inputs and outputs
_ITERATION = "\0iteration"  # root of a `_Count`; no value has this name


@dataclass(frozen=True)
class State:
    """State of a loop: the body's input and output, the value before, and the place among the loop's outputs."""

    name: str
    new: str
    initial: str
    place: int


@dataclass
class Loop:
    """Loop or Scan with its body.

    `trips` is the name of the number of iterations, or the number; empty for a Scan. `states` are those that are not
    counters, `series` the inputs of a Scan with their axis of time and whether they run from the end, by input of the
    body. `results` are outputs of the body over time: value, place, axis, whether they run from the end. `sequences`
    are values that each iteration adds to an empty sequence, by place of the sequence.
    """

    node: Node
    graph: Graph
    scope: Scope
    trips: str | int = ""
    states: list[State] = field(default_factory=list)
    series: dict[str, tuple[str, int, bool]] = field(default_factory=dict)
    results: list[tuple[str, int, int, bool]] = field(default_factory=list)
    sequences: dict[int, str] = field(default_factory=dict)

    @property
    def is_scan(self) -> bool:
        return self.node.op_type == "Scan"


def read_loop(scope: Scope, node: Node, graph: Graph) -> Loop | str:
    """Return a loop, or why its iterations are not steps."""
    loop = Loop(node, graph, scope.body(graph))
    why = _read_scan(loop, scope) if loop.is_scan else _read_loop(loop, scope)
    return why or loop


def _read_scan(loop: Loop, scope: Scope) -> str:
    node, body = loop.node, loop.graph
    count = int(attribute_of(node, "num_scan_inputs", 0))
    if scope.opset < 9:
        return "Scan of opset 8 has rows"
    names, outputs = [value.name for value in body.input], [value.name for value in body.output]
    states = len(node.input) - count
    axes, backward = (attribute_of(node, f"scan_input_{key}", [0] * count) for key in ("axes", "directions"))
    outer = Values(scope)
    for k in range(count):
        source = node.input[states + k]
        shape = outer.shape(source)
        if shape is None:
            return "the shape of an input of the Scan is unknown"
        axis = axes[k] % len(shape)
        if axis == len(shape) - 1:
            return "the Scan runs over the last axis of an input"
        loop.series[names[states + k]] = source, axis, bool(backward[k])
        loop.scope.known[names[states + k]] = (*shape[:axis], *shape[axis + 1 :])
        loop.scope.elements[names[states + k]] = scope.element(source)
    _read_states(loop, outer, names[:states], outputs[:states], node.input[:states])
    total = len(outputs) - states
    axes, backward = (attribute_of(node, f"scan_output_{key}", [0] * total) for key in ("axes", "directions"))
    loop.results += [(outputs[states + k], states + k, axes[k], bool(backward[k])) for k in range(total)]
    return ""


def _read_loop(loop: Loop, scope: Scope) -> str:
    node, body = loop.node, loop.graph
    names, outputs = [value.name for value in body.input], [value.name for value in body.output]
    states = len(names) - 2
    if body.input[0].type.tensor_type.shape.dim:
        return "the iteration number of the Loop is no scalar"
    loop.scope.iterations.add(names[0])
    _read_states(loop, Values(scope), names[2:], outputs[1 : states + 1], node.input[2:])
    loop.results += [(name, place, 0, False) for place, name in enumerate(outputs[states + 1 :], states)]
    loop.trips = node.input[0]
    trips = _count(scope, node.input[0]) if node.input[0] else None
    if trips in (None, _Count("", _MOST_TRIPS)) and (limit := _limit(loop, scope, outputs[0])) is not None:
        trips, loop.trips = limit, limit.root or int(limit.more)
    if trips is None:
        return "the Loop has no number of iterations"
    if trips.root and trips.more:
        trips = _Count(str(loop.trips))
    is_open = _may_end_early(loop, scope, trips, names[1], outputs[0])
    return "the condition of the Loop may end it early" if is_open else ""


def _read_states(
    loop: Loop, outer: Values, names: Sequence[str], outputs: Sequence[str], initial: Sequence[str]
) -> None:
    scope = loop.scope
    for place, (name, new, before) in enumerate(zip(names, outputs, initial, strict=True)):
        if not loop.is_scan and _counts(scope, name, new, before):
            scope.iterations.add(name)
        elif (added := _inserted(scope, name, new, before)) is not None:
            loop.sequences[place] = added
        else:
            loop.states.append(State(name, new, before, place))
            shape, element = outer.shape(before), outer.scope.element(before)
            if shape is not None:
                scope.known[name] = shape
            if element:
                scope.elements[name] = element


def _inserted(scope: Scope, name: str, new: str, before: str) -> str | None:
    """Return the value that an iteration appends to a sequence, which is empty before; None for other states."""
    node, start = scope.producer(new), scope.producer(before)
    if node is None or start is None or (node.op_type, start.op_type) != ("SequenceInsert", "SequenceEmpty"):
        return None
    return node.input[1] if len(node.input) == 2 and node.input[0] == name else None


@dataclass(frozen=True)
class _Count:
    """Number of one element: `more` than the value `root`, or a constant if `root` is empty."""

    root: str
    more: float = 0


def _dtype(element: int) -> np.dtype[Any]:
    """Return NumPy's type of an element type; bool for types that are unknown or not NumPy's own."""
    dtype = import_onnx().helper.tensor_dtype_to_np_dtype(element) if element else np.dtype(bool)
    return dtype if dtype.isbuiltin == 1 else np.dtype(bool)


def _count(scope: Scope, name: str) -> _Count:
    """Return a value of one element as a number: a constant, or what an integer becomes by casts and sums."""
    array, node = scope.array(name), scope.producer(name)
    if array is not None:
        is_number = array.size == 1 and array.dtype.kind in "iuf"
        return _Count("", array.reshape(-1)[0].item()) if is_number else _Count(name)
    if name in scope.iterations or node is None:
        return _Count(_ITERATION if name in scope.iterations else name)
    if node.op_type in ("Identity", "Squeeze", "Unsqueeze", "Reshape"):
        return _count(scope, node.input[0])
    if node.op_type == "Cast":
        return _cast(scope, _count(scope, node.input[0]), attribute_of(node, "to")) or _Count(name)
    if node.op_type == "Add":
        steps = [k for k in (0, 1) if scope.array(node.input[k]) is not None]
        if len(steps) == 1 and _is_one(scope, node.input[steps[0]]):
            count = _count(scope, node.input[1 - steps[0]])
            return replace(count, more=count.more + 1)
    return _Count(name)


def _is_one(scope: Scope, name: str) -> bool:
    return _count(scope, name) == _Count("", 1) and scope.element(name) in _COUNTING


def _cast(scope: Scope, count: _Count, to: int) -> _Count | None:
    """Return a number in another type; None if the type may change it."""
    target = _dtype(to)
    if not count.root:
        return _Count("", np.asarray(count.more).astype(target).item()) if target.kind in "iuf" else None
    if count.root == _ITERATION:
        return count if to in _COUNTING else None
    source = _dtype(scope.element(count.root))
    keeps = source.kind in "iu" and (target.kind == "f" or np.can_cast(source, target))
    return count if keeps and to in _COUNTING else None


def _counts(scope: Scope, name: str, new: str, before: str) -> bool:
    """Return whether a state is the iteration number: 0 before, one more after each iteration."""
    if scope.shape(before) != () or _count(scope, before) != _Count(""):
        return False
    node = scope.producer(scope.behind_identities(new))
    if node is None or node.op_type != "Add" or name not in node.input:
        return False
    step = next((x for x in node.input if x != name), name)
    return scope.shape(step) == () and _is_one(scope, step)


def _limit(loop: Loop, outer: Scope, new: str) -> _Count | None:
    """Return the number of iterations of a Loop that ends when the next iteration's number reaches it.

    None for other conditions, and if the first iteration may run although the number is 0.
    """
    limits = [b for a, b in _comparisons(loop.scope, new) if a == _Count(_ITERATION, 1)]
    if len({limit.root for limit in limits}) != 1:
        return None
    limit = min(limits, key=lambda limit: limit.more)
    if not limit.root:
        return limit if limit.more >= 1 and float(limit.more).is_integer() else None
    is_integer = _dtype(outer.element(limit.root)).kind in "iu"
    is_outside = limit.root not in loop.graph.local
    is_positive = any(  # whenever the first iteration runs
        not a.root and a.more >= 0 and b == _Count(limit.root) for a, b in _comparisons(outer, loop.node.input[1])
    )
    return limit if is_integer and is_outside and is_positive and not limit.more else None


def _comparisons(scope: Scope, name: str) -> list[tuple[_Count, _Count]]:
    """Return pairs a, b for a condition that is true if a < b in each; an empty list for other conditions."""
    pairs, parts = [], [name]
    for part in parts:
        node = scope.producer(part)
        if node is None or node.op_type not in ("And", "Identity", "Less"):
            return []
        if node.op_type == "Less":
            pairs.append((_count(scope, node.input[0]), _count(scope, node.input[1])))
        else:
            parts += (source for source in node.input if source not in parts)
    return pairs


def _may_end_early(loop: Loop, outer: Scope, trips: _Count, condition: str, new: str) -> bool:
    """Return whether the condition of a Loop may be false while an iteration is left."""
    before, is_same = loop.node.input[1], Values(loop.scope).base(new) == condition
    starts = not before or _is_true(outer, before) or (not is_same and _holds(outer, before, trips))
    return not (starts and (is_same or _is_true(loop.scope, new) or _holds(loop.scope, new, trips)))


def _is_true(scope: Scope, name: str) -> bool:
    return Values(scope).moves.truth(name) is True


def _holds(scope: Scope, name: str, trips: _Count) -> bool:
    """Return whether a condition is true while an iteration is left."""
    pairs = _comparisons(scope, name)
    return bool(pairs) and all(
        (counter.more in (0, 1) if counter.root == _ITERATION else not counter.root and counter.more <= 0)
        and limit.root == trips.root
        and (limit.more == 0 if limit.root else limit.more >= trips.more)
        for counter, limit in pairs
    )


def remove_invariants(model: ModelProto) -> None:
    """Let bodies take values that each iteration returns unchanged from the graph around them, in place.

    W -> Loop (W_in -> Identity -> W_out) -> W_last        becomes      W -> Loop (W -> Identity -> W_in),  W -> W_last
    """
    graphs = [model.graph]
    for graph in graphs:
        for node in [*graph.node]:
            bodies = [attribute.g for attribute in node.attribute if attribute.name == "body"]
            if node.op_type in _FIRST_STATES and bodies:
                _remove_states(graph, node, bodies[0])
        graphs += (body for node in graph.node for attribute in node.attribute for body in (attribute.g,) if body.node)


def _remove_states(graph: GraphProto, node: NodeProto, body: GraphProto) -> None:
    make_node = import_onnx().helper.make_node
    first_input, first_output = _FIRST_STATES[node.op_type]
    sources = {inner.output[0]: inner.input[0] for inner in body.node if inner.op_type == "Identity"}
    scanned = next((attribute.i for attribute in node.attribute if attribute.name == "num_scan_inputs"), 0)
    for place in reversed(range(len(node.input) - first_input - scanned)):
        name, new = body.input[first_input + place].name, body.output[first_output + place].name
        while new != name and new in sources:
            new = sources[new]
        if new == name:
            before = node.input[first_input + place]
            body.node.insert(0, make_node("Identity", [before], [name]))
            if place < len(node.output):  # a node may leave out its last outputs
                if node.output[place]:
                    graph.node.append(make_node("Identity", [before], [node.output[place]]))
                del node.output[place]
            del node.input[first_input + place]
            del body.input[first_input + place], body.output[first_output + place]
