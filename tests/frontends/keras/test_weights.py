"""Arrays of Keras, without Keras, compared with its formulas in NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from keras_weights import random_case, random_inputs, random_weights
from rows import each_row
from torch_weights import assert_close

from pyrnnx import KERAS, KERAS_RESET_AFTER, Activation
from pyrnnx.frontends.keras import from_weights

TOLERANCE = 1e-12  # float64: sums in another order, over 6 steps; values up to 100 of functions without a bound


@each_row("seed", range(48))
def test_random_weights(seed: int) -> None:
    """The results are those of Keras' formulas."""
    case = random_case(seed)
    X, lens, states = random_inputs(case, seed)
    stack, wanted = from_weights(case.weights, **case.options), case.expected(X, lens, states)
    Y, *last = stack(X.swapaxes(0, 1), lens, *states)
    assert stack.batch_first
    scale = max(1.0, *(float(np.abs(one).max()) for one in wanted))
    assert_close([Y.swapaxes(0, 1), *last], wanted, TOLERANCE * scale)


@each_row("kind", ["SimpleRNN", "LSTM", "GRU reset_after=True", "GRU reset_after=False"])
def test_conventions(kind: str) -> None:
    (layer,) = from_weights(random_weights(kind, 3, 5)).layers
    assert layer.convention is (KERAS_RESET_AFTER if "True" in kind else KERAS)
    assert layer.weights["W"].shape == (1, 3, 5 * len(layer.op.gates))


@each_row("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_weights_are_copies_of_their_dtype(dtype: Any) -> None:
    weights = random_weights("GRU reset_after=True", 3, 5, dtype=dtype)
    before = [array.copy() for array in weights]
    (layer,) = from_weights(weights).layers
    assert layer.dtype == dtype
    for name, array, own in zip("WRB", weights, before, strict=True):
        array[:] = 0
        np.testing.assert_array_equal(layer.weights[name].ravel(), own.ravel(), strict=True)


def test_activations_of_pyrnnx_and_none() -> None:
    weights = random_weights("LSTM", 3, 5)
    (layer,) = from_weights(weights, activation=Activation("Elu", 0.5), recurrent_activation=None).layers
    assert layer.op.activations == ((Activation("Affine", 1.0, 0.0), Activation("Elu", 0.5), Activation("Elu", 0.5)),)
    assert from_weights(weights, name="own", weight_dtype=None).name == "own"
