"""Base classes of sources, and the items that they list: sequences without their values."""

from __future__ import annotations

import hashlib
import math
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, PyrnnxError, printable, reason_of, shown
from pyrnnx.scoring.sources.storage import FILE, Files, storage_of

MOST = 2**62  # largest number of elements of an item


@dataclass(frozen=True)
class Items:
    """Listing of a source's items in order, without their values."""

    names: Sequence[str]  # unique names
    lengths: AnyArray  # sizes of the first axis; 0 for an item that cannot be read
    places: Sequence[Any]  # location of each item, small and picklable, for `Source.read`
    # by index: why an item cannot be read, as far as the listing shows
    bad: Mapping[int, str] = field(default_factory=dict)
    counts: AnyArray | None = None  # number of elements of each item, as far as the listing shows. Default: `lengths`
    stamps: AnyArray | None = None  # `Source.stamps` at the time of the listing

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True)
class Bad:
    """Placeholder for an item's values that gives the reason why there are none."""

    reason: str


Shape = tuple[int, ...]
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


def listed(names: Sequence[str], places: Sequence[Any], shapes: Sequence[Shape | Bad]) -> Items:
    """Return items of these shapes; a `Bad` in place of a shape makes a bad item."""
    checked = [_checked(shape) for shape in shapes]
    bad = {index: shape.reason for index, shape in enumerate(checked) if isinstance(shape, Bad)}
    sound = [(0,) if isinstance(shape, Bad) else shape for shape in checked]
    lengths, counts = [shape[0] for shape in sound], [math.prod(shape) for shape in sound]
    return Items(names, np.array(lengths, np.int64), places, bad, np.array(counts, np.int64))


def _checked(shape: Shape | Bad) -> Shape | Bad:
    if isinstance(shape, Bad):
        return shape
    if not shape:
        return Bad("an array without axes; expected [T, ...]")
    if min(shape) < 0 or max(math.prod(shape), *shape) > MOST:
        return Bad(f"it has shape {shape}; expected at most {MOST} numbers")
    return shape


def consecutive(places: Sequence[tuple[Any, ...]]) -> Iterator[tuple[Any, list[int]]]:
    """Yield each run of places with the same first entry (a file, a row group): the entry and the indices."""
    run: list[int] = []
    for index, place in enumerate(places):
        if run and place[0] != places[run[0]][0]:
            yield places[run[0]][0], run
            run = []
        run.append(index)
    if run:
        yield places[run[0]][0], run


class Source(ABC):
    """Sequences of one format: lists its items, and reads the requested ones in any process.

    Attributes
    ----------
    kind : str
        Name of the format, as `pyrnnx.score` takes it.
    suffixes : tuple of str
        Suffixes of its files in lower case; () if its folder has no files of its own.
    path : str
        Absolute path, because workers open it, or a URL.
    hidden : int
        Number of files and folders that the last listing left out because their names begin with ".".
    sample_rate : int or None
        Samples per second of recordings, after a listing; None for other sources.
    options : mapping
        Arguments of `pyrnnx.score` for this format.
    """

    kind: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]] = ()

    def __init__(self, path: str) -> None:
        self.path, self.hidden = path, 0
        self.sample_rate: int | None = None
        self.options: dict[str, Any] = {}
        self._is_file = self.storage.kind(path) == FILE

    @cached_property
    def storage(self) -> Files:
        """Storage of the files. Each process makes its own, so that no credentials are sent to workers."""
        return storage_of(self.path)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "storage"}

    @abstractmethod
    def items(self) -> Items:
        """List all items, and read no more than their lengths."""

    def name_of(self, path: str) -> str:
        """Return the name of a file in items: its path in the folder, or its own name if the source is that file."""
        return os.path.basename(path) if path == self.path else os.path.relpath(path, self.path)

    def path_of(self, name: str) -> str:
        """Return the path of a file by the name that `name_of` returned."""
        return self.path if self._is_file else os.path.join(self.path, name)

    @abstractmethod
    def read(self, places: Sequence[Any]) -> Iterator[AnyArray | Bad]:
        """Yield the values [T, ...] of items in the order of the source, or a `Bad` with the reason of a failure."""

    def fingerprint(self) -> str:
        """Return a checksum of the names, sizes and modification times, or ETags, of all files."""
        digest = hashlib.sha256()
        version_of = self.storage.versions(self.path)
        for path in self.files():
            digest.update(os.fsencode(f"{os.path.relpath(path, self.path)}\0{version_of(path)}\n"))
        return digest.hexdigest()

    def file_of(self, place: Any) -> str | None:
        """Return the path of an item's file; None if it is in several files."""
        return self.path_of(place[0])

    def stamps(self, places: Iterable[Any]) -> Iterator[int]:
        """Yield for each item a number of this process that changes with the item's file, 0 if it is in several."""
        version_of = self.storage.versions(self.path)
        before: str | None = None
        stamp = 0
        for place in places:
            path = self.file_of(place)
            if path is None or path != before:
                before, stamp = path, 0 if path is None else hash(version_of(path))
            yield stamp

    def advice(self, values: AnyArray) -> str:
        """Return a hint on options that would make values of a wrong shape fit, or ""."""
        return ""

    def files(self) -> list[str]:
        """Return the sorted paths of all files of the format, at least one, without hidden ones."""
        if self._is_file:
            return [self.path]
        names = ", ".join(self.suffixes)
        paths, self.hidden = files_with(self.path, self.suffixes)
        if not paths:
            raise ArgumentError(
                f"score: source {shown(self.path)} has no {names} file; expected at least one, because source_format "
                f"is {self.kind}"
            )
        return paths


class FileSource(Source):
    """Source of a folder of files, each of which is an item, named by its path in the folder."""

    def items(self) -> Items:
        paths = self.files()
        names = [self.name_of(path) for path in paths]
        shapes = self.shapes(names, [attempted(self.header, path) for path in paths])
        return listed(names, [(name,) for name in names], shapes)

    def read(self, places: Sequence[Any]) -> Iterator[AnyArray | Bad]:
        for (name,) in places:
            yield attempted(self.values, self.path_of(name))

    @abstractmethod
    def header(self, path: str) -> Any:
        """Return what the header of a file declares: by default, the shape of the item."""

    @abstractmethod
    def values(self, path: str) -> AnyArray:
        """Return the values of a file."""

    def shapes(self, names: Sequence[str], headers: Sequence[Any]) -> Sequence[tuple[int, ...] | Bad]:
        """Return the shapes of the items with these headers, each of which may be a `Bad`."""
        return headers


def files_with(folder: str, suffixes: tuple[str, ...]) -> tuple[list[str], int]:
    """Return the sorted paths of the files below a folder with these suffixes, and the number of hidden entries.

    Hidden are such files, and all folders, whose names begin with "."; their paths are left out.
    """
    paths, hidden = [], 0
    storage = storage_of(folder)
    for parent, folders, files in storage.walk(folder):
        matching = [name for name in files if name.lower().endswith(suffixes)]
        hidden += sum(name.startswith(".") for name in (*folders, *matching))
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths += [os.path.join(parent, name) for name in matching if not name.startswith(".")]
    return sorted(paths), hidden
