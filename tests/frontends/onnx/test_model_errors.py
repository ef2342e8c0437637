"""ONNX models that cannot be read or are inconsistent, and rejected calls: each is an error with its cause."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx_models import SOUND_INPUT, make_graph, simple_model, sound
from rows import each_row

from pyrnnx import ArgumentError, FormatError, PyrnnxError, UnsupportedError
from pyrnnx.frontends.onnx import Model, read_model
from pyrnnx.onnxruntime import InferenceSession

node = helper.make_node
X = SOUND_INPUT


def choice(source: str) -> onnx.NodeProto:
    """Return an If, by a condition that is none, whose bodies read `source`."""
    body = make_graph([node("Neg", [source], ["v"], name="inner")], {}, ["v"])
    return node("If", ["x"], ["z"], name="choice", then_branch=body, else_branch=body)


def functions_in_a_circle(model: onnx.ModelProto) -> None:
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("test", 1)]
    for name, other in (("F", "G"), ("G", "F")):
        call = node(other, ["p"], ["q"], domain="test")
        model.functions.append(helper.make_function("test", name, ["p"], ["q"], [call], imports))
    model.opset_import.add(domain="test", version=1)


Change = Callable[[onnx.ModelProto], Any]
NEGATIVE = onnx.TensorProto(data_type=1, dims=[2, -3], raw_data=bytes(24))
# Mistakes that reading the file finds.
BROKEN: dict[str, tuple[Change, str]] = {
    "an input twice": (lambda m: m.graph.input.append(m.graph.input[0]), "the input 'x' is defined twice"),
    "an output twice": (lambda m: m.graph.node.append(node("Abs", ["x"], ["y"], name="third")),
        "Abs 'third': the output 'y' is defined twice"),
    "an output that is an input": (lambda m: m.graph.node.append(node("Abs", ["a"], ["x"], name="third")),
        "Abs 'third': the output 'x' is defined twice"),
    "a missing input": (lambda m: m.graph.node.append(node("Abs", ["nowhere"], ["z"], name="third")),
        "Abs 'third' needs 'nowhere'"),
    "a missing input in a body": (lambda m: m.graph.node.append(choice("nowhere")),
        "If 'choice': Neg 'inner' needs 'nowhere'"),
    "a missing output": (lambda m: m.graph.output.add(name="nowhere"), "the output 'nowhere' is computed by no node"),
    "a cycle": (lambda m: m.graph.node.append(node("Add", ["x", "z"], ["z"], name="third")),
        "Add 'third' is in a cycle, or depends on one"),
    "a cycle through a body": (lambda m: m.graph.node.append(choice("z")),
        "If 'choice' is in a cycle, or depends on one"),
    "opset 0": (lambda m: setattr(m.opset_import[0], "version", 0), "version 0 of domain ''"),
    "negative dims": (lambda m: m.graph.initializer[0].dims.append(-1), r"tensor 'a' has dims \[2, 3, -1\], below 0"),
    "an unknown element type": (lambda m: setattr(m.graph.input[0].type.tensor_type, "elem_type", 77),
        "'x' has the unknown element type 77"),
    "no graph": (lambda m: m.ClearField("graph"), "it has no graph"),
}  # fmt: skip
# Models that ONNX Runtime rejects when they are called.
REJECTED: dict[str, tuple[Change, str]] = {
    "a wrong condition": (lambda m: m.graph.node.append(choice("x")),
        r"input parameter \(x\) of operator \(If\) in node \(choice\) is invalid"),
    "an unknown operator": (lambda m: m.graph.node.append(node("Frob", ["x"], ["z"])), "Frob"),
    "functions in a circle": (functions_in_a_circle, "function definitions must not be recursive"),
}  # fmt: skip
# Models that ONNX Runtime runs all the same, and why the passes do not.
LENIENT: dict[str, tuple[Change, str]] = {
    "an initializer twice": (lambda m: m.graph.initializer.append(m.graph.initializer[0]),
        "the initializer 'a' is defined twice"),
    "no opset": (lambda m: setattr(m.opset_import[0], "domain", "test"),
        "opset_import has no version for the default domain"),
    "two opsets": (lambda m: m.opset_import.add(domain="ai.onnx", version=12),
        "opset_import has the versions 17 and 12 of domain ''"),
    "no UTF-8": (lambda m: m.ParseFromString(m.SerializeToString().replace(b"second", b"secon\xff")),
        r"the name b'secon\\xff' is not UTF-8"),
    "negative dims in an attribute": (lambda m: m.graph.node.append(node("Constant", [], ["z"], value=NEGATIVE)), ""),
}  # fmt: skip


@each_row(("change", "words"), BROKEN.values(), ids=BROKEN)
def test_broken(change: Change, words: str) -> None:
    model = sound()
    change(model)
    with pytest.raises((FormatError, UnsupportedError), match=f"^ONNX model: .*{words}"):
        read_model(model)


@each_row(("change", "words"), REJECTED.values(), ids=REJECTED)
def test_rejected(change: Change, words: str) -> None:
    proto = sound()
    change(proto)
    model = read_model(proto)
    for use in (lambda: model(X), lambda: model.plan):
        with pytest.raises(UnsupportedError, match=f"^ONNX model: ONNX Runtime cannot run the model: .*{words}"):
            use()


@each_row(("change", "words"), LENIENT.values(), ids=LENIENT)
def test_what_only_onnxruntime_reads(change: Change, words: str) -> None:
    """It runs without the passes, through both doors."""
    proto = sound()
    change(proto)
    model, session = read_model(proto), InferenceSession(proto.SerializeToString())
    assert model.layers.why_none == session.why_none
    assert re.search(words, model.layers.why_none)
    assert len(model.layers) == len(session.layers) == 0
    np.testing.assert_array_equal(model(X)["y"], X)
    np.testing.assert_array_equal(session.run(["y"], {"x": X})[0], X)


def test_truncated() -> None:
    contents = sound().SerializeToString()
    for length in range(len(contents)):
        with pytest.raises(FormatError):
            read_model(contents[:length])


NO_MODELS = {
    "text": b"this is no model",
    "empty": b"",
    "zeros": bytes(100),
    "a tensor": numpy_helper.from_array(X).SerializeToString(),
}


@pytest.mark.parametrize("name", NO_MODELS)
def test_no_model(tmp_path: Path, name: str) -> None:
    path = tmp_path / "some.onnx"
    path.write_bytes(NO_MODELS[name])
    for source in (path, NO_MODELS[name]):
        with pytest.raises(FormatError):
            read_model(source)
    with pytest.raises(FormatError, match=r"some\.onnx: "):
        read_model(os.fspath(path))


def test_no_file(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere.onnx", tmp_path, "a\0b"):
        with pytest.raises(ArgumentError, match="cannot be read"):
            read_model(path)


def test_files_that_are_none(tmp_path: Path) -> None:
    """A pipe that nobody writes to, a link to a device without an end, and a file beyond what protobuf reads."""
    os.mkfifo(tmp_path / "pipe.onnx")
    (tmp_path / "link.onnx").symlink_to("/dev/zero")
    with (tmp_path / "sparse.onnx").open("wb") as file:
        file.truncate(100 * 2**30)
    for name, why in (("pipe", "no regular file"), ("link", "no regular file"), ("sparse", "more than the 2147483647")):
        with pytest.raises(ArgumentError, match=rf"{name}\.onnx' cannot be read \(.*{why}"):
            read_model(tmp_path / f"{name}.onnx")


NO_SOURCES: dict[str, Any] = {"None": None, "a number": 3, "a graph": onnx.GraphProto(), "a list": [b"abc"]}


@pytest.mark.parametrize("name", NO_SOURCES)
def test_no_source(name: str) -> None:
    kind = type(NO_SOURCES[name]).__name__
    with pytest.raises(ArgumentError, match=f"{kind} was given; expected a path, bytes or a ModelProto"):
        read_model(NO_SOURCES[name])
    with pytest.raises(ArgumentError, match=f"proto is {kind}; expected an onnx.ModelProto"):
        Model(NO_SOURCES[name])


def test_a_weight_that_is_short() -> None:
    array = np.ones((1, 3, 3), np.float32)
    gru = node("GRU", ["x", "W", "R"], ["y"], hidden_size=1, name="gru")
    model = simple_model([gru], {"x": np.ones((2, 1, 3), np.float32)}, ["y"], {"W": array, "R": array[..., :1]})
    model.graph.initializer[0].raw_data = b"1234"
    for use in (lambda: read_model(model).layers, lambda: InferenceSession(model.SerializeToString())):
        with pytest.raises(FormatError, match="the tensor 'W' cannot be read"):
            use()


def test_a_recurrent_node_with_too_many_inputs() -> None:
    """Its weights are computed, so each call builds a layer."""
    nodes = [node("GRU", ["x", "w", "r", "", "", "", "x"], ["y"], hidden_size=1)]
    arrays = {"x": np.ones((2, 1, 1), np.float32), "w": np.ones((1, 3, 1), np.float32)}
    model = read_model(simple_model(nodes, arrays | {"r": arrays["w"]}, ["y"], {}))
    with pytest.raises(PyrnnxError, match="the node has 7 inputs; expected at most 6: X, W, R, B"):
        model(arrays["x"], arrays["w"], arrays["w"])
