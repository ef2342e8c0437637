"""Judgement of executions that are made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import planted
import pytest
from rows import each_row

from pyrnnx.testing.cases import Case, make_arrays
from pyrnnx.testing.conformance import FAILURES, STATUSES, judge
from pyrnnx.testing.conformance.judge import expectation
from pyrnnx.testing.numbers import Array, tolerance_of
from pyrnnx.testing.runtimes import Execution

CASE = Case("judged", "LSTM", {"clip": 0.5}, ("B",), (3, 0, 2), T=3, N=3, I=2, H=2)
RIGHT = planted.right(CASE, make_arrays(CASE))


def changed(output: int, index: tuple[int, ...], value: float) -> tuple[Array, ...]:
    outputs = [array.copy() for array in RIGHT]
    outputs[output][index] = value
    return tuple(outputs)


def nearly(part: float) -> tuple[Array, ...]:
    """Y off by a part of what is allowed."""
    return (RIGHT[0] + np.float32(part * tolerance_of("float32")), *RIGHT[1:])


EXPECTED = float(expectation(CASE)[1][0, 2, 1])
WRONG: dict[str, tuple[tuple[Any, ...], str, str]] = {
    "too far": (changed(1, (0, 2, 1), 9.5), "Y_h", f"Y_h: largest difference {9.5 - EXPECTED:.3g}: 9.5 at [0, 2, 1]"),
    "a little too far": (nearly(1.5), "Y", "Y: largest difference 1.5"),
    "NaN": (changed(2, (0, 1, 0), np.nan), "Y_c", "Y_c: nan at [0, 1, 0], expected 0"),
    "infinite": (changed(0, (2, 0, 0, 1), -np.inf), "Y", "Y: -inf at [2, 0, 0, 1], expected "),
    "all NaN": (tuple(np.full_like(array, np.nan) for array in RIGHT), "Y", "and 17 more"),
    "shape": ((RIGHT[0][:2], *RIGHT[1:]), "Y", "Y: shape (2, 1, 3, 2), expected (3, 1, 3, 2)"),
    "a missing axis": ((RIGHT[0][:, 0], *RIGHT[1:]), "Y", "Y: shape (3, 3, 2), expected (3, 1, 3, 2)"),
    "dtype": ((*RIGHT[:2], RIGHT[2].astype("f8")), "Y_c", "Y_c: dtype float64, expected float32"),
    "too few": (tuple(RIGHT[:2]), "", "2 outputs, expected 3: Y, Y_h, Y_c"),
    "none": ((None, None, None), "", "no output"),
    "one left out, one wrong": ((None, *changed(1, (0, 0, 0), 7.0)[1:]), "Y_h", "Y_h: largest difference"),
}


@each_row("name", WRONG)
def test_wrong(name: str) -> None:
    outputs, output, words = WRONG[name]
    verdict = judge(Execution(CASE, "ran", outputs))
    assert (verdict.status, verdict.output) == ("wrong", output)
    assert words in verdict.detail
    assert verdict.failed
    assert "\n" not in verdict.detail
    assert (verdict.difference is not None) == ("difference" in verdict.detail)


@pytest.mark.parametrize("outputs", [tuple(RIGHT), nearly(0.5), (RIGHT[0], None, RIGHT[2])])
def test_right(outputs: tuple[Any, ...]) -> None:
    verdict = judge(Execution(CASE, "ran", outputs))
    assert verdict.status == "right"
    assert verdict.detail == ("missing outputs: Y_h" if outputs[1] is None else "")
    assert not verdict.failed


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
def test_each_dtype_has_its_tolerance(dtype: str) -> None:
    case = Case("judged", "GRU", {}, ("B",), dtype=dtype)
    outputs = planted.right(case, make_arrays(case))
    assert judge(Execution(case, "ran", tuple(outputs))).status == "right"
    if dtype == "float64":
        outputs[0] = outputs[0].astype("f4").astype("f8")
    else:
        outputs[0] = outputs[0] + outputs[0].dtype.type(0.0625)
    assert judge(Execution(case, "ran", tuple(outputs))).status == "wrong"


def test_nan_is_expected_where_the_oracle_has_it() -> None:
    case = Case("nan", "RNN", nan="row")
    outputs = planted.right(case, make_arrays(case))
    assert np.isnan(outputs[0]).any()
    assert judge(Execution(case, "ran", tuple(outputs))).status == "right"
    swallowed = judge(Execution(case, "ran", tuple(np.nan_to_num(output) for output in outputs)))
    assert "0 at [2, 0, 1, 0], expected nan" in swallowed.detail


@each_row("status", ["refused", "crashed", "timed out", "not expressible"])
def test_what_did_not_run_keeps_its_status(status: Any) -> None:
    verdict = judge(Execution(CASE, status, (), "why\n\x1b[31m"))
    assert (verdict.status, verdict.detail) == (status, r"why\n\x1b[31m")
    assert verdict.failed == (status in FAILURES)
    assert status in STATUSES
    assert verdict.to_dict() == {"status": status, "detail": r"why\n\x1b[31m"}


def test_beyond_the_range_of_a_dtype_is_infinity() -> None:
    case = Case("large", "RNN", {"activations": ["Affine"], "activation_alpha": [2.0**17]}, dtype="float16", T=1)
    with np.errstate(over="ignore"):
        outputs = tuple(planted.right(case, make_arrays(case)))
    assert np.isinf(outputs[0]).any()
    assert judge(Execution(case, "ran", outputs)).status == "right"
    largest = tuple(np.where(np.isinf(output), np.sign(output) * 65504, output) for output in outputs)
    assert judge(Execution(case, "ran", tuple(output.astype("f2") for output in largest))).status == "wrong"
