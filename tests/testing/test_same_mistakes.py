"""assert_same of a layer and a port with a usual mistake, which the message names."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from layers import random_layer, random_weights
from rows import each_row
from same_messages import message

from pyrnnx import Activation, Direction, Layer, RecurrentOp, reference
from pyrnnx.comparison.oracle import arguments
from pyrnnx.frontends.onnx import lstm
from pyrnnx.operator.op import CellName
from pyrnnx.testing import assert_same
from pyrnnx.testing.numbers import Array
from pyrnnx.testing.same.mistakes import MOST_MISTAKES, mistakes

I, H = 4, 6
OP = RecurrentOp("LSTM", H)
WEIGHTS: Any = random_weights(OP, I)
LAYER = Layer(OP, **WEIGHTS)


def port(layer: Layer, **changes: Any) -> Callable[..., Any]:
    """The layer as the oracle has it, with changed arguments: a port with one mistake."""
    op = layer.op
    fixed = {"direction": op.direction.value, "clip": op.clip}
    fixed |= {"linear_before_reset": int(op.linear_before_reset)} if op.cell == "GRU" else {}

    def function(**arrays: Any) -> Any:
        given = {**layer.weights, **fixed, **arrays}
        given |= {name: change(given) if callable(change) else change for name, change in changes.items()}
        return reference.run(op.cell, **given)

    return function


def blocks(name: str, order: list[int]) -> Callable[[Any], Array]:
    """The weight with its gates in another order."""

    def reordered(given: Any) -> Array:
        halves = np.split(given[name], 2 if name == "B" else 1, axis=1)
        return np.concatenate([np.split(half, len(order), axis=1)[k] for half in halves for k in order], axis=1)

    return reordered


MISTAKES: list[tuple[CellName, dict[str, Any], dict[str, Any], str]] = [
    ("LSTM", {}, {"initial_h": None, "initial_c": None}, "initial_h and initial_c were zero"),
    (
        "LSTM",
        {},
        {"initial_h": lambda given: given["initial_c"], "initial_c": lambda given: given["initial_h"]},
        "initial_h and initial_c were exchanged",
    ),
    ("LSTM", {"clip": 0.2}, {"clip": None}, "there were no clip"),
    ("GRU", {}, {"linear_before_reset": 1}, "linear_before_reset were 1"),
    ("RNN", {}, {"B": lambda given: given["B"] * np.repeat([1, 0], H)}, "Rb were zero"),
    ("RNN", {}, {"B": lambda given: given["B"] * np.repeat([0, 1], H)}, "Wb were zero"),
    ("GRU", {}, {"B": None}, "B were zero"),
    ("LSTM", {}, {"P": None}, "P were zero"),
    ("RNN", {"direction": "reverse"}, {"direction": "forward"}, "the direction were forward"),
    (
        "GRU",
        {"direction": "bidirectional"},
        {name: lambda given, name=name: given[name][::-1] for name in ("W", "R", "B")},
        "the weights of the two directions were exchanged",
    ),
    (
        "RNN",
        {"activations": ((Activation("Relu"),),)},
        {"activations": ["Tanh"]},
        "the activations were the default ones",
    ),
    ("LSTM", {}, {"input_forget": 1}, "input_forget were 1"),
]


@each_row(("cell", "attributes", "changes", "words"), MISTAKES, ids=[row[-1] for row in MISTAKES])
def test_usual_mistakes_are_named(
    cell: CellName, attributes: dict[str, Any], changes: dict[str, Any], words: str
) -> None:
    layer = random_layer(RecurrentOp(cell, H, **attributes), I, np.float64, peepholes="P" in changes)
    changes = {"activations": ["Relu"]} | changes if "activations" in attributes else changes
    assert f"By its numbers, b computes that layer as if {words}. Y" in message(layer, port(layer, **changes))


@pytest.mark.parametrize("stride", [5, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("cell", ["GRU", "LSTM"])
def test_gates_in_every_order(cell: CellName, stride: int) -> None:
    op = RecurrentOp(cell, H)
    layer, own = random_layer(op, I, np.float64), op.gates
    for order in [*map("".join, permutations(own))][::stride]:
        places = [order.index(gate) for gate in own]
        changed = port(layer, **{name: blocks(name, places) for name in ("W", "R", "B")})
        if order == own:
            assert_same(layer, changed)
        else:
            assert f"the gates of W, R and B were in the order {', '.join(order)}. Y" in message(layer, changed)


def test_there_are_no_more_mistakes_than_are_counted_on() -> None:
    functions: list[Activation | str] = ["HardSigmoid", Activation("ThresholdedRelu", 0.5), "Affine"] * 2
    op = RecurrentOp("LSTM", H, Direction.BIDIRECTIONAL, clip=1.0, input_forget=True, activations=functions)
    layer = random_layer(op, I, peepholes=True)
    arrays = {"X": np.ones((2, 3, I)), "initial_h": np.ones((2, 3, H)), "initial_c": np.ones((2, 3, H))}
    arguments_ = arguments(layer, {**arrays, "sequence_lens": np.array([0, 1, 2])})
    found = [mistake.words for mistake in mistakes(layer, arguments_)]
    assert len(set(found)) == len(found) <= MOST_MISTAKES, len(found)


def test_what_takes_the_oracle_too_long_is_told_without_it() -> None:
    layer = random_layer(RecurrentOp("RNN", 1), 1)
    arrays = {"X": np.ones((2**18, 1, 1), "f4")}
    told = message(layer, lambda X: tuple(array + 1 for array in layer(X)), inputs=arrays)
    assert "By its numbers" not in told
    assert told.endswith("The oracle was skipped: 262144 steps of 1 rows take too long.")
    arrays = {"X": np.ones((2**12, 1, 1), "f4")}  # once, but not for each mistake
    told = message(layer, lambda X: tuple(array + 1 for array in layer(X)), inputs=arrays)
    assert told.endswith("b is away from the oracle, a is not.")


def test_no_mistake_is_named_where_the_layer_is_wrong_or_none_fits() -> None:
    rounded = Layer(OP, **WEIGHTS, weight_dtype="int8")
    other: dict[str, Any] = random_weights(OP, I, seed=1)
    assert "By its numbers" not in message(rounded, lambda X: lstm(X, **WEIGHTS))
    assert "By its numbers" not in message(LAYER, lambda X: lstm(X, **other))
