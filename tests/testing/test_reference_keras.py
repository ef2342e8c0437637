"""Keras' layers as a witness: their formulas, written out from Keras' documentation for one row and one step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from keras_weights import LAYERS, run_keras

from pyrnnx.testing import reference

TOLERANCE = 1e-12  # float64: sums in another order, over 6 steps
T, N, I, U = 6, 4, 3, 5
LENS = (6, 4, 0, 1)
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
    wanted = run_keras(step, X, initial, (kernel, recurrent, bias), LENS, direction == "reverse")

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
