"""What a layer holds: its weights without needless copies, and constants for arguments that a call leaves out."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from pyrnnx import ArgumentError, Layer, RecurrentOp


def test_weights_that_nobody_can_write_to_are_not_copied() -> None:
    rng = np.random.default_rng(0)
    held: dict[str, Any] = {
        name: rng.normal(size=shape).astype(np.float32) for name, shape in {"W": (1, 4, 3), "R": (1, 4, 4)}.items()
    }
    read: dict[str, Any] = {
        name: np.frombuffer(array.tobytes(), np.float32).reshape(array.shape) for name, array in held.items()
    }
    op = RecurrentOp("RNN", 4)
    layer, copied = Layer(op, **read), Layer(op, **held)
    assert all(np.shares_memory(layer.weights[name], array) for name, array in read.items())
    assert not any(np.shares_memory(copied.weights[name], array) for name, array in held.items())
    held["W"].flags.writeable = False  # its owner can make it writable again
    assert not np.shares_memory(Layer(op, **held).weights["W"], held["W"])
    over = np.frombuffer(bytearray(held["W"].tobytes()), np.float32).reshape(1, 4, 3)
    over.flags.writeable = False
    assert not np.shares_memory(Layer(op, over, held["R"]).weights["W"], over)


def test_constants() -> None:
    """What a layer holds is used where a call does not give it, by a stream too, and survives copies."""
    rng = np.random.default_rng(1)
    T, N, I, H = 5, 2, 3, 4
    op = RecurrentOp("LSTM", H)
    W, R = rng.normal(size=(1, 4 * H, I)), rng.normal(size=(1, 4 * H, H))
    X, h, c, other = rng.normal(size=(T, N, I)), *rng.normal(size=(3, 1, N, H))
    lengths = np.array([3, 5], np.int32)
    plain = Layer(op, W, R)
    layer = Layer(op, W, R, constants={"sequence_lens": lengths, "initial_h": h, "initial_c": c})
    for one in (layer, pickle.loads(pickle.dumps(layer))):
        for given, wanted in zip(one(X), plain(X, lengths, h, c), strict=True):
            np.testing.assert_array_equal(given, wanted)
        for given, wanted in zip(one(X, initial_h=other), plain(X, lengths, other, c), strict=True):
            np.testing.assert_array_equal(given, wanted)
    h[:] = 0  # the layer has a copy
    assert layer.constants["initial_h"].any()
    stream = Layer(op, W, R, constants={"initial_h": other, "initial_c": c}).stream(N)
    for _ in range(2):
        np.testing.assert_array_equal(
            np.concatenate([stream.push(X[:2]), stream.push(X[2:])]), plain(X, None, other, c)[0]
        )
        stream.reset()


@pytest.mark.parametrize("constants", [{"X": np.zeros(1)}, [1], {"initial_h": np.zeros((1, 2, 4)), "B": 1}])
def test_constants_that_no_layer_holds(constants: Any) -> None:
    with pytest.raises(ArgumentError, match=r"(?s)RNN: constants is .*expected a mapping of sequence_lens, initial_h"):
        Layer(RecurrentOp("RNN", 4), np.zeros((1, 4, 3)), np.zeros((1, 4, 4)), constants=constants)
