"""Models that are pickled and copied."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest
from onnx import helper
from onnx_models import simple_model

from pyrnnx import UnsupportedError
from pyrnnx.frontends.onnx import file, read_model

node = helper.make_node


def test_copies(tmp_path: Path) -> None:
    """By the source, and no more: neither what is prepared nor what is inlined."""
    weights = np.random.default_rng(5).normal(size=(1, 512, 128)).astype(np.float32)
    arrays = {"W": weights, "R": weights}
    nodes = [node("LSTM", ["X", "W", "R"], ["Y"], name="lstm", hidden_size=128)]
    X = np.ones((2, 1, 128), np.float32)
    path = tmp_path / "some.onnx"
    path.write_bytes(simple_model(nodes, {"X": X}, ["Y"], arrays).SerializeToString())
    model = read_model(path)
    expected = model(X)["Y"]
    contents = pickle.dumps(model)
    assert len(contents) < path.stat().st_size + 1000
    path.unlink()
    for other in (pickle.loads(contents), copy.copy(model), copy.deepcopy(model)):
        assert (other.label, other.inputs, other.outputs) == (model.label, model.inputs, model.outputs)
        assert other.proto == model.proto
        np.testing.assert_array_equal(other(X)["Y"], expected)
        assert list(other.layers) == ["lstm"]


def test_copies_beyond_what_protobuf_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    model = read_model(simple_model([node("Neg", ["x"], ["y"])], {"x": np.ones(1, np.float32)}, ["y"]))
    monkeypatch.setattr(file, "LARGEST", 10)
    for copied in (pickle.dumps, copy.deepcopy):
        with pytest.raises(UnsupportedError, match=r"ONNX model: cannot be pickled or copied; it has \d+ bytes"):
            copied(model)
