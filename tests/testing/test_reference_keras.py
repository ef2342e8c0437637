"""Keras' layers as a witness: their formulas, written out from Keras' documentation for one row and one step.

Keras has kernels [input, gates*units], gates i, f, c, o of an LSTM and z, r, h of a GRU, and one bias, but for a GRU
with reset_after, which has two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from pyrnnx.testing import reference

TOLERANCE = 1e-12  # float64: sums in another order, over 6 steps
T, N, I, U = 6, 4, 3, 5
LENS = (6, 4, 0, 1)
States = tuple[Any, ...]


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def simple_rnn(x: Any, states: States, kernel: Any, recurrent: Any, bias: Any) -> States:
    return (np.tanh(np.dot(x, kernel) + bias + np.dot(states[0], recurrent)),)


def lstm(x: Any, states: States, kernel: Any, recurrent: Any, bias: Any) -> States:
    h, c = states
    i, f, g, o = np.split(np.dot(x, kernel) + np.dot(h, recurrent) + bias, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru_reset_after(x: Any, states: States, kernel: Any, recurrent: Any, bias: Any) -> States:
    (h,) = states
    x_z, x_r, x_h = np.split(np.dot(x, kernel) + bias[0], 3)
    h_z, h_r, h_h = np.split(np.dot(h, recurrent) + bias[1], 3)
    z, r = sigmoid(x_z + h_z), sigmoid(x_r + h_r)
    return (z * h + (1 - z) * np.tanh(x_h + r * h_h),)


def gru_reset_before(x: Any, states: States, kernel: Any, recurrent: Any, bias: Any) -> States:
    (h,) = states
    x_z, x_r, x_h = np.split(np.dot(x, kernel) + bias, 3)
    R_z, R_r, R_h = np.split(recurrent, 3, axis=1)
    z, r = sigmoid(x_z + np.dot(h, R_z)), sigmoid(x_r + np.dot(h, R_r))
    return (z * h + (1 - z) * np.tanh(x_h + np.dot(r * h, R_h)),)


def run_keras(
    step: Callable[..., States], X: Any, initial: Sequence[Any], weights: Sequence[Any], backwards: bool
) -> tuple[Any, ...]:
    """Y [T, N, U] in the order of time, then the last states [N, U]."""
    Y, last = np.zeros((T, N, U)), [np.zeros((N, U)) for _ in initial]
    for n, length in enumerate(LENS):
        states = tuple(one[n] for one in initial)
        for t in sorted(range(length), reverse=backwards):
            states = step(X[t, n], states, *weights)
            Y[t, n] = states[0]
            for k, state in enumerate(states):
                last[k][n] = state
    return (Y, *last)


LAYERS: dict[str, tuple[str, Callable[..., States], dict[str, Any]]] = {
    "SimpleRNN": ("RNN", simple_rnn, {}),
    "LSTM": ("LSTM", lstm, {}),
    "GRU reset_after=True": ("GRU", gru_reset_after, {"linear_before_reset": 1}),
    "GRU reset_after=False": ("GRU", gru_reset_before, {"linear_before_reset": 0}),
}
FROM_KERAS = {"RNN": [0], "GRU": [0, 1, 2], "LSTM": [0, 3, 1, 2]}  # i, f, c, o to i, o, f, c


@pytest.mark.parametrize("direction", ["forward", "reverse"])
@pytest.mark.parametrize("layer", LAYERS)
def test_same_numbers(layer: str, direction: str) -> None:
    cell, step, attributes = LAYERS[layer]
    order = FROM_KERAS[cell]
    G = len(order)
    rng = np.random.default_rng(5)
    X = rng.normal(size=(T, N, I))
    initial = [rng.normal(size=(N, U)) for _ in range(2 if cell == "LSTM" else 1)]
    kernel, recurrent = rng.normal(size=(I, G * U)) / 2, rng.normal(size=(U, G * U)) / 2
    bias = rng.normal(size=(2, G * U) if "True" in layer else G * U)
    wanted = run_keras(step, X, initial, (kernel, recurrent, bias), direction == "reverse")

    def rearranged(a: Any) -> Any:
        """[..., G*U] to [1, G*U, ...] in ONNX's order of gates."""
        blocks = np.split(a, G, axis=-1)
        return np.concatenate([blocks[k] for k in order], axis=-1).T[np.newaxis]

    both = bias if bias.ndim == 2 else np.stack([bias, np.zeros_like(bias)])
    Y, *last = reference.run(
        cell,
        X,
        rearranged(kernel),
        rearranged(recurrent),
        B=np.concatenate([rearranged(one) for one in both], axis=1),
        sequence_lens=LENS,
        **dict(zip(("initial_h", "initial_c"), (one[np.newaxis] for one in initial), strict=False)),
        direction=direction,
        **attributes,
    )
    found = [Y[:, 0], *(one[0] for one in last)]
    for one, other in zip(found, wanted, strict=True):
        assert np.abs(other).max() > 0.1
        np.testing.assert_allclose(one, other, rtol=0, atol=TOLERANCE)
