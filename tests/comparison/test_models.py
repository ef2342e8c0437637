"""`load`, and `compare` of whole models: an ONNX model, and OpenVINO's conversion of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import verdicts
from layers import random_weights
from onnx import TensorProto, helper
from rows import each_row

import pyrnnx
from pyrnnx import (
    ArgumentError,
    Comparison,
    Direction,
    Layers,
    Model,
    ModelComparison,
    PyrnnxError,
    RecurrentOp,
    TensorInfo,
)
from pyrnnx.frontends.onnx import read_model
from pyrnnx.frontends.openvino import write_model
from pyrnnx.operator.op import CellName

openvino: Any = pytest.importorskip("openvino")

T, N, I, H = 5, 3, 4, 6
EXAMPLES = Path(__file__).parents[2] / "examples"


def build(*, second: CellName = "GRU", seed: int = 1, outputs: tuple[str, str] = ("Y", "last")) -> onnx.ModelProto:
    """Return a bidirectional LSTM and another operator on its result, time first."""
    constants: dict[str, Any] = {"shape": np.array([0, 0, -1])}
    for name, op, size in (
        ("lstm", RecurrentOp("LSTM", H, Direction.BIDIRECTIONAL), I),
        ("second", RecurrentOp(second, H), 2 * H),
    ):
        constants |= {f"{name}_{which}": array for which, array in random_weights(op, size, seed=seed).items()}
    Y, last = outputs
    result = verdicts.model(
        f"""(float[T,N,{I}] X) => (float[T,1,N,{H}] {Y}, float[1,N,{H}] {last}) {{
            both = LSTM<hidden_size = {H}, direction = "bidirectional">(X, lstm_W, lstm_R, lstm_B)
            swapped = Transpose<perm = [0, 2, 1, 3]>(both)
            flat = Reshape(swapped, shape)
            {Y}, {last} = {second}<hidden_size = {H}>(flat, second_W, second_R, second_B)
        }}""",
        **constants,
    )
    result.graph.node[0].name, result.graph.node[3].name = "lstm", "second"
    return result


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The model, the IR that OpenVINO makes of it, and models that differ from it."""
    folder = tmp_path_factory.mktemp("models")
    variants = {
        "two": build(),
        "other weights": build(seed=2),
        "other cell": build(second="RNN"),
        "other names": build(outputs=("a", "b")),
    }
    paths = {}
    for name, model in variants.items():
        paths[name] = folder / f"{name}.onnx"
        onnx.save(model, paths[name])
    paths["ir"] = folder / "two.xml"
    openvino.save_model(openvino.convert_model(paths["two"]), paths["ir"], compress_to_fp16=False)
    return paths


LOAD_ERRORS: list[tuple[Any, str]] = [
    ("model.pb", "the file name ends in '.pb'; expected .onnx or .xml"),
    ("model", "the file name has no extension; expected .onnx or .xml"),
    (3, "load: int was given; expected a path"),
    ("missing.onnx", "cannot be read"),
    ("missing.xml", "cannot be read (No such file or directory); expected an .xml file"),
    (".", "it is a folder; expected a file that ends in .onnx or .xml"),
]


@pytest.mark.skipif(os.name != "posix", reason="names of files with any character")
@each_row("name", ["a\n\x1b[31mb.xml", "a\n\x1b[31mb.onnx"])
def test_messages_can_be_printed_whatever_the_name_of_the_file(name: str, tmp_path: Path) -> None:
    for contents in (b"<nothing/>", b"\xff"):
        (tmp_path / name).write_bytes(contents)
        with pytest.raises(PyrnnxError, match=r"a\\n\\x1b\[31mb") as caught:
            pyrnnx.load(tmp_path / name)
        assert str(caught.value).isprintable()


@each_row(("path", "message"), LOAD_ERRORS, ids=[row[-1] for row in LOAD_ERRORS])
def test_load_errors(path: Any, message: str) -> None:
    with pytest.raises(PyrnnxError) as caught:
        pyrnnx.load(path)
    assert message in str(caught.value)
    assert "read_model" not in str(caught.value)  # which the caller did not call


