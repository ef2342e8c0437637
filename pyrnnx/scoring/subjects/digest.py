"""Checksums of models and layers by content, the same in every process."""

from __future__ import annotations

import hashlib
import pickle
from typing import Any


class _Hashed:
    def __init__(self) -> None:
        self.sha256 = hashlib.sha256()

    def write(self, data: bytes) -> None:
        self.sha256.update(data)


class _Pickler(pickle.Pickler):
    def __init__(self, file: _Hashed, leave_out: str) -> None:
        super().__init__(file, protocol=4)
        self.fast = True  # no memo: bytes do not depend on which equal parts are the same object
        self._leave_out = leave_out

    def persistent_id(self, value: Any) -> Any:
        if isinstance(value, str) and value == self._leave_out:
            return ""
        if isinstance(value, (set, frozenset)):  # their order depends on the process
            return sorted(digest(item, self._leave_out) for item in value)
        return None


def digest(value: Any, leave_out: str = "") -> str:
    """Return the SHA-256 of a value's pickle without texts equal to `leave_out`."""
    file = _Hashed()
    _Pickler(file, leave_out).dump(value)
    return file.sha256.hexdigest()
