"""Arguments of the operators: matched with a table, checked against the specifications, and widened to float64."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]

_NO_NUMBERS = (np.complexfloating, np.flexible, np.datetime64, np.timedelta64, np.object_)


class OracleError(ValueError):
    """Raised for an array or attribute that the operator's specification does not allow."""


REQUIRED: Any = object()  # stands for the default of an array that the operator requires
Table = Mapping[str, Mapping[str, Any]]  # operator -> argument -> default; arrays come first, in the operator's order


def bind(table: Table, operator: str, arrays: Sequence[Any], arguments: Mapping[str, Any]) -> Any:
    """Return the arguments of a call by name, with defaults for all others that the operators of the table have."""
    known = table[operator]
    passed = {**dict(zip(known, arrays, strict=False)), **arguments}
    for name in passed:
        if name not in known:
            raise OracleError(f"{operator}: argument {name} is unknown; expected {', '.join(known)}")
    for name, default in known.items():
        if default is REQUIRED and passed.get(name) is None:
            raise OracleError(f"{operator}: {name} is missing")
    defaults = {
        name: None if default is REQUIRED else default for row in table.values() for name, default in row.items()
    }
    return SimpleNamespace(**{**defaults, **known, **passed})


def floats(operator: str, name: str, value: ArrayLike, shape: Sequence[int]) -> Array:
    """Return `value` as float64."""
    array = np.asarray(value)
    if issubclass(array.dtype.type, _NO_NUMBERS):
        raise OracleError(f"{operator}: {name} has dtype {array.dtype}; expected real numbers")
    if array.shape != tuple(shape):
        raise OracleError(f"{operator}: {name} has shape {array.shape}; expected {tuple(shape)}")
    return array.astype(np.float64)


def optional_floats(operator: str, name: str, value: ArrayLike | None, shape: Sequence[int]) -> Array:
    """Call `floats`, or return zeros for None: "if not specified - assumed to be 0"."""
    return np.zeros(shape) if value is None else floats(operator, name, value, shape)


def lengths(operator: str, name: str, value: ArrayLike | None, T: int, N: int) -> Array:
    """Return the length of each row, [N]; T for None."""
    if value is None:
        return np.full(N, T)
    array = np.asarray(value)
    if array.shape != (N,):
        raise OracleError(f"{operator}: {name} has shape {array.shape}; expected {(N,)}")
    if array.size and array.dtype.kind not in "iu":
        raise OracleError(f"{operator}: {name} has dtype {array.dtype}; expected integers")
    if array.size and not (array.min() >= 0 and array.max() <= T):
        raise OracleError(f"{operator}: {name} is {array.tolist()}; expected 0 to {T}")
    return array.astype(np.int64)


def hidden_size(operator: str, declared: int | None, H: int) -> None:
    if declared is not None and declared != H:
        raise OracleError(f"{operator}: hidden_size is {declared!r}; expected {H}, the size of R")


def one_of(operator: str, name: str, value: Any, allowed: Sequence[Any]) -> Any:
    if not any(value is choice or value == choice for choice in allowed):
        raise OracleError(f"{operator}: {name} is {value!r}; expected {' or '.join(map(repr, allowed))}")
    return value


def directions(operator: str, direction: str, D: int) -> tuple[bool, ...]:
    """Return for each of the D directions whether it runs backwards."""
    backwards = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
    reverse = backwards[one_of(operator, "direction", direction, tuple(backwards))]
    if len(reverse) != D:
        raise OracleError(f"{operator}: R has num_directions {D}; expected {len(reverse)} as direction={direction}")
    return reverse
