"""Division of the items into parts, which are scored and written as a whole, and of parts into batches.

Both depend only on items and options, not on the number of workers, so that results are bit for bit the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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


def boundaries(sizes: AnyArray, memory: int, least: int = 1) -> AnyArray:
    """Return the indices at which parts begin, and the end. A part has at least one item.

    Parameters
    ----------
    sizes : ndarray of int64
        Bytes of each item and its results.
    memory : int
    least : int
        Minimum number of items of a part, as far as the memory allows.
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


def part(items: Items, starts: AnyArray, number: int) -> Part:
    """Return a part by its number and the `boundaries`."""
    start, end = int(starts[number]), int(starts[number + 1])
    return Part(
        number,
        start,
        tuple(items.names[start:end]),
        tuple(items.places[start:end]),
        tuple(items.lengths[start:end].tolist()),
        {index - start: items.bad[index] for index in range(start, end) if index in items.bad},
    )


def batches(lengths: Sequence[int], *, rows: int, most: int, mixes_lengths: bool, row_size: Any) -> Iterator[list[int]]:
    """Yield batches of items of similar length as indices, the longest first.

    Parameters
    ----------
    lengths : sequence of int
        Time steps of the items.
    rows : int
        Maximum number of rows of a batch.
    most : int
        Maximum number of bytes of a batch with more than one row.
    mixes_lengths : bool
        Whether a batch may have items of different lengths.
    row_size : callable
        Function of a length that returns the bytes of a row and its results.
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
