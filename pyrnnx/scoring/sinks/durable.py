"""Durable files and folders of a sink: written atomically, flushed to disk, with a checksum."""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from pyrnnx._internal import writing
from pyrnnx._internal.files import is_folder, open_checked

BLOCK = 2**20  # bytes read at once


def open_own(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file of a sink for reading; reject a FIFO, a device or a link at once."""
    if os.path.islink(path):  # not all systems have O_NOFOLLOW
        raise ValueError("it is a symbolic link; expected a regular file")
    return open_checked(path, getattr(os, "O_NOFOLLOW", 0))


def write_whole(path: Path, folder: Path, write: Callable[[Path], object]) -> str:
    """Write atomically: call `write` on a temporary path in `folder`, rename it to `path`, return its checksum."""
    temporary = folder / f"{path.name}.{uuid.uuid4().hex}"
    with writing.renamed({temporary: path}):
        write(temporary)
        checksum_of_written = checksum(temporary, sync=True)
    writing.sync_folder(path.parent)
    return checksum_of_written


def write_text(path: Path, folder: Path, text: str) -> None:
    """Write a text atomically, as `write_whole` does."""
    write_whole(path, folder, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def checksum(path: Path, *, sync: bool = False) -> str:
    """Return the checksum of a file, or of the names, sizes and contents of all files of a folder.

    With `sync`, flush them to disk.
    """
    digest = hashlib.sha256()
    if is_folder(path):
        for file in sorted(_files(path)):
            digest.update(f"{file.relative_to(path).as_posix()}\0{file.lstat().st_size}\n".encode())
            _add(digest, file, sync)
        if sync:
            for folder in (path, *filter(is_folder, path.rglob("*"))):
                writing.sync_folder(folder)
    else:
        _add(digest, path, sync)
    return digest.hexdigest()


def _add(digest: hashlib._Hash, path: Path, sync: bool) -> None:
    with open_own(path) as file:
        while block := file.read(BLOCK):
            digest.update(block)
        if sync:
            os.fsync(file.fileno())


def size(path: Path) -> int:
    """Return the bytes of a file, or of all files of a folder."""
    if is_folder(path):
        return sum(file.lstat().st_size for file in _files(path))
    return path.lstat().st_size


def _files(folder: Path) -> Iterator[Path]:
    """Yield everything in a folder that is no folder, at any depth."""
    return (path for path in folder.rglob("*") if not is_folder(path))
