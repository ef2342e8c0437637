"""What must hold of any recurrent operator, whatever its numbers: on drawn cases of ONNX's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pyrnnx.testing import reference, strategies
from pyrnnx.testing.cases import OPERATORS, Case, make_arrays

TOLERANCE = 1e-12  # the same sums in products of other sizes
PER_DIRECTION = ("W", "R", "B", "P", "initial_h", "initial_c")  # with layout 0 their first axis is of directions
each_operator = pytest.mark.parametrize("operator", OPERATORS)
a_few = settings(max_examples=40)


def drawn(data: st.DataObject, operator: str, *, plain: bool = False, **changes: Any) -> tuple[Case, dict[str, Any]]:
    """A case in float64 with layout 0, and its arrays; `plain`: with the default activations, and no clip."""
    case = data.draw(strategies.cases(operator, dtypes=("float64",), layouts=(0,)))
    changed = replace(case, attributes={**case.attributes, **changes})
    own = changed.attributes
    if plain:
        own = {name: value for name, value in own.items() if name != "clip" and not name.startswith("activation")}
    elif changed.num_directions != case.num_directions:
        own = {name: value for name, value in own.items() if not name.startswith("activation")}
        own |= data.draw(strategies.activations(operator, changed.num_directions))
    case = replace(case, attributes=own)
    arrays = make_arrays(case)
    assume(not strategies.hangs_on_rounding(case, arrays))
    return case, arrays


def run(case: Case, arrays: dict[str, Any], **changes: Any) -> tuple[Any, ...]:
    return reference.run(case.operator, **arrays, **{**case.attributes, **changes})


def assert_same(found: Any, wanted: Any) -> None:
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        scale = max(1.0, np.abs(other).max(initial=0))  # LeakyRelu and others let numbers grow
        np.testing.assert_allclose(one, other, rtol=0, atol=TOLERANCE * scale)


def lens_of(case: Case) -> Any:
    return np.full(case.N, case.T) if case.lens is None else np.array(case.lens, int)


NAMES = {"names": "activations", "alphas": "activation_alpha", "betas": "activation_beta"}


@each_operator
@a_few
@given(data=st.data())
def test_both_directions_are_one_forward_and_one_reverse(operator: str, data: st.DataObject) -> None:
    """Each with its own activations, which take their parameters after those of the functions before them."""
    case, arrays = drawn(data, operator, direction="bidirectional")
    found = run(case, arrays)
    attributes: dict[str, Any] = {key: case.attributes.get(name) for key, name in NAMES.items()}
    for d, functions in enumerate(reference.resolve_activations(operator, 2, **attributes)):
        changes = {
            "direction": ("forward", "reverse")[d],
            "activations": [one.name for one in functions],
            "activation_alpha": [one.alpha for one in functions if one.name in reference.ALPHA],
            "activation_beta": [one.beta for one in functions if one.name in reference.BETA],
        }
        own = {name: a[d : d + 1] if name in PER_DIRECTION else a for name, a in arrays.items()}
        assert_same([found[0][:, d : d + 1], *(last[d : d + 1] for last in found[1:])], run(case, own, **changes))


@each_operator
@a_few
@given(data=st.data())
def test_a_sequence_in_two_parts(operator: str, data: st.DataObject) -> None:
    """The states after the first part are the initial ones of the second."""
    case, arrays = drawn(data, operator, direction="forward")
    Y, *last = run(case, arrays)
    k = data.draw(st.integers(0, case.T))
    lens, X = lens_of(case), arrays.pop("X")
    first = run(case, {**arrays, "X": X[:k], "sequence_lens": np.minimum(lens, k)})
    names = ("initial_h", "initial_c")[: len(last)]
    begun = (np.minimum(lens, k) > 0)[:, np.newaxis]  # before its first step a row has its initial state
    states = {name: np.where(begun, one, arrays.get(name, 0.0)) for name, one in zip(names, first[1:], strict=True)}
    rest = {"sequence_lens": np.maximum(lens - k, 0), **states}
    second = run(case, {**arrays, **rest, "X": X[k:]})
    assert_same([np.concatenate([first[0], second[0]])], [Y])
    goes_on = (lens > k)[:, np.newaxis]
    assert_same([np.where(goes_on, b, a) for a, b in zip(first[1:], second[1:], strict=True)], last)


@each_operator
@a_few
@given(data=st.data())
def test_padding_and_other_rows_have_no_influence(operator: str, data: st.DataObject) -> None:
    case, arrays = drawn(data, operator)
    wanted = run(case, arrays)
    spoilt = {name: a.copy() for name, a in arrays.items()}
    lens = lens_of(case)
    for n, length in enumerate(lens):
        spoilt["X"][length:, n] = np.nan
    for one, other in zip(run(case, spoilt), wanted, strict=True):
        np.testing.assert_array_equal(one, other)
    assume(case.N)
    bad = data.draw(st.integers(0, case.N - 1))
    spoilt["X"][:, bad] = np.nan
    for one, other in zip(run(case, spoilt), wanted, strict=True):
        np.testing.assert_array_equal(np.delete(one, bad, -2), np.delete(other, bad, -2))
        if case.I and lens[bad]:
            assert np.isnan(one[..., bad, :]).any()


@each_operator
@a_few
@given(data=st.data())
def test_rows_are_independent(operator: str, data: st.DataObject) -> None:
    case, arrays = drawn(data, operator)
    found = run(case, arrays)
    for n in range(case.N):
        axes = {"X": 1, "initial_h": 1, "initial_c": 1, "sequence_lens": 0}
        own = {name: np.take(a, [n], axes[name]) if name in axes else a for name, a in arrays.items()}
        assert_same([one[..., n : n + 1, :] for one in found], run(case, own))


@each_operator
@a_few
@given(data=st.data())
def test_layout(operator: str, data: st.DataObject) -> None:
    case, arrays = drawn(data, operator, direction="bidirectional")  # so that directions are not rows
    swapped = {name: a.swapaxes(0, 1) if name in ("X", "initial_h", "initial_c") else a for name, a in arrays.items()}
    Y, *last = run(case, swapped, layout=1)
    assert_same([Y.transpose(1, 2, 0, 3), *(one.swapaxes(0, 1) for one in last)], run(case, arrays))


@each_operator
@a_few
@given(data=st.data())
def test_reverse_is_forward_on_reversed_steps(operator: str, data: st.DataObject) -> None:
    case, arrays = drawn(data, operator, direction="reverse")
    Y, *last = run(case, arrays)
    backwards = arrays["X"].copy()
    for n, length in enumerate(lens_of(case)):
        backwards[:length, n] = arrays["X"][:length, n][::-1]
    forward, *other = run(case, {**arrays, "X": backwards}, direction="forward")
    for n, length in enumerate(lens_of(case)):
        assert_same([Y[:length, :, n]], [forward[:length, :, n][::-1]])
    assert_same(last, other)


@each_operator
@a_few
@given(data=st.data())
def test_hidden_units_in_another_order(operator: str, data: st.DataObject) -> None:
    case, arrays = drawn(data, operator)
    order = np.array(data.draw(st.permutations(range(case.H))))

    def permuted(a: Any, axis: int) -> Any:
        """Each block of H along the axis in another order."""
        blocks = np.split(a, a.shape[axis] // case.H, axis)
        return np.concatenate([np.take(one, order, axis) for one in blocks], axis)

    own = {name: permuted(a, 1) if name in ("W", "R", "B", "P") else a for name, a in arrays.items()}
    own["R"] = permuted(own["R"], 2)
    own |= {name: permuted(arrays[name], 2) for name in ("initial_h", "initial_c") if name in arrays}
    assert_same(run(case, own), [np.take(one, order, -1) for one in run(case, arrays)])


@each_operator
@a_few
@given(data=st.data())
def test_what_is_absent_is_its_default(operator: str, data: st.DataObject) -> None:
    case, arrays = drawn(data, operator)
    shapes = case.shapes()
    names = {"B", "initial_h"} | ({"initial_c", "P"} if operator == "LSTM" else set())
    zeros = {name: np.zeros(shapes[name]) for name in names}
    everything = {"sequence_lens": np.full(case.N, case.T), **zeros, **arrays}
    assert_same(run(case, everything, clip=case.attributes.get("clip", np.inf)), run(case, arrays))


@a_few
@given(data=st.data())
def test_a_bias_is_the_weight_of_a_one(data: st.DataObject) -> None:
    operator = data.draw(st.sampled_from(OPERATORS))
    case, arrays = drawn(data, operator)
    assume("B" in arrays and not case.attributes.get("linear_before_reset"))
    Wb, Rb = np.split(arrays["B"], 2, axis=1)
    own = {name: a for name, a in arrays.items() if name != "B"}
    own["X"] = np.concatenate([arrays["X"], np.ones((case.T, case.N, 1))], axis=2)
    own["W"] = np.concatenate([arrays["W"], (Wb + Rb)[:, :, np.newaxis]], axis=2)
    assert_same(run(case, own), run(case, arrays))


# Between operators


def gates_of(a: Any, order: str) -> dict[str, Any]:
    return dict(zip(order, np.split(a, len(order), axis=1), strict=True))


@a_few
@given(data=st.data())
@pytest.mark.parametrize("coupled_gate", ["f", "i"])
def test_input_forget_is_the_other_gate_negated(coupled_gate: str, data: st.DataObject) -> None:
    """1 - sigmoid(x) = sigmoid(-x): the same numbers from an LSTM without it."""
    case, arrays = drawn(data, "LSTM", plain=True, input_forget=1)
    case = replace(case, attributes={**case.attributes, "clip": 0.75})  # which bounds both ways alike
    other = "i" if coupled_gate == "f" else "f"
    own = dict(arrays)
    for name, order in {"W": "iofc", "R": "iofc", "P": "iof"}.items():
        if name in arrays:
            blocks = gates_of(arrays[name], order)
            own[name] = np.concatenate(list((blocks | {coupled_gate: -blocks[other]}).values()), axis=1)
    if "B" in arrays:
        halves = [gates_of(half, "iofc") for half in np.split(arrays["B"], 2, axis=1)]
        negated = [[*(half | {coupled_gate: -half[other]}).values()] for half in halves]
        own["B"] = np.concatenate([*negated[0], *negated[1]], axis=1)
    assert_same(run(case, arrays, coupled_gate=coupled_gate), run(case, own, input_forget=0))


@a_few
@given(data=st.data())
def test_linear_before_reset_is_the_same_for_a_diagonal(data: st.DataObject) -> None:
    """(r (.) h)*R = r (.) (h*R) if R is diagonal and Rb is zero."""
    case, arrays = drawn(data, "GRU", linear_before_reset=1)
    arrays["R"] = arrays["R"] * np.tile(np.eye(case.H), (3, 1))
    if "B" in arrays:
        arrays["B"][:, -case.H :] = 0
    assert_same(run(case, arrays), run(case, arrays, linear_before_reset=0))


@a_few
@given(data=st.data())
def test_an_lstm_of_open_gates_is_an_rnn(data: st.DataObject) -> None:
    """i = 1, f = 0, o = 1 and h the identity: Ht = g(Xt*Wc + Ht-1*Rc + bias)."""
    case, arrays = drawn(data, "RNN", plain=True)
    attributes = case.attributes
    D, H = case.num_directions, case.H
    large = np.concatenate([np.full((D, 2 * H), 1e3), np.full((D, H), -1e3)], axis=1)  # of i, o and f
    halves = np.split(arrays.get("B", np.zeros((D, 2 * H))), 2, axis=1)
    gates = {name: np.zeros((D, 3 * H, arrays[name].shape[2])) for name in "WR"}
    own = {name: np.concatenate([gates[name], a], axis=1) if name in gates else a for name, a in arrays.items()}
    own["B"] = np.concatenate([large, halves[0], np.zeros((D, 3 * H)), halves[1]], axis=1)
    found = reference.run("LSTM", **own, **attributes, activations=["Sigmoid", "Tanh", "Affine"] * D)
    assert_same(found[:2], reference.run("RNN", **arrays, **attributes))


@a_few
@given(data=st.data())
def test_a_gru_that_always_updates_is_an_rnn(data: st.DataObject) -> None:
    """z = 0 and r = 1: Ht = ht, of either order of reset and product."""
    case, arrays = drawn(data, "RNN", plain=True)
    attributes = case.attributes
    D, H = case.num_directions, case.H
    large = np.concatenate([np.full((D, H), -1e3), np.full((D, H), 1e3)], axis=1)  # of z and r
    halves = np.split(arrays.get("B", np.zeros((D, 2 * H))), 2, axis=1)
    gates = {name: np.zeros((D, 2 * H, arrays[name].shape[2])) for name in "WR"}
    own = {name: np.concatenate([gates[name], a], axis=1) if name in gates else a for name, a in arrays.items()}
    own["B"] = np.concatenate([large, halves[0], np.zeros((D, 2 * H)), halves[1]], axis=1)
    wanted = reference.run("RNN", **arrays, **attributes)
    for linear in (0, 1):
        assert_same(reference.run("GRU", **own, **attributes, linear_before_reset=linear), wanted)
