"""Layers that IR cannot express: each is an error with its cause, and no file is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from layers import random_layer
from openvino_nodes import make_layer
from rows import each_row

from pyrnnx import OPENVINO_CELL, Direction, Layer, PyrnnxError, RecurrentOp
from pyrnnx.errors import ArgumentError
from pyrnnx.frontends.openvino import read_layer, write_layer, write_model
from pyrnnx.operator.conventions import OPENVINO_SEQUENCE
from pyrnnx.operator.op import Activation
from pyrnnx.testing.numbers import Array

TANH, RELU, HALF = Activation("Tanh"), Activation("Relu"), Activation("LeakyRelu", 0.5)
ZERO = np.zeros((1, 15), np.float32)
BOTH: dict[str, Any] = {"direction": "bidirectional"}
BOTH |= {name: np.ones((2, 5, k), np.float32) for name, k in (("W", 3), ("R", 5))} | {"B": np.ones((2, 10), np.float32)}
HUGE: dict[str, Any] = {"W": np.ones((1, 15, 3), np.float16), "R": np.ones((1, 15, 5), np.float16)}


class Doubled(Layer):
    def run(self, *arrays: Any, **named: Any) -> tuple[Array, ...]:
        return tuple(2 * array for array in super().run(*arrays, **named))


WIDE = np.full((1, 30), 6e4, np.float16)
UNEVEN: dict[str, Any] = {"initial_h": np.ones((1, 2, 5), np.float32), "sequence_lens": [4, 1, 2]}
REFUSED: dict[str, tuple[Any, str]] = {
    "peepholes of zeros": (lambda: make_layer("LSTM", P=ZERO),
        "LSTM 'a layer': P (peepholes) was given; LSTMSequence-5 has none"),
    "input_forget of gates that are no sigmoid": (lambda: make_layer("LSTM", input_forget=True, activations=((RELU,
        TANH, TANH),)),
        "LSTM 'a layer': input_forget with activation Relu of the gates cannot be translated: it means f = 1 - i"),
    "input_forget of a layer of LSTMSequence-5": (lambda: make_layer("LSTM", input_forget=True, B=np.ones((1, 20),
        np.float32), convention=OPENVINO_SEQUENCE),
        "LSTM 'a layer': input_forget is True; LSTMSequence-5 has no such attribute, only LSTMSequence-1"),
    "other functions in reverse": (lambda: make_layer("RNN", activations=((TANH,), (RELU,)), **BOTH),
        "RNN 'a layer': activations differ by direction, Tanh and Relu; RNNSequence-5 has one list for both"),
    "clip above float32": (lambda: make_layer(clip=1e300), "clip is 1e+300; GRUSequence-5 stores it"),
    "a cell in reverse": (lambda: random_layer(RecurrentOp("GRU", 5, Direction.REVERSE), 3, convention=OPENVINO_CELL),
        "GRU: direction is reverse; GRUCell-3 has none, expected forward"),
    "control character": (lambda: make_layer(name="a\x01"), "name is 'a\\x01'; expected characters"),
    "no layer": (lambda: "GRU", "str was given; expected a recurrent layer"),
    "no weights": (lambda: read_layer(write_layer(make_layer())), "has no weights; bind them with layer.bind"),
    "another computation": (lambda: Doubled(RecurrentOp("RNN", 1), *[np.ones((1, 1, 1))] * 2), "Doubled does not"),
    "a sum beyond float16": (lambda: make_layer(**HUGE, B=WIDE), "B: a sum Wb + Rb overflows float16"),
    "state of another batch": (lambda: Layer(RecurrentOp("GRU", 5), *make_layer().weights.values(), constants=UNEVEN),
        "expected (batch_size=2,)"),
}  # fmt: skip
OF_MODELS = ("no weights", "another computation", "a sum beyond float16", "state of another batch")


@each_row("name", REFUSED)
def test_refused(name: str, tmp_path: Path) -> None:
    make, message = REFUSED[name]
    writers: list[Any] = [lambda layer: write_model(layer, tmp_path / "layer.xml")]
    for write in (*writers, *([] if name in OF_MODELS else [write_layer])):
        with pytest.raises(PyrnnxError) as caught:
            write(make())
        assert message in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@each_row("identifier", [-1, 1.0, "1", True])
def test_id(identifier: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^GRU 'a layer': id is .*; expected an integer, 0 or above"):
        write_layer(make_layer(), id=identifier)
