"""Arithmetic of a graph on numbers of shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from pyrnnx.scoring.proof.node import Node
from pyrnnx.scoring.proof.values import Size, Value, axis_of, constant


def from_numbers(numbers: list[Size | None], *, scalar: bool = False) -> Value:
    """Return a value of numbers; it is a constant if all are known."""
    if all(number is not None and not number.labels for number in numbers):
        array = np.array([number.factor for number in numbers if number is not None], np.int64)
        return constant(array.reshape(()) if scalar else array)
    return Value(() if scalar else (axis_of(len(numbers)),), numbers=tuple(numbers))


def shape_arithmetic(node: Node) -> list[Value] | None:
    """Return the results of arithmetic on numbers from shapes, or None for any other node."""
    values = [value for value in node.inputs if value is not None]
    if node.op_type not in _ARITHMETIC or any(value.numbers is None for value in values):
        return None
    length = max(len(value.numbers or ()) for value in values)
    columns = [list(value.numbers or ()) * (length if len(value.numbers or ()) == 1 else 1) for value in values]
    if any(len(column) != length for column in columns):
        return None
    numbers = [_ARITHMETIC[node.op_type](*row) for row in zip(*columns, strict=True)]
    return [from_numbers(numbers, scalar=not any(value.axes for value in values) and length == 1 and _scalars(values))]


def _scalars(values: list[Value]) -> bool:
    return all(value.array is None or value.array.ndim == 0 for value in values)


def _plus(a: Size | None, b: Size | None, sign: int = 1) -> Size | None:
    if a is None or b is None:
        return None
    if a.labels == b.labels:
        factor = a.factor + sign * b.factor
        return Size(factor, a.labels) if factor else Size(0)
    return a if b.factor == 0 else b if a.factor == 0 and sign > 0 else None


def _equal(a: Size | None, b: Size | None) -> Size | None:
    if a is None or b is None:
        return None
    if a == b:
        return Size(1)
    # Unknown sizes are not negative, so factors of opposite signs make numbers that differ.
    if not (a.labels or b.labels) or min(a.factor, b.factor) < 0 < max(a.factor, b.factor):
        return Size(0)
    return None


def _where(condition: Size | None, a: Size | None, b: Size | None) -> Size | None:
    if condition is None or condition.labels:
        return a if a == b else None
    return a if condition.factor else b


def _not(a: Size | None) -> Size | None:
    return None if a is None or a.labels else Size(int(not a.factor))


_ARITHMETIC: Mapping[str, Callable[..., Size | None]] = MappingProxyType(
    {
        "Add": _plus,
        "Sub": lambda a, b: _plus(a, b, -1),
        "Mul": lambda a, b: None if a is None or b is None else a.times(b),
        "Div": lambda a, b: None if a is None or b is None else a.over(b),
        "Equal": _equal,
        "Not": _not,
        "Where": _where,
    }
)
