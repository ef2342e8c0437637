"""What from_weights and from_layer reject without Keras: each with the message that says why."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from keras_weights import random_weights

from pyrnnx import ArgumentError, PyrnnxError, UnsupportedError
from pyrnnx.frontends.keras import from_layer, from_weights

LSTM = random_weights("LSTM", 3, 5)
AFTER = random_weights("GRU reset_after=True", 3, 5)
BEFORE = random_weights("GRU reset_after=False", 3, 5)
SIMPLE = random_weights("SimpleRNN", 3, 5)
BOTH: dict[str, Any] = {"direction": "bidirectional"}


def changed(weights: list[Any], place: int, value: Any) -> list[Any]:
    return [value if k == place else array for k, array in enumerate(weights)]


CASES: dict[str, tuple[Any, dict[str, Any], type[PyrnnxError], str]] = {
    # arrays
    "None": (None, {}, ArgumentError, "from_weights: weights is None; expected a list of arrays, as of get_weights()"),
    "nothing": ([], {}, ArgumentError, "from_weights: weights is []; expected a list of arrays"),
    "a mapping": ({"kernel": 1}, {}, ArgumentError, "expected a list of arrays"),
    "one": (
        LSTM[:1],
        {},
        ArgumentError,
        "1 arrays were given; expected 3, or without biases 2, for direction 'forward'",
    ),
    "one direction": (LSTM, BOTH, ArgumentError, "3 arrays were given; expected 6, or without biases 4, for direction"),
    "both directions": (LSTM * 2, {}, ArgumentError, "6 arrays were given; expected 3, or without biases 2"),
    "None among them": (changed(LSTM, 1, None), {}, ArgumentError, "weights[1] is missing; it is required"),
    "integers": (changed(LSTM, 0, np.ones((3, 20), int)), {}, ArgumentError, "weights[0] has dtype int64; expected"),
    "two dtypes": (
        changed(LSTM, 2, np.ones(20, np.float32)),
        {},
        ArgumentError,
        "weights[2] has dtype float32; expected float64, the dtype of weights[0]",
    ),
    "text": (changed(LSTM, 2, "bias"), {}, ArgumentError, "weights[2] has dtype <U4; expected float32"),
    # shapes
    "recurrent_kernel of no cell": (
        changed(LSTM, 1, np.ones((5, 10))),
        {},
        ArgumentError,
        "recurrent_kernel (weights[1]) has shape (5, 10); expected (units, G*units), with G = 1 of a SimpleRNN, 3 of a",
    ),
    "recurrent_kernel of one axis": (changed(LSTM, 1, np.ones(5)), {}, ArgumentError, "(weights[1]) has shape (5,)"),
    "no units": (changed(LSTM, 1, np.ones((0, 0))), {}, ArgumentError, "(weights[1]) has shape (0, 0)"),
    "another operator": (
        LSTM,
        {"operator": "GRU"},
        ArgumentError,
        "recurrent_kernel (weights[1]) has shape (5, 20); expected (units, 3*units)",
    ),
    "kernel": (changed(LSTM, 0, np.ones((3, 15))), {}, ArgumentError, "kernel has shape (3, 15); expected (3, 20)"),
    "kernel of one axis": (changed(LSTM, 0, np.ones(20)), {}, ArgumentError, "(20,); expected (input_size, 20)"),
    "bias": (changed(LSTM, 2, np.ones(15)), {}, ArgumentError, "bias has shape (15,); expected (20,)"),
    "bias of a GRU": (
        changed(AFTER, 2, np.ones((3, 15))),
        {},
        ArgumentError,
        "bias has shape (3, 15); expected (2, 15), of a GRU with reset_after=True",
    ),
    "reset_after, and one bias": (
        BEFORE,
        {"reset_after": True},
        ArgumentError,
        "bias has shape (15,); expected (2, 15), of a GRU with reset_after=True",
    ),
    "two biases, not reset_after": (
        AFTER,
        {"reset_after": False},
        ArgumentError,
        "bias has shape (2, 15); expected (15,), of a GRU with reset_after=False",
    ),
    "other directions": (LSTM + AFTER, BOTH, ArgumentError, "kernel has shape (3, 15); expected (3, 20)"),
    "other inputs": (LSTM + random_weights("LSTM", 4, 5), BOTH, ArgumentError, "shape (4, 20); expected (3, 20)"),
    # arguments
    "operator": (
        LSTM,
        {"operator": "RNN"},
        ArgumentError,
        "operator is 'RNN'; expected one of 'SimpleRNN', 'GRU', 'LSTM'",
    ),
    "direction": (LSTM, {"direction": "both"}, ArgumentError, "direction is 'both'; expected one of forward, reverse"),
    "reset_after": (AFTER, {"reset_after": 1}, ArgumentError, "reset_after is 1; expected True, False or None"),
    "reset_after of an LSTM": (LSTM, {"reset_after": True}, ArgumentError, "reset_after is True; only a GRU has it"),
    "activation": (
        LSTM,
        {"activation": "gelu"},
        UnsupportedError,
        "activation is 'gelu'; expected one of tanh, sigmoid",
    ),
    "recurrent_activation": (
        SIMPLE,
        {"recurrent_activation": np.tanh},
        ArgumentError,
        "recurrent_activation is <ufunc 'tanh'>; expected one of tanh",
    ),
    "weight_dtype": (LSTM, {"weight_dtype": "int8"}, ArgumentError, "weight_dtype is 'int8' with dtype float64"),
    "name": (LSTM, {"name": 3}, ArgumentError, "name is 3; expected a string"),
    "name in messages": (LSTM, {"name": "own", "direction": ""}, ArgumentError, "from_weights: 'own': direction is ''"),
}


@pytest.mark.parametrize("case", CASES)
def test_rejected(case: str) -> None:
    weights, options, error, message = CASES[case]
    with pytest.raises(error, match=re.escape(message)) as caught:
        from_weights(weights, **options)
    assert type(caught.value) is error
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("layer", [None, "LSTM", object(), LSTM, from_layer], ids=lambda one: type(one).__name__)
def test_what_is_no_layer_of_keras(layer: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^from_layer: '.*' was given; expected one of keras\.layers\.SimpleRNN"):
        from_layer(layer)


def test_what_exceeds_memory() -> None:
    """Arrays that lie on one number: more than any address space holds, once they are stacked."""
    big = np.broadcast_to(np.float32(0), (2**23, 4 * 2**23))
    with pytest.raises(PyrnnxError, match="from_weights: the layers exceed memory"):
        from_weights([big, big])
