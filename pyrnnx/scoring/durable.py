"""Durable files and folders of a sink: written atomically, flushed to disk, with a checksum."""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

from pyrnnx._internal import writing
from pyrnnx._internal.files import open_checked

BLOCK = 2**20  # bytes read at once


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
    if path.is_dir():
        for file in sorted(_files(path)):
            digest.update(f"{file.relative_to(path).as_posix()}\0{file.stat().st_size}\n".encode())
            _add(digest, file, sync)
        if sync:
            for folder in (path, *(inner for inner in path.rglob("*") if inner.is_dir())):
                writing.sync_folder(folder)
    else:
        _add(digest, path, sync)
    return digest.hexdigest()


def _add(digest: hashlib._Hash, path: Path, sync: bool) -> None:
    with open_checked(path) as file:
        while block := file.read(BLOCK):
            digest.update(block)
        if sync:
            os.fsync(file.fileno())


def size(path: Path) -> int:
    """Return the bytes of a file, or of all files of a folder."""
    return sum(file.stat().st_size for file in _files(path)) if path.is_dir() else path.stat().st_size


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if not path.is_dir())
