"""Recurrent layers that cannot be exported: what is wrong with their versions and constant weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import openvino_nets as nets
import pytest
from numpy.typing import NDArray
from openvino_nets import Bin, parameter

from pyrnnx import PyrnnxError, UnsupportedError
from pyrnnx.frontends.openvino import Model, read_model, to_onnx

pytest.importorskip("onnx")

Array = NDArray[Any]


@pytest.mark.parametrize(("kind", "first"), [("RNNSequence", 5), ("GRUSequence", 5), ("GRUCell", 3)], ids=str)
def test_recurrent_types_before_their_first_opset(kind: str, first: int) -> None:
    text, weights = nets.lstm_net()
    text = text.replace('type="LSTMSequence" version="opset5"', f'type="{kind}" version="opset1"')
    model = read_model(text, weights)
    arrays = nets.lstm_inputs()
    for act in (lambda: to_onnx(model), lambda: model(arrays)):
        with pytest.raises(
            UnsupportedError,
            match=rf"{kind} 'lstm' \(id 8\): {kind} of opset1 cannot be .*: expected opset{first} or later",
        ):
            act()


def changed(name: str, given: Array) -> Model:
    """The net of one LSTM with another constant in place of one of its weights."""
    store, arrays = Bin(), nets.weights()
    kinds = {"float32": ("f32", "FP32"), "float16": ("f16", "FP16"), "int64": ("i64", "I64")}
    text, _ = nets.lstm_net()
    parts = text.split("\n")
    for k, key in enumerate(arrays):
        own = given if key == name else arrays[key]
        place = next(j for j, line in enumerate(parts) if f'id="{4 + k}" name="{key}"' in line)
        parts[place] = store.constant(4 + k, key, own, *kinds[own.dtype.name])
    return read_model("\n".join(parts), store.data)


WEIGHTS: dict[str, tuple[str, Array, str]] = {
    "W without directions": ("W", np.zeros((24, 4), np.float32), "port 4 (W) was given an array of shape (24, 4)"),
    "R without directions": ("R", np.zeros((24, 6), np.float32), "port 5 (R)"),
    "W transposed": ("W", np.zeros((1, 4, 24), np.float32), "port 4 (W)"),
    "B of rank 1": ("B", np.zeros(24, np.float32), "port 6 (B)"),
    "B not summed": ("B", np.zeros((1, 48), np.float32), "port 6 (B)"),
    "W of float16": ("W", np.zeros((1, 24, 4), np.float16), "float16"),
    "R of integers": ("R", np.zeros((1, 24, 6), np.int64), "int64"),
}


@pytest.mark.parametrize(("name", "array", "words"), WEIGHTS.values(), ids=WEIGHTS)
def test_constant_weights_that_do_not_fit(name: str, array: Array, words: str) -> None:
    """What `layers` rejects is what a call and an export reject."""
    model, arrays = changed(name, array), nets.lstm_inputs()
    for act in (lambda: model.layers["lstm"], lambda: model(arrays), lambda: to_onnx(model)):
        with pytest.raises(PyrnnxError, match=r"LSTMSequence 'lstm' \(id 8\): ") as caught:
            act()
        assert name in str(caught.value)
    with pytest.raises(PyrnnxError) as caught:
        model.layers["lstm"]
    assert words in str(caught.value)


def test_one_constant_weight_beside_computed_ones() -> None:
    """W is an input of the model, R a constant of the wrong size."""
    text, weights = nets.lstm_net()
    place = text.index('<layer id="4"')
    text = text[:place] + parameter(4, "W", "1,24,4", (1, 24, 4)) + text[text.index("</layer>", place) + 8 :]
    read = read_model(text, weights)
    to_onnx(read)
    wrong = text.replace("<dim>24</dim><dim>6</dim>", "<dim>6</dim><dim>24</dim>").replace("1, 24, 6", "1, 6, 24")
    with pytest.raises(PyrnnxError, match=r"LSTMSequence 'lstm' \(id 8\)"):
        to_onnx(read_model(wrong, weights))
