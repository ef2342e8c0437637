"""Random graphs through both doors, compared with onnx's evaluator: equal within rounding."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator
from random_graphs import OPSETS, drawn_model

from pyrnnx.frontends.onnx import read_model, reference_ops
from pyrnnx.testing.numbers import assert_close, tolerance_of

pytest.importorskip("onnxruntime")
from pyrnnx.onnxruntime import InferenceSession, SessionOptions

SEEDS = [
    range(30),
    pytest.param(range(30, 100), marks=pytest.mark.slow),
    pytest.param(range(100, 500), marks=pytest.mark.nightly),
]
# T and N of calls of one model: first with some shapes, then with other ones, then with the first again.
SIZES = ((3, 2), (5, 1), (3, 2))
FIRST_OPSET = 7  # of ONNX Runtime, and so of the drop-in


def compare(seed: int) -> Counter[Any]:
    """Compare the calls of one model; return what was drawn and who ran it."""
    drawn = drawn_model(seed)
    model, evaluator = read_model(drawn.proto), ReferenceEvaluator(drawn.proto, new_ops=reference_ops())
    has_kernels = drawn.opset >= FIRST_OPSET or not model.layers
    options = SessionOptions()
    options.log_severity_level = 3
    session = InferenceSession(drawn.proto.SerializeToString(), options) if has_kernels else None
    if session is not None:
        assert list(session.layers) == list(model.layers)
        assert session.why_none == model.layers.why_none
    names = [info.name for info in model.outputs]
    for number, (T, N) in enumerate(SIZES):
        inputs = drawn.arrays(number, T, N)
        with np.errstate(invalid="ignore"):  # NaNs of a softmax of infinities, for example
            expected: list[Any] = list(evaluator.run(names, dict(inputs)))
        # Sums of up to 18 products, through some ten operators, each of which at most doubles what is rounded.
        tolerance = tolerance_of(np.dtype(drawn.dtype))
        found: Any = model(inputs)
        assert_close(list(found.values()), expected, tolerance, f"seed {seed}, call {number}")
        assert [one.dtype.name for one in found.values()] == [drawn.dtype] * len(expected)
        if session is not None:
            for one, other in zip(session.run(names, inputs), found.values(), strict=True):
                np.testing.assert_array_equal(one, other, err_msg=f"seed {seed}, call {number}")
    runners = Counter(runner.strip() for runner, _, _ in model.plan.rows())
    return Counter(dict.fromkeys(runners, 1)) + Counter([drawn.dtype, drawn.opset, "all"])


@pytest.mark.parametrize("seeds", SEEDS, ids=str)
def test_random_graphs(seeds: range) -> None:
    seen = sum((compare(seed) for seed in seeds), Counter[Any]())
    # Else the graphs would show little.
    assert seen["ONNX Runtime"] > 0.6 * seen["all"]
    assert seen["pyrnnx"] > 0.6 * seen["all"]
    assert seen.keys() >= {"float32", "float64", *OPSETS}
