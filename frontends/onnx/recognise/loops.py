"""Loops and Scans whose body is one step of recurrent layers.

X, h0 -> Scan (x, h -> LSTM cell -> h') -> Y, h        becomes      X, h0 -> LSTM -> Y, h
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..graph.fold import FoldedGraph
from ..graph.walk import Node
from ..onnx_package import import_onnx
from .scope import Scope, attribute_of
from .values import Values

MOST_TRIPS = 2**63 - 1  # the most iterations that a Loop can have
# A layer may fail in calls of more steps than this, if the loop is not proved to run them: float32 can count so far.
_MANY = 2**24
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

    Attributes
    ----------
    node, graph, scope
        The node; the body and what it sees.
    trips : str
        Number of iterations; empty for a Scan.
    most : int
        Number of iterations up to which the loop is proved to run all of them.
    states : list of State
        Without counters and values that are the same in each iteration.
    series : dict
        Input of a Scan, its time axis and whether it runs from the end, by input of the body.
    results : list
        Outputs of the body that become results over time: value, place, axis, and whether they run from the end.
    unchanged : dict
        Values before, by places of outputs that the loop does not change.
    sequences : dict
        Values that each iteration adds to an empty sequence, by place of the sequence.
    """

    node: Node
    graph: FoldedGraph
    scope: Scope
    trips: str = ""
    most: int = MOST_TRIPS
    states: list[State] = field(default_factory=list)
    series: dict[str, tuple[str, int, bool]] = field(default_factory=dict)
    results: list[tuple[str, int, int, bool]] = field(default_factory=list)
    unchanged: dict[int, str] = field(default_factory=dict)
    sequences: dict[int, str] = field(default_factory=dict)


def read_loop(scope: Scope, node: Node, graph: FoldedGraph) -> Loop | str:
    """Return a loop, or why its iterations are not steps."""
    loop = Loop(node, graph, scope.body(graph))
    why = _read_scan(loop, scope) if node.op_type == "Scan" else _read_loop(loop, scope)
    return why or loop


def _read_scan(loop: Loop, scope: Scope) -> str:
    node, body = loop.node, loop.graph.graph
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
    node, body = loop.node, loop.graph.graph
    names, outputs = [value.name for value in body.input], [value.name for value in body.output]
    states = len(names) - 2
    if not node.input[0]:
        return "the Loop has no number of iterations"
    if body.input[0].type.tensor_type.shape.dim:
        return "the iteration number of the Loop is no scalar"
    loop.trips = node.input[0]
    loop.scope.iterations[names[0]] = "i"
    _read_states(loop, Values(scope), names[2:], outputs[1 : states + 1], node.input[2:])
    loop.results += [(name, place, 0, False) for place, name in enumerate(outputs[states + 1 :], states)]
    return _unproved(loop, scope, names[1], outputs[0])


def _read_states(
    loop: Loop, outer: Values, names: Sequence[str], outputs: Sequence[str], initial: Sequence[str]
) -> None:
    scope = loop.scope
    plain = Values(scope)
    for place, (name, new, before) in enumerate(zip(names, outputs, initial, strict=True)):
        if plain.base(new) == name and _is_same(scope, new, name):
            scope.aliases[name] = outer.scope.aliases.get(before, before)
            loop.unchanged[place] = before
        elif loop.trips and (most := _counts(scope, name, new, before)):
            scope.iterations[name], loop.most = "i", min(loop.most, most)
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


def _is_same(scope: Scope, new: str, name: str) -> bool:
    while new != name and (node := scope.producer(new)) is not None and node.op_type == "Identity":
        new = node.input[0]
    return new == name


@dataclass(frozen=True)
class _Count:
    """Number of one element: `more` than the value `root`, or a constant if `root` is empty.

    `most` is the largest number that is exact: above it, a type on the way rounds or wraps.
    """

    root: str
    more: float = 0
    most: int = MOST_TRIPS


def _dtype(element: int) -> np.dtype[Any]:
    """Return NumPy's type of an element type; bool for types that are unknown or not NumPy's own."""
    dtype = import_onnx().helper.tensor_dtype_to_np_dtype(element) if element else np.dtype(bool)
    return dtype if dtype.isbuiltin == 1 else np.dtype(bool)


