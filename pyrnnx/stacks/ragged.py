"""Padded batches of sequences of unequal lengths, in buckets of similar length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from pyrnnx._internal.dtypes import AnyArray

# Limit of (steps of a padded batch) / (steps of its sequences). The kernels skip padding, so few large batches
# are fast, but writing padding costs time. No value from 1.25 to 2 was faster.
MAX_PADDING = 1.5


def buckets(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield the indices of the sequences of each batch, the longest first, within `MAX_PADDING`."""
    order = sorted(range(len(lengths)), key=lambda k: -lengths[k])
    rows: list[int] = []
    total = 0
    for k in order:
        if rows and (len(rows) + 1) * lengths[rows[0]] > MAX_PADDING * (total + lengths[k]):
            yield rows
            rows, total = [], 0
        rows.append(k)
        total += lengths[k]
    if rows:
        yield rows


def padded(sequences: Sequence[AnyArray]) -> tuple[AnyArray, AnyArray | None]:
    """Return sequences [T, I], the longest first, as a view [T, N, I], and their lengths (None: all are the same).

    Padding is uninitialized.
    """
    T, size = sequences[0].shape
    batch = np.empty((len(sequences), T, size), sequences[0].dtype)  # [N, T, I]: each sequence is copied as one block
    for row, sequence in zip(batch, sequences, strict=True):
        row[: len(sequence)] = sequence
    lengths = np.array([len(sequence) for sequence in sequences], np.int64)
    return batch.swapaxes(0, 1), None if lengths[-1] == T else lengths
