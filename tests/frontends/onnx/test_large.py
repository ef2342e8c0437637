"""Files whose large initializers become arrays without a message: what protobuf would read, or protobuf's errors."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import simple_model
from rows import each_row

from pyrnnx import PyrnnxError
from pyrnnx.frontends.onnx import NodeLayer, large, read_model
from pyrnnx.frontends.onnx.file import load_proto
from pyrnnx.frontends.onnx.large import completed, load_parts, read_parts
from pyrnnx.testing.numbers import Array

I, H = 6, 7
X = np.linspace(-1, 1, 30, dtype=np.float32).reshape(5, 1, I)
rng = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read every file in parts, so that the models of tests can be small."""
    monkeypatch.setattr(large, "_SMALLEST", 40)
    monkeypatch.setattr(large, "_SMALLEST_FILE", 0)


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


def test_specialized_models_have_the_values() -> None:
    proto = model()
    special = read_model(proto.SerializeToString()).specialized({}, {"x": (5, 1, I)})
    np.testing.assert_array_equal(special(X)["y"], read_model(proto)(X)["y"])


def read(contents: bytes) -> Any:
    """Return the model as read in parts, and the names of its arrays; an error as its class and text."""
    try:
        proto, arrays = load_parts(contents)
        return completed(proto, arrays), sorted(arrays)
    except PyrnnxError as error:
        return type(error), str(error)


def whole(contents: bytes) -> Any:
    try:
        return load_proto(contents, external=False)
    except PyrnnxError as error:
        return type(error), str(error)


@each_row("source", ["path", "bytes", "pickle"], ids=str)
def test_the_same_model_from_every_source(source: str, tmp_path: Path) -> None:
    proto = model()
    path = tmp_path / "model.onnx"
    onnx.save(proto, path)
    read = read_model(path if source == "path" else path.read_bytes())
    ready = pickle.loads(pickle.dumps(read)) if source == "pickle" else read
    assert ready._arrays.keys() == {"W", "R", "B", "M"}
    assert all(isinstance(array.base, np.ndarray) and not array.flags.writeable for array in ready._arrays.values())
    assert ready.proto == proto
    peer = read_model(proto)  # a message is not read in parts
    assert not peer._arrays
    for scale in (1, -2, 0.5):
        np.testing.assert_array_equal(ready(scale * X)["y"], peer(scale * X)["y"])
    layer, other = ready.layers["lstm"], peer.layers["lstm"]
    assert isinstance(layer, NodeLayer)
    assert isinstance(other, NodeLayer)
    for name, weight in other.weights.items():
        np.testing.assert_array_equal(layer.weights[name], weight)
    graph, tensors = ready.folded()
    assert set(tensors) == {tensor.name for tensor in graph.graph.initializer} == {"M", "shift"}
    np.testing.assert_array_equal(tensors["M"], numpy_helper.to_array(proto.graph.initializer[3]))


def test_defaults_and_streams() -> None:
    """An array may be the default of an input, which a call replaces and a stream feeds back."""
    nodes = [helper.make_node("Add", ["x", "s"], ["sN"]), helper.make_node("Mul", ["sN", "f"], ["y"])]
    constants = {"s": weights(4, 5), "f": weights(4, 5)}
    proto = simple_model(nodes, {"x": weights(4, 5), "s": constants["s"]}, ["y", "sN"], constants)
    ready, peer = read_model(proto.SerializeToString()), read_model(proto)
    assert ready._arrays.keys() == {"s", "f"}
    streams = [one.stream({"sN": "s"}) for one in (ready, peer)]
    for _ in range(5):
        x, s = weights(4, 5), weights(4, 5)
        for feeds in ({"x": x}, {"x": x, "s": s}, {"x": x}):
            np.testing.assert_array_equal(ready(feeds)["y"], peer(feeds)["y"])
        np.testing.assert_array_equal(*(stream.push(x)["y"] for stream in streams))
    assert "s" not in streams[0]._carrier.model._arrays


def changed(change: Any) -> bytes:
    proto = model()
    change(proto.graph.initializer[3])
    return bytes(proto.SerializeToString())


def tensor(**fields: Any) -> bytes:
    """A model of a single tensor."""
    graph = onnx.GraphProto(initializer=[TensorProto(**fields)])
    return bytes(onnx.ModelProto(graph=graph).SerializeToString())


