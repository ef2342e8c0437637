"""Base class of all sources, and what their listings have in common."""

from __future__ import annotations

import hashlib
import math
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, BinaryIO, ClassVar, TypeVar

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, PyrnnxError, printable, reason_of, shown
from pyrnnx.scoring.items import Bad, Items
from pyrnnx.scoring.storage import Files, Status, storage_of

MOST = 2**62  # largest number of elements of an item


class Source(ABC):
    """Sequences of one format: lists its items, and reads the requested ones in any process.

    Attributes
    ----------
    kind : str
        Name of the format, as `pyrnnx.score` takes it.
    path : str
        Absolute path, because workers open it, or a URL.
    """

    kind: ClassVar[str]

    def __init__(self, path: str) -> None:
        self.path = path
        self._is_file = self.storage.is_file(path)

    @cached_property
    def storage(self) -> Files:
        """Storage of the files. Each process makes its own, so that no credentials are sent to workers."""
        return storage_of(self.path)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "storage"}

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
        return os.path.basename(path) if path == self.path else self.storage.relative(path, self.path)

    def path_of(self, name: str) -> str:
        """Return the path of a file by the name that `name_of` returned."""
        return self.path if self._is_file else self.storage.join(self.path, name)

    @abstractmethod
    def read(self, places: Sequence[Any]) -> Iterator[AnyArray | Bad]:
        """Yield the values [T, ...] of items in the order of the source, or a `Bad` with the reason of a failure."""

    def fingerprint(self) -> str:
        """Return a checksum of the names, sizes and modification times, or ETags, of all files."""
        digest = hashlib.sha256()
        storage = self.storage
        status_of = storage.statuses(self.path)
        for path in self.files():
            status = status_of(path)
            facts = "" if status is None else f"{status.size}\0{status.version}"  # None: a broken link
            digest.update(os.fsencode(f"{storage.relative(path, self.path)}\0{facts}\n"))
        return digest.hexdigest()

    def file_of(self, place: Any) -> str | None:
        """Return the path of an item's file; None if it is in several files."""
        return None

    def stamps(self, places: Iterable[Any], *, listed: bool = False) -> Iterator[int | Bad]:
        """Yield for each item a number that changes with its file, 0 if it is in several; a `Bad` if a request fails.

        With `listed`, one listing has the properties of all objects: for many items.
        """
        status_of = self.storage.statuses(self.path) if listed else self.storage.status
        before: str | None = None
        stamp: int | Bad = 0
        for place in places:
            path = self.file_of(place)
            if path is None or path != before:
                before, stamp = path, 0 if path is None else _stamp(status_of, path)
            yield stamp

    def advice(self, values: AnyArray) -> str:
        """Return a hint on options that would make values of a wrong shape fit, or ""."""
        return ""

    @abstractmethod
    def files(self) -> Iterable[str]:
        """Return the paths of all files, always in the same order."""


def _stamp(status_of: Callable[[str], Status | None], path: str) -> int | Bad:
    """Return 63 bits of a checksum of a file's properties, the same on every machine; -1 if there is no file."""
    try:
        status = status_of(path)
    except ArgumentError as error:  # of an object store
        return Bad(f"its size and version cannot be read ({reason_of(error.__cause__ or error)})")
    if status is None:
        return -1
    return int.from_bytes(hashlib.blake2b(" ".join(map(str, status)).encode(), digest_size=8).digest(), "big") >> 1


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
        early = isinstance(error, EOFError) and not str(error)
        return Bad(f"it cannot be read ({'it ends too early' if early else reason_of(error)})")


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


def size_of(file: BinaryIO) -> int:
    """Return the size of a file at whose start the reader is."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    return size


def files_with(folder: str, suffix: str) -> list[str]:
    """Return the sorted paths of all files below a folder that end in `suffix`, without hidden ones."""
    paths = []
    storage = storage_of(folder)
    for parent, folders, files in storage.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        names = [name for name in files if name.lower().endswith(suffix) and not name.startswith(".")]
        paths += [storage.join(parent, name) for name in names if name]
    return sorted(paths)


def folder_with(kind: str, path: str, suffix: str) -> list[str]:
    """Return `files_with` of a folder, at least one; of a path that is a file, this file.

    Raises
    ------
    ArgumentError
        The path does not exist; the folder has no such file.
    """
    storage = storage_of(path)
    if storage.is_file(path):
        return [path]
    if not storage.is_folder(path):
        raise ArgumentError(
            f"score: source {shown(path)} is no folder; expected a folder of {suffix} files ({kind}), or one file"
        )
    paths = files_with(path, suffix)
    if not paths:
        raise ArgumentError(
            f"score: source {shown(path)} has no {suffix} file; expected at least one, because source_format is {kind}"
        )
    return paths