def compared(files: dict[str, Path], first: str, second: str, **options: Any) -> ModelComparison:
    result = pyrnnx.compare(pyrnnx.load(files[first]), pyrnnx.load(files[second]), **options)
    assert isinstance(result, ModelComparison)
    return result


def test_two_formats_of_one_model(files: dict[str, Path]) -> None:
    result = compared(files, "two", "ir")
    assert not result.unpaired
    assert not result.outputs
    assert set(result.numbers) == {"Y", "last"}
    assert result.largest_difference < 1e-6  # float32, and biases that OpenVINO has summed
    first, second = result.layers.values()
    assert first.a == "LSTM 'lstm' (ONNX, layout 0)"
    assert {"gate order", "axes of Y", "B"} <= {one.aspect for one in first.conventions}
    for pair in (first, second):
        assert not pair.operators
        assert pair.largest_difference < 1e-6
    text = str(result)
    assert "largest difference of output 'Y'" in text
    assert str(first) in text


def test_models_that_do_not_match(files: dict[str, Path]) -> None:
    result = compared(files, "two", "other cell")
    assert list(result.layers) == ["lstm"]
    assert result.unpaired == ("GRU 'second'", "RNN 'second'")
    assert "layer without a counterpart: RNN 'second'" in str(result)
    result = compared(files, "two", "other names")  # they are matched in order
    assert list(result.numbers) == ["Y", "last"]
    assert result.largest_difference == 0
    more = onnx.load(files["two"])
    more.graph.input.append(helper.make_tensor_value_info("more", TensorProto.FLOAT, [1]))
    two = pyrnnx.load(files["two"])
    rows: tuple[tuple[Any, Any, str], ...] = (
        (pyrnnx.load(files["ir"]), {"Z": np.ones(3)}, r"^compare: .*inputs has 'Z'"),
        (pyrnnx.load(files["ir"]), {"X": np.ones((2, 2), "f4")}, r"^compare: .*input 'X' has shape \(2, 2\)"),
        (read_model(more), None, r"has the input 'more' and .* has no input that matches it"),
        (pyrnnx.load(EXAMPLES / "small_rnn.xml"), None, r"has 2 recurrent layers \('lstm', 'second'\); expected one"),
    )
    for other, inputs, message in rows:
        with pytest.raises(ArgumentError, match=message):
            pyrnnx.compare(two, other, inputs)


def test_layers_without_weights_say_whose_weights_they_took() -> None:
    alone = EXAMPLES / "small_rnn.xml"
    results = {
        "random, because neither layer has weights": pyrnnx.compare(alone, alone),
        "those of RNN 'small_rnn'": pyrnnx.compare(alone, EXAMPLES / "small_rnn.onnx"),
    }
    for words, result in results.items():
        assert isinstance(result, Comparison)
        assert result.weights_source == words == result.to_dict()["weights_source"]
        assert f"weights of both: {words}" in str(result)
    bound = pyrnnx.load(EXAMPLES / "small_rnn.onnx")
    assert "weights of both" not in str(pyrnnx.compare(bound, bound))


def round_trip(path: Path, folder: Path) -> tuple[Model, Model]:
    """A model that is one layer, and what `write_model` makes of that."""
    model = pyrnnx.load(path)
    (layer,) = model.layers.values()
    return model, pyrnnx.load(write_model(layer, folder / "written.xml"))


def test_models_that_arrange_arrays_as_their_layers_do(tmp_path: Path) -> None:
    """Each model gets the arrays of paired layers in its own axes; outputs are compared in the axes of a."""
    onnx_model, ir = round_trip(EXAMPLES / "small_rnn.onnx", tmp_path)
    T, N, I = 6, 2, 4
    X = np.random.default_rng(1).normal(size=(T, N, I)).astype(np.float32)
    for a, b in ((onnx_model, ir), (ir, onnx_model)):
        result = pyrnnx.compare(a, b)
        assert isinstance(result, ModelComparison)
        (pair,) = result.layers.values()
        assert pair.paired_by == "equal weights"
        assert not result.outputs
        assert len(result.numbers) == 2
        assert result.equal(1e-6, 0)
        assert result.input_shapes["X"] == ((T, N, I) if a is onnx_model else (N, T, I))
        given = {info.name: np.ones(result.input_shapes[info.name], info.dtype) for info in a.inputs}
        given["X"] = X if a is onnx_model else X.swapaxes(0, 1)
        assert pyrnnx.compare(a, b, given).equal(1e-6, 0)
        with pytest.raises(ArgumentError, match=r"^compare: .*input 'X' has shape"):
            pyrnnx.compare(a, b, {**given, "X": X[0]})


