"""Parts and batches: every item once, within the limits, and the same for every worker."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from rows import each_row

from pyrnnx.scoring.plan import PARTS, SMALL, boundaries
from pyrnnx.scoring.task import SHARES, Job


@each_row("seed", range(80))
def test_boundaries(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 10 ** rng.integers(0, 8), rng.integers(1, 61)).tolist()
    memory = int(10 ** rng.uniform(0, 8))
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


@each_row("mixes", [False, True])
@each_row("seed", range(40))
def test_batches(mixes: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    lengths, rows = rng.integers(0, rng.integers(1, 22), seed).tolist(), int(rng.integers(1, 8))
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
