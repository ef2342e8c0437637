"""Pairs of layers of two models."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from layers import random_weights
from onnx import helper
from onnx_models import simple_model
from rows import each_row

from pyrnnx import (
    CANONICAL,
    ONNX_LAYOUTS,
    OPENVINO_CELL,
    OPENVINO_SEQUENCE,
    Activation,
    Convention,
    Layer,
    RecurrentOp,
    UnsupportedError,
    compare,
)
from pyrnnx.comparison.models.pairs import pair_layers
from pyrnnx.frontends.onnx import read_model
from pyrnnx.frontends.openvino import read_layer, write_layer
from pyrnnx.operator.conventions import convert_weights
from pyrnnx.testing.numbers import Array

I, H = 3, 5
LSTM = RecurrentOp("LSTM", H)


def lstm(seed: int, convention: Convention = CANONICAL, op: RecurrentOp = LSTM, **changes: Any) -> Layer:
    """Weights by their seed; `changes`: of a weight, by its name."""
    weights = random_weights(op, I, seed=seed)
    weights = {name: changes[name](array) if name in changes else array for name, array in weights.items()}
    return Layer(op, **convert_weights(op, weights, CANONICAL, convention), convention=convention)  # type: ignore[arg-type]


def reduced(dtype: Any) -> dict[str, Any]:
    """The nearest numbers of another dtype, as float32."""
    return dict.fromkeys("WRB", lambda array: array.astype(dtype).astype(np.float32))


def int8(array: Array) -> Array:
    scale = np.abs(array).max(axis=-1, keepdims=True) / 127
    return np.asarray(np.rint(array / scale) * scale)


def nan(array: Array) -> Array:
    return np.full_like(array, np.nan)


def same(array: Array) -> Array:
    return np.ones_like(array)


def unbound(seed: int = 0) -> Any:
    text = write_layer(lstm(seed, OPENVINO_SEQUENCE), id=1)
    return read_layer(re.sub(r' precision="(FP32|I32)"', "", text))


FLOAT64: dict[str, Any] = dict.fromkeys("WRB", lambda array: array.astype(np.float64))
CLIPPED = RecurrentOp("LSTM", H, clip=1.0)
RELU = RecurrentOp("LSTM", H, activations=((Activation("Relu"),) * 3,))
REVERSE = RecurrentOp("LSTM", H, "reverse")
GRU = Layer(RecurrentOp("GRU", H), np.ones((1, 3 * H, I)), np.ones((1, 3 * H, H)))
Layers = Mapping[str, Any]
Pairs = list[tuple[str, str, str]]
F16 = reduced(np.float16)
INT8: dict[str, Any] = {"W": int8, "R": int8}
WEIGHTS, NEARLY, SIZES = "equal weights", "nearly equal W and R", "operator and sizes"


def xy(first: int = 1, second: int = 2, **changes: Any) -> Layers:
    return {"x": lstm(first, **changes), "y": lstm(second, **changes)}


def by(*reasons: str, **names: str) -> Pairs:
    """Return pairs {name in a: name in b}, by one reason or one each."""
    return [(a, b, reasons[k % len(reasons)]) for k, (a, b) in enumerate(names.items())]


THREE: Layers = {"x": lstm(1), "y": lstm(2), "z": lstm(3)}
TURNED: Layers = {"a": lstm(3, ONNX_LAYOUTS[1]), "b": lstm(2, OPENVINO_SEQUENCE), "c": lstm(1, OPENVINO_CELL)}
ONES: Layers = {"x": lstm(1), "y": lstm(1), "z": lstm(1)}
INFINITE: Layers = {"a": lstm(3, W=nan, R=lambda array: array * np.float32(np.inf)), "b": lstm(1)}
# Layers of a and of b, and the pairs.
PAIRS: dict[str, tuple[Layers, Layers, Pairs]] = {
    "weights before names and order": (xy(), xy(2, 1), by(WEIGHTS, x="y", y="x")),
    "weights in other conventions": (THREE, TURNED, by(WEIGHTS, x="c", y="b", z="a")),
    "equal weights: the same name first, then the order": (
        ONES,
        {"a": lstm(1), "b": lstm(1), "x": lstm(1)},
        by(WEIGHTS, x="x", y="a", z="b"),
    ),
    "B decides between equal W and R": (
        {"x": lstm(1), "y": lstm(1, B=same)},
        {"a": lstm(1, B=same), "b": lstm(1)},
        by(WEIGHTS, x="b", y="a"),
    ),
    "another B": (xy(), {"a": lstm(2, B=same), "b": lstm(1, B=same)}, by(NEARLY, x="b", y="a")),
    "another operator": (xy(), {"a": lstm(2, op=RELU), "b": lstm(1, op=CLIPPED)}, by(WEIGHTS, x="b", y="a")),
    # the sum of biases is not rounded to float32
    "float64": (xy(), {"a": lstm(2), "b": lstm(1, **FLOAT64)}, by(NEARLY, WEIGHTS, x="b", y="a")),
    "compressed to float16": (
        xy(),
        {"y": lstm(1, OPENVINO_SEQUENCE, **F16), "x": lstm(2, **F16)},
        by(NEARLY, x="y", y="x"),
    ),
    "quantized to int8": (xy(), {"a": lstm(2, **INT8), "b": lstm(1, **INT8)}, by(NEARLY, x="b", y="a")),
    "nearly equal twice: the same name first": (
        xy(1, 1, **F16),
        {"a": lstm(1), "x": lstm(1)},
        by(NEARLY, x="x", y="a"),
    ),
    "NaN and infinity hide nobody": (
        {"x": lstm(1, **F16), "y": lstm(2, W=nan)},
        INFINITE,
        by(NEARLY, SIZES, x="b", y="a"),
    ),
    "names": (xy(), {"y": lstm(3), "x": lstm(4)}, by("name", x="x", y="y")),
    "the only ones of their operator": (
        {"x": lstm(1), "y": lstm(2, op=RELU)},
        {"a": lstm(3, op=RELU), "b": lstm(4)},
        by(SIZES, x="b", y="a"),
    ),
    "several of one operator: the order": (xy(), {"a": lstm(3), "b": lstm(4)}, by(SIZES, x="a", y="b")),
    "order, of another operator": ({"x": lstm(1)}, {"a": lstm(2, op=RELU)}, by("order", x="a")),
    "without weights: names": ({"x": unbound()}, {"a": lstm(1), "x": unbound()}, by("name", x="x")),
    "without weights: operator": ({"x": unbound()}, {"a": lstm(1)}, by(SIZES, x="a")),
    "another direction is no partner": ({"x": lstm(1)}, {"x": lstm(1, op=REVERSE)}, []),
    "another cell is no partner": ({"x": lstm(1)}, {"x": GRU}, []),
    "nothing": ({}, {"x": lstm(1)}, []),
}


@each_row("name", PAIRS)
def test_pairs(name: str) -> None:
    a, b, expected = PAIRS[name]
    pairs, only_a, only_b = pair_layers(a, b)
    assert [tuple(pair) for pair in pairs] == expected
    assert only_a == [name for name in a if name not in {pair.a for pair in pairs}]
    assert only_b == [name for name in b if name not in {pair.b for pair in pairs}]


def test_what_no_other_convention_says_is_equal_to_its_like(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any) -> Any:
        raise UnsupportedError("input_forget")

    monkeypatch.setattr("pyrnnx.comparison.models.pairs.convert_weights", refuse)
    a = {"x": lstm(1, OPENVINO_CELL), "y": lstm(2)}
    pairs, _, _ = pair_layers(a, {"a": lstm(2), "b": lstm(1, OPENVINO_CELL), "c": lstm(1)})
    assert [tuple(pair) for pair in pairs] == [("x", "b", "equal weights"), ("y", "a", "equal weights")]
    pairs, _, _ = pair_layers(a, {"a": lstm(1), "b": lstm(2, OPENVINO_CELL)})
    assert [tuple(pair) for pair in pairs] == [("x", "a", SIZES), ("y", "b", SIZES)]


# Whole models


def model(seeds: Mapping[str, int], weights: str = "constant", outputs: int = 1) -> onnx.ModelProto:
    """LSTMs on one X; the sum of their Y is y0, and y1 on are 0, 1, ..."""
    nodes: list[onnx.NodeProto] = []
    constants: dict[str, Array] = {}
    inputs: dict[str, Array] = {"X": np.zeros((1, 1, I), np.float32)}
    for place, (name, seed) in enumerate(seeds.items()):
        arrays = {f"{which}{place}": lstm(seed).weights[which] for which in "WRB"}
        (constants if weights == "constant" else inputs).update(arrays)
        nodes.append(helper.make_node("LSTM", ["X", *arrays], [f"h{place}"], name, hidden_size=H))
    nodes.append(helper.make_node("Sum", [f"h{place}" for place in range(len(seeds))], ["y0"]))
    constants |= {f"y{k}": np.array(k - 1.0, np.float32) for k in range(1, outputs)}
    return simple_model(nodes, inputs, [f"y{k}" for k in range(outputs)], constants)


def test_what_is_in_one_model_only() -> None:
    one, two = read_model(model({"x": 1})), read_model(model({"x": 1}, outputs=2))
    result = compare(one, two)
    assert [(one.aspect, one.a, one.b) for one in result.outputs] == [("output 'y1'", "missing", "float32 ()")]
    assert result.numbers == {"y0": 0}
    assert result.largest_difference == np.inf
    assert not result.equal(1e30, 1e30)
    unpaired = compare(one, read_model(model({"x": 1, "other": 3})))
    assert unpaired.unpaired == ("LSTM 'other'",)
    assert 0 < unpaired.largest_difference < np.inf  # of y0, a sum over all layers


def test_layers_that_cannot_be_compared_are_reported() -> None:
    """A node whose weights are inputs and without hidden_size."""
    proto = model({"x": 1}, "inputs")
    del proto.graph.node[0].attribute[:]
    arrays = {name: lstm(1).weights[name[0]] for name in ("W0", "R0", "B0")} | {"X": np.ones((2, 1, I), np.float32)}
    result = compare(read_model(proto), read_model(proto), arrays)
    (pair,) = result.layers.values()
    assert "has no hidden_size" in pair.not_compared
    assert "not compared: compare: LSTM 'x' has no hidden_size" in str(result)
    assert pair.paired_by == "name"
    assert result.numbers == {"y0": 0}
    assert not result.equal()


def test_names_with_commas_are_two_pairs() -> None:
    result = compare(read_model(model({"x, y": 1, "x": 2})), read_model(model({"x, y": 1, "y": 2})))
    assert {name: pair.paired_by for name, pair in result.layers.items()} == {"x, y": WEIGHTS, "x, y*": WEIGHTS}
    assert result.equal()
    assert "paired by: equal weights" in str(result)
