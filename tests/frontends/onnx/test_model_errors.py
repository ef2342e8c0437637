"""ONNX models that cannot be read or are inconsistent: each is an error with its cause."""

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
from onnx_models import make_graph, simple_model
from rows import each_row

from pyrnnx import ArgumentError, FormatError, PyrnnxError, UnsupportedError
from pyrnnx.frontends.onnx import Model, read_model
from pyrnnx.onnxruntime import InferenceSession

node = helper.make_node
X = np.ones((2, 3), np.float32)


def sound() -> onnx.ModelProto:
    nodes = [node("Neg", ["x"], ["u"], name="first"), node("Add", ["u", "a"], ["y"], name="second")]
    return simple_model(nodes, {"x": X}, ["y"], {"a": X * 2})


def test_sound() -> None:
    np.testing.assert_array_equal(read_model(sound())(X)["y"], X)


def two_initializers(model: onnx.ModelProto) -> None:
    model.graph.initializer.append(model.graph.initializer[0])


def two_inputs(model: onnx.ModelProto) -> None:
    model.graph.input.append(model.graph.input[0])


def two_outputs(model: onnx.ModelProto) -> None:
    model.graph.node[0].output[0] = "y"


def output_is_an_input(model: onnx.ModelProto) -> None:
    model.graph.node[0].output[0] = "x"


def wrong_condition(model: onnx.ModelProto) -> None:
    body = make_graph([node("Neg", ["x"], ["u"])], {}, ["u"])
    model.graph.node.append(node("If", ["x"], ["z"], name="choice", then_branch=body, else_branch=body))


def missing_input(model: onnx.ModelProto) -> None:
    model.graph.node[1].input[1] = "nowhere"


def missing_input_in_a_body(model: onnx.ModelProto) -> None:
    body = make_graph([node("Neg", ["nowhere"], ["v"], name="inner")], {}, ["v"])
    model.graph.node.append(node("If", ["x"], ["z"], name="choice", then_branch=body, else_branch=body))


def missing_output(model: onnx.ModelProto) -> None:
    model.graph.output[0].name = "nowhere"


def cycle(model: onnx.ModelProto) -> None:
    model.graph.node[0].input[0] = "y"


def cycle_through_a_body(model: onnx.ModelProto) -> None:
    body = make_graph([node("Neg", ["z"], ["v"])], {}, ["v"])
    model.graph.node.append(node("If", ["x"], ["z"], name="choice", then_branch=body, else_branch=body))


def no_opset(model: onnx.ModelProto) -> None:
    del model.opset_import[:]
    model.opset_import.add(domain="test", version=1)


def two_opsets(model: onnx.ModelProto) -> None:
    model.opset_import.add(domain="ai.onnx", version=12)


def opset_zero(model: onnx.ModelProto) -> None:
    model.opset_import[0].version = 0


def negative_dims(model: onnx.ModelProto) -> None:
    model.graph.initializer[0].dims[0] = -1


def negative_dims_in_an_attribute(model: onnx.ModelProto) -> None:
    model.graph.node.append(node("Constant", [], ["z"], value=numpy_helper.from_array(X, "c")))
    model.graph.node[-1].attribute[0].t.dims[1] = -3


def unknown_element_type(model: onnx.ModelProto) -> None:
    model.graph.input[0].type.tensor_type.elem_type = 77


def not_utf8(model: onnx.ModelProto) -> None:
    model.ParseFromString(model.SerializeToString().replace(b"second", b"secon\xff"))


def no_graph(model: onnx.ModelProto) -> None:
    model.ClearField("graph")


def functions_in_a_circle(model: onnx.ModelProto) -> None:
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("test", 1)]
    for name, other in (("F", "G"), ("G", "F")):
        call = node(other, ["p"], ["q"], domain="test")
        model.functions.append(helper.make_function("test", name, ["p"], ["q"], [call], imports))
    model.opset_import.add(domain="test", version=1)


