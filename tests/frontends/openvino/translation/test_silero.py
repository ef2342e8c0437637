"""The OpenVINO-oriented model of a published voice activity detector: ONNX to IR by OpenVINO, and back here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from openvino_irs import Array, save
from real_models import frames

from pyrnnx.frontends.openvino import Model, read_model, to_onnx

openvino = pytest.importorskip("openvino")
onnxruntime = pytest.importorskip("onnxruntime")

STEPS = 200
Step = Callable[[Array, Array], tuple[Array, Array]]
# 200 steps of a contracting recurrence in float32; the cell state, up to 9, is compared too
TOLERANCE = 1e-4


def stream(step: Step) -> tuple[Array, Array]:
    """Probabilities and states of successive frames, the state fed back."""
    state, speech, states = np.zeros((2, 1, 128), np.float32), [], []
    for frame in frames(STEPS)[:, np.newaxis]:
        probability, state = step(frame, state)
        speech.append(probability)
        states.append(state)
    return np.array(speech), np.array(states)


def session(model: str | bytes) -> Step:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    made = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return lambda frame, state: made.run(["output", "stateN"], {"input": frame, "state": state})


@pytest.fixture(scope="module")
def original(silero_models: Path) -> Path:
    return silero_models / "silero_vad_openvino_16k.onnx"


@pytest.fixture(scope="module")
def read(original: Path, tmp_path_factory: pytest.TempPathFactory) -> Model:
    return read_model(save(openvino.convert_model(original), tmp_path_factory.mktemp("silero")))


@pytest.fixture(scope="module")
def expected(original: Path) -> tuple[Array, Array]:
    speech, states = stream(session(str(original)))
    assert np.ptp(speech) > 0.3  # the signal moves it
    return speech, states


def test_own_names(read: Model) -> None:
    assert [info.name for info in read.inputs] == ["input", "state"]
    assert [info.name for info in read.outputs] == ["output", "stateN"]
    assert len(read.layers) == 1


def test_run_here(read: Model, expected: tuple[Array, Array]) -> None:
    def step(frame: Array, state: Array) -> tuple[Array, Array]:
        outputs = read(frame, state)
        return outputs["output"], outputs["stateN"]

    for one, other in zip(stream(step), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=TOLERANCE)


def test_exported(read: Model, expected: tuple[Array, Array]) -> None:
    for one, other in zip(stream(session(to_onnx(read).SerializeToString())), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=TOLERANCE)
