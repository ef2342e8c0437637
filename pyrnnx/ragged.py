"""Sequences of unequal lengths as padded batches: in buckets of like length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from pyrnnx.dtypes import AnyArray

# Steps of a padded batch for each step of its sequences. The kernels do not compute padding, so few large batches are
# faster than many small ones, but memory that is touched costs time: between 1.25 and 2 nothing was faster.
MOST_PADDED = 1.5


def buckets(lengths: Sequence[int]) -> Iterator[list[int]]:
    """The places of sequences in batches, the longest first: each of at most `MOST_PADDED` times their steps."""
    order = sorted(range(len(lengths)), key=lambda k: -lengths[k])
    rows: list[int] = []
    total = 0
    for k in order:
        if rows and (len(rows) + 1) * lengths[rows[0]] > MOST_PADDED * (total + lengths[k]):
            yield rows
            rows, total = [], 0
        rows.append(k)
        total += lengths[k]
    if rows:
        yield rows


def padded(sequences: Sequence[AnyArray]) -> tuple[AnyArray, AnyArray | None]:
    """Sequences [T, I], the longest first, as a view [T, N, I]; and their lengths, None where these are the same.

    What lies beyond a sequence is not set.
    """
    T, size = sequences[0].shape
    batch = np.empty((len(sequences), T, size), sequences[0].dtype)  # row after row: each is copied as one block
    for row, sequence in zip(batch, sequences, strict=True):
        row[: len(sequence)] = sequence
    lengths = np.array([len(sequence) for sequence in sequences], np.int64)
    return batch.swapaxes(0, 1), None if lengths[-1] == T else lengths
