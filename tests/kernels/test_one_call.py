"""Layers for one call: W and R are split for matrices only if the call is long enough."""

from __future__ import annotations

import numpy as np
import pytest
from layers import MATRICES, needs_matrices, random_layer

from pyrnnx import RecurrentOp, config, set_batch_invariant
from pyrnnx.frontends.onnx import lstm

H = I = 64
N = 32
LEAST_T = 1024 // N


@needs_matrices
def test_a_function_takes_matrices_for_long_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "ISA", MATRICES[0])
    layer = random_layer(RecurrentOp("LSTM", H), I)
    for steps in (LEAST_T - 1, LEAST_T):
        X = np.random.default_rng(0).normal(size=(steps, N, I)).astype(np.float32)
        set_batch_invariant(False)
        results = lstm(X, *layer.weights.values())
        set_batch_invariant(True)
        elements = layer(X)
        assert (results[0].tobytes() == elements[0].tobytes()) == (steps < LEAST_T), steps
