"""The first step without an initial state: the product with R is skipped if, and only if, it is zero."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from layers import random_inputs, random_weights
from rows import each_row

from pyrnnx import Activation, Direction, Layer, RecurrentOp

OPS = {
    "RNN": RecurrentOp("RNN", 19, direction=Direction.BIDIRECTIONAL),
    "GRU": RecurrentOp("GRU", 19, direction=Direction.BIDIRECTIONAL),
    "GRU, linear": RecurrentOp("GRU", 19, direction=Direction.REVERSE, linear_before_reset=True),
    "LSTM": RecurrentOp("LSTM", 19, direction=Direction.BIDIRECTIONAL),
    "LSTM, coupled": RecurrentOp("LSTM", 19, input_forget=True),
}
STATES = ("initial_h", "initial_c")


def call(op: RecurrentOp, weights: dict[str, Any], *, steps: int = 3, zeros: bool) -> tuple[np.ndarray, ...]:
    inputs = random_inputs(op, (steps, 5, 7))
    states = {name: np.zeros_like(inputs[name]) if zeros else None for name in STATES if name in inputs}
    outputs: tuple[np.ndarray, ...] = Layer(op, **weights)(**inputs | states)
    return outputs


@each_row("steps", [1, 3])
@each_row("name", OPS)
def test_no_state_is_a_state_of_zeros(name: str, steps: int) -> None:
    weights = random_weights(OPS[name], 7)
    for given, none in zip(
        *(call(OPS[name], weights, steps=steps, zeros=zeros) for zeros in (True, False)), strict=True
    ):
        np.testing.assert_array_equal(none.view(np.uint32), given.view(np.uint32))


@each_row("bad", [np.inf, -np.inf, np.nan, 3e38])
@each_row("name", OPS)
def test_zero_times_what_is_not_finite_stays_nan(name: str, bad: float) -> None:
    """3e38 is finite: there the product is zero, too."""
    weights = random_weights(OPS[name], 7)
    weights["R"][0, 3, 2] = bad
    given, none = (call(OPS[name], weights, zeros=zeros) for zeros in (True, False))
    assert np.isnan(none[0]).any() == (bad != 3e38)
    for a, b in zip(given, none, strict=True):
        np.testing.assert_array_equal(b, a)


def test_nan_of_a_reset_gate_passes_through_the_product() -> None:
    """r (.) 0 is NaN where r is, and a sum with it in every unit."""
    op = OPS["GRU"]
    weights = random_weights(op, 7)
    weights["B"][0, 19 + 4] = np.nan  # Wb of gate r, unit 4
    given, none = (call(op, weights, zeros=zeros) for zeros in (True, False))
    assert np.isnan(none[0][0, 0]).any(axis=0).sum() == 19
    for a, b in zip(given, none, strict=True):
        np.testing.assert_array_equal(b, a)


@each_row("function", ["Relu", "Tanh"])
@each_row("name", OPS)
def test_signed_zeros_of_a_row_depend_on_no_other_row_nor_on_who_gives_the_state(name: str, function: str) -> None:
    op = OPS[name]
    functions = (Activation(function),) * len(op.activations[0])
    op = replace(op, activations=(functions,) * op.num_directions)
    weights: Any = {key: -np.abs(a) for key, a in random_weights(op, 7).items() if key in "WR"}
    weights["B"] = np.full((op.num_directions, 2 * len(weights["W"][0])), -0.0, np.float32)
    layer = Layer(op, **weights)
    X = np.zeros((1, 2, 7), np.float32)
    zeros = [np.zeros((op.num_directions, 2, op.hidden_size), np.float32)] * (2 if op.has_cell_state else 1)
    first = layer(X)[0][:, :, 0].tobytes()
    assert layer(X, None, *zeros)[0][:, :, 0].tobytes() == first
    X[0, 1] = -np.inf
    assert layer(X)[0][:, :, 0].tobytes() == first
