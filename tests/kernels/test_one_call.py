"""Layers for one call: W and R are split for matrices only if the call is long enough."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from layers import MATRICES, needs_matrices, random_layer
from numpy.typing import NDArray
from rows import each_row

from pyrnnx import Layer, RecurrentOp, config, get_batch_invariant, set_batch_invariant
from pyrnnx.frontends.onnx import lstm
from pyrnnx.frontends.openvino import lstm_sequence
from pyrnnx.operator.conventions import OPENVINO_SEQUENCE, convert_weights

Array = NDArray[Any]
H = I = 64
N = 32
LEAST_T = 1024 // N

pytestmark = needs_matrices


def onnx(layer: Layer, X: Array) -> Array:
    Y: Array = lstm(X, *layer.weights.values())[0]
    return Y[:, 0]


def openvino(layer: Layer, X: Array) -> Array:
    weights = convert_weights(layer.op, layer.weights, layer.convention, OPENVINO_SEQUENCE)
    zeros = np.zeros((N, 1, H), np.float32)
    lengths = np.full(N, len(X), np.int32)
    arguments = (np.ascontiguousarray(X.swapaxes(0, 1)), zeros, zeros, lengths)
    Y: Array = lstm_sequence(*arguments, weights["W"], weights["R"], weights["B"], hidden_size=H)[0]
    return Y[:, 0].swapaxes(0, 1)


@each_row("function", [onnx, openvino])
def test_functions_take_matrices_for_long_calls(
    function: Callable[[Layer, Array], Array], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "ISA", MATRICES[0])
    layer = random_layer(RecurrentOp("LSTM", H), I)
    before = get_batch_invariant()
    try:
        for steps in (LEAST_T - 1, LEAST_T):
            X = np.random.default_rng(0).normal(size=(steps, N, I)).astype(np.float32)
            set_batch_invariant(False)
            results = function(layer, X)
            set_batch_invariant(True)
            elements = layer(X)[0][:, 0]
            assert (results.tobytes() == elements.tobytes()) == (steps < LEAST_T), steps
    finally:
        set_batch_invariant(before)
