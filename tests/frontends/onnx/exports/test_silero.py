"""The LSTM of a published voice activity detector, with inputs from its model, compared with ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from peers import onnxruntime_session
from real_models import speech_like, windows

import pyrnnx.frontends.onnx as frontend
from pyrnnx import Layer, reference
from pyrnnx.testing.numbers import assert_close

# 93 steps of a contracting recurrence in float32, pre-activations up to some tens whose rounding is 2^-19:
# ONNX Runtime's own distance from the oracle is asserted too, so that the tolerance cannot hide behind it.
TOLERANCE = 1e-5
# Largest move of Y and of the cell state, as the docstring of Layer states them, rounded up.
REDUCED = {"bfloat16": (0.009, 0.013), "int8": (0.043, 0.24)}

pytestmark = pytest.mark.e2e


def test_layer(silero_models: Path) -> None:
    pytest.importorskip("onnxruntime")
    model = onnx.load(str(silero_models / "silero_vad_16k_sequence.onnx"))
    (node,) = (node for node in model.graph.node if node.op_type == "LSTM")
    for name in {node.input[0], *node.output} - {output.name for output in model.graph.output}:
        model.graph.output.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None))
    h, c = np.random.default_rng(6).uniform(-0.5, 0.5, (2, 1, 1, 128)).astype(np.float32)
    inputs = {"input": windows(speech_like()), "h": h, "c": c}
    X, *wanted, speech = onnxruntime_session(model).run([node.input[0], *node.output, "speech_probs"], inputs)
    assert X.shape == (93, 1, 128)
    assert np.std(X, axis=0).max() > 0.1
    assert np.ptp(speech) > 0.3

    weights = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer if t.name in node.input}
    W, R, B = (weights[name] for name in node.input[1:4])
    assert_close(wanted, reference.lstm(X, W, R, B=B, initial_h=h, initial_c=c), TOLERANCE)
    layer = frontend.from_node(node, weights, opset=model.opset_import[0].version)
    assert_close(layer(X, initial_h=h, initial_c=c), wanted, TOLERANCE)
    for dtype, bounds in REDUCED.items():
        Y, _, Y_c = Layer(layer.op, *layer.weights.values(), weight_dtype=dtype)(X, None, h, c)
        for moved, bound in zip((Y - wanted[0], Y_c - wanted[2]), bounds, strict=True):
            assert bound / 2 < np.abs(moved).max() < bound
