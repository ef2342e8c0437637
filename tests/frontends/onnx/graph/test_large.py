"""Large initializers, which models keep as arrays."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import simple_model
from rows import each_row

from pyrnnx.frontends.onnx import NodeLayer, read_model
from pyrnnx.frontends.onnx.graph import constants
from pyrnnx.frontends.onnx.graph.constants import completed, without_large
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


def model(**others: Any) -> onnx.ModelProto:
    constants = {"W": weights(1, 4 * H, I), "R": weights(1, 4 * H, H), "B": weights(1, 8 * H), "M": weights(H, 3)}
    nodes = [
        helper.make_node("LSTM", ["x", "W", "R", "B"], ["", "h"], hidden_size=H, name="lstm"),
        helper.make_node("MatMul", ["h", "M"], ["m"]),
        helper.make_node("Add", ["m", "shift"], ["y"]),
    ]
    return simple_model(nodes, {"x": X}, ["y"], {**constants, "shift": weights(3)}, **others)


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
    assert ready.proto == proto
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


FLOATS = weights(10).tobytes()
PLAIN: dict[str, Any] = {"name": "a", "dims": [10], "data_type": 1, "raw_data": FLOATS}
# Fields of one initializer, and whether it becomes an array.
TENSORS: dict[str, tuple[dict[str, Any], bool]] = {
    "raw bytes": (PLAIN, True),
    "with a doc_string": ({**PLAIN, "doc_string": "x"}, True),
    "floats in a field": ({"name": "a", "dims": [10], "data_type": 1, "float_data": np.frombuffer(FLOATS, "f4")}, True),
    "float16 in a field": (
        {"name": "a", "dims": [24], "data_type": TensorProto.FLOAT16, "int32_data": range(15000, 15024)},
        True,
    ),
    "no name": ({**PLAIN, "name": ""}, False),
    "fewer bytes than elements": ({**PLAIN, "dims": [11]}, False),
    "an unknown type": ({**PLAIN, "data_type": 999}, False),
    "bfloat16": ({**PLAIN, "data_type": TensorProto.BFLOAT16, "dims": [20]}, False),
    "external": ({**PLAIN, "data_location": TensorProto.EXTERNAL}, False),
    "small": ({**PLAIN, "dims": [2], "raw_data": FLOATS[:8]}, False),
}


@each_row("name", TENSORS)
def test_which_become_arrays(name: str) -> None:
    fields, is_array = TENSORS[name]
    proto = onnx.ModelProto(graph=onnx.GraphProto(initializer=[TensorProto(**fields)]))
    before = onnx.ModelProto.FromString(proto.SerializeToString())
    rest, arrays = without_large(proto)
    assert list(arrays) == ["a"] * is_array
    if is_array:
        tensor = before.graph.initializer[0]
        np.testing.assert_array_equal(arrays["a"], numpy_helper.to_array(tensor))
        (back,) = completed(rest, arrays).graph.initializer
        np.testing.assert_array_equal(numpy_helper.to_array(back), arrays["a"])
        assert rest.ByteSize() < 40
    else:
        assert rest == before
