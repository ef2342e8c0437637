"""`steps=True`: the values of every step produce the results."""

from __future__ import annotations

from typing import Any

import numpy as np
from kinds import kinds
from rows import few_rows

from pyrnnx import reference
from pyrnnx.testing.cases import CASES, Case, make_arrays

COMPUTED = [case for case in CASES if case.nan != "row"]  # NaN means here that there is no step


def run(case: Case, **changes: Any) -> tuple[dict[str, Any], tuple[Any, ...], dict[str, Any]]:
    """The arrays, the results with layout 0, and the values of every step."""
    arrays = make_arrays(case)
    *results, values = reference.run(case.operator, **arrays, **{**case.attributes, **changes}, steps=True)
    if case.layout:
        Y, *last = results
        results = [Y.transpose(1, 2, 0, 3), *(one.swapaxes(0, 1) for one in last)]
    return arrays, tuple(results), values


def exists(case: Case) -> Any:
    """[T, 1, N, 1]: whether the row has that step."""
    lens = np.full(case.N, case.T) if case.lens is None else np.array(case.lens, int)
    return (np.arange(case.T)[:, np.newaxis] < lens)[:, np.newaxis, :, np.newaxis]


@few_rows("case", kinds(COMPUTED), COMPUTED)
def test_values_are_those_of_the_run(case: Case) -> None:
    arrays, (Y, Y_h, *Y_c), values = run(case)
    plain = reference.run(case.operator, **arrays, **case.attributes)
    for one, other in zip(reference.run(case.operator, **arrays, **case.attributes, steps=True), plain, strict=False):
        np.testing.assert_array_equal(one, other)
    assert tuple(values) == reference.STEP_VALUES[case.operator]
    shape = (case.T, case.num_directions, case.N, case.H)
    uncomputed = {"f_in"} if case.attributes.get("input_forget") else set()
    for name, array in values.items():
        assert (array.shape, array.dtype) == (shape, np.float64)
        there = np.broadcast_to(exists(case) & (name not in uncomputed), shape)
        np.testing.assert_array_equal(np.isfinite(array), there, err_msg=name)
    np.testing.assert_array_equal(np.nan_to_num(values["H"]), Y)
    for name, last in {"H": Y_h, "C": Y_c[0]}.items() if Y_c else {"H": Y_h}.items():
        np.testing.assert_array_equal(at_last_step(case, values[name]), last)


def at_last_step(case: Case, array: Any) -> Any:
    """Return [D, N, H] of [T, D, N, H]: each row's last step in its direction; zero for an empty row."""
    result = np.zeros(array.shape[1:])
    for d in range(case.num_directions):
        reverse = case.attributes.get("direction") == "reverse" or d == 1
        for n, length in enumerate([case.T] * case.N if case.lens is None else case.lens):
            if length:
                result[d, n] = array[0 if reverse else length - 1, d, n]
    return result
