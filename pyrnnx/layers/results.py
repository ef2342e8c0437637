"""Results written to arrays of the caller (`out`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, shortened, shown

MAX_SHOWN = 4  # entries of a tuple that a message shows
MAX_WORK = 10**5  # limit (a few ms) of the search for a shared element; beyond it, two arrays count as overlapping


def written(label: str, names: Sequence[str], results: Sequence[AnyArray], outs: Sequence[Any]) -> tuple[AnyArray, ...]:
    """Copy each result to its array in `outs` (None: return it unchanged), after all arrays are checked."""
    for k, (name, result, out) in enumerate(zip(names, results, outs, strict=True)):
        if out is None:
            continue
        _check(label, name, result, out)
        for other_name, other in zip(names[:k], outs[:k], strict=True):
            if other is not None and np.may_share_memory(out, other, MAX_WORK):  # type: ignore[arg-type]  # its stubs know two numbers
                raise ArgumentError(f"{label}: {name} shares memory with {other_name}; expected separate arrays")
    for result, out in zip(results, outs, strict=True):
        if out is not None:
            np.copyto(out, result)
    return tuple([result if out is None else out for result, out in zip(results, outs, strict=True)])


def described(out: Any) -> str:
    """Describe `out` for a message: only dtype and shape of an array, whose elements may be uninitialized."""
    if isinstance(out, tuple):
        comma = "," if len(out) == 1 else ""
        return f"({shortened(', '.join(map(described, out[:MAX_SHOWN])))}{comma})"
    return f"an array of {out.dtype} {out.shape}" if isinstance(out, np.ndarray) else shown(out)


def _check(label: str, name: str, result: AnyArray, out: Any) -> None:
    expected = f"expected an array of {result.dtype} {result.shape} that can be written to"
    if type(out) is not np.ndarray:
        raise ArgumentError(f"{label}: {name} is {described(out)}; {expected}")
    if out.dtype != result.dtype or out.shape != result.shape:
        raise ArgumentError(f"{label}: {name} is {described(out)}; {expected}")
    if not out.flags.writeable:
        raise ArgumentError(f"{label}: {name} is read-only; {expected}")
    if _overlaps_itself(out):
        raise ArgumentError(f"{label}: {name} has strides {out.strides}, which share elements; {expected}")


def _overlaps_itself(a: AnyArray) -> bool:
    """Return whether elements of an array overlap. Slices, transposes and empty arrays never do."""
    if a.size == 0:
        return False
    extent = a.itemsize
    for stride, size in sorted(
        (abs(stride), size) for stride, size in zip(a.strides, a.shape, strict=True) if size > 1
    ):
        if stride < extent:
            return True
        extent += stride * (size - 1)
    return False
