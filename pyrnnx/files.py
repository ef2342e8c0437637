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

Contents = Iterable[bytes | memoryview] | Callable[[BinaryIO], object]

HEAD = 1024  # bytes that tell what a file is
_MODELS = (".onnx", ".xml", ".bin")
_SPECIAL = "it is no regular file (a pipe, socket or device)"


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
            kind = "it is a folder" if stat.S_ISDIR(status.st_mode) else _SPECIAL
            raise _cannot(what, path, kind, expected)
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


def check_writable(label: str, path: str | os.PathLike[str]) -> None:
    """Whether `write_files` may write there, as far as can be told before: asked before what takes long.

    Raises
    ------
    ArgumentError
        A folder, a pipe or a device; a folder that is not there, or where nothing can be written.
    """
    try:
        target = Path(os.path.realpath(path))
        if target.exists() and not target.is_file():
            raise OSError("it is a folder" if target.is_dir() else _SPECIAL)
        if not target.parent.is_dir():
            raise NotADirectoryError("its folder is not there")
        if not os.access(target.parent, os.W_OK | os.X_OK):
            raise PermissionError("its folder cannot be written to")
    except (OSError, ValueError) as error:  # ValueError: a path that no file can have
        raise _cannot_write(label, path, error) from None


def check_report(label: str, path: str | os.PathLike[str]) -> None:
    """As `check_writable`, of a report: an option that swallowed the name of a model does not replace the model."""
    if Path(path).suffix.lower() in _MODELS:
        raise ArgumentError(f"{label}: {shown(os.fspath(path))} is a model's name; expected another suffix")
    check_writable(label, path)


def write_files(label: str, contents: Mapping[Path, Contents]) -> None:
    """Write all files beside their names, then rename each, in order: none is ever half-written.

    A name that is a link stays one: what it leads to is replaced. A file that is replaced keeps its permissions.

    Parameters
    ----------
    label : str
        How the error names who writes them.
    contents : mapping
        By path: pieces of bytes, or a function that writes to an open file.

    Raises
    ------
    ArgumentError
        A file that cannot be written; what `check_writable` rejects.
    """
    temporary: dict[Path, Path] = {}
    try:
        for path, given in contents.items():
            check_writable(label, path)
            target = Path(os.path.realpath(path))
            # Not from tempfile: that one gives files that only their owner can read.
            temporary[path] = target.with_name(f".{secrets.token_hex(8)}.tmp")
            with open(temporary[path], "xb") as file:
                if target.exists():
                    temporary[path].chmod(stat.S_IMODE(target.stat().st_mode))
                if callable(given):
                    given(file)
                else:
                    file.writelines(given)
        for path in contents:
            os.replace(temporary[path], os.path.realpath(path))
            del temporary[path]
    except (OSError, ValueError) as error:
        raise _cannot_write(label, path, error) from None
    finally:
        for left in temporary.values():
            with suppress(OSError, ValueError):
                left.unlink()


def _cannot_write(label: str, path: Any, error: Exception) -> ArgumentError:
    """Without the name in `error`, which is that of the file beside."""
    why = getattr(error, "strerror", None) or shortened(str(error))
    return ArgumentError(f"{label}: {shown(os.fspath(path))} cannot be written ({why})")