FLOATS = weights(10).tobytes()
PLAIN: dict[str, Any] = {"name": "a", "dims": [10], "data_type": 1, "raw_data": FLOATS}
GRAPH = onnx.GraphProto(initializer=[TensorProto(**PLAIN)]).SerializeToString()
TWICE = TensorProto(**PLAIN).SerializeToString() + bytes([9 << 3 | 2, 40]) + FLOATS[::-1]
# Serialized models, and the names of the tensors that become arrays.
FILES: dict[str, tuple[bytes, list[str]]] = {
    "usual": (model().SerializeToString(), ["B", "M", "R", "W"]),
    "a model version": (model().SerializeToString() + b"\x28\x07", ["B", "M", "R", "W"]),
    "one tensor": (tensor(**PLAIN), ["a"]),
    "with a doc_string": (tensor(**PLAIN, doc_string="x"), ["a"]),
    "no name": (tensor(**{**PLAIN, "name": ""}), []),
    "fewer bytes than elements": (tensor(**{**PLAIN, "dims": [11]}), []),
    "negative sizes": (tensor(**{**PLAIN, "dims": [-2, -5]}), []),
    "sizes beyond 64 bits": (tensor(**{**PLAIN, "dims": [2**62, 2**62, 0]}), []),
    "another type": (tensor(**{**PLAIN, "data_type": TensorProto.BFLOAT16, "dims": [20]}), []),
    "an unknown type": (tensor(**{**PLAIN, "data_type": 999}), []),
    "floats in a field": (tensor(name="a", dims=[10], data_type=1, float_data=weights(10)), []),
    "both kinds of values": (tensor(**PLAIN, float_data=[1.0]), []),
    "external": (changed(lambda t: setattr(t, "data_location", TensorProto.EXTERNAL)), ["B", "R", "W"]),
    "a segment": (changed(lambda t: t.segment.CopyFrom(TensorProto.Segment(begin=0))), ["B", "R", "W"]),
    "one name twice": (changed(lambda t: setattr(t, "name", "W")), []),
    "two graphs, which protobuf merges": (2 * model().SerializeToString(), []),
    "values twice, of which the last hold": (
        bytes([7 << 3 | 2, len(TWICE) + 2, 5 << 3 | 2, len(TWICE)]) + TWICE,
        [],
    ),
    "a key of two bytes": (b"\xba\x00" + bytes([len(GRAPH)]) + GRAPH, ["a"]),
    "an endless number": (b"\x3a" + b"\xff" * 11, []),
    "a length beyond the file": (tensor(**PLAIN)[:-1], []),
    "a length beyond the graph": (tensor(**PLAIN) + b"\x3a\x03\x2a\x30", []),
    "a graph that is a number": (tensor(**PLAIN) + b"\x38\x01", []),
    "a group": (tensor(**PLAIN) + b"\x3b\x3c", []),
    "field 0": (tensor(**PLAIN) + b"\x02\x00", []),
    "fixed sizes": (tensor(**PLAIN) + b"\xf9\x07" + bytes(8) + b"\xfd\x07" + bytes(4), ["a"]),
    "a name that is not UTF-8": (tensor(**PLAIN).replace(b"B\x01a", b"B\x01\xff"), []),
    "nothing": (b"", []),
    "no graph": (onnx.ModelProto(ir_version=8).SerializeToString(), []),
}


@each_row("name", FILES)
def test_what_protobuf_reads(name: str) -> None:
    contents, names = FILES[name]
    actual, expected = read(contents), whole(contents)
    if isinstance(expected, tuple):
        assert actual == expected
    else:
        assert actual == (expected, names)


def test_values_twice() -> None:
    proto = whole(FILES["values twice, of which the last hold"][0])
    assert proto.graph.initializer[0].raw_data == FLOATS[::-1]


def test_altered_files() -> None:
    """Any bytes are read as protobuf reads them, or rejected as it rejects them."""
    base, outcomes = bytearray(model().SerializeToString()), set()
    for seed in range(1500):
        draw = np.random.default_rng(seed)
        contents = bytearray(base)
        for _ in range(draw.integers(1, 4)):
            place = int(draw.integers(len(contents)))
            kind = draw.integers(4)
            if kind == 0:
                contents[place] = draw.integers(256)
            elif kind == 1:
                del contents[place : place + int(draw.integers(1, 9))]
            elif kind == 2:
                contents[place:place] = draw.bytes(int(draw.integers(1, 9)))
            else:
                contents[place] ^= 1 << int(draw.integers(8))
        actual, expected = read(bytes(contents)), whole(bytes(contents))
        assert (actual if isinstance(expected, tuple) else actual[0]) == expected, seed
        outcomes.add("error" if isinstance(expected, tuple) else len(actual[1]))
    assert {"error", 0, 3, 4} <= outcomes


def test_errors_name_the_path(tmp_path: Path) -> None:
    path = tmp_path / "some.onnx"
    path.write_bytes(FILES["no graph"][0])
    with pytest.raises(PyrnnxError, match=r"some\.onnx: not an ONNX model"):
        read_model(path)


def test_a_file_that_shrinks_while_it_is_read() -> None:
    contents = model().SerializeToString()
    for size in range(0, len(contents), 97):
        assert read_parts(io.BytesIO(contents[:size]), len(contents)) is None
