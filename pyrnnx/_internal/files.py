"""Safe reads of files that a caller names: regular files of a limited size only."""

from __future__ import annotations

import os
import stat
from typing import BinaryIO, TypeGuard

from pyrnnx.errors import ArgumentError, reason_of, shown

SPECIAL = "it is no regular file (a pipe, socket or device)"


def is_path(value: object) -> TypeGuard[str | os.PathLike[str]]:
    """Return whether a value is a path of text. The path of an `os.DirEntry` can be of bytes, for example."""
    try:
        return isinstance(os.fspath(value), str)  # type: ignore[call-overload]  # raises if it is no path
    except TypeError:
        return False


def is_folder(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is a folder, and no link to one."""
    return os.path.isdir(path) and not os.path.islink(path)


def open_checked(path: str | os.PathLike[str], flags: int = 0) -> BinaryIO:
    """Open a regular file with more flags; raise ValueError for pipes and devices, whose reads may never end."""
    # Without O_NONBLOCK, opening a pipe waits for a writer, perhaps for ever. Regular files ignore the flag.
    flags |= os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    # The file owns its descriptor from the start, so an interrupt cannot close the descriptor twice.
    try:
        file = open(path, "rb", opener=lambda name, _: os.open(name, flags))  # noqa: SIM115  # the caller closes it
    except IsADirectoryError:
        raise ValueError("it is a folder") from None
    try:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError(SPECIAL)
    except BaseException:
        file.close()
        raise
    return file


def open_regular(what: str, path: str | os.PathLike[str], *, most: int | None = None, expected: str) -> BinaryIO:
    """Open a regular file of at most `most` bytes; `what` begins and `expected` ends the ArgumentError."""
    try:
        file = open_checked(path)
    except (OSError, ValueError) as error:  # ValueError: also a null character in the path
        raise _cannot_read(what, path, reason_of(error), expected) from None
    try:
        if most is not None:
            size = os.fstat(file.fileno()).st_size
            if size > most:
                raise _cannot_read(what, path, f"it has {size} bytes, more than the {most} allowed", expected)
    except BaseException:
        file.close()
        raise
    return file


def read_regular(what: str, path: str | os.PathLike[str], *, most: int, expected: str) -> bytes:
    """Return the contents of a regular file; the parameters are those of `open_regular`."""
    with open_regular(what, path, most=most, expected=expected) as file:
        size = os.fstat(file.fileno()).st_size
        try:
            contents = file.read(size + 1)  # read() allocates this many bytes at once
        except (OSError, MemoryError) as error:
            raise _cannot_read(what, path, reason_of(error), expected) from None
    if len(contents) > size:
        raise _cannot_read(what, path, "it grew while it was read", expected)
    return contents


def _cannot_read(what: str, path: str | os.PathLike[str], reason: str, expected: str) -> ArgumentError:
    return ArgumentError(f"{what}: {shown(os.fspath(path))} cannot be read ({reason}); expected {expected}")
