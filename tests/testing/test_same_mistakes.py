"""assert_same of a layer and a port of it with one of the usual mistakes, which is named."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from layers import random_layer, random_weights
from same_messages import message

from pyrnnx import OPENVINO_SEQUENCE, Activation, Convention, Direction, Layer, RecurrentOp
from pyrnnx.frontends.onnx import lstm
from pyrnnx.testing import assert_same, reference
from pyrnnx.testing.numbers import Array
from pyrnnx.testing.same.mistakes import MOST_MISTAKES, mistakes
from pyrnnx.testing.same.oracle import arguments

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


MISTAKES: dict[str, tuple[str, dict[str, Any], dict[str, Any], str]] = {
    "states": ("LSTM", {}, {"initial_h": None, "initial_c": None}, "initial_h and initial_c were zero"),
    "h": ("GRU", {}, {"initial_h": None}, "initial_h were zero"),
    "c": ("LSTM", {}, {"initial_c": None}, "initial_c were zero"),
    "exchanged": (
        "LSTM",
        {},
        {"initial_h": lambda given: given["initial_c"], "initial_c": lambda given: given["initial_h"]},
        "initial_h and initial_c were exchanged",
    ),
    "lengths": ("RNN", {}, {"sequence_lens": None}, "every row had all time steps, whatever sequence_lens says"),
    "clip": ("LSTM", {"clip": 0.2}, {"clip": None}, "there were no clip"),
    "reset": ("GRU", {}, {"linear_before_reset": 1}, "linear_before_reset were 1"),
    "Rb": ("RNN", {}, {"B": lambda given: given["B"] * np.repeat([1, 0], H)}, "Rb were zero"),
    "Wb": ("RNN", {}, {"B": lambda given: given["B"] * np.repeat([0, 1], H)}, "Wb were zero"),
    "B": ("GRU", {}, {"B": None}, "B were zero"),
    "P": ("LSTM", {}, {"P": None}, "P were zero"),
    "R": ("RNN", {}, {"R": lambda given: given["R"].swapaxes(1, 2)}, "R were transposed, gate by gate"),
    "forward": ("RNN", {"direction": "reverse"}, {"direction": "forward"}, "the direction were forward"),
    "directions": (
        "GRU",
        {"direction": "bidirectional"},
        {name: lambda given, name=name: given[name][::-1] for name in ("W", "R", "B")},
        "the weights of the two directions were exchanged",
    ),
    "activations": (
        "RNN",
        {"activations": ((Activation("Relu"),),)},
        {"activations": ["Tanh"]},
        "the activations were the default ones",
    ),
    "coupled": ("LSTM", {}, {"input_forget": 1}, "input_forget were 1"),
    "z": (
        "GRU",
        {},
        {
            name: lambda given, name=name: (
                given[name]
                * np.tile(np.repeat([-1, 1, 1], H), 2 if name == "B" else 1).reshape(-1, *[1] * (given[name].ndim - 2))
            )
            for name in ("W", "R", "B")
        },
        "z and 1 - z were exchanged",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_usual_mistakes_are_named(name: str) -> None:
    cell, attributes, changes, words = MISTAKES[name]
    layer = random_layer(RecurrentOp(cell, H, **attributes), I, np.float64, peepholes=name == "P")
    changes = {"activations": ["Relu"]} | changes if name == "activations" else changes
    assert f"By its numbers, b computes that layer as if {words}. Y" in message(layer, port(layer, **changes))


@pytest.mark.parametrize("cell", ["GRU", "LSTM"])
def test_gates_in_every_order(cell: str) -> None:
    op = RecurrentOp(cell, H)
    layer, own = random_layer(op, I, np.float64), op.gates
    for order in map("".join, permutations(own)):
        places = [order.index(gate) for gate in own]
        changed = port(layer, **{name: blocks(name, places) for name in ("W", "R", "B")})
        if order == own:
            assert_same(layer, changed)
        else:
            assert f"the gates of W, R and B were in the order {', '.join(order)}. Y" in message(layer, changed)


def test_gates_are_told_in_the_order_of_the_layer_beside() -> None:
    layer: Layer = random_layer(RecurrentOp("LSTM", H), I, convention=OPENVINO_SEQUENCE)
    convention: Convention = OPENVINO_SEQUENCE

    def as_onnx(X: Array, H: Array, C: Array, W: Array, R: Array, B: Array) -> Any:
        wrong = Layer(layer.op, W, R, np.concatenate([B, 0 * B], axis=1))  # i, o, f, c
        Y, Y_h, Y_c = wrong(*(array.swapaxes(0, 1) for array in (X,)), None, H.swapaxes(0, 1), C.swapaxes(0, 1))
        return Y.transpose(2, 1, 0, 3), Y_h.swapaxes(0, 1), Y_c.swapaxes(0, 1)

    told = message(layer, as_onnx)
    assert f"conventions of a: {convention.name}; gate order: f, i, c, o" in told
    assert "as if the gates of W, R and B were in the order i, o, f, c." in told


def test_there_are_no_more_mistakes_than_are_counted_on() -> None:
    op = RecurrentOp("LSTM", H, Direction.BIDIRECTIONAL, clip=1.0, input_forget=True)
    layer = random_layer(op, I, peepholes=True)
    arrays = {"X": np.ones((2, 3, I)), "initial_h": np.ones((2, 3, H)), "initial_c": np.ones((2, 3, H))}
    found = [words for words, _ in mistakes(layer, arguments(layer, arrays))]
    assert len(set(found)) == len(found) <= MOST_MISTAKES


def test_what_takes_the_oracle_too_long_is_told_without_it() -> None:
    layer = random_layer(RecurrentOp("RNN", 1), 1)
    arrays = {"X": np.ones((2**18, 1, 1), "f4")}
    told = message(layer, lambda X: tuple(array + 1 for array in layer(X)), inputs=arrays)
    assert "By its numbers" not in told
    assert told.endswith("The oracle was not run: 262144 steps of 1 rows would take it too long.")
    arrays = {"X": np.ones((2**12, 1, 1), "f4")}  # once, but not for each mistake
    told = message(layer, lambda X: tuple(array + 1 for array in layer(X)), inputs=arrays)
    assert told.endswith("b is away from the oracle, a is not.")


def test_no_mistake_is_named_where_the_layer_is_wrong_or_none_fits() -> None:
    rounded = Layer(OP, **WEIGHTS, weight_dtype="int8")
    other: dict[str, Any] = random_weights(OP, I, seed=1)
    assert "By its numbers" not in message(rounded, lambda X: lstm(X, **WEIGHTS))
    assert "By its numbers" not in message(LAYER, lambda X: lstm(X, **other))
