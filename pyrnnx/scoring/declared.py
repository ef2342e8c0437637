"""Declared inputs of a model: the one that takes the sequences, and sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pyrnnx.errors import ArgumentError, shown
from pyrnnx.operator.tensor_info import Dimension, Interval, TensorInfo


def sequences_input(
    label: str, name: Any, infos: Mapping[str, TensorInfo], supplied: Iterable[Any], hint: str = ""
) -> TensorInfo:
    """Return the input with this name, or the only one without a value.

    Parameters
    ----------
    label : str
        Name of the model in error messages.
    name : str or None
    infos : mapping
        All inputs, by name.
    supplied : iterable of str
        Names of inputs that have a value.
    hint : str
        End of the message if inputs have no value.

    Raises
    ------
    ArgumentError
        An unknown name; other inputs without a value.
    """
    values = set(supplied)
    free = [key for key, info in infos.items() if key not in values and key != name and not info.optional]
    if name is not None:
        if not isinstance(name, str) or name not in infos:
            raise ArgumentError(f"score: {label}: input is {shown(name)}; expected one of {names_of(infos)}")
        if free:
            raise ArgumentError(
                f"score: {label}: inputs lacks {names_of(free)}, which the model needs besides the sequences of "
                f"{shown(name)}{hint}"
            )
        return infos[name]
    if len(free) != 1:
        problem = f"these inputs have no value: {names_of(free)}" if free else "every input has a value"
        raise ArgumentError(
            f"score: {label}: {problem}; expected input, the name of the one that takes the sequences, and the others "
            f"in inputs{hint}"
        )
    return infos[free[0]]


def fixed(dimension: Dimension) -> int | None:
    """Return the size of a dimension; None if it is open."""
    if isinstance(dimension, Interval):
        return dimension.low if dimension.low == dimension.high else None
    return dimension if isinstance(dimension, int) else None


def names_of(names: Iterable[str]) -> str:
    """Return names for a message."""
    return ", ".join(map(shown, names)) or "none"
