"""Division of the items into parts, which are scored and written as a whole, and of parts into batches.

Both depend only on items and options, not on the number of workers, so that results are bit for bit the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.scoring.sources.base import Items

SHARES = 3  # shares of the memory: items and results; copies of results while they are written; a padded batch
BATCH = 2**23  # bytes of a padded batch and its results; items of a 39 MB batch took 1.6 times as long as of 5 to 10 MB
MOST_ITEMS = 100_000  # items of a part at most, because names need memory, too
PARTS = 32  # parts at least, unless they would be small, so that many workers are busy
SMALL = 2**23  # bytes of items and results: the overhead of smaller parts does not pay
LEAST = 256  # bytes of an item at least, with its name and its objects


@dataclass(frozen=True)
class Part:
    """Consecutive items of a source."""

    number: int
    first: int  # index of the first item
    names: tuple[str, ...]  # as in `Items`
    places: tuple[Any, ...]
    lengths: tuple[int, ...]
    bad: dict[int, str]  # as in `Items`, but by the index within the part

    @classmethod
    def of(cls, items: Items, starts: AnyArray, number: int) -> Part:
        """Return a part by its number and the `boundaries`."""
        start, end = int(starts[number]), int(starts[number + 1])
        bad = {index - start: items.bad[index] for index in range(start, end) if index in items.bad}
        names, places, lengths = (tuple(values[start:end]) for values in (items.names, items.places, items.lengths))
        return cls(number, start, names, places, tuple(map(int, lengths)), bad)


def boundaries(sizes: AnyArray, memory: int, least: int = 1) -> AnyArray:
    """Return the indices at which parts begin, and the end.

    `sizes` are the bytes of each item and its results. A part has at least `least` items as far as the memory allows,
    and at least one in any case.
    """
    ends = np.cumsum(np.maximum(sizes, LEAST), dtype=np.int64)
    most = min(memory // SHARES, max(SMALL, int(ends[-1]) // PARTS)) if len(ends) else 0
    starts = [0]
    while starts[-1] < len(ends):
        start = starts[-1]
        before = int(ends[start - 1]) if start else 0
        end = int(np.searchsorted(ends, before + most, side="right"))
        if end < start + least:
            end = min(start + least, int(np.searchsorted(ends, before + memory // SHARES, side="right")))
        starts.append(min(max(end, start + 1), start + MOST_ITEMS))
    return np.array(starts, np.int64)


def batches(
    lengths: Sequence[int], *, rows: int, most: int, mixes_lengths: bool, row_size: Callable[[int], int]
) -> Iterator[list[int]]:
    """Yield batches of up to `rows` items of similar length as indices, the longest first.

    Batches of several items take up to `most` bytes: `row_size` returns those of a row of a length and its results.
    Without `mixes_lengths`, the items of a batch have the same length.
    """
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda index: (-lengths[index], index)):
        if batch:
            longest = lengths[batch[0]]
            full = len(batch) == rows or (len(batch) + 1) * row_size(longest) > most
            if full or (not mixes_lengths and lengths[index] != longest):
                yield batch
                batch = []
        batch.append(index)
    if batch:
        yield batch
