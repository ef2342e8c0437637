"""Base classes of sources, and the items that they list: sequences without their values."""

from __future__ import annotations

import math
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from operator import itemgetter
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
    bad: Mapping[int, str]  # by index: why an item cannot be read, as far as the listing shows
    counts: AnyArray  # number of elements of each item, as far as the listing shows

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True)
class Bad:
    """Placeholder for an item's values that gives the reason why there are none."""

    reason: str


Shape = tuple[int, ...]
Row = tuple[str, Shape | Bad, Any]  # name, shape and place of an item
Result = TypeVar("Result")


def attempted(read: Callable[..., Result], *arguments: Any) -> Result | Bad:
    """Return the result of `read`, or a `Bad` if it raises: readers of broken files raise errors of any type."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of readers, about headers that are old or damaged
            return read(*arguments)
    except Exception as error:
        return _bad(error)


def _bad(error: Exception) -> Bad:
    if isinstance(error, PyrnnxError):
        return Bad(printable(str(error)))
    ends_early = isinstance(error, EOFError) and not str(error)
    return Bad(f"it cannot be read ({'it ends too early' if ends_early else reason_of(error)})")


def completed(values: Iterable[AnyArray | Bad], count: int) -> Iterator[AnyArray | Bad]:
    """Yield `count` values: a `Bad` for each that is missing, because the iterable raises or ends early."""
    bad = Bad("it is not there any more")
    try:
        for value in values:
            yield value
            count -= 1
    except Exception as error:  # readers of broken files raise errors of any type
        bad = _bad(error)
    yield from [bad] * count


def listed(rows: Iterable[Row]) -> Items:
    """Return items of these names, shapes and places; a `Bad` in place of a shape makes a bad item."""
    names, lengths, places, bad, counts = [], [], [], {}, []
    for index, (name, shape, place) in enumerate(rows):
        if reason := _problem(shape):
            bad[index] = reason
        sizes = (0,) if reason or isinstance(shape, Bad) else shape
        names.append(name)
        lengths.append(sizes[0])
        places.append(place)
        counts.append(math.prod(sizes))
    return Items(names, np.array(lengths, np.int64), places, bad, np.array(counts, np.int64))


def _problem(shape: Shape | Bad) -> str:
    if isinstance(shape, Bad):
        return shape.reason
    if not shape:
        return "an array without axes; expected [T, ...]"
    too_large = max(math.prod(shape), *shape) > MOST
    return f"it has shape {shape}; expected at most {MOST} numbers" if too_large else ""


class Source(ABC):
    """Sequences of one format: lists its items, and reads the requested ones in any process."""

    kind: ClassVar[str]  # name of the format, as in `source_format`
    suffixes: ClassVar[tuple[str, ...]] = ()  # of its files, in lower case; () if its folder has no files of its own

    def __init__(self, path: str) -> None:
        self.path = path  # absolute, because workers open it, or a URL
        self.hidden = 0  # files and folders that the last listing left out because their names begin with "."
        self.sample_rate: int | None = None  # of recordings, after a listing
        self.options: dict[str, Any] = {}  # arguments of `pyrnnx.score` for this format
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

    @abstractmethod
    def read(self, places: Sequence[Any]) -> Iterator[AnyArray | Bad]:
        """Yield the values [T, ...] of items in the order of the source, or a `Bad` with the reason of a failure."""

    def versions(self) -> dict[str, str | None]:
        """Return sizes and modification times, or ETags, of all files by their paths."""
        version_of = self.storage.versions(self.path)
        return {path: version_of(path) for path in self.files()}

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
    """Source of a folder of files with one item or several.

    The place of an item is the name of its file and what `listing` yields.
    """

    def items(self) -> Items:
        return listed(self._rows())

    def _rows(self) -> Iterator[Row]:
        for path in self.files():
            # The path in the folder, or its own name if the source is that file.
            file = os.path.basename(path) if self._is_file else os.path.relpath(path, self.path)
            listed_rows: list[Row] | Bad = attempted(list, self.listing(path, file))
            rows = [(file, listed_rows, None)] if isinstance(listed_rows, Bad) else listed_rows
            yield from ((name, shape, (file, place)) for name, shape, place in rows)

    def read(self, places: Sequence[Any]) -> Iterator[AnyArray | Bad]:
        for file, group in groupby(places, itemgetter(0)):
            own_places = [place for _, place in group]
            yield from completed(self.values(self._path_of(file), own_places), len(own_places))

    def _path_of(self, file: str) -> str:
        return self.path if self._is_file else os.path.join(self.path, file)

    @abstractmethod
    def listing(self, path: str, file: str) -> Iterator[Row]:
        """Yield name, shape and place in the file of its items, by its headers; `file` is its name in items."""

    @abstractmethod
    def values(self, path: str, places: Sequence[Any]) -> Iterator[AnyArray | Bad]:
        """Yield the values of items of a file."""


def files_with(folder: str, suffixes: tuple[str, ...]) -> tuple[list[str], int]:
    """Return the sorted paths of the files below a folder with these suffixes, and the number of hidden entries.

    Hidden are such files, and all folders, whose names begin with "."; their paths are left out.
    """
    paths, hidden = [], 0
    for parent, folders, files in storage_of(folder).walk(folder):
        matching = [name for name in files if name.lower().endswith(suffixes)]
        hidden += sum(name.startswith(".") for name in (*folders, *matching))
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths += [os.path.join(parent, name) for name in matching if not name.startswith(".")]
    return sorted(paths), hidden
