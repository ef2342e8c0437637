"""The strategies: the same space as random cases, within the requested limits."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st
from rows import each_row

from pyrnnx import ArgumentError
from pyrnnx.testing import strategies
from pyrnnx.testing.cases import INPUTS, OPERATORS, Case, expected_outputs, make_arrays

QUICK = settings(max_examples=40, derandomize=True, database=None)


@each_row("operator", INPUTS)
@settings(max_examples=8)
@given(data=st.data())
def test_drawn_cases_can_be_computed(operator: str, data: st.DataObject) -> None:
    case = data.draw(strategies.cases(operator, nan=True))
    assert case.operator == operator
    expected_outputs(case, make_arrays(case))


@pytest.mark.parametrize("operator", OPERATORS)
@settings(max_examples=20)
@given(data=st.data())
def test_limits(operator: str, data: st.DataObject) -> None:
    limits = {"opsets": (7, 14), "dtypes": ("float32", "float16"), "smallest": 1, "layouts": (0,)}
    case, arrays = data.draw(strategies.cases_with_arrays(operator, **limits))
    assert case.opset in (7, 14)
    assert case.dtype in ("float32", "float16")
    assert min(case.T, case.N, case.I) >= 1
    assert case.layout == 0
    assert not case.nan
    assert arrays.keys() == make_arrays(case).keys()
    assert not strategies.hangs_on_rounding(case, arrays)


@pytest.mark.slow
def test_a_failing_case_shrinks_to_a_small_one() -> None:
    def fails(case: Case) -> bool:
        return "clip" in case.attributes and case.T > 2

    case = find(strategies.cases("LSTM"), fails, settings=QUICK)
    assert (case.T, case.N, case.I, case.H) == (3, 1, 1, 1)
    assert set(case.attributes) == {"clip", "hidden_size"}
    assert (case.inputs, case.lens, case.nan) == ((), None, "")


def test_activations_have_the_parameters_that_they_need() -> None:
    drawn = find(strategies.activations("RNN", 2), lambda found: "ScaledTanh" in found["activations"], settings=QUICK)
    assert drawn["activation_alpha"]
    assert drawn["activation_beta"]
    with pytest.raises(ArgumentError, match="operator is 'RNNCell-1'; expected one of RNN, GRU, LSTM"):
        strategies.activations("RNNCell-1")


def test_unknown_operator() -> None:
    with pytest.raises(ArgumentError, match="operator is 'QRNN'; expected one of RNN, GRU, LSTM, RNNSequence-5"):
        strategies.cases("QRNN")


def test_without_hypothesis() -> None:
    program = "import sys; sys.modules['hypothesis'] = None\nimport pyrnnx.testing.strategies"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "ImportError: pyrnnx.testing.strategies needs the package hypothesis; `python -m" in done.stderr
