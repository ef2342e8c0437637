"""How the items of a source are divided: into parts, which are scored and written as one, and these into batches.

Both depend on the items and the options alone, not on the number of workers: so the results are the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyrnnx.dtypes import AnyArray
from pyrnnx.scoring.items import Items
from pyrnnx.scoring.outputs import Batching

SHARES = 3  # of the memory: items and results; copies of results, as they are written; a batch, padded
BATCH = 2**23  # bytes of a padded batch and its results; of 39 MB an item took 1.6 times as long as of 5 to 10 MB
MOST_ITEMS = 100_000  # of a part: names take memory, too
PARTS = 32  # there are so many, unless they are small: so that many workers have something to do
SMALL = 2**23  # bytes of items and results: parts of less cost more than they are worth
LEAST = 256  # bytes that an item takes at least, with its name and its objects


@dataclass(frozen=True)
class Part:
    """Items that lie one after the other in the source.

    Attributes
    ----------
    number : int
    first : int
        Index of its first item.
    names, places, lengths : tuples
        As of `Items`.
    bad : dict
        As of `Items`, by the index within the part.
    """

    number: int
    first: int
    names: tuple[str, ...]
    places: tuple[Any, ...]
    lengths: tuple[int, ...]
    bad: dict[int, str]


def boundaries(sizes: AnyArray, memory: int) -> AnyArray:
    """Where parts begin, and the end: as many items as take a share of the memory, or of all; at least one.

    Parameters
    ----------
    sizes : ndarray of int64
        Bytes of each item and its results.
    memory : int
    """
    ends = np.cumsum(np.maximum(sizes, LEAST), dtype=np.int64)
    most = min(memory // SHARES, max(SMALL, int(ends[-1]) // PARTS)) if len(ends) else 0
    found = [0]
    while found[-1] < len(ends):
        start = found[-1]
        before = int(ends[start - 1]) if start else 0
        end = int(np.searchsorted(ends, before + most, side="right"))
        found.append(min(max(end, start + 1), start + MOST_ITEMS))
    return np.array(found, np.int64)


def part(items: Items, starts: AnyArray, number: int) -> Part:
    """One of the parts between `boundaries`."""
    start, end = int(starts[number]), int(starts[number + 1])
    return Part(
        number,
        start,
        tuple(items.names[start:end]),
        tuple(items.places[start:end]),
        tuple(items.lengths[start:end].tolist()),
        {index - start: items.bad[index] for index in range(start, end) if index in items.bad},
    )


def batches(lengths: Sequence[int], batching: Batching, *, rows: int, most: int, row_size: Any) -> Iterator[list[int]]:
    """Indices of items, in batches of like length, the longest first.

    Parameters
    ----------
    lengths : sequence of int
        Time steps of the items.
    batching : Batching
    rows : int
        Of a batch at most.
    most : int
        Bytes of a batch at most, if it has more than one row.
    row_size : callable
        Bytes of a row of so many time steps, and of its results.
    """
    rows = 1 if batching is Batching.ALONE else rows
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda index: (-lengths[index], index)):
        if batch:
            longest = lengths[batch[0]]
            full = len(batch) == rows or (len(batch) + 1) * row_size(longest) > most
            if full or (batching is not Batching.PADDED and lengths[index] != longest):
                yield batch
                batch = []
        batch.append(index)
    if batch:
        yield batch
