"""HTML of objects in a notebook: well-formed and escaped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree
from rows import each_row

import pyrnnx
from pyrnnx import Activation, Direction, Layer, RecurrentOp

EXAMPLES = Path(__file__).parents[1] / "examples"
OP = RecurrentOp("LSTM", 5, clip=0.5, input_forget=True)


def lstm(**others: Any) -> Layer:
    rng = np.random.default_rng(3)
    W, R = (rng.standard_normal((1, 20, size), np.float32) for size in (3, 5))
    return Layer(OP, W, R, **others)


SHOWN: dict[str, tuple[Any, list[str]]] = {
    "operator": (OP, ["RecurrentOp", "LSTM", "forward", "Sigmoid, Tanh, Tanh", "0.5", "input_forget"]),
    "operator with two sets of activations": (
        RecurrentOp("RNN", 2, Direction.BIDIRECTIONAL, ((Activation("Tanh"),), (Activation("Elu", 0.5),))),
        ["Tanh; reverse: Elu(alpha=0.5)"],
    ),
    "layer": (
        lstm(name="<b>&", constants={"sequence_lens": [1, 2]}),
        ["Layer LSTM '<b>&'", "W [1, 20, 3]", "input_size", "ONNX, layout 0", "sequence_lens [2]"],
    ),
    "layer with weights in fewer bits": (lstm(weight_dtype="int8"), ["weight_dtype", "int8"]),
    "ONNX model": (
        pyrnnx.load(EXAMPLES / "small_rnn.onnx"),
        ["inputs of ", "sequence_lens", "int32 [", "outputs", "layer small_rnn", "bidirectional", "[2, 8, 4]"],
    ),
    "layers of a model": (
        pyrnnx.load(EXAMPLES / "small_rnn.onnx").layers,
        ["layer small_rnn", "bidirectional", "[2, 8, 4]"],
    ),
    "plan of a model": (pyrnnx.load(EXAMPLES / "small_rnn.onnx").plan, ["runs on", "pyrnnx", "RNN 'small_rnn'"]),
    "IR layer": (
        pyrnnx.load(EXAMPLES / "small_rnn.xml"),
        ["IRLayer RNNSequence 'small_rnn' (id 0)", "bidirectional", "sequence_lengths", "float32 [2, 6, 4]"],
    ),
}


@each_row("name", SHOWN)
def test_html(name: str) -> None:
    one, words = SHOWN[name]
    text = "".join(map(str, etree.fromstring(one._repr_html_()).itertext()))
    for word in words:
        assert word in text
    assert "<script" not in one._repr_html_()


def test_a_model_stream_shows_what_a_push_takes_and_what_it_keeps() -> None:
    model = pyrnnx.load(EXAMPLES / "small_rnn.onnx")
    text = model.stream({"Y_h": "initial_h"}, layers=[])._repr_html_()
    assert "each push to" in text
    assert "initial_h" in text


def test_a_plan_in_one_line() -> None:
    plan = pyrnnx.load(EXAMPLES / "small_rnn.onnx").plan
    assert repr(plan) == "<Plan: 1 recurrent layer>"
    assert "RNN 'small_rnn'" in str(plan)
