"""`steps=True`: the values of every step are those that the results are made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyrnnx.testing import reference
from pyrnnx.testing.cases import CASES, Case, make_arrays

CELLS = ("RNN", "GRU", "LSTM")
COMPUTED = [case for case in CASES if case.nan != "row"]  # NaN means here that there is no step
each_case = pytest.mark.parametrize("case", COMPUTED, ids=lambda case: case.name)


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


@each_case
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
    """Of [T, D, N, H], [D, N, H]: each row's last step in its direction; zero of an empty row."""
    result = np.zeros(array.shape[1:])
    for d in range(case.num_directions):
        reverse = case.attributes.get("direction") == "reverse" or d == 1
        for n, length in enumerate([case.T] * case.N if case.lens is None else case.lens):
            if length:
                result[d, n] = array[0 if reverse else length - 1, d, n]
    return result


def before(case: Case, array: Any, initial: Any) -> Any:
    """The state before each step."""
    result = np.full(array.shape, np.nan)
    for d in range(case.num_directions):
        reverse = case.attributes.get("direction") == "reverse" or d == 1
        for n, length in enumerate([case.T] * case.N if case.lens is None else case.lens):
            order = range(length)[::-1] if reverse else range(length)
            for previous, t in zip([None, *order], order, strict=False):
                result[t, d, n] = initial[d, n] if previous is None else array[previous, d, n]
    return result


EQUATIONS = [case for case in COMPUTED if case.T and case.N and "opset" not in case.name]


@pytest.mark.parametrize("case", EQUATIONS, ids=lambda case: case.name)
@np.errstate(invalid="ignore")  # NaN where there is no step
def test_gates_and_states_belong_together(case: Case) -> None:
    """The last equations of each cell, with what came out of the gates."""
    arrays, _, v = run(case)
    zeros = np.zeros((case.num_directions, case.N, case.H))
    given = {name: arrays.get(name, zeros).astype(float) for name in ("initial_h", "initial_c")}
    if case.layout:
        given = {name: a.swapaxes(0, 1) if name in arrays else a for name, a in given.items()}
    per_direction = reference.resolve_activations(
        case.operator,
        case.num_directions,
        names=case.attributes.get("activations"),
        alphas=case.attributes.get("activation_alpha"),
        betas=case.attributes.get("activation_beta"),
    )
    clip = case.attributes.get("clip", np.inf)
    for name, array in v.items():
        assert not name.endswith("_in") or np.nanmax(np.abs(array), initial=0) <= clip
    H_before = before(case, v["H"], given["initial_h"])
    for d, functions in enumerate(per_direction):
        one = {name: array[:, d] for name, array in v.items()}
        function_of = dict(zip({"RNN": "i", "GRU": "zh", "LSTM": "ic"}[case.operator], functions, strict=False))
        function_of |= {"GRU": {"r": functions[0]}, "LSTM": {"o": functions[0], "f": functions[0]}}.get(
            case.operator, {}
        )
        if case.attributes.get("input_forget"):
            del function_of["f"]
            np.testing.assert_array_equal(one["f"], 1 - one["i"])
        for gate, function in function_of.items():
            np.testing.assert_array_equal(one[gate], function(one[f"{gate}_in"]), err_msg=gate)
        if case.operator == "GRU":
            np.testing.assert_array_equal(one["H"], (1 - one["z"]) * one["h"] + one["z"] * H_before[:, d])
        elif case.operator == "LSTM":
            C_before = before(case, v["C"], given["initial_c"])[:, d]
            np.testing.assert_array_equal(one["C"], one["f"] * C_before + one["i"] * one["c"])
            np.testing.assert_array_equal(one["H"], one["o"] * functions[2](one["C"]))
        else:
            np.testing.assert_array_equal(one["H"], one["i"])


def test_layout_does_not_change_the_axes_of_steps() -> None:
    case = next(one for one in CASES if one.name == "LSTM-input_forget=0-bidirectional-layout0-lens")
    arrays = make_arrays(case)
    swapped = {name: a.swapaxes(0, 1) if name in ("X", "initial_h", "initial_c") else a for name, a in arrays.items()}
    values = reference.run("LSTM", **arrays, **case.attributes, steps=True)[-1]
    other = reference.run("LSTM", **swapped, **{**case.attributes, "layout": 1}, steps=True)[-1]
    for name in values:
        np.testing.assert_allclose(values[name], other[name], rtol=0, atol=1e-15, err_msg=name)


def test_steps_of_a_sequence_without_steps() -> None:
    case = next(one for one in CASES if one.name == "GRU-T=0")
    values = reference.run("GRU", **make_arrays(case), **case.attributes, steps=True)[-1]
    assert {name: array.shape for name, array in values.items()} == dict.fromkeys(
        reference.STEP_VALUES["GRU"], (0, 2, case.N, case.H)
    )
