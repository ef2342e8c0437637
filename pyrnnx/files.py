"""Files that a caller names: opened only if they are regular files of a size that can be meant, written at once."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from pyrnnx.errors import ArgumentError, shortened, shown

HEAD = 1024  # bytes that tell what a file is


def open_regular(what: str, path: str | os.PathLike[str], *, most: int | None = None, expected: str) -> BinaryIO:
    """A file opened for reading: no folder, no pipe or device, which may never end, and none that is too large.

    Parameters
    ----------
    what : str
        How the error names who reads it.
    path : str or os.PathLike
    most : int, optional
        Bytes that the file may have. Default: any number.
    expected : str
        What the error says is allowed, such as "an ONNX file".

    Raises
    ------
    ArgumentError
        The file does not exist, cannot be opened, is not regular, or is larger than `most`.
    """
    try:
        # O_NONBLOCK: opening a pipe that nobody writes to would wait for ever. It means nothing for regular files.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        raise _cannot(what, path, error, expected) from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            kind = "a folder" if stat.S_ISDIR(status.st_mode) else "no regular file (a pipe, socket or device)"
            raise _cannot(what, path, f"it is {kind}", expected)
        if most is not None:
            _check_size(what, path, status.st_size, most, expected)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def _check_size(what: str, path: Any, size: int, most: int, expected: str) -> None:
    if size > most:
        raise _cannot(what, path, f"it has {size} bytes, more than the {most} allowed", expected)


def read_regular(
    what: str,
    path: str | os.PathLike[str],
    *,
    most: int,
    expected: str,
    recognise: Callable[[bytes], None] = lambda head: None,
) -> bytes:
    """The contents of a file; as `open_regular`. `recognise` gets its beginning first, however large the file is.

    Raises
    ------
    ArgumentError
        As of `open_regular`; a file that fails, or grows, while it is read.
    """
    with open_regular(what, path, expected=expected) as file:
        size = os.fstat(file.fileno()).st_size
        try:
            recognise(file.read(HEAD))
            _check_size(what, path, size, most, expected)
            file.seek(0)
            contents = file.read(size + 1)  # room is made for as much as is asked for, not for what there is
        except (OSError, MemoryError) as error:
            raise _cannot(what, path, error, expected) from None
    if len(contents) > size:
        raise _cannot(what, path, "it grew while it was read", expected)
    return contents


def _cannot(what: str, path: Any, why: object, expected: str) -> ArgumentError:
    reason = shortened(str(why))
    return ArgumentError(f"{what}: {shown(os.fspath(path))} cannot be read ({reason}); expected {expected}")


def _reason(error: Exception) -> str:
    """Without the name of the file, which may be one that is there for a moment only."""
    return str(getattr(error, "strerror", None) or error)


def write_files(label: str, contents: Mapping[Path, Iterable[bytes | memoryview]]) -> None:
    """Write all files, then rename each to its name, in order: none is ever half-written.

    Raises
    ------
    ArgumentError
        A file that cannot be written.
    """
    temporary: dict[Path, Path] = {}
    try:
        for path, chunks in contents.items():
            if path.is_dir():
                raise IsADirectoryError(f"{path} is a folder")
            # Not from tempfile: that one gives files that only their owner can read.
            temporary[path] = path.with_name(f".{secrets.token_hex(8)}.tmp")
            with open(temporary[path], "xb") as file:
                for chunk in chunks:
                    file.write(chunk)
        for path in contents:
            os.replace(temporary[path], path)
            del temporary[path]
    except (OSError, ValueError) as error:  # ValueError: a path that no file can have
        raise ArgumentError(f"{label}: {os.fspath(path)!r} cannot be written ({_reason(error)})") from None
    finally:
        for left in temporary.values():
            with suppress(OSError, ValueError):
                left.unlink()
