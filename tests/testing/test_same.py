"""assert_same of two layers: equal layers pass, and a planted difference is reported with its exact position."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from layers import random_layer, random_weights
from rows import each_row
from same_messages import message

from pyrnnx import (
    CANONICAL,
    ONNX_LAYOUTS,
    OPENVINO_SEQUENCE,
    Activation,
    ArgumentError,
    Convention,
    Direction,
    Layer,
    RecurrentOp,
)
from pyrnnx.operator.conventions import convert_weights, rearrange
from pyrnnx.operator.op import CELLS, CellName
from pyrnnx.testing import assert_same
from pyrnnx.testing.numbers import Array

T, N, I, H = 5, 3, 4, 6
GATES = [(cell, gate) for cell in CELLS for gate in CELLS[cell].gates]
CONVENTIONS = (*ONNX_LAYOUTS, OPENVINO_SEQUENCE)


def altered(weights: Mapping[str, Array], name: str, row: int) -> Any:
    """Return a layer with one changed number in a weight's last direction."""
    copies = {key: array.copy() for key, array in weights.items()}
    changed = copies[name][-1, row]
    copies[name][-1, row] = changed + 0.5 if changed.ndim == 0 else changed + 0.5 * np.eye(len(changed))[1]
    return copies


def inputs(lens: tuple[int, ...] = (5, 2, 4), D: int = 1, cell: str = "LSTM") -> dict[str, Array]:
    rng = np.random.default_rng(3)
    arrays: dict[str, Array] = {
        "X": rng.normal(size=(T, N, I)).astype("f4"),
        "sequence_lens": np.array(lens, "i4"),
        "initial_h": rng.uniform(0.5, 1, (D, N, H)).astype("f4"),
    }
    return arrays | ({"initial_c": rng.uniform(0.5, 1, (D, N, H)).astype("f4")} if cell == "LSTM" else {})


def first_apart(a: Array, b: Array, lens: tuple[int, ...], reverse: tuple[bool, ...]) -> tuple[int, ...]:
    """Return the index of the first different number of Y [T, D, N, H] in the order of computation."""
    found = []
    for t, d, n, u in np.argwhere(np.abs(a - b) > 1e-5).tolist():
        order = lens[n] - 1 - t if reverse[d] else t
        found.append((order, d, n, t, u))
    _, d, n, t, u = min(found)
    return t, d, n, u


@each_row(("dtype", "other"), [("f8", "f8"), ("f4", "f8"), ("f2", "f4"), ("f2", "f8"), ("f2", "f2")])
def test_default_tolerances_are_those_of_the_coarser_dtype(dtype: str, other: str) -> None:
    op = RecurrentOp("GRU", H)
    weights: Any = random_weights(op, I, "f2")  # exact in all of them
    a, b = (Layer(op, **{name: array.astype(one) for name, array in weights.items()}) for one in (dtype, other))
    assert_same(a, b)
    if dtype != other:
        told = message(a, b, atol=1e-12)
        assert f"dtype {a.dtype} {b.dtype}" in told
        assert f"{a.dtype} Y[" in told
        assert f"{b.dtype} Y[" in told


def test_tolerances_that_are_given() -> None:
    op = RecurrentOp("RNN", H, activations=((Activation("Affine", 1, 0),),))
    W, R = np.ones((1, H, I), "f4"), np.zeros((1, H, H), "f4")
    a, b = Layer(op, W, R), Layer(op, W * np.float32(1.01), R)
    X = {"X": np.full((T, N, I), 25, "f4")}
    assert_same(a, b, inputs=X, atol=1.01)
    assert_same(a, b, inputs=X, rtol=0.01, atol=0.001)
    assert "apart by more than atol 0.99;" in message(a, b, inputs=X, atol=0.99)
    assert "apart by more than atol 0, rtol 0.009;" in message(a, b, inputs=X, atol=0, rtol=0.009)
    assert "apart by more than atol 1e-05, rtol 1e-05;" in message(a, b, inputs=X)


# Planted differences


@each_row("direction", ["bidirectional", "forward"])
@each_row("name", ["W", "Rb"])
@each_row(("cell", "gate"), GATES)
def test_each_gate_of_each_weight(cell: CellName, gate: str, name: str, direction: Any) -> None:
    op = RecurrentOp(cell, H, direction)
    unit, lens = 3, (5, 2, 4)
    weights: Any = random_weights(op, I)
    gates = CELLS[cell].gates
    row = (gates.index(gate) + (len(gates) if name == "Rb" else 0)) * H + unit
    layers = [Layer(op, **one) for one in (weights, altered(weights, name[0] if "b" not in name else "B", row))]
    given = inputs(lens, op.num_directions, cell)
    told = message(*layers, inputs=given)
    backward = direction != "forward"
    assert f"{name} {'reverse' if backward else 'forward'}: {gate} 0.5" in told
    assert f"first gate apart: {gate}_in at step " in told
    (a, *_), (b, *_) = (layer(**given) for layer in layers)
    t, d, n, u = first_apart(a, b, lens, op.direction.reversed)
    place = f"Y at time step {t}, direction {d} ({'reverse' if backward else 'forward'}), row {n}, unit {u}"
    assert place in told
    assert u == unit or gate != "o"
    index = f"Y[{t}, {d}, {n}, {u}]"
    assert f"a {a[t, d, n, u]:.9g} {index} b {b[t, d, n, u]:.9g} {index}" in told
    assert ("which is step" in told) == backward
    assert "The two are not the same layer: by their weights and attributes, the oracle gives other numbers." in told


