"""Errors of from_weights and from_layer without Keras."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from keras_weights import random_weights
from rows import each_row

from pyrnnx import ArgumentError, PyrnnxError, UnsupportedError
from pyrnnx.frontends.keras import from_layer, from_weights

LSTM = random_weights("LSTM", 3, 5)
AFTER = random_weights("GRU reset_after=True", 3, 5)
BEFORE = random_weights("GRU reset_after=False", 3, 5)
SIMPLE = random_weights("SimpleRNN", 3, 5)
BOTH: dict[str, Any] = {"direction": "bidirectional"}


def changed(weights: list[Any], place: int, value: Any) -> list[Any]:
    return [value if k == place else array for k, array in enumerate(weights)]


A, U = ArgumentError, UnsupportedError
ARRAYS = "expected a list of arrays"
CASES: list[tuple[Any, dict[str, Any], type[PyrnnxError], str]] = [
    (None, {}, A, f"from_weights: weights is None; {ARRAYS}, as get_weights() returns"),
    (LSTM[:1], {}, A, "1 arrays were given; expected 3, or without biases 2, for direction 'forward'"),
    (LSTM, BOTH, A, "3 arrays were given; expected 6, or without biases 4, for direction"),
    (changed(LSTM, 1, None), {}, A, "weights[1] is missing; it is required"),
    (changed(LSTM, 0, np.ones((3, 20), int)), {}, A, "weights[0] has dtype int64; expected"),
    (
        changed(LSTM, 2, np.ones(20, "f4")),
        {},
        A,
        "weights[2] has dtype float32; expected float64, the dtype of weights[0]",
    ),
    # shapes
    (
        changed(LSTM, 1, np.ones((5, 10))),
        {},
        A,
        "recurrent_kernel (weights[1]) has shape (5, 10); expected (units, G*units), with G = 1 for a SimpleRNN",
    ),
    (changed(LSTM, 1, np.ones((0, 0))), {}, A, "(weights[1]) has shape (0, 0)"),
    (LSTM, {"operator": "GRU"}, A, "recurrent_kernel (weights[1]) has shape (5, 20); expected (units, 3*units)"),
    (changed(LSTM, 0, np.ones((3, 15))), {}, A, "kernel has shape (3, 15); expected (3, 20)"),
    (changed(LSTM, 0, np.ones(20)), {}, A, "(20,); expected (input_size, 20)"),
    (
        changed(AFTER, 2, np.ones((3, 15))),
        {},
        A,
        "bias has shape (3, 15); expected (2, 15) for a GRU with reset_after=True",
    ),
    (BEFORE, {"reset_after": True}, A, "bias has shape (15,); expected (2, 15) for a GRU with reset_after=True"),
    (LSTM + random_weights("LSTM", 4, 5), BOTH, A, "shape (4, 20); expected (3, 20)"),
    # options
    (LSTM, {"operator": "RNN"}, A, "operator is 'RNN'; expected one of 'SimpleRNN', 'GRU', 'LSTM'"),
    (LSTM, {"direction": "both"}, A, "direction is 'both'; expected one of forward, reverse"),
    (AFTER, {"reset_after": 1}, A, "reset_after is 1; expected True, False or None"),
    (LSTM, {"reset_after": True}, A, "reset_after is True; only a GRU has it"),
    (LSTM, {"activation": "gelu"}, U, "activation is 'gelu'; expected one of tanh, sigmoid"),
    (SIMPLE, {"recurrent_activation": np.tanh}, A, "recurrent_activation is <ufunc 'tanh'>; expected one of tanh"),
    (LSTM, {"name": "own", "direction": ""}, A, "from_weights: 'own': direction is ''"),
]


@each_row(("weights", "options", "error", "message"), CASES, ids=[row[-1] for row in CASES])
def test_rejected(weights: Any, options: dict[str, Any], error: type[PyrnnxError], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)) as caught:
        from_weights(weights, **options)
    assert type(caught.value) is error
    assert "\n" not in str(caught.value)


@each_row("layer", ["LSTM", object()], ids=lambda one: type(one).__name__)
def test_what_is_no_layer_of_keras(layer: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^from_layer: '.*' was given; expected one of keras\.layers\.SimpleRNN"):
        from_layer(layer)
