"""Results written to arrays that a caller gives for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, shortened, shown

MOST_SHOWN = 4  # of a tuple, in a message
MAX_WORK = 10**5  # steps of the search for an element that two arrays share, some milliseconds; then they may


def written(label: str, names: Sequence[str], results: Sequence[AnyArray], outs: Sequence[Any]) -> tuple[AnyArray, ...]:
    """The results in the arrays given for them, None: as they are. All are checked before one is written.

    Raises
    ------
    ArgumentError
        No array that can hold a result, or one that shares memory with another.
    """
    for k, (name, result, out) in enumerate(zip(names, results, outs, strict=True)):
        if out is None:
            continue
        _check(label, name, result, out)
        for other_name, other in zip(names[:k], outs[:k], strict=True):
            if other is not None and np.may_share_memory(out, other, MAX_WORK):  # type: ignore[arg-type]  # its stubs know two numbers
                raise ArgumentError(f"{label}: {name} shares memory with {other_name}; expected arrays of their own")
    for result, out in zip(results, outs, strict=True):
        if out is not None:
            np.copyto(out, result)
    return tuple([result if out is None else out for result, out in zip(results, outs, strict=True)])


def given(out: Any) -> str:
    """What was given for a result, for a message: of an array its dtype and shape, for it may hold anything yet."""
    if isinstance(out, tuple):
        return f"({shortened(', '.join(map(given, out[:MOST_SHOWN])))})"
    return f"an array of {out.dtype} {out.shape}" if isinstance(out, np.ndarray) else shown(out)


def _check(label: str, name: str, result: AnyArray, out: Any) -> None:
    expected = f"expected an array of {result.dtype} {result.shape} that can be written to"
    if type(out) is not np.ndarray:
        raise ArgumentError(f"{label}: {name} is {given(out)}; {expected}")
    if out.dtype != result.dtype or out.shape != result.shape:
        raise ArgumentError(f"{label}: {name} is {given(out)}; {expected}")
    if not out.flags.writeable:
        raise ArgumentError(f"{label}: {name} is read-only; {expected}")
    if _overlaps_itself(out):
        raise ArgumentError(f"{label}: {name} has strides {out.strides}, which share elements; {expected}")


def _overlaps_itself(a: AnyArray) -> bool:
    """Whether strides are too short for elements of their own, as slices and transposes of an array never have them."""
    extent = a.itemsize
    for stride, size in sorted(
        (abs(stride), size) for stride, size in zip(a.strides, a.shape, strict=True) if size > 1
    ):
        if stride < extent:
            return True
        extent += stride * (size - 1)
    return False
