"""Arguments of layers and functions: by position and by name, all kinds of numbers, and missing ones."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino_nets as nets
import pytest
from layers import random_arrays
from openvino_layers import GOOD, LABEL, H, I, T, assert_same, good_arrays, rejected
from rows import each_row

from pyrnnx import OPENVINO_SEQUENCE, Layer, RecurrentOp
from pyrnnx.frontends import onnx as onnx_frontend
from pyrnnx.frontends.openvino import read_layer, read_model, rnn_sequence, to_onnx

NAMES = ("X", "H", "C", "sequence_lengths", "W", "R", "B")
CANONICAL = ("X", "initial_h", "initial_c", "sequence_lens", "W", "R", "B")


@each_row("names", [NAMES, CANONICAL], ids=["its own names", "ONNX's names"])
@each_row("places", [0, 2, 4, 8])
def test_arguments_by_name(names: tuple[str, ...], places: int) -> None:
    arrays, layer = good_arrays(), read_layer(GOOD)
    named = dict(zip(names, arrays, strict=True))
    rest = {name: named[name] for name in reversed(names[places:])}
    assert_same(layer(*arrays[:places], **rest), layer(*arrays))
    bound = layer.bind(*arrays[4:])
    assert_same(
        bound(*arrays[:places][:4], **{name: a for name, a in rest.items() if name in names[:4]}), layer(*arrays)
    )


@pytest.mark.parametrize("weight_dtype", ["bfloat16", "int8"])
def test_weights_in_fewer_bits(weight_dtype: str) -> None:
    arrays, read = good_arrays(), read_layer(GOOD)
    layer = read.bind(*arrays[4:], weight_dtype=weight_dtype)
    plain = Layer(layer.op, *layer.weights.values(), convention=layer.convention, weight_dtype=weight_dtype)
    X, H, C, lengths = arrays[:4]
    wanted = plain(X, lengths, H, C)
    for other in (layer, pickle.loads(pickle.dumps(layer))):
        assert other.weight_dtype == weight_dtype
        assert_same(other(*arrays[:4]), wanted)
    assert np.abs(layer(*arrays[:4])[0] - read.bind(*arrays[4:])(*arrays[:4])[0]).max() > 1e-5
    rejected(lambda: read.bind(*arrays[4:], weight_dtype="int4"), LABEL, "weight_dtype is 'int4'")


BY_NAME: dict[str, tuple[Callable[[list[Any]], tuple[list[Any], dict[str, Any]]], tuple[str, ...]]] = {
    "unknown": (lambda a: (a, {"seq_lens": a[3]}), ("argument 'seq_lens' is unknown", "X, H, C")),
    "twice": (lambda a: (a, {"H": a[1]}), ("H was given twice",)),
    "under two names": (lambda a: (a[:1], {"H": a[1], "initial_h": a[1]}), ("H was given twice",)),
    "missing": (lambda a: (a[:1], {"sequence_lens": a[3]}), ("required but missing: H, C",)),
    "None": (lambda a: ([None, a[1]], {"C": None}), ("required but missing: X, C, sequence_lengths",)),
}


@each_row(("make", "words"), BY_NAME.values(), ids=BY_NAME)
def test_bad_arguments_by_name(make: Any, words: tuple[str, ...]) -> None:
    layer = read_layer(GOOD)
    bound = layer.bind(*good_arrays()[4:])
    for call, count in ((layer, 7), (bound, 4)):
        arrays, named = make(good_arrays()[:count])
        rejected(lambda call=call, arrays=arrays, named=named: call(*arrays, **named), LABEL, *words)  # type: ignore[misc]
    rejected(lambda: bound(*good_arrays()[:4], W=1), LABEL, "argument 'W' is unknown")


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
    "parameters": ({"activations": ["hardsigmoid"], "activations_alpha": [0.5], "activations_beta": [0.25]},
        {"activations": np.array(["hardsigmoid"]), "activations_alpha": np.array([0.5], np.float32),
        "activations_beta": (np.float64(0.25),)}),
}  # fmt: skip


@each_row(("plain", "numpy"), EQUAL.values(), ids=EQUAL)
def test_numpy_scalars_are_numbers(plain: dict[str, Any], numpy: dict[str, Any]) -> None:
    arrays = rnn_arrays()
    assert_same(rnn_sequence(*arrays, **numpy), rnn_sequence(*arrays, **plain))


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "hidden_size of float": ({"hidden_size": np.float64(H)},
        f"hidden_size is {np.float64(H)!r}; expected a positive integer"),
    "hidden_size of bool": ({"hidden_size": True}, "hidden_size is True"),
    "hidden_size 0": ({"hidden_size": 0}, "hidden_size is 0"),
    "clip of bool": ({"clip": np.True_}, f"clip is {np.True_!r}"),
    "clip of two": ({"clip": np.ones(2)}, "clip is array([1., 1.])"),
    "clip NaN": ({"clip": np.float32(np.nan)}, f"clip is {np.float32(np.nan)!r}"),
    "alpha of complex": ({"activations_alpha": np.ones(1, complex)}, "activations_alpha contains"),
    "alpha without axes": ({"activations_alpha": np.array(1.0)}, "activations_alpha is array(1.); expected a list"),
    "alpha of two axes": ({"activations_alpha": np.ones((1, 1))}, "activations_alpha is"),
    "alpha beyond": ({"activations_alpha": [10**400]}, "activations_alpha contains"),
    "endless alpha": ({"activations_alpha": itertools.repeat(1.0)}, "activations_alpha is repeat(1.0); expected a list"),
    "endless names": ({"activations": itertools.repeat("tanh")}, "activations is repeat('tanh'); expected a list"),
    "names of bytes": ({"activations": b"tanh"}, "activations is b'tanh'; expected a list"),
}  # fmt: skip


@each_row(("attributes", "words"), BAD.values(), ids=BAD)
def test_what_is_no_number(attributes: dict[str, Any], words: str) -> None:
    arrays = rnn_arrays()
    rejected(lambda: rnn_sequence(*arrays, **attributes), "RNNSequence", words)


def test_to_onnx_of_something_else(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    rejected(lambda: to_onnx(read_layer(GOOD)), "to_onnx", LABEL, "has no weights", "layer.bind")
    for wrong in (3, None, b"<net/>", [], np.zeros(3), object()):
        rejected(lambda wrong=wrong: to_onnx(wrong), "to_onnx", type(wrong).__name__, "expected a Model")  # type: ignore[misc]
    onnx_model = onnx_frontend.read_model(to_onnx(read_layer(GOOD).bind(*good_arrays()[4:])))
    rejected(lambda: to_onnx(onnx_model), "to_onnx", "is an ONNX model already")
    rejected(lambda: to_onnx(tmp_path / "absent.xml"), "absent.xml", "cannot be read")


LONG = "n" * 300_000
SHOWN: tuple[tuple[str, str], ...] = (  # of a layer: texts that messages show, and long ones in their place
    ('hidden_size="6"', f'hidden_size="{LONG}"'), ('"forward"', f'"{LONG}"'), ("LSTMSequence", LONG), ("opset5", LONG),
    ("sigmoid,tanh,tanh", LONG), ('activations_alpha=""', f'activations_alpha="{LONG}"'), ("<dim>3", f"<dim>{LONG}"),
    ('port id="0"', f'port id="{LONG}"'), ('"FP32"', f'"{LONG}"'),
    ('name="decoder/lstm" type="LSTMSequence"', f'name="{LONG}" type="LSTM"'),
)  # fmt: skip
SHOWN_OF_A_NET = (
    ('type="ReLU"', f'type="{LONG}"'), ('name="relu" type="ReLU"', f'name="{LONG}" type="Frob"'),
    ('element_type="f32"', f'element_type="{LONG}"'), ('shape="1, 24, 4"', f'shape="{LONG}"'),
    ('to-layer="8"', f'to-layer="{LONG}"'), ('version="11"', f'version="{LONG}"'),
)  # fmt: skip


@each_row(("old", "new"), [*SHOWN, *SHOWN_OF_A_NET])
def test_messages_are_bounded(old: str, new: str) -> None:
    xml, weights = nets.lstm_net()
    of_a_layer = (old, new) in SHOWN
    assert old in (GOOD if of_a_layer else xml)
    text = (GOOD if of_a_layer else xml).replace(old, new)
    message = rejected(lambda: read_layer(text) if of_a_layer else read_model(text, weights)(nets.lstm_inputs()))
    assert len(message) < 2000
