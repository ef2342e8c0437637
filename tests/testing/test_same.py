"""assert_same of two layers: equal layers pass, and a planted difference is reported with its exact position."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from layers import random_layer, random_weights
from rows import each_row
from same_messages import message

from pyrnnx import (
    ONNX_LAYOUTS,
    OPENVINO_SEQUENCE,
    Activation,
    Layer,
    RecurrentOp,
    compare,
)
from pyrnnx.operator.op import CELLS, CellName
from pyrnnx.testing import assert_same
from pyrnnx.testing.numbers import Array

T, N, I, H = 5, 3, 4, 6
GATES = [(cell, gate) for cell in CELLS for gate in CELLS[cell].gates]


def altered(weights: Mapping[str, Array], name: str, row: int) -> Any:
    """Return a layer with one changed number in a weight's last direction."""
    copies = {key: array.copy() for key, array in weights.items()}
    changed = copies[name][-1, row]
    copies[name][-1, row] = changed + 0.5 if changed.ndim == 0 else changed + 0.5 * np.eye(len(changed))[1]
    return copies


@each_row(("dtype", "other"), [("f8", "f8"), ("f4", "f8"), ("f2", "f4"), ("f2", "f8"), ("f2", "f2")])
def test_default_tolerances_are_those_of_the_coarser_dtype(dtype: str, other: str) -> None:
    op = RecurrentOp("GRU", H)
    weights: Any = random_weights(op, I, "f2")  # exact in all of them
    a, b = (Layer(op, **{name: array.astype(one) for name, array in weights.items()}) for one in (dtype, other))
    assert_same(a, b)
    if dtype != other:
        told = message(a, b, atol=1e-12)
        assert f"dtypes: {a.dtype} in a, {b.dtype} in b" in told


def test_tolerances_that_are_given() -> None:
    op = RecurrentOp("RNN", H, activations=((Activation("Affine", 1, 0),),))
    W, R = np.ones((1, H, I), "f4"), np.zeros((1, H, H), "f4")
    a, b = Layer(op, W, R), Layer(op, W * np.float32(1.01), R)
    X = {"X": np.full((T, N, I), 25, "f4")}
    assert_same(a, b, inputs=X, atol=1.01)
    assert_same(a, b, inputs=X, rtol=0.01, atol=0.001)
    assert "apart by more than atol=0.99, rtol=0 " in message(a, b, inputs=X, atol=0.99)
    assert "apart by more than atol=0, rtol=0.009 " in message(a, b, inputs=X, atol=0, rtol=0.009)
    assert "apart by more than atol=1e-05, rtol=1e-05 " in message(a, b, inputs=X)


# Planted differences


@each_row(("cell", "gate"), GATES)
def test_each_gate_of_each_weight(cell: CellName, gate: str) -> None:
    """The message has the lines of `compare`, whose first numbers tests/comparison/test_steps.py checks."""
    op, unit = RecurrentOp(cell, H, "bidirectional"), 3
    weights: Any = random_weights(op, I)
    gates = CELLS[cell].gates
    for name, row in (("W", gates.index(gate)), ("Rb", len(gates) + gates.index(gate))):
        a, b = Layer(op, **weights), Layer(op, **altered(weights, name[0] if "b" not in name else "B", row * H + unit))
        told, comparison = message(a, b), compare(a, b)
        assert f"{name} reverse: {gate} 0.5" in told
        for words in (f"first apart: {comparison.first_difference}", f"first gate apart: {comparison.first_gate}"):
            assert words in told
        assert f"first gate apart: {gate}_in at step " in told
        assert "that step by the oracle: " in told
        assert "not the same layer: by their weights and attributes, the oracle gives other numbers." in told
        parts = ("operators", "weights", "apart by more than", "first apart", "first gate", "by the oracle")
        assert sorted(parts, key=told.index) == [*parts]


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
    assert "Y_c: 1 of 18 numbers are apart by more than atol=" in told
    assert "first apart: Y_c at forward, row 2, unit 4: " in told
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
