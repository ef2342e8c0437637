"""Exports of PyTorch without recurrent nodes: layers are found, and results equal; for `pytest -m torch`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from whole_models import check_calls, onnxruntime_witness

from pyrnnx import load

pytest.importorskip("torch")

import hidden_exports

pytestmark = pytest.mark.torch
# float32 through two layers of 64 units and four steps.
TOLERANCE = 5e-6


def test_layers_are_found_in_exports(tmp_path: Path, recwarn: Any) -> None:
    hidden_exports.write(tmp_path)
    paths = sorted(tmp_path.glob("*.onnx"))
    assert len(paths) == 31
    for path in paths:
        proto, model = onnx.load(path), load(path)
        assert len(model.layers) == (2 if path.stem.endswith(("two", "both")) else 1), path.stem
        X = np.random.default_rng(0).uniform(-1, 1, (hidden_exports.T, 1, hidden_exports.I)).astype(np.float32)
        check_calls(model, onnxruntime_witness(proto), {proto.graph.input[0].name: X}, atol=TOLERANCE)
