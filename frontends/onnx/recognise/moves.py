"""Operators that only move values: Split, Slice, Gather, Squeeze, Transpose and the like, and arithmetic of shapes."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..graph.walk import Node
from .forms import ITERATION, Dim, Shape, View, broadcast
from .scope import Scope, attribute_of, clamped, keeps_integers

_SAME = ("Identity", "Dropout")
_INTEGERS = ("Identity", "Squeeze", "Unsqueeze", "Reshape")  # keep the elements of a vector


@dataclass(frozen=True)
class Columns:
    """Range of the last axis."""

    start: int
    stop: int


@dataclass(frozen=True)
class Move:
    """Source of a value, and its columns or views that are the value."""

    source: str
    how: Columns | tuple[View, ...]


class Size(str):
    """Name of a dimension that a graph computes with, and the axis of a value that has this size in each call.

    Names alone are no proof: dimensions of one name may differ in a call.
    """

    def __new__(cls, name: str, origin: tuple[str, int]) -> Size:
        size = super().__new__(cls, name)
        size.origin = origin
        return size

    origin: tuple[str, int]


class Moves:
    """Moves of values in a scope; `shape` returns the shape of a value."""

    def __init__(self, scope: Scope, shape: Callable[[str], Shape | None]) -> None:
        self._scope, self._shape = scope, shape
        self._truths: dict[str, bool | None] = {}
        self._numbers: dict[str, tuple[Dim, ...] | None] = {}

    def of(self, name: str) -> Move | None:
        """Return how a value is moved; None if it is computed, or an axis or index is unknown."""
        node = self._scope.producer(name)
        if node is None or not node.input or not node.input[0]:
            return None
        if node.op_type in _SAME and name == node.output[0] and len(node.input) == 1:
            return Move(node.input[0], ())
        if node.op_type == "Cast":
            is_same_type = attribute_of(node, "to") == self._scope.element(node.input[0])
            return Move(node.input[0], ()) if is_same_type else None
        if node.op_type == "Where":
            return self._chosen(node)
        if node.op_type == "Concat" and len(node.input) == 1:
            return Move(node.input[0], ())
        shape = self._shape(node.input[0]) if node.op_type in _MOVES else None
        return None if shape is None else _MOVES[node.op_type](self, node, shape, name)

    def _chosen(self, node: Node) -> Move | None:
        """Return the value that a Where with a known condition chooses, if neither it nor the other one adds rows."""
        truth = self.truth(node.input[0])
        if truth is None:
            return None
        chosen, other = node.input[1:] if truth else node.input[:0:-1]
        shape, *others = (self._shape(name) for name in (chosen, other, node.input[0]))
        fits = shape is not None and all(rest is not None and broadcast(shape, rest) == shape for rest in others)
        return Move(chosen, ()) if fits else None

    def truth(self, name: str) -> bool | None:
        """Return the value of a boolean of one element; None if unknown."""
        if name not in self._truths:  # sums of sums have too many paths to follow each
            self._truths[name] = self._truth(name)
        return self._truths[name]

    def _truth(self, name: str) -> bool | None:
        array, node = self._scope.array(name), self._scope.producer(name)
        if array is not None:
            return bool(array.reshape(-1)[0]) if array.size == 1 and array.dtype == bool else None
        if node is None or not node.input:
            return None
        if node.op_type in ("Identity", "Not"):
            truth = self.truth(node.input[0])
            return None if truth is None else truth != (node.op_type == "Not")
        if node.op_type in _CONNECTIVES:
            truths = [self.truth(source) for source in node.input]
            return None if None in truths else bool(_CONNECTIVES[node.op_type](*truths))
        compare = _COMPARISONS.get(node.op_type)
        sides = [] if compare is None else [self.numbers(source) for source in node.input]
        if compare is None or any(side is None or len(side) != 1 or not isinstance(side[0], int) for side in sides):
            return None
        return bool(compare(*(side[0] for side in sides if side)))

    def parts(self, name: str) -> list[str]:
        """Return the values whose last axes are joined to a value; only itself if it is not a Concat of that axis."""
        move = self.of(name)
        while move is not None and move.how == ():
            name = move.source
            move = self.of(name)
        node = self._scope.producer(name)
        if node is None or node.op_type != "Concat":
            return [name]
        shape, axis = self._shape(node.input[0]), attribute_of(node, "axis", 0)
        is_last = axis == -1 or (shape is not None and axis == len(shape) - 1)
        return list(node.input) if is_last else [name]

    def _axis(self, node: Node, shape: Shape, default: int) -> int:
        axis = int(attribute_of(node, "axis", default))
        return axis + len(shape) if axis < 0 else axis

    def _split(self, node: Node, shape: Shape, name: str) -> Move | None:
        axis, place, size = self._axis(node, shape, 0), node.output.index(name), shape[self._axis(node, shape, 0)]
        sizes = self._scope.integers(node, "split", 1)
        if sizes is None:
            if not isinstance(size, int) or (len(node.input) > 1 and node.input[1]):
                return None
            part = -(-size // len(node.output))
            sizes = tuple(min(part, size - k * part) for k in range(len(node.output)))
        return self._range(node, shape, axis, sum(sizes[:place]), sum(sizes[: place + 1]))

    def _range(self, node: Node, shape: Shape, axis: int, start: int, stop: int) -> Move | None:
        """Return a range of an axis: of the last axis columns, of another one row."""
        if axis == len(shape) - 1:
            return Move(node.input[0], Columns(start, stop)) if stop > start else None
        if stop - start != 1:
            return None
        return Move(node.input[0], (("select", axis, start), ("unsqueeze", axis)))

    def _slice(self, node: Node, shape: Shape, name: str) -> Move | None:
        bounds = self._bounds(node, shape)
        if bounds is None:
            return None
        if len(bounds) == 1 and bounds[0][3] == -1:
            return self._flip(node, shape, *bounds[0][:3])
        chosen = []
        for axis, start, stop, step in bounds:
            size = shape[axis]
            is_end = isinstance(stop, int) and (stop == size or stop >= _INT32_MAX)
            is_end = is_end or (isinstance(stop, Size) and stop.origin == self.origin(node.input[0], axis))
            if step == 1 and start == 0 and is_end:
                continue
            if step != 1 or not (isinstance(start, int) and isinstance(stop, int) and isinstance(size, int)):
                return None
            chosen.append((axis, *clamped(start, stop, size)))
        if not chosen:
            return Move(node.input[0], ())
        return self._range(node, shape, *chosen[0]) if len(chosen) == 1 else None

    def origin(self, name: str, axis: int) -> tuple[str, int]:
        """Return the axis of the value that a value's axis is moved from; it has the same size."""
        key = name, axis
        if key not in self._scope.origins:
            node = self._scope.producer(key[0])
            # The other value of a Where may have more rows in a call.
            move = None if node is None or node.op_type == "Where" else self.of(key[0])
            place = None if move is None else _place_before(move.how, axis, len(self._shape(name) or ()))
            source = key if move is None or place is None else self.origin(move.source, place)
            self._scope.origins[key] = source
        return self._scope.origins[key]

    def _bounds(self, node: Node, shape: Shape) -> list[tuple[int, Dim, Dim, Dim]] | None:
        """Return axis, start, stop and step of each axis that a Slice names; None if they are unknown."""
        columns: list[tuple[Dim, ...] | None]
        if len(node.input) > 1:
            given = [*node.input[1:5], "", ""][:4]
            columns = [self.numbers(source) if source else () for source in given]
        else:
            columns = [*(tuple(attribute_of(node, key, ())) for key in ("starts", "ends", "axes")), ()]
        starts, stops, axes, steps = columns
        if starts is None or stops is None or axes is None or steps is None:
            return None
        count = len(starts)
        axes, steps = axes or tuple(range(count)), steps or (1,) * count
        if {len(stops), len(axes), len(steps)} != {count} or None in axes:
            return None
        places = [int(axis) % len(shape) for axis in axes if axis is not None]
        return list(zip(places, starts, stops, steps, strict=True))

    def _flip(self, node: Node, shape: Shape, axis: int, start: Dim, stop: Dim) -> Move | None:
        """Return a Slice that reverses an axis which is not the last."""
        size = shape[axis]
        least = size if isinstance(size, int) else _INT32_MAX - 1
        is_last = start == -1 or (isinstance(start, int) and start >= least - 1)
        is_first = isinstance(stop, int) and stop < -least
        return Move(node.input[0], (("flip", axis),)) if is_last and is_first and axis < len(shape) - 1 else None

    def _gather(self, node: Node, shape: Shape, name: str) -> Move | None:
        axis, index = self._axis(node, shape, 0), self.index(node.input[1])
        if index is None or axis == len(shape) - 1:
            return None
        number, is_scalar = index
        size = shape[axis]
        if isinstance(number, int) and number < 0:
            if not isinstance(size, int):
                return None
            number += size
        back: tuple[View, ...] = () if is_scalar else (("unsqueeze", axis),)
        return Move(node.input[0], (("select", axis, number), *back))

    def index(self, name: str) -> tuple[int | str, bool] | None:
        """Return a constant index, or ITERATION, and whether it is a scalar."""
        array = self._scope.array(name)
        if array is not None:
            return (int(array.reshape(-1)[0]), array.ndim == 0) if array.size == 1 and array.ndim < 2 else None
        is_scalar = self._scope.iteration(name)
        return None if is_scalar is None else (ITERATION, is_scalar)

    def _squeeze(self, node: Node, shape: Shape, name: str) -> Move | None:
        axes = self._scope.integers(node, "axes", 1)
        if axes is None:
            if (len(node.input) > 1 and node.input[1]) or any(not isinstance(size, int) for size in shape):
                return None
            axes = tuple(axis for axis, size in enumerate(shape) if size == 1)
        axes = tuple(sorted((axis + len(shape) if axis < 0 else axis) for axis in axes))
        if any(shape[axis] != 1 for axis in axes) or len(shape) - 1 in axes:
            return None
        return Move(node.input[0], tuple(("squeeze", axis) for axis in reversed(axes)))

    def _unsqueeze(self, node: Node, shape: Shape, name: str) -> Move | None:
        axes = self._scope.integers(node, "axes", 1)
        if axes is None:
            return None
        rank = len(shape) + len(axes)
        axes = tuple(sorted((axis + rank if axis < 0 else axis) for axis in axes))
        return None if rank - 1 in axes else Move(node.input[0], tuple(("unsqueeze", axis) for axis in axes))

    def _transpose(self, node: Node, shape: Shape, name: str) -> Move | None:
        perm = attribute_of(node, "perm") or tuple(reversed(range(len(shape))))
        if perm[-1] != len(shape) - 1 or len(perm) != len(shape):
            return None
        return Move(node.input[0], (("transpose", tuple(perm)),))

    def _reshape(self, node: Node, shape: Shape, name: str) -> Move | None:
        """Return a Reshape that only adds and removes axes of one element."""
        target = self.numbers(node.input[1])
        if target is None or not target or attribute_of(node, "allowzero", 0):
            return None
        if any(not isinstance(size, int) for size in target):
            return None
        target = tuple(shape[axis] if size == 0 and axis < len(shape) else size for axis, size in enumerate(target))
        before = [size for size in shape if size != 1]
        after = [size for size in target if size != 1]
        # Sizes of the same name may differ in a call: those of the target are numbers, or the value's own (0).
        if len(before) != len(after) or any(
            y not in (-1, x) or (y == -1 and after.count(-1) > 1) or x is None
            for x, y in zip(before, after, strict=True)
        ):
            return None
        if not before or shape[-1] == 1 or target[-1] == 1:
            return None
        squeezed = tuple(("squeeze", axis) for axis in reversed(range(len(shape))) if shape[axis] == 1)
        return Move(
            node.input[0], squeezed + tuple(("unsqueeze", axis) for axis in range(len(target)) if target[axis] == 1)
        )

    def numbers(self, name: str) -> tuple[Dim, ...] | None:
        """Return the elements of a vector or scalar of integers; unknown ones are None, dimensions have names."""
        if name not in self._numbers:
            self._numbers[name] = self._numbers_of(name)
        return self._numbers[name]

    def _numbers_of(self, name: str) -> tuple[Dim, ...] | None:
        known = self._scope.numbers(name)
        node = self._scope.producer(name)
        if known is not None or node is None or name != node.output[0]:
            return known
        shape = self._scope.shape(name)
        if shape is None or len(shape) > 1:  # the elements of a matrix have another order in each operator
            return None
        if keeps_integers(node) and (truth := self.truth(node.input[0])) is not None:
            return (int(truth),)
        if node.op_type in _INTEGERS or keeps_integers(node):
            return self.numbers(node.input[0])
        if node.op_type in _ARITHMETIC:
            first, second = map(self.numbers, node.input)
            return None if first is None or second is None else _elementwise(node.op_type, first, second)
        rules = {"Shape": self._sizes, "Concat": self._joined, "Gather": self._gathered, "Slice": self._cut}
        return rules[node.op_type](node) if node.op_type in rules else None

    def _sizes(self, node: Node) -> tuple[Dim, ...] | None:
        name, sizes = node.input[0], self._scope.sizes.get(node.input[0])
        if sizes is None:
            shape = self._shape(name)
            if shape is None:
                return None
            sizes = tuple(Size(x, self.origin(name, k)) if isinstance(x, str) else x for k, x in enumerate(shape))
            if None not in sizes:
                self._scope.sizes[name] = sizes
        return sizes[attribute_of(node, "start", 0) : attribute_of(node, "end", len(sizes))]

    def _joined(self, node: Node) -> tuple[Dim, ...] | None:
        parts = [self.numbers(part) for part in node.input]
        return None if None in parts else tuple(number for part in parts for number in part or ())

    def _gathered(self, node: Node) -> tuple[Dim, ...] | None:
        numbers, places = self.numbers(node.input[0]), self._scope.numbers(node.input[1])
        if numbers is None or places is None:
            return None
        indices = [k for k in places if isinstance(k, int) and -len(numbers) <= k < len(numbers)]
        return tuple(numbers[k] for k in indices) if len(indices) == len(places) else None

    def _cut(self, node: Node) -> tuple[Dim, ...] | None:
        numbers = self.numbers(node.input[0])
        bounds = None if numbers is None else self._bounds(node, (len(numbers),))
        if numbers is None or bounds is None or len(bounds) != 1 or bounds[0][3] != 1:
            return None
        _, start, stop, _ = bounds[0]
        whole = isinstance(start, int) and isinstance(stop, int)
        return numbers[slice(*clamped(start, stop, len(numbers)))] if whole else None  # type: ignore[arg-type]


