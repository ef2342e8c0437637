"""assert_same with modules of PyTorch; for `pytest -m torch`."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import numpy as np
import pytest
from same_messages import message

from pyrnnx import CANONICAL, Layer, RecurrentOp
from pyrnnx.frontends.torch.modules import module_layer
from pyrnnx.operator.conventions import convert_weights
from pyrnnx.testing import assert_same

pytestmark = pytest.mark.torch
torch: Any = pytest.importorskip("torch")

T, N, I, H = 5, 3, 4, 6
KINDS = ("RNN", "RNN relu", "GRU", "LSTM")


def make(kind: str, suffix: str = "", **options: Any) -> Any:
    torch.manual_seed(0)
    name, _, nonlinearity = kind.partition(" ")
    options |= {"nonlinearity": nonlinearity} if nonlinearity else {}
    return getattr(torch.nn, name + suffix)(I, H, **options)


def as_onnx(module: Any) -> Layer:
    """Its weights as ONNX arranges them."""
    layer = module_layer(module, "module")
    weights: Any = convert_weights(layer.op, layer.weights, layer.convention, CANONICAL)
    return Layer(layer.op, **weights)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("bidirectional", "batch_first", "bias"), list(product((False, True), repeat=3)))
def test_a_module_and_the_layer_of_its_weights(kind: str, bidirectional: bool, batch_first: bool, bias: bool) -> None:
    module = make(kind, bidirectional=bidirectional, batch_first=batch_first, bias=bias)
    layer = as_onnx(module)
    assert_same(module, layer)
    assert_same(layer, module)
    assert_same(module, module)
    assert_same(layer, module, inputs={"X": np.ones((T, N, I)), "sequence_lens": [5, 5, 5]})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bias", [False, True])
def test_a_cell_and_the_layer_of_its_weights(kind: str, bias: bool) -> None:
    cell = make(kind, "Cell", bias=bias)
    assert_same(cell, as_onnx(cell))
    assert_same(as_onnx(cell), cell)


def test_conventions_and_weights_are_told() -> None:
    module = make("LSTM", bidirectional=True)
    layer = as_onnx(module)
    with torch.no_grad():
        module.weight_hh_l0_reverse[1 * H + 2, 3] += 0.5  # gate f of i, f, g, o
    told = message(layer, module)
    assert "gate order i, o, f, c i, f, c, o" in told
    assert "axes of Y [T, D, N, H] [T, N, D, H]" in told
    assert "R reverse: f 0.5" in told
    assert "first gate apart: f_in at" in told
    assert re.search(r"first apart: Y at step \d, reverse, row \d, unit \d: ", told)


def test_a_gru_of_another_formula() -> None:
    module = make("GRU")
    weights: Any = as_onnx(module).weights
    told = message(Layer(RecurrentOp("GRU", H), **weights), module)
    assert "linear_before_reset False True weights: the same" in told


class Port(torch.nn.Module):  # type: ignore[misc]
    """A module around another, as users write them."""

    def __init__(self, inner: Any, shift: float = 0.0) -> None:
        super().__init__()
        self.inner, self.shift = inner, shift

    def forward(self, frames: Any, h0: Any, c0: Any) -> Any:
        assert isinstance(frames, torch.Tensor)
        output, (h, c) = self.inner(frames, (h0, c0))
        return output + self.shift, (h, c)


def test_modules_are_called_with_tensors() -> None:
    module = make("LSTM", bidirectional=True)
    assert_same(module, Port(module))
    assert_same(Port(module), module)
    told = message(module, Port(module, 0.5))
    assert "Port of PyTorch (b) are not the same" in told
    assert "Y: 180 of 180 numbers" in told
    assert "b is away from the oracle, a is not." in told
