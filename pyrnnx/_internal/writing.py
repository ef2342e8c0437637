"""Atomic writes: a file or folder gets its name only when it is complete."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from pyrnnx._internal.files import SPECIAL, is_folder
from pyrnnx.errors import ArgumentError, reason_of, shown

Contents = Iterable[bytes | memoryview] | Callable[[BinaryIO], object]

_MODELS = (".onnx", ".xml", ".bin")


@contextmanager
def renamed(targets: dict[Path, Path]) -> Iterator[None]:
    """Rename temporary paths to their targets after the block, in order; remove them if it raises.

    An existing target is replaced. The block may add targets, on the same file system.
    """
    try:
        yield
        for temporary, target in targets.items():
            replaced = temporary.with_name(f"{temporary.name}.old")
            if is_folder(temporary) and os.path.lexists(target):
                os.replace(target, replaced)  # os.replace does not replace a folder that has files
            os.replace(temporary, target)
            remove(replaced)
    except BaseException:
        for temporary in targets:
            with suppress(OSError, ValueError):
                remove(temporary)
        raise


def remove(path: Path) -> None:
    """Remove a file or a folder if it exists."""
    if is_folder(path):
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries to disk: which names exist after a power failure depends on them."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_writable(label: str, path: str | os.PathLike[str]) -> None:
    """Raise if `write_files` could not write a path: an early check before long work, and only best effort."""
    try:
        target = Path(os.path.realpath(path))
        if target.is_symlink():
            raise OSError("it is a link to itself")
        if target.exists() and not target.is_file():
            raise OSError("it is a folder" if target.is_dir() else SPECIAL)
        if not target.parent.is_dir():
            raise NotADirectoryError("its folder does not exist")
        if not os.access(target.parent, os.W_OK | os.X_OK):
            raise PermissionError("its folder is not writable")
    except (OSError, ValueError) as error:  # ValueError: a path that no file can have
        raise _cannot_write(label, path, error) from None


def check_report(label: str, path: str | os.PathLike[str]) -> None:
    """Raise if a report could not be written, or would replace a model that was passed as the option's value."""
    if Path(path).suffix.lower() in _MODELS:
        raise ArgumentError(f"{label}: {shown(os.fspath(path))} has the suffix of a model; expected another suffix")
    check_writable(label, path)


def write_files(label: str, contents: Mapping[Path, Contents]) -> None:
    """Write several files atomically: all under temporary names first, then rename each, in order.

    Contents are pieces of bytes, or a function that writes to an open file. A symbolic link stays: its target is
    replaced. A replaced file keeps its permissions.
    """
    for path in contents:
        check_writable(label, path)
    targets: dict[Path, Path] = {}
    path = Path()
    try:
        with renamed(targets):
            for path, pieces in contents.items():
                target = Path(os.path.realpath(path))
                # tempfile is of no use: only the owner can read its files.
                temporary = target.with_name(f".{secrets.token_hex(8)}.tmp")
                targets[temporary] = target
                with open(temporary, "xb") as file:
                    if target.exists():
                        temporary.chmod(stat.S_IMODE(target.stat().st_mode))
                    if callable(pieces):
                        pieces(file)
                    else:
                        file.writelines(pieces)
    except (OSError, ValueError) as error:
        # A failed rename names its target, which need not be the path written last.
        raise _cannot_write(label, getattr(error, "filename2", None) or path, error) from None


def _cannot_write(label: str, path: str | os.PathLike[str], error: Exception) -> ArgumentError:
    """Return the error for a path; `error` itself may name the temporary file."""
    return ArgumentError(f"{label}: {shown(os.fspath(path))} cannot be written ({reason_of(error)})")
