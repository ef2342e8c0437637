"""assert_same of a layer and a function that is wrong in single numbers: the exact place, and who is right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from layers import random_layer, random_weights
from same_messages import message

from pyrnnx import Activation, Layer, RecurrentOp
from pyrnnx.frontends.onnx import lstm
from pyrnnx.op import CELLS
from pyrnnx.testing import assert_same
from pyrnnx.testing.numbers import Array

T, N, I, H = 5, 3, 4, 6
OP = RecurrentOp("LSTM", H)
WEIGHTS: Any = random_weights(OP, I)
LAYER = Layer(OP, **WEIGHTS)
each_cell = pytest.mark.parametrize("cell", CELLS)


PLACES = [("forward", 3, 0, 1, 4, ""), ("reverse", 2, 0, 0, 5, "step 2"), ("bidirectional", 0, 1, 1, 0, "step 3")]
VALUES = {"a number": 7.0, "NaN": np.nan, "infinity": np.inf}


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize(("direction", "t", "d", "n", "u", "step"), PLACES, ids=str)
@each_cell
def test_one_number(cell: str, direction: Any, t: int, d: int, n: int, u: int, step: str, value: str) -> None:
    layer = random_layer(RecurrentOp(cell, H, direction), I)

    def wrong(X: Array, lens: Array, initial_h: Array) -> Any:
        results = layer(X, lens, initial_h)
        results[0][t, d, n, u] = VALUES[value]
        return results

    told = message(layer, wrong, inputs={"sequence_lens": [5, 4, 2]})
    way = "reverse" if direction == "reverse" or d else "forward"
    assert "Y: 1 of" in told
    assert f"Y at time step {t}, direction {d} ({way}), row {n}, unit {u}" in told
    assert f"b {VALUES[value]:g} Y[{t}, {d}, {n}, {u}] oracle" in told
    assert (f"which is {step} of that direction" in told) == bool(step)
    assert "b is away from the oracle, a is not." in told


def test_one_row_one_unit_one_step() -> None:
    layer = random_layer(RecurrentOp("GRU", H), I)

    def function(**change: slice | int) -> Any:
        place = tuple(change.get(axis, slice(None)) for axis in "TDNH")

        def wrong(X: Array) -> Any:
            Y, Y_h = layer(X)
            Y[place] += 1
            return Y, Y_h

        return wrong

    assert "Y: 30 of 90" in (told := message(layer, function(N=1)))
    assert "Y at time step 0, direction 0 (forward), row 1, unit 0" in told
    assert "Y: 15 of 90" in (told := message(layer, function(H=4)))
    assert "Y at time step 0, direction 0 (forward), row 0, unit 4" in told
    assert "Y: 18 of 90" in (told := message(layer, function(T=3)))
    assert "Y at time step 3, direction 0 (forward), row 0, unit 0" in told


def test_padding_comes_last() -> None:
    layer = random_layer(RecurrentOp("RNN", H), I)

    def wrong(X: Array, lens: Array) -> Any:
        Y, Y_h = layer(X, lens)
        Y[2:, 0, 1] = 9
        return Y, Y_h

    told = message(layer, wrong, inputs={"sequence_lens": [5, 2, 3]})
    assert "Y at time step 2, direction 0 (forward), row 1, unit 0, beyond the length of that row, 2" in told
    assert "oracle 0 b is away" in told


def test_nan_and_infinities_agree_with_themselves() -> None:
    X = np.ones((T, N, I), "f4")
    X[2, 1, 0] = np.nan
    assert_same(LAYER, lambda X: lstm(X, **WEIGHTS), inputs={"X": X})
    op = RecurrentOp("RNN", H, activations=((Activation("Affine", 1, 0),),))
    layer = Layer(op, np.full((1, H, I), 3e38, "f4"), np.zeros((1, H, H), "f4"))
    results = [np.full(shape, np.inf, "f4") for shape in ((1, 1, N, H), (1, N, H))]
    assert_same(layer, lambda X: results, inputs={"X": np.ones((1, N, I))})
    results[1][0, 0, 3] *= -1
    told = message(layer, lambda X: results, inputs={"X": np.ones((1, N, I))})
    assert "Y_h: 1 of 18" in told
    assert "a inf Y_h[0, 0, 3] b -inf Y_h[0, 0, 3] oracle inf b is away from the oracle, a is not." in told