_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "Equal": operator.eq,
    "Greater": operator.gt,
    "GreaterOrEqual": operator.ge,
    "Less": operator.lt,
    "LessOrEqual": operator.le,
}
_CONNECTIVES: dict[str, Callable[[Any, Any], bool]] = {"And": operator.and_, "Or": operator.or_, "Xor": operator.xor}
_INT32_MAX = 2**31 - 1
_ARITHMETIC: dict[str, Callable[[int, int], Dim]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mul": operator.mul,
    "Div": lambda a, b: int(a / b) if b and abs(a) < _INT32_MAX else None,
}


def _place_before(how: Columns | tuple[View, ...], axis: int, rank: int) -> int | None:
    """Return the axis that becomes an axis of a moved value; None if it is new or has columns."""
    if isinstance(how, Columns):
        return axis if axis < rank - 1 else None
    for kind, *arguments in reversed(how):
        if kind == "transpose":
            axis = arguments[0][axis]
        elif kind == "unsqueeze":
            if axis == arguments[0]:
                return None
            axis -= axis > arguments[0]
        elif kind != "flip":
            axis += axis >= arguments[0]
    return axis


def _elementwise(kind: str, first: tuple[Dim, ...], second: tuple[Dim, ...]) -> tuple[Dim, ...] | None:
    length = max(len(first), len(second))
    if {len(first), len(second)} - {1, length}:
        return None
    return tuple(
        _ARITHMETIC[kind](a, b) if isinstance(a, int) and isinstance(b, int) else None
        for a, b in zip(first * (length // len(first)), second * (length // len(second)), strict=True)
    )


_MOVES: dict[str, Callable[[Moves, Node, Shape, str], Move | None]] = {
    "Split": Moves._split,
    "Slice": Moves._slice,
    "Gather": Moves._gather,
    "Squeeze": Moves._squeeze,
    "Unsqueeze": Moves._unsqueeze,
    "Transpose": Moves._transpose,
    "Reshape": Moves._reshape,
}
