"""Integers and numbers as arguments: Python's, NumPy's, and arrays without axes."""

from __future__ import annotations

import operator
from numbers import Real
from typing import Any

import numpy as np

from pyrnnx.errors import ArgumentError, shown


def as_integer(value: Any) -> int | None:
    """Return a value as an int, or None if it is no integer. Bools and floats such as 2.0 are no integers."""
    # Older versions of NumPy accept their own bools as an index, so `operator.index` does not reject them.
    if isinstance(value, (bool, np.bool_)) or (isinstance(value, np.ndarray) and value.dtype.kind == "b"):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def as_number(value: Any) -> float | None:
    """Return a value as a float, or None if it is no number. Bools are no numbers; infinity and NaN are."""
    if isinstance(value, (bool, np.bool_)):
        return None
    if isinstance(value, (np.generic, np.ndarray)):
        is_number = value.ndim == 0 and (value.dtype.kind in "iuf" or value.dtype.name == "bfloat16")
    else:
        is_number = isinstance(value, Real)
    try:
        return float(value) if is_number else None
    except OverflowError:  # an int beyond the range of float
        return None


def integer(
    label: str, name: str, value: Any, low: int | None = None, high: int | None = None, *, expected: str = ""
) -> int:
    """Return a value as an int from `low` to `high`.

    Parameters
    ----------
    label, name : str
        Operator or layer, and argument, for the error message.
    value : int, numpy.integer, or an integer array without axes
    low, high : int, optional
        Bounds, both inclusive. Default: none.
    expected : str, optional
        End of the error message. Default: the bounds in words.

    Raises
    ------
    ArgumentError
        Any other value.
    """
    result = as_integer(value)
    if result is None or (low is not None and result < low) or (high is not None and result > high):
        raise ArgumentError(f"{label}: {name} is {shown(value)}; expected {expected or _describe(low, high)}")
    return result


def _describe(low: int | None, high: int | None) -> str:
    if low is None:
        return "an integer" if high is None else f"an integer, at most {high}"
    return f"an integer, {low} or above" if high is None else f"an integer from {low} to {high}"


def number(label: str, name: str, value: Any, *, expected: str = "a number") -> float:
    """Return a value as a float, infinity and NaN included.

    Parameters
    ----------
    label, name : str
        Operator or layer, and argument, for the error message.
    value : float, int, numpy.number, or an array of them without axes
    expected : str, optional
        End of the error message.

    Raises
    ------
    ArgumentError
        Any other value.
    """
    result = as_number(value)
    if result is None:
        raise ArgumentError(f"{label}: {name} is {shown(value)}; expected {expected}")
    return result
