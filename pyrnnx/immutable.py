"""Arrays that nobody can write to."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyrnnx.dtypes import AnyArray


def frozen(array: AnyArray) -> AnyArray:
    """The array, C-contiguous and aligned, that nobody can write to: itself where that is so, else a copy."""
    if array.flags.c_contiguous and array.flags.aligned and is_immutable(array):
        return array
    copy = np.array(array, order="C")
    copy.flags.writeable = False
    return copy


def is_immutable(array: Any, *, or_owned: bool = False) -> bool:
    """Whether an array is a view of bytes, as one that was read from a file may be.

    With `or_owned`, also of the memory of a read-only array, which who holds that one could make writable.
    """
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return False
        array = array.base
    return isinstance(array, bytes) or (or_owned and array is None)
