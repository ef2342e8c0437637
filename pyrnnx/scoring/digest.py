"""A checksum of what a model or layer is: the same in every process, and for every file that holds the same."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np


def digest(value: Any, leave_out: str = "") -> str:
    """SHA-256 of a value, by what pickle would take apart; a text that is `leave_out`, such as a path, does not count.

    Not of the pickle itself, which tells apart equal objects by whether they are the same one.
    """
    found = hashlib.sha256()
    _add(found, value, leave_out)
    return found.hexdigest()


def _add(found: hashlib._Hash, value: Any, leave_out: str) -> None:
    kind = type(value)
    found.update(f"{kind.__module__}.{kind.__qualname__}(".encode())
    if isinstance(value, str) and value == leave_out:
        pass
    elif value is None or isinstance(value, (str, bool, int, float, complex, np.dtype)):
        found.update(f"{value!r}".encode("utf-8", "surrogatepass"))
    elif isinstance(value, (bytes, bytearray)):
        found.update(b"%d:" % len(value))
        found.update(value)
    elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
        found.update(f"{value.dtype.name}{value.shape}".encode())
        found.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, Mapping):
        for key, one in value.items():
            _add(found, key, leave_out)
            _add(found, one, leave_out)
    elif isinstance(value, Set):
        found.update("".join(sorted(digest(one, leave_out) for one in value)).encode())
    elif isinstance(value, Sequence):
        for one in value:
            _add(found, one, leave_out)
    elif isinstance(value, type) or hasattr(value, "__qualname__"):
        found.update(f"{value.__module__}.{value.__qualname__}".encode())
    else:
        reduced = value.__reduce_ex__(4)
        _add(found, reduced if isinstance(reduced, str) else tuple(reduced[:3]), leave_out)
    found.update(b")")
