"""The conformance kit's cases of OpenVINO's operations, named and drawn, against its oracle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pyrnnx.frontends.openvino as frontend
from pyrnnx import PyrnnxError
from pyrnnx.testing import strategies
from pyrnnx.testing.cases import OPENVINO_CASES, OPERATIONS, OUTPUTS, Case, expected_outputs, make_arrays
from pyrnnx.testing.numbers import Array, assert_close, numpy_dtype, tolerance_of

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "RNNSequence-5": frontend.rnn_sequence,
    "GRUSequence-5": frontend.gru_sequence,
    "LSTMSequence-5": frontend.lstm_sequence,
    "LSTMSequence-1": frontend.lstm_sequence,
    "RNNCell-1": frontend.rnn_cell,
    "GRUCell-3": frontend.gru_cell,
    "LSTMCell-4": frontend.lstm_cell,
    "LSTMCell-1": frontend.lstm_cell,
}


def run(case: Case, arrays: dict[str, Array]) -> tuple[Array, ...]:
    opset = {"opset": case.opset} if case.cell == "LSTM" else {}  # the others have one version
    outputs = FUNCTIONS[case.operator](**arrays, **case.attributes, **opset)
    return outputs if isinstance(outputs, tuple) else (outputs,)


def check(case: Case) -> None:
    arrays = make_arrays(case)
    outputs, shapes = run(case, arrays), case.shapes()
    assert [y.shape for y in outputs] == [shapes[name] for name in OUTPUTS[case.operator]]
    assert {y.dtype for y in outputs} == {numpy_dtype(case.dtype)}
    assert_close(outputs, expected_outputs(case, arrays), tolerance_of(case.dtype), case.name)


@pytest.mark.parametrize("case", OPENVINO_CASES, ids=lambda case: case.name)
def test_named_case(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("operation", OPERATIONS)
@settings(max_examples=30)
@given(data=st.data())
def test_drawn_case(operation: str, data: st.DataObject) -> None:
    check(data.draw(strategies.cases(operation, nan=True)))


def test_both_versions_of_lstm_are_asked() -> None:
    """Version 4 of the cell and version 5 of the sequence have no peepholes."""
    case = next(case for case in OPENVINO_CASES if case.feature == "P")
    arrays: dict[str, Any] = make_arrays(case)
    with pytest.raises(PyrnnxError, match="P was given"):
        frontend.lstm_sequence(**arrays, opset=5)
    assert not np.allclose(run(case, arrays)[0], run(case, {**arrays, "P": 0 * arrays["P"]})[0], atol=0.01)
