"""Storage of the bytes of a .bin: memory, or a file that is read on demand."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Mapping
from typing import BinaryIO

import numpy as np

from pyrnnx import config
from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import FormatError, PyrnnxError

CHUNK = 2**30  # bytes of one read; nearly every constant fits into one


class Memory:
    """Bytes in memory: all bytes of a .bin, or those of some constants.

    Parameters
    ----------
    size : int
        Size of the .bin.
    pieces : mapping of int to ndarray
        The bytes from each of these offsets on; all bytes have offset 0.
    """

    def __init__(self, size: int, pieces: Mapping[int, AnyArray]) -> None:
        self.size, self.pieces = size, dict(pieces)
        for piece in self.pieces.values():
            piece.flags.writeable = False

    def read(self, label: str, first: int, last: int) -> AnyArray:
        """Return bytes `first` to `last` - 1 as a read-only view."""
        start = first if first in self.pieces else 0
        piece = self.pieces.get(start)
        if piece is None or last > start + piece.size:
            raise FormatError(f"{label}: bytes {first} to {last} of the weights are not in this copy")
        return piece[first - start : last - start]


class File:
    """An open file, closed with the last reference to this object.

    Parameters
    ----------
    file : binary file
    origin : str
        Name of the file in errors.
    """

    def __init__(self, file: BinaryIO, origin: str) -> None:
        self._file, self._origin, self._lock = file, origin, threading.Lock()
        self.size = os.fstat(file.fileno()).st_size
        weakref.finalize(self, file.close)

    def read(self, label: str, first: int, last: int) -> AnyArray:
        """Return a read-only copy of bytes `first` to `last` - 1."""
        check_memory(label, last - first)
        try:
            return np.frombuffer(self._bytes(label, first, last), np.uint8)
        except MemoryError as error:
            raise PyrnnxError(f"{label}: its {last - first} bytes exceed memory ({error})") from error

    def _bytes(self, label: str, first: int, last: int) -> bytes:
        pieces: list[bytes] = []
        while first < last:
            try:
                pieces.append(self._read_at(first, min(CHUNK, last - first)))
            except OSError as error:
                raise FormatError(f"{label}: {self._origin} cannot be read ({error})") from error
            if not pieces[-1]:
                raise FormatError(
                    f"{label}: {self._origin} ends at byte {first}, before byte {last}, the end of the constant: it "
                    f"had {self.size} bytes when it was opened; expected a file that does not change"
                )
            first += len(pieces[-1])
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _read_at(self, offset: int, size: int) -> bytes:
        if hasattr(os, "pread"):  # does not move the file position, which threads and forked processes share
            return os.pread(self._file.fileno(), size, offset)
        with self._lock:
            self._file.seek(offset)
            return self._file.read(size)


def check_memory(label: str, size: int) -> None:
    """Raise a PyrnnxError if `size` bytes exceed `pyrnnx.get_memory_limit`, before memory runs out."""
    limit = config.get_memory_limit()
    if size > limit:
        raise PyrnnxError(
            f"{label}: its {size} bytes exceed the limit of {limit}; pyrnnx.set_memory_limit(...) allows more"
        )
