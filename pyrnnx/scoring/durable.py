"""Files that are whole or not there: written beside, brought to the disk, then renamed."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path

BLOCK = 2**20  # bytes read at once


def write_whole(path: Path, beside: Path, write: Callable[[Path], object]) -> str:
    """Let `write` make a file or a folder in the folder `beside`, and rename it to `path`; its checksum.

    What was at `path` is replaced. After an error nothing is left of it.
    """
    made = beside / f"{path.name}.{uuid.uuid4().hex}"
    try:
        write(made)
        checksum = synced(made)
        if made.is_dir() and path.exists():
            remove(path)  # a folder does not replace one that has files
        os.replace(made, path)
        _sync(path.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            remove(made)
        raise
    return checksum


def write_text(path: Path, beside: Path, text: str) -> None:
    """As `write_whole`."""
    write_whole(path, beside, lambda made: made.write_text(text, encoding="utf-8"))


def synced(path: Path) -> str:
    """The checksum of a file, or of all files of a folder with their names; they are on the disk then."""
    return _checksum(path, sync=True)


def checksum(path: Path) -> str:
    """As `synced`, of what is there."""
    return _checksum(path, sync=False)


def _checksum(path: Path, *, sync: bool) -> str:
    digest = hashlib.sha256()
    if path.is_dir():
        for file in sorted(one for one in path.rglob("*") if one.is_file()):
            digest.update(f"{file.relative_to(path).as_posix()}\0{file.stat().st_size}\n".encode())
            _add(digest, file, sync)
        if sync:
            for folder in (path, *(one for one in path.rglob("*") if one.is_dir())):
                _sync(folder)
    else:
        _add(digest, path, sync)
    return digest.hexdigest()


def _add(digest: hashlib._Hash, path: Path, sync: bool) -> None:
    with open(path, "rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
        if sync:
            os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def size(path: Path) -> int:
    """Bytes of a file, or of all files of a folder."""
    if path.is_dir():
        return sum(one.stat().st_size for one in path.rglob("*") if one.is_file())
    return path.stat().st_size


def remove(path: Path) -> None:
    """A file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
