"""Drawn cases against the oracle: operator, opset, attributes, optional inputs, dtype, layout, lengths and sizes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, event, given, note
from hypothesis import strategies as st

import pyrnnx.frontends.onnx as frontend
from pyrnnx.testing import strategies
from pyrnnx.testing.cases import OPERATORS, OUTPUTS, expected_outputs, make_arrays
from pyrnnx.testing.numbers import assert_close, numpy_dtype, tolerance_of


@pytest.mark.parametrize("operator", OPERATORS)
@given(data=st.data())
def test_drawn_case_agrees_with_the_oracle(operator: str, data: st.DataObject) -> None:
    case = data.draw(strategies.cases(operator, nan=True))
    arrays = make_arrays(case)
    assume(not strategies.hangs_on_rounding(case, arrays))
    expected = expected_outputs(case, arrays)
    largest = max(np.abs(y).max(initial=0) for y in expected)
    event(f"{case.dtype}, opset {case.opset}")
    note(f"largest expected magnitude: {largest:.3g}")
    outputs = getattr(frontend, operator.lower())(**arrays, **case.attributes, opset=case.opset)
    assert [y.dtype for y in outputs] == [numpy_dtype(case.dtype)] * len(OUTPUTS[operator])
    assert_close(outputs, expected, tolerance_of(case.dtype), case)
