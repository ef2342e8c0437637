"""Random graphs run by their plans and by the evaluator: equal within rounding."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from random_graphs import OPSETS, drawn_model

from pyrnnx.frontends.onnx import read_model
from pyrnnx.testing.numbers import assert_close, tolerance_of

pytest.importorskip("onnxruntime")
QUICK, ALL = range(30), range(30, 500)
# T and N of calls of one model: first with some shapes, then with other ones, then with the first again.
SIZES = ((3, 2), (3, 2), (3, 2), (5, 1), (3, 2))


def compare(seed: int) -> Counter[Any]:
    """Steps of the plan by their runners; and what was drawn."""
    drawn = drawn_model(seed)
    planned, whole = (read_model(drawn.proto, runtime=runtime) for runtime in ("auto", "reference"))
    for number, (T, N) in enumerate(SIZES):
        given = drawn.arrays(number, T, N)
        expected, found = whole(given), planned(given)
        # Sums of up to 18 products, through some ten operators, each of which at most doubles what is rounded.
        tolerance = tolerance_of(np.dtype(drawn.dtype))
        assert_close(list(found.values()), list(expected.values()), tolerance, f"seed {seed}, call {number}")
        assert [one.dtype.name for one in found.values()] == [drawn.dtype] * len(expected)
    runners = Counter(runner.strip() for runner, _, _ in planned.plan.rows())
    return Counter(dict.fromkeys(runners, 1)) + Counter([drawn.dtype, drawn.opset, "all"])


def check(seeds: range) -> None:
    seen = sum((compare(seed) for seed in seeds), Counter[Any]())
    # Else the graphs would show little.
    assert seen["ONNX Runtime"] > 0.6 * seen["all"]
    assert seen["pyrnnx"] > 0.6 * seen["all"]
    assert seen.keys() >= {"float32", "float64", "reference evaluator", *OPSETS}


def test_some() -> None:
    check(QUICK)


@pytest.mark.slow
def test_all() -> None:
    check(ALL)
