"""First differences of outputs and gates: faults planted in a step, row, direction, unit and gate are found there."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest
from layers import random_inputs, random_layer, random_weights
from rows import each_row

from pyrnnx import OPENVINO_SEQUENCE, Activation, Comparison, Layer, RecurrentOp, compare
from pyrnnx.comparison import oracle, steps
from pyrnnx.comparison.steps import Place, output_profile
from pyrnnx.operator.conventions import OPENVINO_SEQUENCE_1
from pyrnnx.operator.op import CELLS, CellName
from pyrnnx.testing.numbers import Array

T, N, I, H = 7, 3, 4, 6
BOTH = ("forward", "reverse")


def planted(shape: tuple[int, ...], *places: tuple[int, ...]) -> tuple[Array, Array]:
    """Two arrays, that differ by 1, 2, ... in these places."""
    b = np.random.default_rng(0).normal(size=shape)
    a = b.copy()
    for number, place in enumerate(places, 1):
        a[place] += number
    return a, b


# Differing elements of Y [T, D, N, H], lengths of the rows, and the first: step, direction, row, unit.
FIRST: dict[str, tuple[list[tuple[int, ...]], list[int], tuple[int, str, int, int] | None]] = {
    "none": ([], [T] * N, None),
    "one": ([(4, 0, 2, 5)], [T] * N, (4, "forward", 2, 5)),
    "the earlier step": ([(4, 0, 0, 0), (3, 0, 2, 5)], [T] * N, (3, "forward", 2, 5)),
    "reverse: the later step": ([(4, 1, 0, 0), (3, 1, 2, 5)], [T] * N, (4, "reverse", 0, 0)),
    "reverse: nearer to the end of its row": ([(4, 1, 0, 0), (3, 1, 2, 5)], [T, T, 4], (3, "reverse", 2, 5)),
    "what runs first in either direction": ([(2, 0, 0, 0), (6, 1, 1, 1)], [T] * N, (6, "reverse", 1, 1)),
    "forward before reverse": ([(0, 0, 2, 3), (6, 1, 1, 1)], [T] * N, (0, "forward", 2, 3)),
    "rows, then units": ([(1, 0, 2, 0), (1, 0, 1, 5), (1, 0, 1, 4)], [T] * N, (1, "forward", 1, 4)),
    "padding comes last": ([(6, 1, 2, 0), (1, 1, 2, 0)], [T, T, 4], (1, "reverse", 2, 0)),
}


@each_row("name", FIRST)
def test_first_place(name: str) -> None:
    places, lengths, expected = FIRST[name]
    a, b = planted((T, 2, N, H), *places)
    profile = output_profile("Y", a, b, BOTH, np.array(lengths))
    if expected is None:
        assert profile.first is None
        assert profile.largest == 0
    else:
        step, direction, row, unit = expected
        place = step, BOTH.index(direction), row, unit
        assert profile.first == Place("Y", step, direction, row, unit, a[place], b[place])
        assert profile.largest == pytest.approx(len(places))
    by_step = np.abs(a - b).max(axis=(2, 3))
    assert max(lengths) == T  # where none ran, there is NaN
    np.testing.assert_array_equal(profile.by_step, by_step)


def test_tolerance() -> None:
    b = np.ones((T, 1, N, H))
    a = b.copy()
    a[2, 0, 1, 3], a[5, 0, 2, 4] = 1 + 1.9e-5, 1 + 2.1e-5  # atol and rtol are 1e-5
    for step, tolerance in ((5, {}), (2, {"atol": 1e-6, "rtol": 0.0}), (None, {"atol": 1e-3})):
        first = output_profile("Y", a, b, ("forward",), np.full(N, T), **tolerance).first
        assert (first and first.step) == step


def test_last_states_nan_and_no_rows() -> None:
    a, b = planted((2, N, H), (1, 2, 3))
    profile = output_profile("Y_h", a, b, BOTH, np.full(N, T))
    assert profile.first is not None
    assert (profile.first.step, profile.first.direction, profile.first.row) == (None, "reverse", 2)
    assert "step" not in str(profile.first)
    assert profile.by_step.shape == (1, 2)
    a[0, 1, 1] = np.nan
    profile = output_profile("Y_h", a, b, BOTH, np.full(N, T))
    assert profile.first is not None
    assert math.isnan(profile.first.a)
    assert profile.largest == math.inf
    empty = output_profile("Y", np.zeros((T, 1, 0, H)), np.zeros((T, 1, 0, H)), ("forward",), np.zeros(0, int))
    assert empty.first is None
    assert math.isnan(empty.largest)


# Steps of layers


def fault(op: RecurrentOp, name: str, row: int) -> tuple[Layer, Layer]:
    """A layer, and one with another bias of one unit of one gate: row `row` of W."""
    weights: dict[str, Any] = random_weights(op, I)
    changed = {**weights, name: weights[name].copy()}
    changed[name][-1, row] += 0.5
    return Layer(op, **changed), Layer(op, **weights)


@each_row("direction", ["forward", "reverse", "bidirectional"])
@each_row("cell", CELLS)
def test_gates_name_the_gate_of_a_changed_weight(cell: CellName, direction: Any) -> None:
    op = RecurrentOp(cell, H, direction)
    inputs = random_inputs(op, (T, N, I), lens=[T, 0, 5])
    for k, gate in enumerate(op.gates):
        result = compare(*fault(op, "W", k * H + 2), inputs)
        assert isinstance(result, Comparison)
        first, last = result.first_gate, "forward" if direction == "forward" else "reverse"
        assert first is not None
        when = {"forward": 0, "reverse": T - 1}
        assert (first.name, first.step, first.direction) == (f"{gate}_in", when[last], last)
        assert (first.row, first.unit) == (0, 2)
        assert list(result.gates)[-1] == "H"
        assert not result.gates_note
        assert f"first gate apart: {gate}_in at step {when[last]}, {last}, row 0, unit 2: " in str(result)
        for name, profile in result.gates.items():
            assert profile.by_step.shape == (T, op.num_directions)
            assert np.isfinite(profile.by_step).all(), name


@each_row("direction", ["forward", "reverse", "bidirectional"])
@each_row("cell", CELLS)
def test_gates_are_those_of_the_outputs(cell: CellName, direction: Any) -> None:
    """H of the oracle is Y of the layers, step by step, so that its differences are, too; to rounding of float32."""
    op = RecurrentOp(cell, H, direction)
    result = compare(random_layer(op, I), random_layer(op, I, convention=OPENVINO_SEQUENCE, seed=1))
    np.testing.assert_allclose(result.gates["H"].by_step, result.profiles["Y"].by_step, rtol=0, atol=1e-6)
    first, place = result.gates["H"].first, result.profiles["Y"].first
    assert first is not None
    assert place is not None
    assert [*vars(first).values()][1:5] == [*vars(place).values()][1:5]  # step, direction, row, unit
    assert (first.a, first.b) == pytest.approx((place.a, place.b), abs=1e-6)


def test_an_activation_parts_after_what_goes_into_it() -> None:
    weights: Any = random_weights(RecurrentOp("GRU", H), I)
    elu = RecurrentOp("GRU", H, activations=((Activation("Sigmoid"), Activation("Elu", 0.5)),))
    result = compare(Layer(elu, **weights), Layer(RecurrentOp("GRU", H), **weights))
    assert result.first_gate is not None
    assert (result.first_gate.name, result.first_gate.step) == ("h", 0)
    assert result.gates["h_in"].by_step[0].max() == 0
    assert "weights: the same" in str(result)


def test_gates_that_no_equation_of_onnx_has() -> None:
    leaky = (Activation("LeakyRelu", 0.5), Activation("Tanh"), Activation("Tanh"))
    op = RecurrentOp("LSTM", H, activations=(leaky,), input_forget=True)
    result = compare(random_layer(op, I), random_layer(op, I, convention=OPENVINO_SEQUENCE_1))
    assert not result.gates
    assert "input_forget with activation LeakyRelu" in result.gates_note
    assert f"by gate: {result.gates_note}" in str(result)


def test_layers_that_are_the_same_have_no_gates() -> None:
    op = RecurrentOp("GRU", H)
    result = compare(random_layer(op, I), random_layer(op, I))
    assert not result.gates
    assert result.first_gate is result.first_difference is None
    assert "apart" not in str(result)
    reduced = compare(random_layer(op, I), random_layer(op, I, weight_dtype="int8"))
    assert reduced.first_difference is not None
    assert all(one.first is None for one in reduced.gates.values())
    assert "no gate is apart in exact arithmetic" in str(reduced)
    nothing = compare(
        random_layer(op, I), random_layer(op, I, seed=1), {"X": np.zeros((T, 1, I)), "sequence_lens": [0]}
    )
    assert nothing.gates_note == "there is no step"


def test_the_work_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    op = RecurrentOp("LSTM", H)
    a, b, inputs = random_layer(op, I), random_layer(op, I, seed=1), {"X": random_inputs(op, (T, N, I))["X"]}
    most = oracle.cost(a, inputs)
    for bound, note in ((most, ""), (most - 1, f"{T} steps of {N} rows take too long")):
        monkeypatch.setattr(steps, "MOST_COST", bound)
        result = compare(a, b, inputs)
        assert (bool(result.gates), result.gates_note) == (not note, note)


def test_a_comparison_can_be_copied() -> None:
    result = compare(*fault(RecurrentOp("GRU", H), "R", 0))
    for other in (copy.deepcopy(result), pickle.loads(pickle.dumps(result))):
        assert str(other) == str(result)
