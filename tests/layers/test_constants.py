"""Arrays of a layer: its weights without needless copies, and constants for omitted arguments."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from layers import random_layer
from rows import each_row

from pyrnnx import (
    CANONICAL,
    OPENVINO_CELL,
    OPENVINO_SEQUENCE,
    ArgumentError,
    Convention,
    Layer,
    PyrnnxError,
    RecurrentOp,
)
from pyrnnx.operator.op import CellName


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


@each_row("constants", [{"X": np.zeros(1)}, [1], {"initial_h": np.zeros((1, 2, 4)), "B": 1}])
def test_constants_that_no_layer_holds(constants: Any) -> None:
    with pytest.raises(ArgumentError, match=r"(?s)RNN: constants is .*expected a mapping of sequence_lens, initial_h"):
        Layer(RecurrentOp("RNN", 4), np.zeros((1, 4, 3)), np.zeros((1, 4, 4)), constants=constants)


def with_constants(cell: CellName, constants: Any, convention: Convention = CANONICAL) -> Layer:
    """float32, input_size 3, hidden_size 4."""
    return random_layer(RecurrentOp(cell, 4), 3, convention=convention, constants=constants)


STATE, HUGE = np.ones((1, 2, 4), np.float32), np.broadcast_to(np.float32(0), (1, 2**44, 4))
KEYS = "expected a mapping of sequence_lens, initial_h, initial_c$"
BAD_CONSTANTS: list[tuple[CellName, dict[Any, Any], str]] = [
    ("RNN", {"B": 1}, f"constants is a mapping with the key 'B'; {KEYS}"),
    ("RNN", {(1,): 1}, r"constants is a mapping with the key \(1,\); expected"),
    ("GRU", {"initial_c": STATE}, "constants: initial_c was given; GRU has no cell state"),
    ("LSTM", {"initial_c": STATE.astype(float)}, r"constants: initial_c has dtype float64; .*: initial_c\.astype"),
    ("LSTM", {"initial_h": STATE[0]}, r"constants: initial_h has shape \(2, 4\); expected \(num_dir.*=1, batch_size"),
    ("RNN", {"initial_h": STATE[..., :3]}, r"constants: initial_h has shape \(1, 2, 3\)"),
    ("RNN", {"sequence_lens": 3}, r"constants: sequence_lens has shape \(\); expected \(batch_size,\)"),
    ("RNN", {"sequence_lens": np.array([1, 2])}, r"constants: .* has dtype int64; expected int32: sequence_lens\.as"),
    ("RNN", {"sequence_lens": [1, -1]}, r"constants: sequence_lens\[1\] is -1; expected 0 <= length <= seq_length$"),
    ("RNN", {"sequence_lens": [2**31, 1]}, "constants: sequence_lens contains 2147483648; expected int32, -2147483648"),
    ("RNN", {"initial_h": HUGE}, ".*initial_h has shape .*; a copy of it exceeds memory"),
]


@each_row(("cell", "constants", "words"), BAD_CONSTANTS)
def test_constants_are_checked_when_the_layer_is_made(cell: CellName, constants: Any, words: str) -> None:
    with pytest.raises(PyrnnxError, match=f"^{cell}: {words}"):
        with_constants(cell, constants)


def test_constants_of_other_conventions_are_checked() -> None:
    with pytest.raises(PyrnnxError, match=r"H has shape \(1, 2, 4\); expected \(batch_size, num_directions=1"):
        with_constants("RNN", {"initial_h": STATE}, OPENVINO_SEQUENCE)
    with pytest.raises(
        PyrnnxError, match=r"constants: sequence_lengths was given; .* 'OpenVINO cell' has no sequences"
    ):
        with_constants("RNN", {"sequence_lens": [1]}, OPENVINO_CELL)


def test_constants_that_every_convention_takes() -> None:
    swapped = np.ascontiguousarray(STATE.swapaxes(0, 1))
    assert (
        with_constants("RNN", {"sequence_lens": [2, 1], "initial_h": None}).constants["sequence_lens"].dtype == np.int32
    )
    held = with_constants("RNN", {"sequence_lens": np.array([2, 1]), "initial_h": swapped}, OPENVINO_SEQUENCE).constants
    assert held["sequence_lens"].dtype == np.int64
    with_constants("RNN", {"initial_h": STATE[0]}, OPENVINO_CELL)
    other_order = STATE.astype(STATE.dtype.newbyteorder())
    assert with_constants("RNN", {"initial_h": other_order}).constants["initial_h"].dtype.isnative


def test_unaligned_weights_are_copied() -> None:
    """The kernels read whole numbers where they lie."""
    unaligned = np.frombuffer(bytes(1) + np.ones(12, np.float32).tobytes(), np.float32, 12, 1).reshape(1, 4, 3)
    layer = Layer(RecurrentOp("RNN", 4), unaligned, np.ones((1, 4, 4), np.float32))
    assert layer.weights["W"].flags.aligned
