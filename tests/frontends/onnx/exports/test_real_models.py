"""Published models with recurrent layers compared with ONNX Runtime: a voice activity detector and an OCR model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from conftest import FetchWheel
from peers import onnxruntime_session
from real_models import MODELS, RATE, RealModel, frames, picture
from whole_models import check_each

from pyrnnx.frontends.onnx import read_model
from pyrnnx.frontends.onnx.operators.layers import QuantizedLayer
from pyrnnx.testing.numbers import Array

pytestmark = pytest.mark.e2e

Run = Callable[[Mapping[str, Array]], dict[str, Array]]
STREAMED = [model for model in MODELS if model.state]
# 200 steps of a contracting recurrence in float32, a convolution before it sums some hundred terms: a few hundred times
# 2^-24. Beyond that the two would have left each other for good by the last frame.
STREAM_TOLERANCE = 1e-4


def session_of(model: Path | onnx.ModelProto) -> Any:
    """Without the entry, on a processor without VNNI, products of uint8 and int8 are added in pairs that saturate."""
    return onnxruntime_session(model, entries={"session.x64quantprecision": "1"})


def run_of(session: Any) -> Run:
    names = [output.name for output in session.get_outputs()]
    return lambda inputs: dict(zip(names, session.run(None, dict(inputs)), strict=True))


def first_inputs(model: RealModel, rate: int) -> dict[str, Array]:
    """Return the inputs of the model's first call, with states that are not zero."""
    rng = np.random.default_rng(6)
    given = {name: array for name, array in model.inputs().items() if name != "input"}
    given |= {name: np.asarray(rng.uniform(-0.5, 0.5, given[name].shape), np.float32) for name in model.state}
    return given | ({"sr": np.array(rate)} if "sr" in given else {})


def streamed(run: Run, model: RealModel, rate: int) -> tuple[Array, Array]:
    """Outputs and states of every frame, each frame with the states of the one before."""
    given, speech, states = first_inputs(model, rate), [], []
    for frame in frames(200, rate):
        results = run({"input": frame[np.newaxis], **given})
        given |= {name: results[new] for name, new in model.state.items()}
        states.append(np.concatenate([results[new].ravel() for new in model.state.values()]))
        speech.append(next(iter(results.values())).ravel())
    return np.array(speech), np.array(states)


ROWS = [*((model, RATE) for model in STREAMED), (STREAMED[0], 8_000)]


@pytest.mark.parametrize(("model", "rate"), ROWS, ids=lambda value: getattr(value, "name", value))
def test_streamed(fetch_wheel: FetchWheel, model: RealModel, rate: int) -> None:
    path = fetch_wheel(model.wheel) / model.path
    speech, states = streamed(read_model(path), model, rate)
    expected_speech, expected_states = streamed(run_of(session_of(path)), model, rate)
    np.testing.assert_allclose(speech, expected_speech, rtol=0, atol=STREAM_TOLERANCE)
    # One cell of silero_vad_half integrates, down to -98: of that 1e-5, some tens of roundings.
    np.testing.assert_allclose(states, expected_states, rtol=1e-5, atol=STREAM_TOLERANCE)
    assert np.ptp(expected_speech) > 0.3
    assert np.std(expected_states, axis=0).max() > 0.1


@pytest.fixture(scope="module")
def ocr_models(fetch_wheel: FetchWheel) -> dict[str, Path]:
    return {model.name: fetch_wheel(model.wheel) / model.path for model in MODELS if model.name.startswith("ddddocr")}


@pytest.mark.parametrize("width", [96, 117])
def test_ocr(ocr_models: dict[str, Path], width: int) -> None:
    path, image = ocr_models["ddddocr common"], picture(width)
    (result,), (expected,) = read_model(path)(image).values(), session_of(path).run(None, {"input1": image})
    # Scores up to some tens: 21 convolutions and a product, each of some hundred to thousand terms in float32.
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    np.testing.assert_array_equal(result.argmax(-1), expected.argmax(-1))


@pytest.mark.parametrize("width", [96, 120])
def test_quantized_ocr(ocr_models: dict[str, Path], width: int) -> None:
    path, image = ocr_models["ddddocr common_old"], picture(width)
    proto = onnx.load(str(path))
    (node,) = (node for node in proto.graph.node if node.op_type == "DynamicQuantizeLSTM")
    exposed = [node.input[0], node.input[5], node.input[6], *node.output]
    scores = proto.graph.output[0].name
    for name in exposed:
        proto.graph.output.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None))
    expected, X, h, c, *outputs = session_of(proto).run([scores, *exposed], {"input1": image})
    model = read_model(path)
    (layer,) = model.layers.values()
    assert isinstance(layer, QuantizedLayer)
    # The same X gives sums of 512 products in another order, in float32; no state of these images is near enough to a
    # tie to be rounded to 8 bits the other way.
    for result, wanted in zip(layer(X, None, h, c), outputs, strict=True):
        np.testing.assert_allclose(result, wanted, rtol=0, atol=2e-5)
    # The whole model rounds to 8 bits before each of 21 convolutions. A sigmoid that differs in its last bit makes
    # some values round the other way, by 1/255 of a layer's range; scores go up to some tens.
    (result,) = model(image).values()
    np.testing.assert_allclose(result, expected, rtol=0, atol=0.02 * np.abs(expected).max())
    np.testing.assert_array_equal(result.argmax(-1), expected.argmax(-1))


def test_a_word_splitter_of_int8(fetch_wheel: FetchWheel) -> None:
    """Reshape behind Transpose between quantized LSTMs; 20 inputs of three lengths."""
    path = fetch_wheel("dksplit==1.0.2") / "dksplit" / "models" / "dksplit-int8.onnx"
    session, rng = session_of(path), np.random.default_rng(0)
    lengths = [12] * 8 + [7] * 6 + [20] * 2 + [12] * 4
    calls = [{"chars": rng.integers(1, 27, (1, length))} for length in lengths]
    # An activation that rounds to the next code moves the scores, of up to 9, by some hundredths.
    check_each(read_model(path), run_of(session), calls, atol=0.05)
