"""Arrays whose memory is read-only for everybody."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray


def frozen(array: AnyArray) -> AnyArray:
    """Return an array if it is immutable, C-contiguous and aligned, else such a copy of it."""
    if array.flags.c_contiguous and array.flags.aligned and is_immutable(array):
        return array
    copy = np.array(array, order="C")
    copy.flags.writeable = False
    return copy


def is_immutable(array: Any, *, or_owned: bool = False) -> bool:
    """Return whether an array is a view of bytes, such as the contents of a file.

    With `or_owned`, also if it is a view of a read-only array, whose owner could make it writable again.
    """
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return False
        array = array.base
    return isinstance(array, bytes) or (or_owned and array is None)
