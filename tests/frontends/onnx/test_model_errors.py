"""ONNX models that cannot be read or are inconsistent: each is an error with its cause."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx_models import make_graph, simple_model

from pyrnnx import ArgumentError, FormatError, PyrnnxError, UnsupportedError
from pyrnnx.frontends.onnx import Model, read_model

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


def body_repeats_a_name(model: onnx.ModelProto) -> None:
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


def cycle_of_one(model: onnx.ModelProto) -> None:
    model.graph.node[0].input[0] = "u"


def no_opset(model: onnx.ModelProto) -> None:
    del model.opset_import[:]
    model.opset_import.add(domain="test", version=1)


def two_opsets(model: onnx.ModelProto) -> None:
    model.opset_import.add(domain="ai.onnx", version=12)


def opset_zero(model: onnx.ModelProto) -> None:
    model.opset_import[0].version = 0


def newest_opset(model: onnx.ModelProto) -> None:
    model.opset_import[0].version = onnx.defs.onnx_opset_version() + 1


def opset_beyond_all(model: onnx.ModelProto) -> None:
    model.opset_import[0].version = 2**62


def opset_of_a_function(model: onnx.ModelProto) -> None:
    imports = [helper.make_opsetid("", 99)]
    model.functions.append(helper.make_function("test", "F", ["p"], ["q"], [node("Neg", ["p"], ["q"])], imports))
    model.opset_import.add(domain="test", version=1)


def empty_input(model: onnx.ModelProto) -> None:
    model.graph.node[1].input[0] = ""


def no_inputs(model: onnx.ModelProto) -> None:
    model.graph.node.append(node("Squeeze", [""], ["z"]))


def too_few_inputs_in_a_body(model: onnx.ModelProto) -> None:
    body = make_graph([node("Add", ["x"], ["v"])], {}, ["v"])
    model.graph.node.append(node("If", ["x"], ["z"], then_branch=body, else_branch=body))


def attribute_three_times(model: onnx.ModelProto) -> None:
    model.graph.node.append(node("Softmax", ["x"], ["z"], axis=1))
    model.graph.node[-1].attribute.extend([model.graph.node[-1].attribute[0]] * 2)


def attribute_twice_in_a_function(model: onnx.ModelProto) -> None:
    imports = [helper.make_opsetid("", 17)]
    call = node("Softmax", ["p"], ["q"], axis=1)
    call.attribute.add().CopyFrom(call.attribute[0])
    model.functions.append(helper.make_function("test", "F", ["p"], ["q"], [call], imports))


def negative_dims(model: onnx.ModelProto) -> None:
    model.graph.initializer[0].dims[0] = -1


def negative_dims_in_an_attribute(model: onnx.ModelProto) -> None:
    model.graph.node.append(node("Constant", [], ["z"], value=numpy_helper.from_array(X, "c")))
    model.graph.node[-1].attribute[0].t.dims[1] = -3


def unknown_element_type(model: onnx.ModelProto) -> None:
    model.graph.input[0].type.tensor_type.elem_type = 77


def no_graph(model: onnx.ModelProto) -> None:
    model.ClearField("graph")


def functions_in_a_circle(model: onnx.ModelProto) -> None:
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("test", 1)]
    for name, other in (("F", "G"), ("G", "F")):
        call = node(other, ["p"], ["q"], domain="test")
        model.functions.append(helper.make_function("test", name, ["p"], ["q"], [call], imports))
    model.opset_import.add(domain="test", version=1)


BROKEN: dict[Callable[[onnx.ModelProto], None], str] = {
    two_initializers: "the initializer 'a' is defined twice",
    two_inputs: "the input 'x' is defined twice",
    two_outputs: "Add 'second': the output 'y' is defined twice",
    output_is_an_input: "Neg 'first': the output 'x' is defined twice",
    body_repeats_a_name: r"If 'choice': Neg \(output 'u'\): the output 'u' is defined twice",
    missing_input: "Add 'second' needs 'nowhere'",
    missing_input_in_a_body: "If 'choice': Neg 'inner' needs 'nowhere'",
    missing_output: "the output 'nowhere' is computed by no node",
    cycle: "Neg 'first' is in a cycle, or depends on one",
    cycle_through_a_body: "If 'choice' is in a cycle, or depends on one",
    cycle_of_one: "Neg 'first' is in a cycle, or depends on one",
    no_opset: "opset_import has no version for the default domain",
    two_opsets: "opset_import has the versions 17 and 12 of domain ''",
    opset_zero: "version 0 of domain ''",
    newest_opset: rf"expected at most {onnx.defs.onnx_opset_version()}, the newest that the installed onnx",
    opset_beyond_all: f"opset_import has version {2**62} of the default domain; expected at most",
    opset_of_a_function: "opset_import has version 99 of the default domain; expected at most",
    empty_input: "Add 'second': its input A is missing; the operator needs it",
    no_inputs: r"Squeeze \(output 'z'\): its input data is missing; the operator needs it",
    too_few_inputs_in_a_body: r"Add \(output 'v'\): its input B is missing; the operator needs it",
    attribute_three_times: r"Softmax \(output 'z'\): attribute 'axis' is there 3 times",
    attribute_twice_in_a_function: r"Softmax \(output 'q'\): attribute 'axis' is there 2 times",
    negative_dims: r"tensor 'a' has dims \[-1, 3\], below 0",
    negative_dims_in_an_attribute: r"tensor 'c' has dims \[2, -3\], below 0",
    unknown_element_type: "'x' has the unknown element type 77",
    no_graph: "it has no graph",
    functions_in_a_circle: r"functions call each other in a cycle; among test\.F, test\.G",
}


@pytest.mark.parametrize("break_it", BROKEN, ids=lambda function: function.__name__)
def test_broken(break_it: Callable[[onnx.ModelProto], None]) -> None:
    model = sound()
    break_it(model)
    with pytest.raises((FormatError, UnsupportedError), match=f"^ONNX model: .*{BROKEN[break_it]}"):
        read_model(model)


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


TEXTS = {
    "name of a node": b"second",
    "name of a value": b"hidden",
    "text about a node": b"doc",
    "key of metadata": b"key",
}


@pytest.mark.parametrize("name", TEXTS)
def test_not_utf8(name: str) -> None:
    body = make_graph([node("Neg", ["x"], ["hidden"])], {}, ["hidden"])
    model = sound()
    model.graph.node.append(node("If", ["c"], ["z"], then_branch=body, else_branch=body, doc_string="doc"))
    model.graph.initializer.append(numpy_helper.from_array(np.array(True), "c"))
    helper.set_model_props(model, {"key": "1"})
    text = TEXTS[name]
    contents = model.SerializeToString().replace(text, text[:-1] + b"\xff")
    with pytest.raises(FormatError, match=r"the text b'\w+\\xff' in a \w+ is not UTF-8"):
        read_model(contents)


def test_bytes_at_random() -> None:
    """Whatever is wrong with a file, it is a PyrnnxError, if it is wrong at all."""
    random = np.random.default_rng(7)
    contents = np.frombuffer(sound().SerializeToString(), np.uint8)
    rejected = 0
    for _ in range(600):
        changed = contents.copy()
        changed[random.integers(len(contents), size=2)] = random.integers(256, size=2)
        try:
            read_model(changed.tobytes())(X)
        except PyrnnxError:
            rejected += 1
    assert 200 < rejected < 600


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


@pytest.mark.parametrize("name", ["a" * 5000, "b/" * 5000])
def test_long_paths(name: str) -> None:
    with pytest.raises(ArgumentError, match="cannot be read") as caught:
        read_model(name)
    assert len(str(caught.value)) < 1000


def test_short_tensor() -> None:
    model = sound()
    model.graph.initializer[0].raw_data = b"1234"
    with pytest.raises(FormatError, match="the tensor 'a' cannot be read"):
        read_model(with_a_constant_sum(model))(X)


def with_a_constant_sum(model: onnx.ModelProto) -> onnx.ModelProto:
    model.graph.node.append(node("Add", ["a", "a"], ["s"]))
    return model


def test_a_recurrent_node_with_too_many_inputs() -> None:
    """Its weights are computed, so each call builds a layer."""
    nodes = [node("GRU", ["x", "w", "r", "", "", "", "x"], ["y"], hidden_size=1)]
    arrays = {"x": np.ones((2, 1, 1), np.float32), "w": np.ones((1, 3, 1), np.float32)}
    model = read_model(simple_model(nodes, arrays | {"r": arrays["w"]}, ["y"], {}))
    with pytest.raises(PyrnnxError, match="the node has 7 inputs; expected at most 6: X, W, R, B"):
        model(arrays["x"], arrays["w"], arrays["w"])


def test_a_body_of_an_operator_that_runs_none() -> None:
    body = make_graph([node("Multinomial", ["x"], ["u"])], {}, ["u"])
    model = read_model(simple_model([node("Neg", ["x"], ["y"], body=body)], {"x": X}, ["y"], {}))
    with pytest.raises(UnsupportedError, match=r"Multinomial .* cannot be run"):
        model(X)