def _exact(dtype: np.dtype[Any]) -> int:
    """Return the largest n for which a type represents 0, 1, ..., n; 0 for types without numbers."""
    if dtype.kind in "iu":
        return int(np.iinfo(dtype).max)
    return 2 ** (np.finfo(dtype).nmant + 1) if dtype.kind == "f" else 0


def _count(scope: Scope, name: str) -> _Count:
    """Return a value of one element as a number: a constant, or what an integer becomes by casts and sums."""
    name = scope.aliases.get(name, name)
    array, node = scope.array(name), scope.producer(name)
    if array is not None:
        is_number = array.size == 1 and array.dtype.kind in "iuf"
        return _Count("", array.reshape(-1)[0].item()) if is_number else _Count(name)
    if name in scope.iterations:
        return _Count(_ITERATION)
    if node is not None and node.op_type in ("Identity", "Squeeze", "Unsqueeze", "Reshape"):
        return _count(scope, node.input[0])
    if node is not None and node.op_type == "Cast":
        count = _count(scope, node.input[0])
        if count.root == _ITERATION or _dtype(scope.element(count.root)).kind in "iu":
            return replace(count, most=min(count.most, _exact(_dtype(attribute_of(node, "to")))))
    if node is not None and node.op_type == "Add":
        steps = [k for k in (0, 1) if scope.array(node.input[k]) is not None]
        if len(steps) == 1 and _count(scope, node.input[steps[0]]) == _Count("", 1):
            count = _count(scope, node.input[1 - steps[0]])
            most = min(count.most, _exact(_dtype(scope.element(node.input[steps[0]]))))
            return replace(count, more=count.more + 1, most=most)
    return _Count(name)


def _counts(scope: Scope, name: str, new: str, before: str) -> int:
    """Return up to which number a state is the iteration number: 0 before, one more after each; 0 if it is not."""
    if scope.shape(before) != () or _count(scope, before) != _Count(""):
        return 0
    node = scope.producer(new)
    while node is not None and node.op_type == "Identity":
        node = scope.producer(node.input[0])
    if node is None or node.op_type != "Add" or name not in node.input:
        return 0
    step = next((x for x in node.input if x != name), name)
    is_one = scope.shape(step) == () and _count(scope, step) == _Count("", 1)
    return _exact(_dtype(scope.element(step))) if is_one else 0


def _unproved(loop: Loop, outer: Scope, condition: str, new: str) -> str:
    """Return why a Loop may run fewer iterations than its number; "" if it runs all of them up to `loop.most`."""
    before, trips = loop.node.input[1], _count(outer, loop.trips)
    highest = (_exact(_dtype(outer.element(trips.root))) or MOST_TRIPS) if trips.root else int(trips.more)
    if trips.root and (trips.more or trips.most < highest):  # a Cast may change it
        trips, highest = _Count(loop.trips), MOST_TRIPS
    if before and not _is_true(outer, before):
        loop.most = 0 if _is_same(loop.scope, new, condition) else min(loop.most, _true_to(outer, before, trips))
    if not _is_same(loop.scope, new, condition) and not _is_true(loop.scope, new):
        loop.most = min(loop.most, _true_to(loop.scope, new, trips))
    if loop.most >= highest:
        loop.most = MOST_TRIPS
    is_proved = loop.most == MOST_TRIPS or (trips.root and loop.most >= _MANY)
    return "" if is_proved else "the condition of the Loop may end it early"


def _is_true(scope: Scope, name: str) -> bool:
    return Values(scope).moves.truth(name) is True


def _true_to(scope: Scope, name: str, trips: _Count) -> int:
    """Return up to which number of iterations a condition is true while an iteration is left."""
    most, parts = MOST_TRIPS, [name]
    for part in parts:
        node = scope.producer(part)
        if node is None or node.op_type not in ("And", "Identity", "Less"):
            return 0
        if node.op_type != "Less":
            parts += (source for source in node.input if source not in parts)
            continue
        counter, limit = (_count(scope, source) for source in node.input)
        is_next = counter.more in (0, 1) if counter.root == _ITERATION else not counter.root and counter.more <= 0
        is_limit = limit.root == trips.root and (limit.more == 0 if limit.root else limit.more >= trips.more)
        most = min(most, counter.most, limit.most) if is_next and is_limit else 0
    return most
