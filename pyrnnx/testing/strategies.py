"""Hypothesis strategies over everything that the texts of ONNX and OpenVINO allow; requires hypothesis.

Structure is drawn, and shrinks; numbers come from a seed, so that a failing example prints as one short line.

>>> from hypothesis import given
>>> from pyrnnx.testing import strategies
>>> from pyrnnx.testing.cases import expected_outputs
>>> from pyrnnx.testing.numbers import assert_close, tolerance_of
>>>
>>> @given(strategies.cases_with_arrays("LSTM", opsets=(14,), dtypes=("float32",)))
... def test_my_lstm(drawn):
...     case, arrays = drawn
...     outputs = my_lstm(**arrays, **case.attributes)
...     assert_close(outputs, expected_outputs(case, arrays), tolerance_of(case.dtype), case)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from pyrnnx._internal.extras import needs

try:
    from hypothesis import strategies as st
except ImportError as error:
    raise ImportError(needs("pyrnnx.testing.strategies", "hypothesis", "testing")) from error

from pyrnnx.errors import ArgumentError, shown
from pyrnnx.testing.cases import (
    INPUTS,
    OPERATORS,
    OPSETS,
    Case,
    choose_activations,
    choose_case,
    hangs_on_rounding,
    make_arrays,
)
from pyrnnx.testing.numbers import Array

__all__ = ["activations", "cases", "cases_with_arrays", "hangs_on_rounding"]

_T = TypeVar("_T")


class _Drawn:
    """Choices that hypothesis makes."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        return int(self._draw(st.integers(low, high)))

    def pick(self, values: Sequence[_T]) -> _T:
        picked: _T = self._draw(st.sampled_from(values))
        return picked


def _composed(choose: Callable[[_Drawn], _T]) -> st.SearchStrategy[_T]:
    return st.composite(lambda draw: choose(_Drawn(draw)))()


def activations(operator: str, num_directions: int = 1) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy for the attributes activations, activation_alpha and activation_beta of ONNX.

    Raises
    ------
    ArgumentError
        An operator that is not ONNX's.
    """
    if operator not in OPERATORS:
        raise ArgumentError(f"activations: operator is {shown(operator)}; expected one of {', '.join(OPERATORS)}")
    return _composed(lambda choices: choose_activations(choices, operator, num_directions))


def cases(
    operator: str,
    *,
    opsets: Sequence[int] = OPSETS,
    dtypes: Sequence[str] | None = None,
    smallest: int = 0,
    layouts: Sequence[int] = (0, 1),
    nan: bool = False,
) -> st.SearchStrategy[Case]:
    """Cases of an operator.

    Parameters
    ----------
    operator : str
        "RNN", "GRU" or "LSTM", or an operation of OpenVINO: "LSTMSequence-5".
    opsets : sequence of int
        Of ONNX, to draw from; no matter for OpenVINO.
    dtypes : sequence of str, optional
        To draw from. Default: what the opset allows.
    smallest : int
        The least that T, N and I may be: 0 or 1.
    layouts : sequence of int
        Values of the attribute layout; it may be absent anyway.
    nan : bool
        Whether X may have a NaN, in the padding or in one of its rows. Default: no.

    Returns
    -------
    strategy
        Of `Case`. Results of some hang on rounding: see `hangs_on_rounding`, or draw with `cases_with_arrays`.

    Raises
    ------
    ArgumentError
        An operator that is not known.
    """
    if operator not in INPUTS:
        raise ArgumentError(f"cases: operator is {shown(operator)}; expected one of {', '.join(INPUTS)}")
    limits: dict[str, Any] = {"opsets": opsets, "dtypes": dtypes, "smallest": smallest, "layouts": layouts, "nan": nan}
    return _composed(lambda choices: choose_case(choices, operator, **limits))


def cases_with_arrays(operator: str, **limits: Any) -> st.SearchStrategy[tuple[Case, dict[str, Array]]]:
    """Pairs of a case and its arrays, none of whose results hangs on rounding; arguments as of `cases`."""
    allowed = cases(operator, **limits).filter(lambda case: not hangs_on_rounding(case))
    return allowed.map(lambda case: (case, make_arrays(case)))
