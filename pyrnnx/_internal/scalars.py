"""Integers and numbers as arguments: Python's, NumPy's, and arrays without axes."""

from __future__ import annotations

import operator
import re
from numbers import Real
from typing import Any

import numpy as np

from pyrnnx.errors import ArgumentError, shown

_UNITS = {"": 1, **{f"{letter}{end}": 1000**power for power, letter in enumerate("kMGT", 1) for end in ("", "B")}}
_UNITS |= {f"{letter}iB": 1024**power for power, letter in enumerate("KMGT", 1)} | {"B": 1, "K": 1000, "KB": 1000}
_BYTES = re.compile(r"(\d{1,18}) ?([A-Za-z]*)")


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
    """Return a value as an int from `low` to `high`, both inclusive; `expected` replaces their words in the error."""
    result = as_integer(value)
    if result is None or (low is not None and result < low) or (high is not None and result > high):
        raise ArgumentError(f"{label}: {name} is {shown(value)}; expected {expected or _describe(low, high)}")
    return result


def byte_count(label: str, name: str, value: Any, low: int) -> int:
    """Return a number of bytes from an integer or from a text such as "256MiB" or "2 GB"."""
    count = value
    if isinstance(value, str):
        match = _BYTES.fullmatch(value.strip())
        count = int(match[1]) * _UNITS[match[2]] if match and match[2] in _UNITS else value
    expected = f'a number of bytes, {low} or above, or a text such as "256MiB"'
    return integer(label, name, count, low, expected=expected)


def _describe(low: int | None, high: int | None) -> str:
    if low is None:
        return "an integer" if high is None else f"an integer, at most {high}"
    return f"an integer, {low} or above" if high is None else f"an integer from {low} to {high}"


def number(label: str, name: str, value: Any, *, expected: str = "a number") -> float:
    """Return a value as a float, infinity and NaN included; `expected` ends the error."""
    result = as_number(value)
    if result is None:
        raise ArgumentError(f"{label}: {name} is {shown(value)}; expected {expected}")
    return result