def test_models_of_two_conventions_are_compared_by_their_layers(tmp_path: Path) -> None:
    """The operations between the layer and the arrays of its model are unknown."""
    _, ir = round_trip(one_lstm(tmp_path / "lstm.onnx"), tmp_path)
    onnx_model = read_model(batch_first(tmp_path / "lstm.onnx"))
    for a, b, names in ((onnx_model, ir, "Y_h, Ho"), (ir, onnx_model, "Ho, Y_h")):
        result = pyrnnx.compare(a, b)
        assert isinstance(result, ModelComparison)
        (pair,) = result.layers.values()
        assert pair.paired_by == "equal weights"
        assert result.largest_difference == pair.largest_difference < 1e-6
        assert not result.numbers
        assert not result.outputs
        assert not result.values
        assert not result.equal(atol=1)  # of the outputs nothing is known
        assert f"outputs: not compared: they name their arrays by two conventions ({names})" in str(result)
        with pytest.raises(ArgumentError, match=r"inputs: .* cannot run on the same arrays: .*; expected no inputs"):
            pyrnnx.compare(a, b, {"X": np.ones((6, 2, 4), np.float32)})


def batch_first(path: Path) -> onnx.ModelProto:
    """The model of `one_lstm` with a Transpose before it."""
    proto = onnx.load(path)
    proto.graph.node[0].input[0] = "time first"
    proto.graph.node.insert(0, helper.make_node("Transpose", ["X"], ["time first"], perm=[1, 0, 2]))
    return proto


def one_lstm(path: Path, T: int | str = "T", N: int | str = "N") -> Path:
    text = f"(float[{T},{N},{I}] X) => (Y, Y_h) {{ Y, Y_h = LSTM<hidden_size = {H}>(X, W, R, B) }}"
    proto = verdicts.model(text, **random_weights(RecurrentOp("LSTM", H), I, seed=1))
    proto.graph.node[0].name = "lstm"
    onnx.save(proto, path)
    return path


def test_sizes_that_either_model_declares(tmp_path: Path) -> None:
    opened, fixed = one_lstm(tmp_path / "open.onnx"), one_lstm(tmp_path / "fixed.onnx", T=7, N=2)
    for a, b in ((opened, fixed), (fixed, opened)):
        assert pyrnnx.compare(a, b).largest_difference == 0
    with pytest.raises(ArgumentError, match="do not both run on random inputs of the sizes") as caught:
        pyrnnx.compare(one_lstm(tmp_path / "other.onnx", T=6, N=2), fixed)
    assert "that they declare; pass others as inputs=..." in str(caught.value)
    assert "input 'X' has shape (6, 2, 4); expected [7, 2, 4]" in str(caught.value)


class Declared(Model):
    """Inputs, and the first of them as the output."""

    layers, plan = Layers[Any]("declared", {}, str), None

    def __init__(self, *inputs: TensorInfo) -> None:
        self.label, self.inputs, self.outputs = "declared", inputs, inputs[:1]

    def _run(self, inputs: dict[str, Any], outputs: tuple[str, ...]) -> dict[str, Any]:
        return {name: inputs[name] for name in outputs}


def test_inputs_of_other_names_are_paired_by_dtype_and_rank() -> None:
    a = Declared(TensorInfo("lengths", "int32", (3,)), TensorInfo("state", "float32", (1, 3, 4)))
    b = Declared(TensorInfo("s", "float32", (1, 3, 4)), TensorInfo("len", "int32", ("N",)))
    assert pyrnnx.compare(a, b).outputs[0].a == "int32 (3,)"  # both ran, and their first inputs are no pair
    c = Declared(TensorInfo("len", "int64", (3,)), TensorInfo("s", "float32", (1, 3, 4)))
    with pytest.raises(ArgumentError, match=r"has the input 'lengths' and .* has no input that matches it"):
        pyrnnx.compare(a, c)
