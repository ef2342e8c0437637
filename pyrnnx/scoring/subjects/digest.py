"""Checksums of models and layers by content, the same in every process."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np


def digest(value: Any, leave_out: str = "") -> str:
    """Return the SHA-256 of a value, computed from its parts as pickle sees them, without texts equal to `leave_out`.

    A pickle itself is no basis: its bytes depend on which equal parts are the same object.
    """
    checksum = hashlib.sha256()
    _add(checksum, value, leave_out)
    return checksum.hexdigest()


def _add(checksum: hashlib._Hash, value: Any, leave_out: str) -> None:
    kind = type(value)
    checksum.update(f"{kind.__module__}.{kind.__qualname__}(".encode())
    if isinstance(value, str) and value == leave_out:
        pass
    elif value is None or isinstance(value, (str, bool, int, float, complex, np.dtype)):
        checksum.update(f"{value!r}".encode("utf-8", "surrogatepass"))
    elif isinstance(value, (bytes, bytearray)):
        checksum.update(b"%d:" % len(value))
        checksum.update(value)
    elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
        checksum.update(f"{value.dtype.name}{value.shape}".encode())
        checksum.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, Set):
        checksum.update("".join(sorted(digest(item, leave_out) for item in value)).encode())
    elif isinstance(value, (Mapping, Sequence)):
        for item in value.items() if isinstance(value, Mapping) else value:
            _add(checksum, item, leave_out)
    elif isinstance(value, type) or hasattr(value, "__qualname__"):
        checksum.update(f"{value.__module__}.{value.__qualname__}".encode())
    else:
        reduced = value.__reduce_ex__(4)
        _add(checksum, reduced if isinstance(reduced, str) else tuple(reduced[:3]), leave_out)
    checksum.update(b")")
