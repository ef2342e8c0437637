"""Silero models converted by OpenVINO: 200 frames with state, compared with ONNX Runtime on the original."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from openvino_irs import Array, openvino, save
from peers import onnxruntime_session
from real_models import RATE, frames

from pyrnnx.frontends.openvino import read_model, to_onnx

pytestmark = pytest.mark.slow

SHAPES = {"input": [1, 576], "state": [2, 1, 128], "sr": []}
APART = {"h": (1, 1, 128), "c": (1, 1, 128)}
VARIANTS = {  # file: layers, tolerance, frames at once
    # 200 steps of a contracting recurrence in float32; the cell state, up to 9, is compared too
    "openvino_16k": (1, 1e-4, 1), "op18_ifless": (0, 1e-4, 1), "16k_op15": (2, 1e-4, 1), "16k_sequence": (1, 1e-4, 20),
    # computed in float16, of which 1 unit is 5e-4 of a probability from 0.5 to 1: ONNX Runtime rounds elsewhere
    "half": (2, 5e-4, 1),
}  # fmt: skip
Call = Callable[[Mapping[str, Array]], Sequence[Array]]


def stream(call: Call, at_once: int) -> list[Array]:
    """Return the probabilities of successive frames and the states after each call, which go into the next."""
    shapes = {"state": (2, 1, 128)} if at_once == 1 else APART
    states, results = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}, []
    for piece in frames(200).reshape(-1, at_once, 576):
        speech, *after = call({"input": piece, "sr": np.array(RATE, np.int64), **states})
        states = dict(zip(states, after, strict=True))
        results += [speech.reshape(-1), *after]
    return results


def session(model: Path | bytes) -> Call:
    made = onnxruntime_session(model)
    names = [info.name for info in made.get_inputs()]
    return lambda feed: made.run(None, {name: feed[name] for name in names})


@pytest.mark.parametrize("name", VARIANTS)
def test_200_frames(name: str, silero_models: Path, tmp_path: Path) -> None:
    path, (layers, tolerance, at_once) = silero_models / f"silero_vad_{name}.onnx", VARIANTS[name]
    inputs = [(info.name, SHAPES.get(info.name)) for info in onnxruntime_session(path).get_inputs()]
    fixed = name in ("half", "16k_op15")  # which OpenVINO converts only so
    read = read_model(save(openvino.convert_model(path, input=inputs if fixed else None), tmp_path))
    assert len(read.layers) == layers
    expected = stream(session(path), at_once)
    assert np.ptp(expected[0 if at_once > 1 else slice(0, None, 2)]) > 0.3  # the signal moves it
    names = [info.name for info in read.inputs]
    calls: dict[str, Call] = {
        "here": lambda feed: list(read(*(feed[name] for name in names)).values()),
        "exported": session(to_onnx(read).SerializeToString()),
    }
    for where, call in calls.items():
        for a, b in zip(stream(call, at_once), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=tolerance, err_msg=where)
