"""Loops and Scans whose body is one step of recurrent layers.

X, h0 -> Scan (x, h -> LSTM cell -> h') -> Y, h        becomes      X, h0 -> LSTM -> Y, h
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..graph.fold import FoldedGraph
from ..graph.walk import Node
from .scope import Scope, attribute_of, keeps_integers
from .values import Values


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
    return "" if _always_runs(loop, names[1], outputs[0]) else "the condition of the Loop may end it early"


def _read_states(
    loop: Loop, outer: Values, names: Sequence[str], outputs: Sequence[str], initial: Sequence[str]
) -> None:
    scope = loop.scope
    plain = Values(scope)
    for place, (name, new, before) in enumerate(zip(names, outputs, initial, strict=True)):
        if plain.base(new) == name and _is_same(scope, new, name):
            scope.aliases[name] = outer.scope.aliases.get(before, before)
            loop.unchanged[place] = before
        elif loop.trips and _counts(scope, name, new, before):
            scope.iterations[name] = "i"
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


def _counts(scope: Scope, name: str, new: str, before: str) -> bool:
    """Return whether a state is the iteration number: 0 before, one more after each iteration."""
    node = scope.producer(new)
    while node is not None and node.op_type == "Identity":
        node = scope.producer(node.input[0])
    if node is None or node.op_type != "Add" or name not in node.input:
        return False
    step = next((x for x in node.input if x != name), name)
    return (_count(scope, before), _count(scope, step), scope.shape(before), scope.shape(step)) == (0, 1, (), ())


def _count(scope: Scope, name: str) -> int | None:
    """Return a constant of one element, of a type that has all counts; None for other values."""
    array = scope.array(name)
    is_count = array is not None and array.size == 1 and array.dtype in (np.int32, np.int64)
    return int(array.reshape(-1)[0]) if array is not None and is_count else None


def _always_runs(loop: Loop, condition: str, new: str) -> bool:
    """Return whether a Loop runs its number of iterations: its conditions are true, or compare counters with it."""
    scope, before = loop.scope, loop.node.input[1]
    outer = scope.outer
    if outer is None:
        return False
    if before and not _is_true(outer, before) and not _is_below(outer, before, loop.trips, {}):
        return False
    if _is_same(scope, new, condition):
        return not before or _is_true(outer, before)
    return _is_true(scope, new) or _is_below(scope, new, loop.trips, scope.iterations)


def _is_true(scope: Scope, name: str) -> bool:
    return Values(scope).moves.truth(name) is True


def _is_below(scope: Scope, name: str, trips: str, iterations: dict[str, str]) -> bool:
    """Return whether a condition is only false if the next iteration is not below the number of iterations."""
    node = scope.producer(name)
    if node is None:
        return False
    if node.op_type in ("And", "Identity"):
        return all(_is_below(scope, source, trips, iterations) for source in node.input)
    if node.op_type != "Less":
        return False
    counter, limit = (_uncast(scope, source) for source in node.input)
    most, count = _count(scope, limit), _count(scope, trips)
    is_limit = limit == _uncast(scope, trips) or (most is not None and count is not None and most >= count)
    return is_limit and _is_counter(scope, counter, iterations)


def _uncast(scope: Scope, name: str) -> str:
    name = scope.aliases.get(name, name)
    while (node := scope.producer(name)) is not None and (
        node.op_type in ("Identity", "Squeeze", "Reshape") or keeps_integers(node)
    ):
        name = scope.aliases.get(node.input[0], node.input[0])
    return name


def _is_counter(scope: Scope, name: str, iterations: dict[str, str]) -> bool:
    """Return whether a value is at most the number of the next iteration."""
    number, node = _count(scope, name), scope.producer(name)
    if number is not None or name in iterations:
        return number is None or number <= 0
    if node is None or node.op_type != "Add":
        return False
    a, b = (_uncast(scope, source) for source in node.input)
    return any(count in iterations and _count(scope, step) == 1 for count, step in ((a, b), (b, a)))
