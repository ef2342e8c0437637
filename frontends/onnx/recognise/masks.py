"""Masks of loops: a state stays as it was in the steps of some rows.

    h' = Where(mask, cell(x, h), h)

Steps that take the new state move to the beginning of each row. The layer runs with their number as sequence_lens. The
state after each step is then gathered from Y:

    mask  1 0 1 1     X  a b c d   ->   a c d b,  lengths 3   ->   Y  A C D 0   ->   A A C D
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..graph.walk import Node
from .builder import Builder, time_first
from .forms import Dim, Shape
from .loops import Loop
from .scope import attribute_of
from .values import Values

_FIRST_OPSET = 13  # of the operators that move the steps, with axes as inputs
_PER_ELEMENT = ("Not", "Cast", "Identity")
_INT32, INT64 = 6, 7


@dataclass(frozen=True)
class Mask:
    """Condition of a Where, and whether a row takes the new state if it is true."""

    name: str
    is_new: bool


@dataclass(frozen=True)
class Masked:
    """Inputs of the Where that returns a new state: its condition, and the names of the new value and the old one."""

    mask: Mask
    new: str
    old: str


def mask_of(values: Values, name: str, state: str) -> Masked | None:
    """Return the mask of a state's new value; None if it has none."""
    node = values.scope.producer(name)
    if node is None or node.op_type != "Where":
        return None
    condition, a, b = node.input
    bases = [values.base(source) for source in (a, b)]
    if bases.count(state) != 1:
        return None
    return (
        Masked(Mask(condition, bases[1] == state), a, b) if bases[1] == state else Masked(Mask(condition, False), b, a)
    )


@dataclass(frozen=True)
class Lengths:
    """Names of values that move the steps of rows.

    `lengths` [N] is the number of steps that count, `places` [T, N] the new place of each step, and `done` [T, N] the
    number of steps that count up to each.
    """

    lengths: str
    places: str
    done: str


def emit_mask(builder: Builder, loop: Loop, mask: Mask, rows: Dim, cut: Callable[[str, Dim], str]) -> Lengths | None:
    """Add the mask of all steps, and what follows from it; None if it is not computed from [T, N, 1] alone.

    `cut` returns the steps that a loop runs, of a value and its number of steps.
    """
    series = _hoisted(builder, loop, mask.name)
    if series is None or builder.scope.opset < _FIRST_OPSET:
        return None
    name, shape = series
    if shape[1:] != (rows, 1):
        return None
    name = name if loop.is_scan else cut(name, shape[0])
    taken = builder.axes("Squeeze", name, [2])
    if not mask.is_new:
        taken = builder.node("Not", [taken])
    first, ones = builder.integers(0, scalar=True), builder.node("Cast", [taken], to=INT64)
    rest = builder.node("Cast", [builder.node("Not", [taken])], to=INT64)
    done, left = (builder.node("CumSum", [counted, first]) for counted in (ones, rest))
    total = builder.node("ReduceSum", [ones, builder.integers(0)], keepdims=1)
    behind = builder.node("Add", [total, left])
    unit = builder.integers(1, scalar=True)
    places = builder.node("Sub", [builder.node("Where", [taken, done, behind]), unit])
    lengths = builder.node("Cast", [builder.axes("Squeeze", total, [0])], to=_INT32)
    return Lengths(lengths, places, done)


def _hoisted(builder: Builder, loop: Loop, name: str) -> tuple[str, Shape] | None:
    """Add a value of the body for all steps, with the time first; return its name and shape."""
    scope, outer = loop.scope, Values(builder.scope)
    if name in loop.series:
        source, axis, is_reverse = loop.series[name]
        shape = outer.shape(source)
        return None if shape is None or is_reverse else _first(builder, source, shape, axis)
    node = scope.producer(name) if name in loop.graph.local else None
    if node is not None and node.op_type == "Gather":
        return _gathered(builder, loop, node)
    series = None
    if node is not None and node.op_type in (*_PER_ELEMENT, *_REDUCED):
        series = _hoisted(builder, loop, node.input[0])
    if node is None or series is None:
        return None
    source, shape = series
    if node.op_type in _PER_ELEMENT:
        to = attribute_of(node, "to")
        return builder.node(node.op_type, [source], **({} if to is None else {"to": to})), shape
    is_last = scope.integers(node, "axes", 1) in ((-1,), (len(shape) - 2,)) and attribute_of(node, "keepdims", 1)
    return (_reduced(builder, node, source), (*shape[:-1], 1)) if is_last else None


def _gathered(builder: Builder, loop: Loop, node: Node) -> tuple[str, Shape] | None:
    """Add the value of which a Gather takes the current step."""
    scope, local = loop.scope, loop.graph.local
    source = node.input[0]
    shape = None if source in local else Values(builder.scope).shape(source)
    if shape is None or not scope.iteration(node.input[1]):
        return None
    return _first(builder, source, shape, int(attribute_of(node, "axis", 0)))


_REDUCED = ("ReduceMin", "ReduceMax", "ReduceSum")


def _reduced(builder: Builder, node: Node, source: str) -> str:
    if attribute_of(node, "axes") is not None:
        return builder.node(node.op_type, [source], axes=[-1], keepdims=1)
    return builder.node(node.op_type, [source, builder.integers(-1)], keepdims=1)


def _first(builder: Builder, source: str, shape: Shape, axis: int) -> tuple[str, Shape] | None:
    if len(shape) != 3:
        return None
    axis %= len(shape)
    return time_first(builder, source, shape, axis), (shape[axis], *shape[:axis], *shape[axis + 1 :])


def moved_steps(builder: Builder, x: str, mask: Lengths) -> str:
    """Return X [T, N, I] with the steps that count first."""
    places = builder.node("Expand", [builder.axes("Unsqueeze", mask.places, [2]), builder.node("Shape", [x])])
    return builder.node("ScatterElements", [x, places, x], axis=0)


def states_after(builder: Builder, Y: str, before: str, mask: Lengths) -> str:
    """Return the state after every step, [T, N, H].

    Y [T, N, H] has the states of the steps that take a new state; `before` is the initial state, "" for zeros.
    """
    if not before:
        first = builder.node("Slice", [builder.node("Shape", [Y]), builder.integers(1), builder.integers(3)])
        before = builder.node("ConstantOfShape", [builder.node("Concat", [builder.integers(1), first], axis=0)])
    sizes = builder.node("Shape", [Y])
    places = builder.node("Expand", [builder.axes("Unsqueeze", mask.done, [2]), sizes])
    return builder.node("GatherElements", [builder.node("Concat", [before, Y], axis=0), places], axis=0)


def last_state(builder: Builder, after: str, before: str, mask: Lengths) -> str:
    """Return the last state [1, N, H]; that before, of rows without steps that count."""
    if not before:
        return after
    counted = builder.node(
        "Greater", [mask.lengths, builder.node("Cast", [builder.integers(0, scalar=True)], to=_INT32)]
    )
    return builder.node("Where", [builder.axes("Unsqueeze", counted, [0, 2]), after, before])
