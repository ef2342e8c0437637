"""Objects that keep their attributes, and arrays whose memory is read-only for everybody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pyrnnx._internal.dtypes import AnyArray


class Immutable:
    """Base of classes with a label whose attributes named in `_fixed` are set once: another value raises an error."""

    _fixed: ClassVar[frozenset[str]] = frozenset()

    if not TYPE_CHECKING:  # which would accept the assignment of any attribute

        def __setattr__(self, name: str, value: Any) -> None:
            self._check_new(name)
            super().__setattr__(name, value)

        def __delattr__(self, name: str) -> None:
            self._check_new(name)
            super().__delattr__(name)

    def _check_new(self: Any, name: str) -> None:
        if name in self._fixed and name in self.__dict__:
            label = getattr(self, "label", type(self).__name__)
            raise AttributeError(f"{label}: {name} cannot be changed; expected a new {type(self).__name__}")


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
