"""ONNX models that cannot be read, or are not sound: each an error with its cause."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx_models import make_graph, simple_model

from pyrnnx import ArgumentError, FormatError, PyrnnxError
from pyrnnx.frontends.onnx import read_model

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
    cycle: "Neg 'first' is in, or behind, a cycle",
    cycle_through_a_body: "If 'choice' is in, or behind, a cycle",
    cycle_of_one: "Neg 'first' is in, or behind, a cycle",
    no_opset: "opset_import has no version for the default domain",
    two_opsets: "opset_import has the versions 17 and 12 of domain ''",
    opset_zero: "version 0 of domain ''",
    unknown_element_type: "'x' has the unknown element type 77",
    no_graph: "it has no graph",
    functions_in_a_circle: r"functions call each other in a circle; among test\.F, test\.G",
}


@pytest.mark.parametrize("break_it", BROKEN, ids=lambda function: function.__name__)
def test_broken(break_it: Callable[[onnx.ModelProto], None]) -> None:
    model = sound()
    break_it(model)
    with pytest.raises(FormatError, match=f"^ONNX model: .*{BROKEN[break_it]}"):
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


def test_not_utf8() -> None:
    contents = sound().SerializeToString().replace(b"second", b"se\xffond")
    with pytest.raises(FormatError, match=r"the text b'se\\xffond' in a NodeProto is not UTF-8"):
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


def test_no_source() -> None:
    with pytest.raises(ArgumentError, match="int was given; expected a path, bytes or a ModelProto"):
        read_model(3)  # type: ignore[arg-type]


def external(tmp_path: Path) -> Path:
    """A model whose one weight is in a file beside it; another is in a branch, with its own file."""
    path = tmp_path / "folder" / "model.onnx"
    path.parent.mkdir()
    onnx.save(sound(), os.fspath(path), save_as_external_data=True, location="weights.bin", size_threshold=0)
    assert (path.parent / "weights.bin").is_file()
    return path


def edited(path: Path, **changes: str) -> onnx.ModelProto:
    model = onnx.load(os.fspath(path), load_external_data=False)
    for entry in model.graph.initializer[0].external_data:
        entry.value = changes.pop(entry.key, entry.value)
    for key, value in changes.items():
        model.graph.initializer[0].external_data.add(key=key, value=value)
    path.write_bytes(model.SerializeToString())
    return model


def test_external_data(tmp_path: Path) -> None:
    path = external(tmp_path)
    model = read_model(path)
    (path.parent / "weights.bin").unlink()
    np.testing.assert_array_equal(model(X)["y"], X)


def test_external_data_is_missing(tmp_path: Path) -> None:
    path = external(tmp_path)
    (path.parent / "weights.bin").unlink()
    with pytest.raises(FormatError, match=r"tensor 'a' is in the file 'weights.bin', which does not exist in "):
        read_model(path)


def test_external_data_is_short(tmp_path: Path) -> None:
    path = external(tmp_path)
    (path.parent / "weights.bin").write_bytes(b"abc")
    with pytest.raises(FormatError, match=r"tensor 'a' .* from byte 0 on for 24 bytes; it has 3"):
        read_model(path)


@pytest.mark.parametrize("location", ["../weights.bin", "/weights.bin", "", "sub/../../weights.bin", "C:\\weights.bin"])
def test_external_data_leaves_the_folder(tmp_path: Path, location: str) -> None:
    path = external(tmp_path)
    (path.parent / "weights.bin").rename(tmp_path / "weights.bin")
    edited(path, location=location)
    with pytest.raises(FormatError, match="expected a file in the model's folder"):
        read_model(path)


def test_external_data_by_a_link(tmp_path: Path) -> None:
    path = external(tmp_path)
    (path.parent / "weights.bin").rename(tmp_path / "weights.bin")
    (path.parent / "weights.bin").symlink_to(tmp_path / "weights.bin")
    with pytest.raises(FormatError, match="tensor 'a'"):
        read_model(path)


@pytest.mark.parametrize("changes", [{"offset": "-4"}, {"offset": "1000"}, {"length": "1000"}, {"length": "x"}])
def test_external_data_out_of_its_file(tmp_path: Path, changes: dict[str, str]) -> None:
    path = external(tmp_path)
    edited(path, **changes)
    with pytest.raises(FormatError, match="tensor 'a'"):
        read_model(path)


def test_external_data_without_a_path(tmp_path: Path) -> None:
    path = external(tmp_path)
    for source in (path.read_bytes(), edited(path)):
        with pytest.raises(FormatError, match="expected a path to the model"):
            read_model(source)


def test_short_tensor() -> None:
    model = sound()
    model.graph.initializer[0].raw_data = b"1234"
    with pytest.raises(FormatError, match="the tensor 'a' cannot be read"):
        read_model(with_a_constant_sum(model))(X)


def with_a_constant_sum(model: onnx.ModelProto) -> onnx.ModelProto:
    model.graph.node.append(node("Add", ["a", "a"], ["s"]))
    return model


CALLS = {
    "none": ((), "input 'x' is missing"),
    "two": ((X, X), "2 arrays were given; expected at most 1: x"),
    "unknown": (({"x": X, "z": X},), "input 'z' is unknown"),
    "dtype": ((X.astype(np.float64),), "input 'x' has dtype float64; expected float32"),
    "rank": ((X[0],), r"input 'x' has shape \(3,\)"),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name: str) -> None:
    arrays, message = CALLS[name]
    with pytest.raises(ArgumentError, match=f"^ONNX model: {message}"):
        read_model(sound())(*arrays)


def test_what_the_evaluator_computes_wrongly() -> None:
    """GridSample, cubic, border: off by some hundredths in onnx 1.23."""
    sample = helper.make_node("GridSample", ["X", "grid"], ["Y"], mode="cubic", padding_mode="border")
    arrays = {"X": np.ones((1, 1, 4, 5), np.float32), "grid": np.zeros((1, 2, 3, 2), np.float32)}
    with pytest.raises(PyrnnxError, match=r"GridSample .*: mode cubic with padding_mode border is wrong"):
        read_model(simple_model([sample], arrays, ["Y"], opset=20))(arrays)