@each_row("first", CONVENTIONS, ids=lambda one: one.name)
@each_row("second", CONVENTIONS, ids=lambda one: one.name)
def test_indices_are_those_of_each_convention(first: Convention, second: Convention) -> None:
    op = RecurrentOp("LSTM", H, Direction.BIDIRECTIONAL)
    weights: Any = random_weights(op, I, exact_bias=True)
    other = altered(weights, "R", 1 * H + 3)  # gate o
    layers = []
    for convention, one in ((first, weights), (second, other)):
        arranged: dict[str, Any] = convert_weights(op, one, CANONICAL, convention)
        layers.append(Layer(op, **arranged, convention=convention))
    given = inputs(D=2)
    own = {
        first.name_of(name): rearrange(array, CANONICAL.axes_of(name), first.axes_of(name))
        for name, array in given.items()
    }
    told = message(*layers, inputs=own)
    letters = {"T": 4, "D": 1, "N": 0, "H": 3}
    assert "Y at time step 4, direction 1 (reverse), row 0, unit 3, which is step 0 of that direction" in told
    places = re.findall(r" ([ab]) \S+ (Y\[.*?\])", told)
    indices = [", ".join(str(letters[axis]) for axis in one.axes_of("Y")) for one in (first, second)]
    assert places == [(letter, f"Y[{index}]") for letter, index in zip("ab", indices, strict=True)]
    assert ("gate order i, o, f, c f, i, c, o" in told) == (
        first is not OPENVINO_SEQUENCE and second is OPENVINO_SEQUENCE
    )
    assert ("axes of Y" in told) == (first.axes != second.axes)
    assert told.index("operators") < told.index("weights") < told.index("apart by more than") < told.index("first gate")


def test_a_last_state_has_no_time_step() -> None:
    op = RecurrentOp("LSTM", H)
    weights: Any = random_weights(op, I)
    a, b = Layer(op, **weights), Layer(op, **weights, convention=ONNX_LAYOUTS[1])

    def late(X: Array, sequence_lens: Array, initial_h: Array, initial_c: Array) -> tuple[Array, ...]:
        Y, Y_h, Y_c = b(X, sequence_lens, initial_h, initial_c)
        Y_c = Y_c.copy()
        Y_c[2, 0, 4] += 1
        return Y, Y_h, Y_c

    told = message(b, late)
    assert "Y_c: 1 of 18 numbers are apart by more than atol" in told
    assert "Y_c at direction 0 (forward), row 2, unit 4 a" in told
    assert told.count("Y_c[2, 0, 4]") == 2
    assert_same(a, b)


# The implementation that is right


def test_the_one_that_is_away_from_the_oracle_is_told() -> None:
    op = RecurrentOp("LSTM", H)
    weights: Any = random_weights(op, I)
    exact, rounded = Layer(op, **weights), Layer(op, **weights, weight_dtype="int8")
    told = message(exact, rounded)
    assert "weights: the same" in told
    assert "By weights and attributes the two are the same layer: b is away from the oracle, a is not." in told
    assert "no gate is apart in exact arithmetic" in told
    both = message(rounded, Layer(op, **weights, weight_dtype="bfloat16"))
    assert "the same layer: Both are away from the oracle." in both


# Weights


def test_a_layer_without_weights_takes_the_other_ones() -> None:
    from pyrnnx.frontends.openvino import read_layer, write_layer

    op = RecurrentOp("GRU", H)
    bound = random_layer(op, I, convention=OPENVINO_SEQUENCE)
    unbound = read_layer(write_layer(bound, id=1))
    assert_same(unbound, bound)
    assert_same(bound, unbound)
    assert_same(unbound, unbound)
    assert_same(
        unbound,
        random_layer(op, I, seed=4),
        inputs=dict(random_layer(op, I, convention=OPENVINO_SEQUENCE, seed=4).weights),
    )
    with pytest.raises(ArgumentError, match=r"inputs has W; .* has its weights"):
        assert_same(bound, bound, inputs={"W": bound.weights["W"]})
    with pytest.raises(ArgumentError, match=r"inputs has W, but not R; expected both W and R"):
        assert_same(unbound, bound, inputs={"W": bound.weights["W"]})
