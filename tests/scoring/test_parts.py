"""Parts and batches: every item once, within the limits, and the same for every worker."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pyrnnx.scoring.plan import PARTS, SMALL, boundaries
from pyrnnx.scoring.task import SHARES, Job

SIZES = st.lists(st.integers(0, 10**7), min_size=1, max_size=60)


@settings(max_examples=80)
@given(SIZES, st.integers(1, 10**8))
def test_boundaries(sizes: list[int], memory: int) -> None:
    starts = boundaries(np.array(sizes, np.int64), memory)
    assert starts[0] == 0
    assert starts[-1] == len(sizes)
    assert (np.diff(starts) > 0).all()
    for start, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        assert end == start + 1 or sum(sizes[start:end]) <= memory // SHARES


def test_many_parts_of_much_data() -> None:
    starts = boundaries(np.full(10_000, 10**6, np.int64), 10**12)
    assert PARTS <= len(starts) - 1 <= PARTS + 1
    assert len(boundaries(np.full(100, SMALL // 100, np.int64), 10**12)) == 2


@settings(max_examples=80)
@given(st.lists(st.integers(0, 20), max_size=40), st.booleans(), st.integers(1, 7))
def test_batches(lengths: list[int], mixes: bool, rows: int) -> None:
    subject = SimpleNamespace(mixes_lengths=mixes, pushes=True)
    scorer = SimpleNamespace(rows=rows, subject=subject, size=lambda length, step: length * step)
    job: Any = SimpleNamespace(scorer=scorer, memory=SHARES * 60)
    found = list(Job.batches(job, lengths, 1))
    assert sorted(index for batch in found for index in batch) == list(range(len(lengths)))
    for batch in found:
        own = [lengths[index] for index in batch]
        assert own == sorted(own, reverse=True)
        assert len(batch) <= rows
        assert len(batch) == 1 or len(batch) * own[0] <= 60
        assert mixes or len(set(own)) == 1
