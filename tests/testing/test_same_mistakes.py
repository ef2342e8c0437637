"""Names of mistakes: assert_same of a layer and each mistake of the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from layers import random_layer, random_weights
from rows import each_row
from same_messages import message

from pyrnnx import Activation, Direction, Layer, RecurrentOp
from pyrnnx.comparison import oracle
from pyrnnx.frontends.onnx import lstm
from pyrnnx.operator.op import CELLS
from pyrnnx.testing import assert_same
from pyrnnx.testing.numbers import Array
from pyrnnx.testing.same.mistakes import mistakes

I, H = 4, 5
OPERATORS = {
    "RNN": RecurrentOp("RNN", H, clip=1.0),
    "GRU": RecurrentOp("GRU", H),
    "GRU with linear_before_reset": RecurrentOp("GRU", H, linear_before_reset=True),
    "LSTM": RecurrentOp("LSTM", H),
    "bidirectional LSTM with input_forget": RecurrentOp("LSTM", H, Direction.BIDIRECTIONAL, input_forget=True),
    "reverse LSTM with parameters": RecurrentOp(
        "LSTM", H, Direction.REVERSE, ((Activation("Sigmoid"), Activation("LeakyRelu", 0.3), Activation("Elu", 0.7)),)
    ),
}


def planted(layer: Layer, words: str) -> Callable[..., Any]:
    """Return a layer with the mistake of these words; many of them depend on the arrays of a call."""

    def function(**arrays: Array) -> Any:
        given = oracle.arguments(layer, {name: arrays[name] for name in arrays if name not in "WRBP"})
        mistake = next(mistake for mistake in mistakes(layer, given) if mistake.words == words)
        return mistake.outputs(layer, given, oracle.outputs(layer, given))

    return function


def check_mistakes(name: str, start: int, stride: int) -> None:
    """Plant mistakes: each is named, itself or by another one that computes the same numbers."""
    op, lengths = OPERATORS[name], [5, 0, 3]
    layer = random_layer(op, I, np.float64, peepholes=op.cell == "LSTM")
    shape = (op.num_directions, 3, H)
    arrays: dict[str, Array] = {
        "X": np.ones((5, 3, I)),
        "sequence_lens": np.array(lengths),
        "initial_h": np.ones(shape),
    }
    arrays |= {"initial_c": np.ones(shape)} if op.cell == "LSTM" else {}
    every = list(mistakes(layer, oracle.arguments(layer, arrays)))
    assert len({mistake.words for mistake in every}) == len(every)
    for mistake in every[start::stride]:
        text = failure(layer, planted(layer, mistake.words), lengths)
        if text:  # some have no effect, such as to leave out what is zero
            assert "By its numbers, b computes that layer as if " in text, mistake.words
            assert mistake.words in text or ", or as if " in text, mistake.words


def failure(layer: Layer, function: Callable[..., Any], lengths: list[int]) -> str:
    try:
        assert_same(layer, function, inputs={"sequence_lens": lengths})
    except AssertionError as error:
        return " ".join(str(error).split())
    return ""


@each_row("name", OPERATORS)
def test_some_mistakes_are_named(name: str) -> None:
    check_mistakes(name, 3, 211)


@pytest.mark.nightly
@pytest.mark.parametrize("name", OPERATORS)
def test_every_mistake_is_named(name: str) -> None:
    check_mistakes(name, 0, 1)


def test_number_of_mistakes() -> None:
    """Each term of each equation is left out, added twice and taken from another step."""
    for cell, least in {"RNN": 35, "GRU": 110, "LSTM": 160}.items():
        layer = random_layer(RecurrentOp(cell, H), I)  # type: ignore[arg-type]
        state = np.ones((1, 1, H))
        arrays = {"X": np.ones((2, 1, I)), "initial_h": state, "initial_c": state, "sequence_lens": np.array([2])}
        found = [mistake.words for mistake in mistakes(layer, oracle.arguments(layer, _taken(layer, arrays)))]
        assert len(found) >= least
        for gate in CELLS[layer.op.cell].gates:
            for words in (f"W{gate}*Xt were left out of {gate}", f"Rb{gate} were added twice in {gate}"):
                assert words in found
            assert f"Xt were Xt-1 in W{gate}*Xt of {gate}" in found


def _taken(layer: Layer, arrays: dict[str, Array]) -> dict[str, Array]:
    return {name: array for name, array in arrays.items() if name != "initial_c" or layer.op.has_cell_state}


def test_what_takes_too_long_is_not_tried() -> None:
    layer = random_layer(RecurrentOp("RNN", 1), 1)
    arrays = {"X": np.ones((2**18, 1, 1), "f4")}
    text = message(layer, lambda X: tuple(array + 1 for array in layer(X)), inputs=arrays)
    assert "By its numbers" not in text
    assert text.endswith("The oracle was skipped: 262144 steps of 1 rows take too long.")
    arrays = {"X": np.ones((2**13, 1, 1), "f4")}  # once, but not for each mistake
    text = message(layer, lambda X: tuple(array + 1 for array in layer(X)), inputs=arrays)
    assert "No usual mistakes of b were tried, which takes too long: pass shorter inputs." in text
    assert text.endswith("b is away from the oracle, a is not.")


def test_no_mistake_is_named_where_the_layer_is_wrong_or_none_fits() -> None:
    op = RecurrentOp("LSTM", H)
    weights: Any = random_weights(op, I)
    other: dict[str, Any] = random_weights(op, I, seed=1)
    rounded = Layer(op, **weights, weight_dtype="int8")
    assert "usual mistakes" not in message(rounded, lambda X: lstm(X, **weights))
    text = message(Layer(op, **weights), lambda X: lstm(X, **other))
    assert " usual mistakes gives the numbers of b. Y" in text
    assert "first apart: Y at step 0, forward, row " in text
    assert "that step by the oracle: i_in " in text
