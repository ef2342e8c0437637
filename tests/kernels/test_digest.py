"""The digest of arrays: every change of a byte shows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from rows import each_row

from pyrnnx._kernels.digest import digest
from pyrnnx.testing.numbers import Array

SIZES = (0, 1, 7, 8, 63, 64, 127, 128, 129, 256, 1000, 70_001)  # bytes: blocks of 128, the rest, releasing the GIL
CHANGES: dict[str, Callable[[Array], Array]] = {  # each keeps sums, or exclusive ors, of all words
    "negated": lambda a: -a,
    "reversed": lambda a: a[::-1],
    "rows swapped": lambda a: a.reshape(32, -1)[np.r_[1, 0, 2:32]].ravel(),
    "rotated by a block": lambda a: np.roll(a, 128 // a.itemsize),
    "rotated by a lane": lambda a: np.roll(a, 1),
    "two ends swapped": lambda a: np.r_[a[-1], a[1:-1], a[0]],
    "signs of zeros": lambda a: np.where(np.arange(len(a)) % 2, a, -0.0 * a),
}


@each_row("size", SIZES)
def test_each_bit_counts(size: int) -> None:
    data = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    before = digest((data,))
    seen = {before}
    places = range(size) if size < 2000 else range(0, size, 997)
    for k in places:
        for bit in (0, 7):
            data[k] ^= 1 << bit
            seen.add(digest((data,)))
            data[k] ^= 1 << bit
    assert digest((data,)) == before
    assert len(seen) == 1 + 2 * len(places)


@each_row("change", CHANGES)
@each_row("dtype", ("float32", "float64"))
def test_changes_of_all_numbers(change: str, dtype: str) -> None:
    a = np.random.default_rng(0).normal(size=4096).astype(dtype)
    a[::64] = 0
    changed = np.ascontiguousarray(CHANGES[change](a))
    assert digest((changed,)) != digest((a,))


def test_sizes_and_order_of_arrays() -> None:
    a, b = np.zeros(64, np.float32), np.zeros(65, np.float32)
    values = {digest(arrays) for arrays in ((), (a,), (b,), (a, a), (a, b), (b, a), (a[:0],))}
    assert len(values) == 7


def test_other_arrays_are_rejected() -> None:
    for value in (np.zeros((4, 4)).T[::2], [1, 2], None):
        with pytest.raises(ValueError, match="C-contiguous"):
            digest((value,))  # type: ignore[arg-type]
