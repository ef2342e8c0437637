"""Every published model of Silero that OpenVINO converts, its shapes fixed and open: 200 frames with state, beside ONNX
Runtime on the original.

Not among them are silero_vad.onnx, of both sample rates in one, and silero_vad.jit: OpenVINO 2026.4 converts neither.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from openvino_irs import Array, save
from real_models import RATE, frames

from pyrnnx.frontends.openvino import read_model, to_onnx

openvino = pytest.importorskip("openvino")
onnxruntime = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.slow

STEPS = 200
FIXED: Mapping[str, Sequence[int]] = {"input": [1, 576], "state": [2, 1, 128], "sr": []}
OPEN: Mapping[str, Sequence[int]] = {"input": [-1, -1], "state": [2, -1, 128], "sr": []}
# 200 steps of a contracting recurrence in float32; the cell state, up to 9, is compared too
TOLERANCE = 1e-4
Call = Callable[[Mapping[str, Array]], Sequence[Array]]


@dataclass(frozen=True)
class Variant:
    """`shapes`: of the IR; those with which OpenVINO converts are given where it needs them. `layers`: how many."""

    file: str
    shapes: Mapping[str, Sequence[int]]
    layers: int = 1
    fixed_at_first: bool = False
    tolerance: float = TOLERANCE
    states: Mapping[str, tuple[int, ...]] = field(default_factory=lambda: {"state": (2, 1, 128)})
    frames_at_once: int = 1

    def __str__(self) -> str:
        return f"{self.file} {'open' if any(-1 in one for one in self.shapes.values()) else 'fixed'}"


# Computed in float16, of which 1 unit is 5e-4 of a probability from 0.5 to 1: ONNX Runtime rounds elsewhere.
HALF = 5e-4
APART: Mapping[str, Any] = {"states": {"h": (1, 1, 128), "c": (1, 1, 128)}, "frames_at_once": 20}
VARIANTS = (
    *(Variant("openvino_16k", {"input": shape, "state": state})
      for shape, state in (([1, 576], [2, 1, 128]), ([-1, 576], [2, -1, 128]))),
    *(Variant("op18_ifless", shapes, 0) for shapes in (FIXED, OPEN)),
    *(Variant("16k_op15", shapes, 2, True) for shapes in (FIXED, OPEN)),
    *(Variant("half", shapes, 2, True, HALF) for shapes in (FIXED, OPEN)),
    *(Variant("16k_sequence", {"input": shape}, **APART) for shape in ([20, 576], [-1, 576])),
)  # fmt: skip


def session(model: str | bytes) -> Call:
    """Through ONNX Runtime; inputs that the model lacks are left out."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    made = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [one.name for one in made.get_inputs()]
    return lambda feed: made.run(None, {name: feed[name] for name in names})


def stream(call: Call, variant: Variant) -> list[Array]:
    """Probabilities of successive frames and the states after each call, which go into the next."""
    states = {name: np.zeros(shape, np.float32) for name, shape in variant.states.items()}
    rate, found = np.array(RATE, np.int64), []
    for piece in frames(STEPS).reshape(-1, variant.frames_at_once, 576):
        speech, *after = call({"input": piece, "sr": rate, **states})
        states = dict(zip(states, after, strict=True))
        found += [speech.reshape(-1), *after]
    return found


def convert(path: Path, variant: Variant) -> Any:
    if variant.fixed_at_first:
        names = [one.name for one in onnxruntime.InferenceSession(path).get_inputs()]
        model = openvino.convert_model(path, input=[(name, FIXED[name]) for name in names])
    else:
        model = openvino.Core().read_model(path)
    own = {name for one in model.inputs for name in one.names}
    model.reshape({name: openvino.PartialShape(list(one)) for name, one in variant.shapes.items() if name in own})
    return model


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_200_frames(variant: Variant, silero_models: Path, tmp_path: Path) -> None:
    path = silero_models / f"silero_vad_{variant.file}.onnx"
    read = read_model(save(convert(path, variant), tmp_path))
    assert len(read.layers) == variant.layers
    expected = stream(session(str(path)), variant)
    speech = np.concatenate(expected[:: 1 + len(variant.states)])
    assert speech.shape == (STEPS,)
    assert np.ptp(speech) > 0.3  # the signal moves it
    names = [info.name for info in read.inputs]
    calls: dict[str, Call] = {
        "here": lambda feed: list(read(*(feed[name] for name in names)).values()),
        "exported": session(to_onnx(read).SerializeToString()),
    }
    for where, call in calls.items():
        for one, other in zip(stream(call, variant), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=variant.tolerance, err_msg=where)
