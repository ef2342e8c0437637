"""Weights of two layers by block: a difference is reported by weight, direction and gate."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from layers import random_layer, random_weights
from rows import each_row

from pyrnnx import (
    CANONICAL,
    ONNX_LAYOUTS,
    OPENVINO_SEQUENCE,
    Activation,
    Convention,
    Layer,
    RecurrentOp,
    compare,
)
from pyrnnx.comparison.weights import WeightBlock, compare_weights
from pyrnnx.operator.conventions import OPENVINO_SEQUENCE_1, bias_blocks, convert_weights
from pyrnnx.operator.op import CELLS, CellName
from pyrnnx.testing.numbers import Array

I, H = 4, 6
CONVENTIONS = (CANONICAL, OPENVINO_SEQUENCE, OPENVINO_SEQUENCE_1, ONNX_LAYOUTS[1])


def layer(op: RecurrentOp, weights: dict[str, Array], convention: Convention = CANONICAL) -> Layer:
    """From canonical weights."""
    given: Any = convert_weights(op, weights, CANONICAL, convention)
    return Layer(op, **given, convention=convention)


def differing(a: Layer, b: Layer) -> dict[tuple[str, str, str], float]:
    return {(one.name, one.direction, one.gate): one.largest for one in compare_weights(a, b) if one.largest}


@each_row(("second", "direction"), list(zip(CONVENTIONS, ("bidirectional", "forward") * 2, strict=True)))
@each_row("cell", CELLS)
def test_one_changed_number_is_found_in_its_block(cell: CellName, direction: Any, second: Convention) -> None:
    """Every weight and gate, in two conventions; 0.25 is exact for numbers around 1."""
    op = RecurrentOp(cell, H, direction)
    weights = random_weights(op, I, peepholes=second is not OPENVINO_SEQUENCE, exact_bias=True)
    weights = {name: np.round(array * 64) / 64 for name, array in weights.items()}
    first = layer(op, weights)
    assert not differing(first, layer(op, weights, second))
    names = ("forward", "reverse") if direction == "bidirectional" else (direction,)
    for name, array in weights.items():
        gates = {"B": bias_blocks(op, CANONICAL), "P": "iof"}.get(name, op.gates)
        blocks = [(d, k) for d in range(len(names)) for k in range(len(gates))]
        for d, k in blocks if len(names) == 2 else blocks[-1:]:
            changed = array.copy()
            changed[d, k * H + 2] += np.float32(0.25)
            kind, gate = gates[k].split("_") if name == "B" else (name, gates[k])
            if name == "B" and second.bias != CANONICAL.bias:
                kind = "b"
            found = differing(first, layer(op, {**weights, name: changed}, second))
            assert found == {(kind, names[d], gate): 0.25}


@pytest.mark.parametrize("reset", [True, False])
def test_biases_that_a_convention_keeps_apart(reset: bool) -> None:
    """A GRU with linear_before_reset has separate Wb_h and Rb_h in both; z and r are sums in one of them."""
    op = RecurrentOp("GRU", H, linear_before_reset=reset)
    weights = random_weights(op, I, exact_bias=True)
    found = compare(layer(op, weights), layer(op, weights, OPENVINO_SEQUENCE)).weights
    biases = ["b z", "b r", "Wb h", "Rb h"] if reset else ["b z", "b r", "b h"]
    assert [f"{one.name} {one.gate}" for one in found if "b" in one.name] == biases
    moved = {**weights, "B": weights["B"].copy()}
    moved["B"][0, 2 * H], moved["B"][0, 5 * H] = weights["B"][0, 5 * H], weights["B"][0, 2 * H]
    apart = differing(layer(op, weights), layer(op, moved, OPENVINO_SEQUENCE))
    assert {name for name, _, _ in apart} == ({"Wb", "Rb"} if reset else set())  # their sum is the same


def test_differences_absolute_and_relative() -> None:
    op = RecurrentOp("RNN", 2)
    W = np.array([[[1.0, 0.0], [4.0, -8.0]]])
    R = np.zeros((1, 2, 2))

    def block(changed: Array) -> WeightBlock:
        return compare_weights(Layer(op, changed, R), Layer(op, W, R))[0]

    assert block(W + np.array([[0.5, 0], [0, 2]])) == WeightBlock("W", "forward", "i", 2.0, 0.5)
    assert block(W + np.array([[0.5, 0.25], [0, 2]])) == WeightBlock("W", "forward", "i", 2.0, math.inf)
    assert block(np.where(W == 4, np.nan, W)) == WeightBlock("W", "forward", "i", math.inf, math.inf)
    nan = np.where(W == 4, np.nan, W)
    assert compare_weights(Layer(op, nan, R), Layer(op, nan, R))[0].largest == 0


@pytest.mark.parametrize(("name", "line"), [("B", "  Wb forward: i 1 (1)"), ("P", "  P forward: i 1 (1)")])
def test_weights_that_only_one_has_are_compared_with_zeros(name: str, line: str) -> None:
    op = RecurrentOp("LSTM", H)
    weights = random_weights(op, I)
    weights.pop("B")
    array = np.zeros((1, (8 if name == "B" else 3) * H), np.float32)
    a, b = layer(op, weights), layer(op, {**weights, name: array})
    assert "weights: the same" in str(compare(a, b))
    array[0, 0] = 1
    assert line in str(compare(a, layer(op, {**weights, name: array}))).splitlines()


def test_coupled_gates() -> None:
    """Gates that input_forget leaves unused are not compared; other couplings are converted."""
    op = RecurrentOp("LSTM", H, input_forget=True)
    weights = random_weights(op, I, exact_bias=True)
    changed = {**weights, "W": weights["W"].copy()}
    changed["W"][:, 2 * H : 3 * H] += 1  # f, which is 1 - i
    for second in (CANONICAL, OPENVINO_SEQUENCE_1):
        changed["W"][:, 0] = weights["W"][:, 0]
        result = compare(layer(op, weights), layer(op, changed, second))
        assert not any(one.largest for one in result.weights)
        assert "f" not in {one.gate for one in result.weights}
        changed["W"][:, 0] += 0.5  # and i
        assert {one[2] for one in differing(layer(op, weights), layer(op, changed, second))} == {"i"}
    leaky = (Activation("LeakyRelu", 0.5), Activation("Tanh"), Activation("Tanh"))
    other = RecurrentOp("LSTM", H, activations=(leaky,), input_forget=True)
    given = random_layer(other, I, convention=OPENVINO_SEQUENCE_1)
    assert {one.gate for one in compare_weights(layer(other, weights), given)} == set("iofc")


def test_weights_in_fewer_bits() -> None:
    """Rounding is a difference of each block; weight_dtype, which only the kernels see, is one of convention."""
    op = RecurrentOp("GRU", H)
    result = compare(random_layer(op, I), random_layer(op, I, np.float16))
    assert 0 < max(one.largest for one in result.weights) < 2e-3
    reduced = compare(random_layer(op, I), random_layer(op, I, weight_dtype="int8"))
    assert [(one.aspect, one.a, one.b) for one in reduced.conventions] == [("weight_dtype", "None", "int8")]
    assert not any(one.largest for one in reduced.weights)
