"""How layers and functions take their arguments: by place and by name, numbers of every kind, and what is missing."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import openvino_nets as nets
import pytest
from layers import random_arrays
from openvino_layers import GOOD, LABEL, H, I, T, assert_same, good_arrays, rejected

from pyrnnx import OPENVINO_SEQUENCE, ArgumentError, Layer, PyrnnxError, RecurrentOp
from pyrnnx.frontends import onnx as onnx_frontend
from pyrnnx.frontends.openvino import (
    BoundLayer,
    lstm_sequence,
    read_layer,
    read_model,
    rnn_sequence,
    to_onnx,
    write_layer,
    write_model,
)

NAMES = ("X", "H", "C", "sequence_lengths", "W", "R", "B")
CANONICAL = ("X", "initial_h", "initial_c", "sequence_lens", "W", "R", "B")


@pytest.mark.parametrize("names", [NAMES, CANONICAL], ids=["its own names", "ONNX's names"])
@pytest.mark.parametrize("places", range(8))
def test_arguments_by_name(names: tuple[str, ...], places: int) -> None:
    arrays, layer = good_arrays(), read_layer(GOOD)
    wanted = layer(*arrays)
    named = dict(zip(names, arrays, strict=True))
    assert_same(layer(*arrays[:places], **{name: named[name] for name in reversed(names[places:])}), wanted)
    if places < 4:
        bound = layer.bind(*arrays[4:])
        assert_same(bound(*arrays[:places], **{name: named[name] for name in reversed(names[places:4])}), wanted)


@pytest.mark.parametrize("weight_dtype", ["bfloat16", "int8"])
def test_weights_in_fewer_bits(weight_dtype: str) -> None:
    arrays, read = good_arrays(), read_layer(GOOD)
    layer = read.bind(*arrays[4:], weight_dtype=weight_dtype)
    plain = Layer(layer.op, *layer.weights.values(), convention=layer.convention, weight_dtype=weight_dtype)
    X, H, C, lengths = arrays[:4]
    wanted = plain(X, lengths, H, C)
    again = pickle.loads(pickle.dumps(layer))
    for one in (
        layer,
        again,
        BoundLayer(layer.operation, layer.op, *layer.weights.values(), weight_dtype=weight_dtype),
    ):
        assert one.weight_dtype == weight_dtype
        assert_same(one(*arrays[:4]), wanted)
    assert np.abs(layer(*arrays[:4])[0] - read.bind(*arrays[4:])(*arrays[:4])[0]).max() > 1e-5
    rejected(lambda: read.bind(*arrays[4:], weight_dtype="int4"), LABEL, "weight_dtype is 'int4'")


def test_bad_arguments_by_name() -> None:
    arrays = good_arrays()
    layer = read_layer(GOOD)
    bound = layer.bind(*arrays[4:])
    for one, count in ((layer, 7), (bound, 4)):
        given: Any = one
        rejected(lambda: given(*arrays[:count], seq_lens=arrays[3]), LABEL, "argument 'seq_lens' is unknown", "X, H, C")  # noqa: B023
        rejected(lambda: given(*arrays[:count], H=arrays[1]), LABEL, "H was given twice")  # noqa: B023
        rejected(lambda: given(arrays[0], H=arrays[1], initial_h=arrays[1]), LABEL, "H was given twice")  # noqa: B023
        rejected(lambda: given(arrays[0], sequence_lens=arrays[3]), LABEL, "missing, and required: H, C")  # noqa: B023
        rejected(lambda: given(None, arrays[1], C=None), LABEL, "missing, and required: X, C, sequence_lengths")  # noqa: B023
    rejected(lambda: bound(*arrays[:4], W=arrays[4]), LABEL, "argument 'W' is unknown")


def test_what_is_wrong_with_x_is_said_first() -> None:
    arrays = good_arrays()
    layer = read_layer(GOOD)
    for X, words in ((arrays[0][..., :2], "(3, 5, 2)"), (arrays[0].astype(np.float64), "float64")):
        rejected(lambda X=X: layer(X), LABEL, "X", words)  # type: ignore[misc]
        rejected(lambda X=X: layer.bind(*arrays[4:])(X), LABEL, "X", words)  # type: ignore[misc]


def test_dtype_errors_say_how_to_convert() -> None:
    arrays = good_arrays()
    rejected(lambda: read_layer(GOOD)(arrays[0].astype(np.float64), *arrays[1:]), "array.astype('float32')")


# Numbers of every kind


def rnn_arrays() -> list[Any]:
    return [*random_arrays(RecurrentOp("RNN", H), (T, 2, I), convention=OPENVINO_SEQUENCE, lens=(T, 1)).values()]


EQUAL: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "hidden_size": ({"hidden_size": H}, {"hidden_size": np.int64(H)}),
    "hidden_size of an array": ({"hidden_size": H}, {"hidden_size": np.array(H)}),
    "clip of float32": ({"clip": 0.5}, {"clip": np.float32(0.5)}),
    "clip of an array": ({"clip": 0.5}, {"clip": np.array(0.5)}),
    "clip of int64": ({"clip": 1.0}, {"clip": np.int64(1)}),
    "clip 0": ({}, {"clip": np.int8(0)}),
    "clip of infinity": ({}, {"clip": np.float16(np.inf)}),
    "parameters": (
        {"activations": ["hardsigmoid"], "activations_alpha": [0.5], "activations_beta": [0.25]},
        {
            "activations": np.array(["hardsigmoid"]),
            "activations_alpha": np.array([0.5], np.float32),
            "activations_beta": (np.float64(0.25),),
        },
    ),
}


@pytest.mark.parametrize(("plain", "numpy"), EQUAL.values(), ids=EQUAL)
def test_numpy_scalars_are_numbers(plain: dict[str, Any], numpy: dict[str, Any]) -> None:
    arrays = rnn_arrays()
    assert_same(rnn_sequence(*arrays, **numpy), rnn_sequence(*arrays, **plain))


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "hidden_size of float": (
        {"hidden_size": np.float64(H)},
        f"hidden_size is {np.float64(H)!r}; expected a positive integer",
    ),
    "hidden_size of bool": ({"hidden_size": True}, "hidden_size is True"),
    "hidden_size 0": ({"hidden_size": 0}, "hidden_size is 0"),
    "clip of bool": ({"clip": np.True_}, f"clip is {np.True_!r}"),
    "clip of two": ({"clip": np.ones(2)}, "clip is array([1., 1.])"),
    "clip NaN": ({"clip": np.float32(np.nan)}, f"clip is {np.float32(np.nan)!r}"),
    "alpha of complex": ({"activations_alpha": np.ones(1, complex)}, "activations_alpha holds"),
    "alpha without axes": ({"activations_alpha": np.array(1.0)}, "activations_alpha is array(1.); expected a list"),
    "alpha of two axes": ({"activations_alpha": np.ones((1, 1))}, "activations_alpha is"),
    "alpha beyond": ({"activations_alpha": [10**400]}, "activations_alpha holds"),
    "endless alpha": ({"activations_alpha": itertools.repeat(1.0)}, "activations_alpha has more than 1000 values"),
    "endless names": ({"activations": itertools.repeat("tanh")}, "activations has more than 1000 values"),
    "names of bytes": ({"activations": b"tanh"}, "activations is b'tanh'; expected a list"),
}


@pytest.mark.parametrize(("attributes", "words"), BAD.values(), ids=BAD)
def test_what_is_no_number(attributes: dict[str, Any], words: str) -> None:
    arrays = rnn_arrays()
    rejected(lambda: rnn_sequence(*arrays, **attributes), "RNNSequence", words)


def test_opset_and_id_are_integers() -> None:
    run: Any = partial(lstm_sequence, *good_arrays())
    assert_same(run(opset=np.int8(5)), run(opset=5))
    for opset in (np.float32(5), True, 0, "5"):
        rejected(lambda opset=opset: run(opset=opset), "LSTMSequence: opset is")  # type: ignore[misc]
    layer = read_layer(GOOD)
    assert write_layer(layer, id=np.uint8(7)) == write_layer(layer, id=7)  # type: ignore[arg-type]
    for number in (10**5000, np.float64(7), -1):
        rejected(lambda number=number: write_layer(layer, id=number), LABEL, "id is", "expected an integer, 0 or above")  # type: ignore[misc]


# What is given in place of a model or layer


def test_to_onnx_of_a_path_and_of_a_layer(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    model = read_model(*nets.lstm_net())
    bound: Any = model.layers["lstm"]
    path = write_model(bound, tmp_path / "one.xml")
    of_path, of_text, of_layer = to_onnx(path), to_onnx(str(path)), to_onnx(bound)
    assert of_path == of_text == of_layer
    assert [one.name for one in of_layer.graph.input] == ["X", "H", "C", "sequence_lengths"]
    assert [node.op_type for node in of_layer.graph.node if node.op_type == "LSTM"] == ["LSTM"]


def test_to_onnx_of_a_layer_of_the_core() -> None:
    pytest.importorskip("onnx")
    layer = Layer(RecurrentOp("RNN", 2), np.ones((1, 2, 3), np.float32), np.ones((1, 2, 2), np.float32))
    assert "RNN" in [node.op_type for node in to_onnx(layer).graph.node]


def test_to_onnx_of_something_else(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    rejected(lambda: to_onnx(read_layer(GOOD)), "to_onnx", LABEL, "has no weights", "layer.bind")
    for wrong in (3, None, b"<net/>", [], np.zeros(3), object()):
        rejected(lambda wrong=wrong: to_onnx(wrong), "to_onnx", type(wrong).__name__, "expected a Model")  # type: ignore[misc]
    onnx_model = onnx_frontend.read_model(to_onnx(read_layer(GOOD).bind(*good_arrays()[4:])))
    rejected(lambda: to_onnx(onnx_model), "to_onnx", "is an ONNX model already")
    rejected(lambda: to_onnx(tmp_path / "absent.xml"), "absent.xml", "cannot be read")


WRONG: dict[str, Callable[[], Any]] = {
    "read_model": lambda: read_model(3),
    "read_model of a model": lambda: read_model(read_model(*nets.lstm_net())),
    "read_layer": lambda: read_layer(None),
    "write_layer": lambda: write_layer("layer"),  # type: ignore[arg-type]
    "write_model": lambda: write_model(3, "a.xml"),
    "write_model of a layer without weights": lambda: write_model(read_layer(GOOD), "a.xml"),
    "weights": lambda: read_model(nets.lstm_net()[0], 3),
}


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG)
def test_wrong_types(call: Callable[[], Any]) -> None:
    with pytest.raises(ArgumentError):
        call()


# Messages


def test_messages_are_bounded() -> None:
    """Whatever of a file they show."""
    long = "n" * 300_000
    texts = [
        GOOD.replace("decoder/lstm", long).replace('hidden_size="6"', 'hidden_size="x"'),
        GOOD.replace('"forward"', f'"{long}"'),
        GOOD.replace('type="LSTMSequence"', f'type="{long}"'),
        GOOD.replace("opset5", long),
        GOOD.replace('hidden_size="6"', f'hidden_size="{long}"'),
        GOOD.replace('"17"', f'"{long}"').replace('hidden_size="6"', ""),
        GOOD.replace("sigmoid,tanh,tanh", long),
        GOOD.replace('activations_alpha=""', f'activations_alpha="{long}"'),
        GOOD.replace("<dim>3</dim>", f"<dim>{long}</dim>"),
        GOOD.replace('port id="0"', f'port id="{long}"'),
        GOOD.replace('precision="FP32"', f'precision="{long}"'),
    ]
    for text in texts:
        with pytest.raises(PyrnnxError) as caught:
            read_layer(text)
        assert len(str(caught.value)) < 2000
    xml, weights = nets.lstm_net()
    texts = [
        xml.replace('type="ReLU"', f'type="{long}"'),
        xml.replace('name="relu" type="ReLU" version="opset1"', f'name="{long}" type="Frob" version="{long}"'),
        xml.replace('element_type="f32"', f'element_type="{long}"'),
        xml.replace('shape="1, 24, 4"', f'shape="{long}"'),
        xml.replace('to-layer="8"', f'to-layer="{long}"'),
        xml.replace('version="11"', f'version="{long}"'),
    ]
    for text in texts:
        with pytest.raises(PyrnnxError) as caught:
            read_model(text, weights)(nets.lstm_inputs())
        assert len(str(caught.value)) < 2000


def test_warnings_are_bounded() -> None:
    long = "n" * 40_000
    with pytest.warns(match="is unknown and has no effect") as caught:
        read_layer(GOOD.replace("<data ", f'<data {long}="1" ').replace("decoder/lstm", long))
    assert max(len(str(one.message)) for one in caught) < 2000
