"""Known properties of the values of a graph: their axes, and the effect of padding on them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pyrnnx._internal.dtypes import AnyArray

ROWS, TIME = "N", "T"


class UnprovenError(Exception):
    """Error with the reason why the rows of a value may depend on each other."""


class Atom(NamedTuple):
    """Factor of the size of an axis: rows, time steps, or something else.

    Attributes
    ----------
    label : str
        "N", "T", another name of an unknown size, or "" for a number.
    size : int or None
    """

    label: str
    size: int | None


Axis = tuple[Atom, ...]  # row-major: (N, T) is an axis of all time steps of the first row, then of the second


class Size(NamedTuple):
    """Product of a number and of unknown sizes."""

    factor: int
    labels: tuple[str, ...] = ()

    def times(self, other: Size) -> Size:
        return Size(self.factor * other.factor, tuple(sorted((*self.labels, *other.labels))))

    def over(self, other: Size) -> Size | None:
        """Return the exact quotient, or None if there is none."""
        left = list(self.labels)
        for label in other.labels:
            if label not in left:
                return None
            left.remove(label)
        if not other.factor or self.factor % other.factor:
            return None
        return Size(self.factor // other.factor, tuple(left))


@dataclass(frozen=True)
class Value:
    """Facts about a value whose rows are independent: a row depends only on the same row of the model's inputs.

    Attributes
    ----------
    axes : tuple of Axis
        Axes of the value, each as a product of rows, time steps and other sizes.
    zero : bool
        Whether the elements of time steps beyond a row's length are zero.
    mixed : str
        Reason why elements within a row's length depend on padding; "" if they do not.
    array : ndarray, optional
        The elements, if the value is a constant.
    numbers : tuple, optional
        The elements, if they are integers that are computed from shapes: a `Size` for each known element, None for an
        unknown one.
    is_lengths : bool
        Whether the value contains the lengths of the rows (sequence_lens).
    """

    axes: tuple[Axis, ...]
    zero: bool = False
    mixed: str = ""
    array: AnyArray | None = None
    numbers: tuple[Size | None, ...] | None = None
    is_lengths: bool = False

    @property
    def timed(self) -> bool:
        """Return whether the value has time steps."""
        return any(has(axis, TIME) for axis in self.axes)


def has(axis: Axis, label: str) -> bool:
    return any(atom.label == label for atom in axis)


def axis_of(size: int) -> Axis:
    """Return an axis of a known size; () for 1."""
    return () if size == 1 else (Atom("", size),)


def size_of(axis: Iterable[Atom]) -> Size:
    size = Size(1)
    for atom in axis:
        size = size.times(Size(1, (atom.label,)) if atom.size is None else Size(atom.size))
    return size


def axis_of_size(size: Size | None) -> Axis:
    """Return the axis of a size that a graph computes.

    Raises
    ------
    UnprovenError
        An unknown size; a product of several unknown sizes.
    """
    if size is None or len(size.labels) > 1 or (size.labels and size.factor != 1):
        raise UnprovenError("has an unknown shape")
    return (Atom(size.labels[0], None),) if size.labels else axis_of(size.factor)


def constant(array: Any) -> Value:
    """Return the facts about a constant, with `numbers` if it is a short integer array, which may be a shape."""
    array = np.asarray(array)
    numbers = None
    if array.dtype.kind in "iu" and array.ndim <= 1 and array.size <= 64:  # far above any rank
        numbers = tuple(Size(int(number)) for number in array.ravel())
    return Value(tuple(map(axis_of, array.shape)), array=array, numbers=numbers)


def checked(value: Value, node: str) -> Value:
    """Return a result; raise an `UnprovenError` if it has more than one axis of rows."""
    labels = [atom.label for axis in value.axes for atom in axis]
    if labels.count(ROWS) > 1:
        raise UnprovenError(f"{node} combines rows with rows")
    if labels.count(TIME) > 1 and not value.mixed:
        return Value(value.axes, mixed=f"{node} combines time steps with time steps")
    return value


def as_data(value: Value, node: str) -> Value:
    """Return a value as an operand; numbers from shapes become a constant or a value that depends on padding.

    Raises
    ------
    UnprovenError
        A number that depends on the number of rows.
    """
    if value.numbers is None or value.array is not None:
        return value
    if any(number is None or ROWS in number.labels for number in value.numbers):
        raise UnprovenError(f"{node} computes with the number of rows")
    if any(number.labels for number in value.numbers if number is not None):
        return Value(value.axes, mixed=f"{node} computes with the number of time steps")
    numbers = np.array([number.factor for number in value.numbers if number is not None])
    return constant(numbers if value.axes else numbers.reshape(()))


def integers(value: Value | None, node: str) -> list[int]:
    """Return the integers of a constant.

    Raises
    ------
    UnprovenError
        The value is no constant of integers.
    """
    if value is None or value.numbers is None or any(number is None or number.labels for number in value.numbers):
        raise UnprovenError(f"{node} has axes, indices or sizes that are computed from the inputs")
    return [number.factor for number in value.numbers if number is not None]


def uniform(array: AnyArray, axis: int) -> bool:
    """Return whether a constant has the same elements at all indices of an axis."""
    return bool(array.size and (array == np.take(array, [0], axis)).all())


def reshaped(axes: Sequence[Axis], target: Sequence[Size], node: str) -> tuple[Axis, ...]:
    """Return the axes after a reshape to the sizes `target`, with the elements in the same order.

    Raises
    ------
    UnprovenError
        The sizes neither split nor join whole axes.
    """
    atoms = [atom for axis in axes for atom in axis]
    result = []
    for size in target:
        joined: list[Atom] = []
        need = size
        while need != Size(1):
            if not atoms:
                raise UnprovenError(f"{node} does not keep rows apart from other axes")
            atom = atoms.pop(0)
            rest = need.over(size_of([atom]))
            if rest is None and not atom.label and not need.labels and atom.size and atom.size % need.factor == 0:
                atoms.insert(0, Atom("", atom.size // need.factor))
                atom, rest = Atom("", need.factor), Size(1)
            if rest is None:
                raise UnprovenError(f"{node} does not keep rows apart from other axes")
            joined.append(atom)
            need = rest
        result.append(tuple(joined))
    if size_of(atoms) != Size(1):
        raise UnprovenError(f"{node} does not keep rows apart from other axes")
    return tuple(result)


def broadcast(operands: Sequence[Value], node: str, trailing: int = 0) -> tuple[Axis, ...]:
    """Return the axes of operands broadcast to one shape, without the last `trailing` axes of each.

    Raises
    ------
    UnprovenError
        Axes that do not match, such as rows and time steps, or rows and a constant that differs between rows.
    """
    rank = max(len(value.axes) for value in operands) - trailing
    return tuple(
        _common([(value, len(value.axes) - trailing - rank + k) for value in operands], node) for k in range(rank)
    )


def _common(places: Sequence[tuple[Value, int]], node: str) -> Axis:
    axes = [(value, place, value.axes[place]) for value, place in places if place >= 0 and value.axes[place]]
    labelled = [axis for _, _, axis in axes if any(atom.label for atom in axis)]
    common = labelled[0] if labelled else axes[0][2] if axes else ()
    for value, place, axis in axes:
        if axis == common:
            continue
        plain = not any(atom.label for atom in axis)
        if not plain or size_of(axis) != size_of(common):
            raise UnprovenError(f"{node} combines axes that are not the same")
        if has(common, ROWS) and not (value.array is not None and uniform(value.array, place)):
            raise UnprovenError(f"{node} has a constant with an element for each row")
    return common


def finite(value: Value) -> bool:
    return value.array is not None and bool(np.isfinite(value.array.astype(np.float64)).all())


def count(axis: Axis) -> int | None:
    """Return the number of elements of an axis, or None if it is unknown."""
    sizes = [atom.size for atom in axis]
    return None if None in sizes else math.prod(size for size in sizes if size is not None)
