"""Where the bytes of a .bin are: in memory, or in a file from which they are read when they are asked for."""

from __future__ import annotations

import os
import threading
import weakref
from bisect import bisect_right
from collections.abc import Iterable
from typing import BinaryIO

import numpy as np

from pyrnnx import config
from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import FormatError, PyrnnxError

CHUNK = 2**30  # bytes of one read, so that nearly every constant is one piece
Range = tuple[int, int]  # first byte, and the one behind the last


class Memory:
    """Bytes that are held: all of them, or the pieces of interest.

    Parameters
    ----------
    size : int
        Of the whole.
    pieces : iterable of (int, ndarray)
        Where each begins, ascending, and its bytes.
    """

    def __init__(self, size: int, pieces: Iterable[tuple[int, AnyArray]]) -> None:
        self.size = size
        self.pieces = tuple(pieces)
        self._starts = [start for start, _ in self.pieces]
        for _, piece in self.pieces:
            piece.flags.writeable = False

    def read(self, label: str, first: int, last: int) -> AnyArray:
        """The bytes from first to before last, read-only, where they lie.

        Raises
        ------
        FormatError
            They are not among those that are held.
        """
        place = bisect_right(self._starts, first) - 1
        start, piece = self.pieces[place] if place >= 0 else (0, np.zeros(0, np.uint8))
        if last > start + piece.size:
            raise FormatError(f"{label}: the bytes {first} to {last} of the weights are not held here")
        return piece[first - start : last - start]


class File:
    """An open file. Its descriptor is closed with the last reference to this object.

    Parameters
    ----------
    file : binary file
    origin : str
        How errors name it.
    """

    def __init__(self, file: BinaryIO, origin: str) -> None:
        self._file, self._origin, self._lock = file, origin, threading.Lock()
        self.size = os.fstat(file.fileno()).st_size
        weakref.finalize(self, file.close)

    def read(self, label: str, first: int, last: int) -> AnyArray:
        """A copy that nobody can write to, whatever becomes of the file: a view of bytes.

        Raises
        ------
        FormatError
            The file ends before that, or cannot be read.
        PyrnnxError
            It is more than there is memory for, or than is allowed.
        """
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
                    f"{label}: {self._origin} ends at byte {first}, before the constant's last, {last}: it had "
                    f"{self.size} bytes when it was opened; expected a file that nobody writes to"
                )
            first += len(pieces[-1])
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _read_at(self, offset: int, size: int) -> bytes:
        if hasattr(os, "pread"):  # does not move the position, which threads and forked processes share
            return os.pread(self._file.fileno(), size, offset)
        with self._lock:
            self._file.seek(offset)
            return self._file.read(size)


def check_memory(label: str, size: int) -> None:
    """
    Raises
    ------
    PyrnnxError
        So many bytes are more than `pyrnnx.get_memory_limit` allows: said before memory has run out.
    """
    limit = config.get_memory_limit()
    if size > limit:
        raise PyrnnxError(
            f"{label}: its {size} bytes exceed the limit of {limit}; pyrnnx.set_memory_limit(...) allows more"
        )


def merged(ranges: Iterable[Range]) -> list[Range]:
    """The same bytes as ranges that do not touch, ascending."""
    found: list[Range] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return found
