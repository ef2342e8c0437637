"""Exports of PyTorch without recurrent nodes: layers are found, and results equal; for `pytest -m torch`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hidden_exports
import numpy as np
import onnx
import pytest
from whole_models import check_calls, onnxruntime_witness

from pyrnnx import load

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

T, I = 4, 32
# float32 through two layers of 64 units and four steps.
TOLERANCE = 5e-6


def test_layers_are_found_in_exports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: Any) -> None:
    monkeypatch.setattr(hidden_exports, "T", T)
    hidden_exports.write_torch(tmp_path)
    paths = sorted(tmp_path.glob("*.onnx"))
    assert len(paths) == 33
    for path in paths:
        proto, model = onnx.load(path), load(path)
        assert len(model.layers) == (2 if path.stem.endswith(("two", "both")) else 1), path.stem
        X = np.random.default_rng(0).uniform(-1, 1, (T, 1, I)).astype(np.float32)
        check_calls(model, onnxruntime_witness(proto), {proto.graph.input[0].name: X}, atol=TOLERANCE)
