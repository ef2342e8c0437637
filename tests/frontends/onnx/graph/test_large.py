"""Large initializers, which models keep as arrays."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx_models import simple_model
from rows import each_row

from pyrnnx.frontends.onnx import NodeLayer, read_model
from pyrnnx.frontends.onnx.graph import constants
from pyrnnx.testing.numbers import Array

I, H = 6, 7
X = np.linspace(-1, 1, 30, dtype=np.float32).reshape(5, 1, I)
rng = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def small_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take arrays out of every model, so that the models of tests can be small."""
    monkeypatch.setattr(constants, "_SMALLEST", 40)


def weights(*shape: int) -> Array:
    return rng.uniform(-1, 1, shape).astype(np.float32)


def model() -> onnx.ModelProto:
    constants = {"W": weights(1, 4 * H, I), "R": weights(1, 4 * H, H), "B": weights(1, 8 * H), "M": weights(H, 3)}
    nodes = [
        helper.make_node("LSTM", ["x", "W", "R", "B"], ["", "h"], hidden_size=H, name="lstm"),
        helper.make_node("MatMul", ["h", "M"], ["m"]),
        helper.make_node("Add", ["m", "shift"], ["y"]),
    ]
    proto = simple_model(nodes, {"x": X}, ["y"], {**constants, "shift": weights(3)})
    matrix = next(tensor for tensor in proto.graph.initializer if tensor.name == "M")
    matrix.ClearField("raw_data")
    matrix.float_data.extend(constants["M"].ravel())  # as some exporters write
    return proto


@each_row("source", ["path", "bytes", "message", "pickle"], ids=str)
def test_the_same_model_from_every_source(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    proto = model()
    path = tmp_path / "model.onnx"
    onnx.save(proto, path)
    before = proto.SerializeToString()
    sources: dict[str, Any] = {"path": path, "message": proto}
    read = read_model(sources.get(source, before))
    ready = pickle.loads(pickle.dumps(read)) if source == "pickle" else read
    assert ready._arrays.keys() == {"W", "R", "B", "M"}
    for tensor, wanted in zip(ready.proto.graph.initializer, proto.graph.initializer, strict=True):
        np.testing.assert_array_equal(numpy_helper.to_array(tensor), numpy_helper.to_array(wanted))
    assert ready.layers
    assert proto.SerializeToString() == before
    for tensor in proto.graph.initializer:  # the model does not follow
        tensor.raw_data = bytes(len(tensor.raw_data))
    monkeypatch.setattr(constants, "_SMALLEST", 2**20)
    peer = read_model(before)
    assert not peer._arrays
    for scale in (1, -2, 0.5):
        np.testing.assert_array_equal(ready(scale * X)["y"], peer(scale * X)["y"])
    layer, other = ready.layers["lstm"], peer.layers["lstm"]
    assert isinstance(layer, NodeLayer)
    assert isinstance(other, NodeLayer)
    for name, weight in other.weights.items():
        np.testing.assert_array_equal(layer.weights[name], weight)