# Mistakes that reading the file finds.
BROKEN: dict[Callable[[onnx.ModelProto], None], str] = {
    two_inputs: "the input 'x' is defined twice",
    two_outputs: "Add 'second': the output 'y' is defined twice",
    output_is_an_input: "Neg 'first': the output 'x' is defined twice",
    missing_input: "Add 'second' needs 'nowhere'",
    missing_input_in_a_body: "If 'choice': Neg 'inner' needs 'nowhere'",
    missing_output: "the output 'nowhere' is computed by no node",
    cycle: "Neg 'first' is in a cycle, or depends on one",
    cycle_through_a_body: "If 'choice' is in a cycle, or depends on one",
    opset_zero: "version 0 of domain ''",
    negative_dims: r"tensor 'a' has dims \[-1, 3\], below 0",
    unknown_element_type: "'x' has the unknown element type 77",
    no_graph: "it has no graph",
}
# Models that ONNX Runtime rejects when they are called.
REJECTED: dict[Callable[[onnx.ModelProto], None], str] = {
    wrong_condition: r"input parameter \(x\) of operator \(If\) in node \(choice\) is invalid",
    functions_in_a_circle: "function definitions must not be recursive",
}
# Models that ONNX Runtime runs all the same, and why the passes do not.
LENIENT: dict[Callable[[onnx.ModelProto], None], str] = {
    two_initializers: "the initializer 'a' is defined twice",
    no_opset: "opset_import has no version for the default domain",
    two_opsets: "opset_import has the versions 17 and 12 of domain ''",
    not_utf8: r"the text b'secon\\xff' in a NodeProto is not UTF-8",
    negative_dims_in_an_attribute: "",
}


def name_of(function: Callable[[onnx.ModelProto], None]) -> str:
    return function.__name__


@each_row("break_it", BROKEN, ids=name_of)
def test_broken(break_it: Callable[[onnx.ModelProto], None]) -> None:
    model = sound()
    break_it(model)
    with pytest.raises((FormatError, UnsupportedError), match=f"^ONNX model: .*{BROKEN[break_it]}"):
        read_model(model)


@each_row("break_it", REJECTED, ids=name_of)
def test_rejected(break_it: Callable[[onnx.ModelProto], None]) -> None:
    proto = sound()
    break_it(proto)
    model = read_model(proto)
    with pytest.raises(
        UnsupportedError, match=f"^ONNX model: ONNX Runtime cannot run the model: .*{REJECTED[break_it]}"
    ):
        model(X)


@each_row("break_it", LENIENT, ids=name_of)
def test_what_only_onnxruntime_reads(break_it: Callable[[onnx.ModelProto], None]) -> None:
    """It runs without the passes, through both doors."""
    proto = sound()
    break_it(proto)
    model, session = read_model(proto), InferenceSession(proto.SerializeToString())
    assert model.layers.why_none == session.why_none
    assert re.search(LENIENT[break_it], model.layers.why_none)
    assert len(model.layers) == len(session.layers) == 0
    np.testing.assert_array_equal(model(X)["y"], X)
    np.testing.assert_array_equal(session.run(["y"], {"x": X})[0], X)


def test_old_models_without_opsets_are_of_opset_1() -> None:
    model = sound()
    del model.opset_import[:]
    model.ir_version = 2
    assert read_model(model).inputs[0].name == "x"


def test_truncated() -> None:
    contents = sound().SerializeToString()
    for length in range(len(contents)):
        with pytest.raises(FormatError):
            read_model(contents[:length])


def test_bytes_at_random() -> None:
    """Whatever is wrong with a file, it is a PyrnnxError, if it is wrong at all."""
    random = np.random.default_rng(7)
    contents = np.frombuffer(sound().SerializeToString(), np.uint8)
    rejected = 0
    for _ in range(150):
        changed = contents.copy()
        changed[random.integers(len(contents), size=2)] = random.integers(256, size=2)
        try:
            read_model(changed.tobytes())(X)
        except PyrnnxError:
            rejected += 1
    assert 50 < rejected < 150


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


def test_bytes_of_more_than_a_model_may_have() -> None:
    contents: Any = memoryview(np.broadcast_to(np.uint8(0), 2**31 + 1))  # type: ignore[arg-type]
    with pytest.raises(FormatError, match=r"ONNX model: 2147483649 bytes; expected at most 2147483647"):
        read_model(contents)


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
