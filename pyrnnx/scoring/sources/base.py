"""Base class of all sources, and what their listings have in common."""

from __future__ import annotations

import hashlib
import math
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, PyrnnxError, printable, shown
from pyrnnx.scoring.items import Bad, Items

MOST = 2**62  # largest number of elements of an item


class Source(ABC):
    """Sequences of one format: lists its items, and reads the requested ones in any process.

    Attributes
    ----------
    kind : str
        Name of the format, as `pyrnnx.score` takes it.
    path : str
        Absolute path, because workers open it.
    """

    kind: ClassVar[str]

    def __init__(self, path: str) -> None:
        self.path = path

    @abstractmethod
    def items(self) -> Items:
        """List all items, and read no more than their lengths.

        Raises
        ------
        PyrnnxError
            A source of another format.
        """

    def name_of(self, path: str) -> str:
        """Return the name of a file in items: its path in the folder, or its own name if the source is that file."""
        return os.path.basename(path) if path == self.path else os.path.relpath(path, self.path)

    def path_of(self, name: str) -> str:
        """Return the path of a file by the name that `name_of` returned."""
        return os.path.join(self.path, name) if os.path.isdir(self.path) else self.path

    @abstractmethod
    def read(self, places: Sequence[Any]) -> Iterator[AnyArray | Bad]:
        """Yield the values [T, ...] of items in the order of the source, or a `Bad` with the reason of a failure."""

    def fingerprint(self) -> str:
        """Return a checksum of the names, sizes and modification times of all files."""
        digest = hashlib.sha256()
        for path in self.files():
            relative = os.path.relpath(path, self.path)
            try:
                status = os.stat(path)
            except OSError:  # a broken link
                digest.update(os.fsencode(f"{relative}\0\n"))
                continue
            digest.update(os.fsencode(f"{relative}\0{status.st_size}\0{status.st_mtime_ns}\n"))
        return digest.hexdigest()

    def file_of(self, place: Any) -> str | None:
        """Return the path of an item's file; None if it is in several files."""
        return None

    def stamps(self, places: Iterable[Any]) -> Iterator[int]:
        """Yield for each item a number that changes with its file; 0 if it is in several files."""
        before: str | None = None
        stamp = 0
        for place in places:
            path = self.file_of(place)
            if path is None or path != before:
                before, stamp = path, 0 if path is None else _stamp(path)
            yield stamp

    def advice(self, values: AnyArray) -> str:
        """Return a hint on options that would make values of a wrong shape fit, or ""."""
        return ""

    @abstractmethod
    def files(self) -> Iterable[str]:
        """Return the paths of all files, always in the same order."""


def _stamp(path: str) -> int:
    """Return 63 bits of a checksum of a file's size and times, the same on every machine; -1 if there is no file."""
    try:
        status = os.stat(path)
    except OSError:
        return -1
    facts = f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"
    return int.from_bytes(hashlib.blake2b(facts.encode(), digest_size=8).digest(), "big") >> 1


Result = TypeVar("Result")


def attempted(read: Callable[..., Result], *arguments: Any) -> Result | Bad:
    """Return the result of `read`, or a `Bad` if it raises: readers of broken files raise errors of any type."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of readers, about headers that are old or damaged
            return read(*arguments)
    except PyrnnxError as error:
        return Bad(printable(str(error)))
    except Exception as error:
        nothing = "it ends too early" if isinstance(error, EOFError) else type(error).__name__
        return Bad(f"it cannot be read ({printable(str(error)) or nothing})")


def listed(names: Sequence[str], places: Sequence[Any], shapes: Sequence[tuple[int, ...] | Bad]) -> Items:
    """Return items of these shapes; a `Bad` in place of a shape makes a bad item."""
    checked = [_checked(shape) for shape in shapes]
    bad = {index: shape.reason for index, shape in enumerate(checked) if isinstance(shape, Bad)}
    sound = [(0,) if isinstance(shape, Bad) else shape for shape in checked]
    lengths, counts = [shape[0] for shape in sound], [math.prod(shape) for shape in sound]
    return Items(names, np.array(lengths, np.int64), places, bad, np.array(counts, np.int64))


def _checked(shape: tuple[int, ...] | Bad) -> tuple[int, ...] | Bad:
    if isinstance(shape, Bad):
        return shape
    if not shape:
        return Bad("an array without axes; expected [T, ...]")
    if min(shape) < 0 or max(math.prod(shape), *shape) > MOST:
        return Bad(f"it has shape {shape}; expected at most {MOST} numbers")
    return shape


def files_with(folder: str, suffix: str) -> list[str]:
    """Return the sorted paths of all files below a folder that end in `suffix`, without hidden ones."""
    paths = []
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        names = [name for name in files if name.lower().endswith(suffix) and not name.startswith(".")]
        paths += [os.path.join(parent, name) for name in names]
    return sorted(paths)


def folder_with(kind: str, path: str, suffix: str) -> list[str]:
    """Return `files_with` of a folder, at least one; of a path that is a file, this file.

    Raises
    ------
    ArgumentError
        The path does not exist; the folder has no such file.
    """
    if Path(path).is_file():
        return [path]
    if not Path(path).is_dir():
        raise ArgumentError(
            f"score: source {shown(path)} is no folder; expected a folder of {suffix} files ({kind}), or one file"
        )
    paths = files_with(path, suffix)
    if not paths:
        raise ArgumentError(
            f"score: source {shown(path)} has no {suffix} file; expected at least one, because source_format is {kind}"
        )
    return paths
