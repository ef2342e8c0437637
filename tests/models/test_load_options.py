"""Options of `load`: weights in fewer bits, for ONNX models and IRs; operators that stay with ONNX Runtime."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import openvino_loops as loops
import openvino_nets as nets
import pytest
from hidden_layers import unrolled
from onnx_models import GRU, case_model, sound
from onnx_streams import stack
from peers import onnxruntime_session
from quantized_models import CASES, make_case
from rows import each_row, few_rows

import pyrnnx
from pyrnnx.onnxruntime import InferenceSession, SessionOptions
from pyrnnx.testing.numbers import Array

DTYPES = ("int8", "bfloat16")
Arrays = Mapping[str, Array]
Source = tuple[Path, Arrays, Callable[[pyrnnx.Layer, Arrays], tuple[Array, ...]]]


def onnx_file(folder: Path, proto: onnx.ModelProto) -> Path:
    onnx.save(proto, folder / "model.onnx")
    return folder / "model.onnx"


def ir_file(folder: Path, xml: str, weights: bytes) -> Path:
    (folder / "model.xml").write_text(xml)
    (folder / "model.bin").write_bytes(weights)
    return folder / "model.xml"


def random(seed: int, **shapes: tuple[int, ...]) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    return {name: rng.uniform(-1, 1, shape).astype(np.float32) for name, shape in shapes.items()}


def node(folder: Path) -> Source:
    proto, inputs = case_model(GRU)
    return onnx_file(folder, proto), inputs, lambda layer, values: layer.run(**values)


def spelled_out(layer: pyrnnx.Layer, values: Arrays) -> tuple[Array, ...]:
    Y, Y_h, Y_c = layer.run(values["X"], None, values["h0"][np.newaxis], values["c0"][np.newaxis])
    return Y[:, 0], Y_h[0], Y_c[0]


def recognised(folder: Path) -> Source:
    return onnx_file(folder, unrolled("LSTM")), random(0, X=(4, 2, 3), h0=(2, 5), c0=(2, 5)), spelled_out


def ir(folder: Path) -> Source:
    def expected(layer: pyrnnx.Layer, values: Arrays) -> tuple[Array, ...]:
        return layer.run(np.maximum(values["X"], 0), values["lengths"], values["H"], values["C"])

    inputs = {**random(1, X=(3, 5, nets.I), H=(3, 1, nets.H), C=(3, 1, nets.H)), "lengths": np.array([5, 2, 0], "i4")}
    return ir_file(folder, *nets.lstm_net()), inputs, expected


def looped_ir(folder: Path) -> Source:
    def expected(layer: pyrnnx.Layer, values: Arrays) -> tuple[Array, ...]:
        X, h = values["X"], values["first0"]
        Y, Y_h = layer.run(X, np.full(len(X), X.shape[1]), h[:, np.newaxis])
        return Y[:, 0], Y_h[:, 0]

    xml, weights, (X, h) = loops.looped("GRU")
    return ir_file(folder, xml, weights), {"X": X, "first0": h}, expected


def recognised_ir(folder: Path) -> Source:
    openvino = pytest.importorskip("openvino")
    source, inputs, expected = recognised(folder)
    shapes = {name: a.shape for name, a in inputs.items()}  # of a model with an unknown size, no layer is recognised
    openvino.save_model(openvino.convert_model(source, input=shapes), folder / "model.xml", compress_to_fp16=False)
    return folder / "model.xml", inputs, expected


@pytest.mark.filterwarnings("ignore::pyrnnx.PyrnnxWarning")  # the IR of the looped cell lacks attributes
@few_rows(
    ("make", "weight_dtype"),
    [(node, "bfloat16"), *product((node, recognised, ir, looped_ir), ["int8"])],
    [*product((recognised, ir, looped_ir), ["bfloat16"]), *product([recognised_ir], DTYPES)],
)
def test_layers_compute_as_a_layer_of_this_weight_dtype(
    make: Callable[[Path], Source], weight_dtype: str, tmp_path: Path
) -> None:
    path, inputs, expected = make(tmp_path)
    plain, model = pyrnnx.load(path), pyrnnx.load(path, weight_dtype=weight_dtype)
    full = plain.layers[0]
    assert isinstance(full, pyrnnx.Layer)
    weights: dict[str, Any] = {**full.weights}
    reduced = pyrnnx.Layer(full.op, **weights, convention=full.convention, weight_dtype=weight_dtype)
    copied = copy.deepcopy(model)
    for scale in (1, 0.5, -1, 2, 0.25):
        values = {name: a if a.dtype.kind == "i" else a * np.float32(scale) for name, a in inputs.items()}
        wanted = expected(reduced, values)
        for results in (model(values), copied(values)):
            for result, other, array in zip(results.values(), plain(values).values(), wanted, strict=True):
                np.testing.assert_array_equal(result, array)
                assert np.any(result != other)


@each_row("weight_dtype", DTYPES)
def test_streams_have_it(weight_dtype: str) -> None:
    proto = stack(["GRU", "LSTM"]).SerializeToString()
    model, X = pyrnnx.load(proto, weight_dtype=weight_dtype), random(3, X=(10, 3, 4))["X"]
    (whole,) = model(X).values()
    stream = model.stream()
    pieces = [*stream.push(X[:3]).values(), *stream.push(X[3:4]).values(), *stream.push(X[4:]).values()]
    # float32: products of another number of rows may have another order of sums.
    np.testing.assert_allclose(np.concatenate(pieces), whole, rtol=0, atol=1e-6)
    assert np.abs(whole - pyrnnx.load(proto)(X)["x2"]).max() > 1e-4


def test_codes_of_8_bits_stay() -> None:
    proto, inputs = make_case(CASES[0])
    source = proto.SerializeToString()
    np.testing.assert_array_equal(
        pyrnnx.load(source, weight_dtype="bfloat16")(inputs)["Y"], pyrnnx.load(source)(inputs)["Y"]
    )


WRONG = "weight_dtype is {}; expected one of None, 'bfloat16', 'int8' (with dtype float64: None)"
STATE = ("FP32", (1, 2))
CELL = nets.layer(
    1, "it", "RNNCell", {"hidden_size": 2}, [STATE, STATE, *[("FP32", (2, 2))] * 2, ("FP32", (2,))], [STATE]
)
EMPTY = nets.net([nets.parameter(0, "X", "1", (1,)), nets.result(1, "Y", (1,))], nets.edges("0.0 1.0"))
ERRORS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "unknown": (sound(), {"weight_dtype": "int4"}, "ONNX model: " + WRONG.format("'int4'")),
    "float16": (sound(), {"weight_dtype": "float16"}, WRONG.format("'float16'")),
    "no name": (sound(), {"weight_dtype": np.int8}, WRONG.format("<class 'numpy.int8'>")),
    "unknown, IR": (EMPTY, {"weight_dtype": "int4"}, "IR 'small': " + WRONG.format("'int4'")),
    "float64": (stack(["GRU"], dtype=np.float64), {"weight_dtype": "int8"},
                "GRU 'layer0': weight_dtype is 'int8' with dtype float64; expected one of"),
    "a <layer>": (CELL, {"weight_dtype": "int8"},
                  "RNNCell 'it' (id 1): weight_dtype is 'int8', but it has no weights"),
    "leave": (sound(), {"leave": ["LSTM", "Conv"]},
              "leave contains 'Conv'; expected names of RNN, GRU, LSTM, DynamicQuantizeLSTM"),
    "leave, one name": (sound(), {"leave": "LSTM"}, "ONNX model: leave is 'LSTM'; expected a sequence of names"),
    "leave, IR": (EMPTY, {"leave": ["LSTM"]}, "load: leave is ['LSTM']; expected an ONNX model"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::pyrnnx.PyrnnxWarning")
@each_row("name", ERRORS)
def test_what_is_not_allowed_is_an_error(name: str) -> None:
    source, options, text = ERRORS[name]
    contents = source.encode() if isinstance(source, str) else source
    with pytest.raises(pyrnnx.PyrnnxError, match=re.escape(text)):
        list(pyrnnx.load(contents, **options).layers.values())


def test_operators_are_left_to_onnx_runtime() -> None:
    proto, inputs = make_case(CASES[0])
    contents, leave = proto.SerializeToString(), ["DynamicQuantizeLSTM"]
    options = SessionOptions()
    options.intra_op_num_threads = 1  # with more, ONNX Runtime computes other numbers
    model = pyrnnx.load(contents, session_options=options, leave=leave)
    session = InferenceSession(contents, options, leave=leave)
    wanted = onnxruntime_session(proto).run(None, inputs)
    for results in (model.run(None, inputs), session.run(None, inputs)):
        for result, array in zip(results, wanted, strict=True):
            np.testing.assert_array_equal(result, array)
    assert not copy.deepcopy(model).layers
    assert not session.layers
    assert model.plan.rows() == [("ONNX Runtime", "DynamicQuantizeLSTM", "")]
    for other in (pyrnnx.load(contents, leave=["LSTM"]), pyrnnx.load(unrolled("LSTM"), leave=["LSTM"])):
        assert len(other.layers) == 1
