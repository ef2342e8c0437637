"""Agreement: tolerances by dtype and by argument, outputs by name, and the outputs that differ from the right ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pyrnnx import ArgumentError
from pyrnnx.comparison.agreement import LONG, Rule, agreement, in_range, is_away, read_tolerance


def floats(*values: float, dtype: str = "float32") -> Any:
    return np.array(values, dtype)


def test_tolerance_by_dtype() -> None:
    rule = Rule()
    assert rule.tolerance(floats(0.5)) == (1e-5, 0)
    assert rule.tolerance(floats(-8, math.nan, math.inf)).atol == pytest.approx(8e-5)  # of the largest finite number
    assert rule.tolerance(floats(1), "float64", "float16").atol == 2e-3  # the coarser
    assert rule.between(floats(1, dtype="float16"), floats(4, dtype="float64")) == (2e-3, 2e-3)
    assert rule.tolerance(np.array([3])) == (0, 0)
    assert LONG.tolerance(floats(1)).atol == 1e-4


def test_tolerance_by_argument() -> None:
    assert Rule(0.5, 0.25).tolerance(floats(100)) == (0.5, 0.25)
    assert Rule(None, 0.25).tolerance(floats(1)) == (1e-5, 0.25)
    assert read_tolerance("equal", "atol", 0) == 0
    for value in (-1, math.inf, math.nan, "1"):
        with pytest.raises(ArgumentError, match=r"equal: atol is .*expected a"):
            read_tolerance("equal", "atol", value)


def test_outputs_by_name() -> None:
    right = {"Y": floats(1, 2), "n": np.array([3]), "text": np.array(["a"]), "none": None}
    result = agreement({**right, "Y": floats(1, 2.0001)}, right, LONG)
    assert (result.apart, result.differences["n"], math.isnan(result.differences["none"])) == (None, 0, True)
    assert result.largest == pytest.approx(1e-4, rel=0.1)
    result = agreement({**right, "n": np.array([4])}, right, LONG)
    assert (result.apart, result.largest) == ("n", 1)
    for outputs in ({"n": np.array([3])}, {**right, "Y": floats(1)}, {**right, "Y": floats(1, math.nan)}):
        result = agreement(outputs, right, LONG)
        assert (result.apart, result.differences["Y"]) == ("Y", math.inf)


def test_away_from_the_oracle() -> None:
    right = {"Y": floats(1, math.nan, math.inf, dtype="float64")}
    assert not is_away({"Y": floats(1.000001, math.nan, math.inf)}, right, Rule())
    assert is_away({"Y": floats(1.001, math.nan, math.inf)}, right, Rule())
    assert is_away({"Y": floats(1, 0, math.inf)}, right, Rule())


def test_numbers_beyond_the_range_of_a_dtype() -> None:
    wide = floats(1e5, -1e5, 0.1, math.nan, dtype="float64")
    np.testing.assert_array_equal(in_range(wide, "float16"), [math.inf, -math.inf, 0.1, math.nan])
    np.testing.assert_array_equal(in_range(wide, np.dtype("float32")), wide)


@pytest.mark.parametrize("value", [np.float32(1.5), np.int64(2**60 + 1)], ids=["float32", "int64"])
def test_arrays_without_axes(value: Any) -> None:
    a, b = np.array(value), np.array(value + type(value)(3))
    assert not Rule().beyond(a, a.copy()).any()
    assert Rule().beyond(a, b).shape == ()
    assert Rule().beyond(a, b)
