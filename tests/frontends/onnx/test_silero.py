"""The LSTM of a published voice activity detector, fed by the rest of its model, beside ONNX Runtime."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest
from real_models import speech_like, windows

import pyrnnx.frontends.onnx as frontend
from pyrnnx import Layer
from pyrnnx.testing import reference
from pyrnnx.testing.numbers import Array, assert_close

onnxruntime = pytest.importorskip("onnxruntime")


@dataclass
class Recorded:
    node: onnx.NodeProto
    weights: dict[str, Array]
    opset: int
    X: Array
    h: Array
    c: Array
    outputs: tuple[Array, ...]
    speech: Array  # probabilities that the model ends with


@pytest.fixture(scope="module")
def recorded(silero_models: Path) -> Recorded:
    model = onnx.load(str(silero_models / "silero_vad_16k_sequence.onnx"))
    (node,) = (node for node in model.graph.node if node.op_type == "LSTM")
    exposed = [node.input[0], *node.output]
    present = {output.name for output in model.graph.output}
    model.graph.output.extend(
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)
        for name in exposed
        if name not in present
    )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(6)
    h, c = rng.uniform(-0.5, 0.5, (2, 1, 1, 128)).astype(np.float32)
    X, *outputs, speech = session.run([*exposed, "speech_probs"], {"input": windows(speech_like()), "h": h, "c": c})
    weights = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer if t.name in node.input}
    return Recorded(node, weights, model.opset_import[0].version, X, h, c, tuple(outputs), speech)


# 93 steps of a contracting recurrence in float32, pre-activations up to some tens whose rounding is 2^-19:
# ONNX Runtime's own distance from the oracle is asserted too, so that the tolerance cannot hide behind it.
TOLERANCE = 1e-5


def test_signal_exercises_the_model(recorded: Recorded) -> None:
    assert recorded.X.shape == (93, 1, 128)
    assert np.std(recorded.X, axis=0).max() > 0.1
    assert np.ptp(recorded.speech) > 0.3


def test_oracle_agrees_with_onnxruntime(recorded: Recorded) -> None:
    W, R, B = (recorded.weights[name] for name in recorded.node.input[1:4])
    expected = reference.lstm(recorded.X, W, R, B=B, initial_h=recorded.h, initial_c=recorded.c)
    assert_close(recorded.outputs, expected, TOLERANCE)


def test_layer_agrees_with_onnxruntime(recorded: Recorded) -> None:
    layer = frontend.from_node(recorded.node, recorded.weights, opset=recorded.opset)
    outputs = layer(recorded.X, initial_h=recorded.h, initial_c=recorded.c)
    assert_close(outputs, recorded.outputs, TOLERANCE)


def test_steps_give_the_whole(recorded: Recorded) -> None:
    """One step at a time with the states handed on, as the detector is used on a live signal."""
    layer = frontend.from_node(recorded.node, recorded.weights, opset=recorded.opset)
    h, c, steps = recorded.h, recorded.c, []
    for x in recorded.X:
        y, h, c = layer(x[np.newaxis], initial_h=h, initial_c=c)
        steps.append(y)
    assert_close((np.concatenate(steps), h, c), recorded.outputs, TOLERANCE)


# Largest move of Y and of the cell state, as the docstring of Layer states them, rounded up.
REDUCED = {"bfloat16": (0.009, 0.013), "int8": (0.043, 0.24)}


@pytest.mark.parametrize("weights", REDUCED)
def test_weights_in_fewer_bits(recorded: Recorded, weights: str) -> None:
    node = frontend.from_node(recorded.node, recorded.weights, opset=recorded.opset)
    layer = Layer(node.op, *node.weights.values(), weight_dtype=weights)
    Y, _, Y_c = layer(recorded.X, None, recorded.h, recorded.c)
    for moved, bound in zip((Y - recorded.outputs[0], Y_c - recorded.outputs[2]), REDUCED[weights], strict=True):
        assert bound / 2 < np.abs(moved).max() < bound
