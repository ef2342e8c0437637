"""Items, the sequences of a source: their listing, and their division into frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import ArgumentError


@dataclass(frozen=True)
class Items:
    """Listing of a source's items in order, without their values.

    Attributes
    ----------
    names : sequence of str
        Unique names.
    lengths : ndarray of int64
        Sizes of the first axis; 0 for an item that cannot be read.
    places : sequence
        Location of each item, small and picklable, for `Source.read`.
    bad : mapping
        By index: why an item cannot be read, as far as the listing shows.
    counts : ndarray of int64, optional
        Number of elements of each item, as far as the listing shows. Default: `lengths`.
    stamps : ndarray of int64, optional
        `Source.stamps` at the time of the listing.
    """

    names: Sequence[str]
    lengths: AnyArray
    places: Sequence[Any]
    bad: Mapping[int, str] = field(default_factory=dict)
    counts: AnyArray | None = None
    stamps: AnyArray | None = None

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True)
class Bad:
    """Placeholder for an item's values that gives the reason why there are none."""

    reason: str


@dataclass(frozen=True)
class Frames:
    """Division of sequences of single values, such as samples, into frames.

    Attributes
    ----------
    size : int
        New values in each frame.
    context : int
        Preceding values at the start of each frame; zeros before the first value.
    tail : str
        "pad": zeros complete the last frame. "drop": values that do not fill a frame are left out.
    """

    size: int
    context: int = 0
    tail: str = "pad"

    def count(self, lengths: Any) -> Any:
        """Return the number of frames of a sequence with this length, or of several: an integer or an array."""
        return lengths // self.size if self.tail == "drop" else -(-lengths // self.size)

    def cut(self, values: AnyArray) -> AnyArray:
        """Return values [T] as frames [frames, context + size].

        Raises
        ------
        ArgumentError
            Values with more axes than one, or none.
        """
        if values.ndim != 1:
            raise ArgumentError(f"it has shape {values.shape}; expected [T], which is cut into frames")
        count = self.count(len(values))
        padded = np.zeros(self.context + count * self.size, values.dtype)
        values = values[: count * self.size]
        padded[self.context : self.context + len(values)] = values
        if not count:
            return np.zeros((0, self.context + self.size), values.dtype)
        frames = np.lib.stride_tricks.sliding_window_view(padded, self.context + self.size)[:: self.size]
        return np.ascontiguousarray(frames)


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
