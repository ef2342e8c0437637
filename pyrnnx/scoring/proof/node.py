"""Nodes with the known properties of their inputs, the arguments of the rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyrnnx.scoring.proof.values import ROWS, TIME, Atom, Axis, UnprovenError, Value, as_data, has, integers


@dataclass(frozen=True)
class Node:
    """Node of a graph.

    Attributes
    ----------
    label : str
        Operator, and the name of the node or of its first output.
    op_type : str
    opset : int
    attributes : mapping
    inputs : tuple of Value or None
        None for an optional input that is left out.
    outputs : tuple of str
        Names; "" for an output that is left out.
    """

    label: str
    op_type: str
    opset: int
    attributes: Mapping[str, Any]
    inputs: tuple[Value | None, ...]
    outputs: tuple[str, ...]

    def input(self, place: int) -> Value | None:
        return self.inputs[place] if place < len(self.inputs) else None

    def data(self, place: int = 0) -> Value:
        """Return an input as data.

        Raises
        ------
        UnprovenError
            A missing input; a number that depends on the number of rows.
        """
        value = self.input(place)
        if value is None:
            raise UnprovenError(f"{self.label} lacks an input")
        return as_data(value, self.label)

    def operands(self) -> list[Value]:
        """Return all inputs that are not left out, as data."""
        return [as_data(value, self.label) for value in self.inputs if value is not None]

    def integers(self, name: str, place: int, default: list[int] | None = None) -> list[int]:
        """Return integers that are an attribute in older opsets and an input in newer ones.

        Raises
        ------
        UnprovenError
            An input that is no constant; a missing input without default.
        """
        if name in self.attributes:
            value = self.attributes[name]
            return list(value) if isinstance(value, (list, tuple)) else [value]
        if self.input(place) is None and default is not None:
            return default
        return integers(self.input(place), self.label)

    def axis(self, default: int, rank: int, name: str = "axis") -> int:
        """Return the attribute `axis` as a number from 0."""
        return int(self.attributes.get(name, default)) % max(rank, 1)

    def mixing(self, value: Value, axes: Any) -> str:
        """Return why a result that combines elements along these axes depends on padding, or "" if it does not.

        Raises
        ------
        UnprovenError
            One of the axes has rows.
        """
        chosen = [value.axes[axis] for axis in axes]
        if any(has(axis, ROWS) for axis in chosen):
            raise UnprovenError(f"{self.label} combines rows")
        if any(has(axis, TIME) for axis in chosen):
            return value.mixed or f"{self.label} combines time steps with the padding"
        return value.mixed

    def constants(self, *places: int) -> None:
        """Raise an `UnprovenError` for inputs that are no constants."""
        for place in places:
            value = self.input(place)
            if value is not None and value.array is None:
                raise UnprovenError(f"{self.label} has a weight that is computed from the inputs")

    def fresh(self, axis: int, piece: int = 0) -> Axis:
        """Return a new axis of unknown size that is the same for all rows."""
        output = next(name for name in self.outputs if name)
        return (Atom(f"{output}/{axis}/{piece}", None),)


def with_axes(value: Value, axes: Any, *, zero: bool = False, mixed: str | None = None) -> Value:
    """Return a result with these axes; it is no constant."""
    result = Value(tuple(axes), mixed=value.mixed if mixed is None else mixed)
    return replace(result, zero=zero and result.timed and not result.mixed)


def with_axis(value: Value, place: int, axis: Axis) -> tuple[Axis, ...]:
    return (*value.axes[:place], axis, *value.axes[place + 1 :])


def first(*reasons: str) -> str:
    """Return the first reason that is not empty, or ""."""
    return next(filter(None, reasons), "")
