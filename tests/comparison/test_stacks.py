"""`compare` and `assert_same` of stacks: with each other, with a layer and with the model that is written of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from layers import random_layer
from rows import each_row

from pyrnnx import ArgumentError, Comparison, RecurrentOp, Stack, compare
from pyrnnx.frontends.onnx import read_model, write_model
from pyrnnx.testing import assert_same

I, H = 4, 6


def stack(*cells: Any, seed: int = 0, sizes: tuple[int, ...] = (H, H), batch_first: bool = False) -> Stack:
    """Return a bidirectional layer and layers of other cells on it; `seed` is that of the last one."""
    layers, size = [], I
    for place, (cell, hidden) in enumerate(zip(cells, sizes, strict=False)):
        op = RecurrentOp(cell, hidden, "forward" if place else "bidirectional")
        layers.append(random_layer(op, size, seed=seed if place else 0))
        size = op.num_directions * hidden
    return Stack(layers, batch_first=batch_first, name="stack")


STACKS: dict[str, Any] = {
    "two cells": lambda **options: stack("LSTM", "GRU", **options),
    "no cell state": lambda **options: stack("GRU", "RNN", **options),
    "batch first": lambda **options: stack("LSTM", "LSTM", batch_first=True, **options),
    "two hidden sizes": lambda **options: stack("GRU", "LSTM", sizes=(H, 5), **options),
}


@each_row("name", STACKS)
def test_two_stacks(name: str) -> None:
    make = STACKS[name]
    result = compare(make(), make())
    assert result.verdict() == "same", str(result)
    assert {pair.paired_by for pair in result.layers.values()} == {"equal weights"}
    assert_same(make(), make())
    other = compare(make(), make(seed=1))
    assert other.verdict() == "different"
    assert other.layers["0"].largest_difference == 0
    assert other.layers["1"].first_difference is not None
    with pytest.raises(AssertionError, match=r"Stack 'stack' \(a\) and Stack 'stack' \(b\) are not the same"):
        assert_same(make(), make(seed=1))


def test_lengths_and_states_vary() -> None:
    """They are optional inputs, of which some calls have values."""
    result = compare(stack("LSTM", "GRU"), stack("LSTM", "GRU"))
    assert any("'sequence_lens'" in call and "'initial_h' (3, " in call for call in result.calls)
    X = np.ones((3, 2, I), np.float32)
    given = compare(
        stack("LSTM", "GRU"), stack("LSTM", "GRU", seed=1), {"X": X, "sequence_lens": np.array([3, 1], "i4")}
    )
    assert given.largest_difference > 1e-3
    assert given.input_shapes["X"] == X.shape


@each_row("name", ["two cells", "batch first"])
def test_a_stack_and_its_model(name: str) -> None:
    made = STACKS[name]()
    model = read_model(write_model(made))
    for pair in ((made, model), (model, made)):
        assert compare(*pair).verdict() == "same", str(compare(*pair))
        assert_same(*pair)
    assert compare(STACKS[name](seed=1), model).verdict() == "different"


def test_a_stack_and_a_layer() -> None:
    layer = random_layer(RecurrentOp("GRU", H), I)
    result = compare(Stack([layer]), layer)
    assert isinstance(result, Comparison)
    assert result.equal(0, 0)
    assert_same(layer, Stack([layer]))
    with pytest.raises(ArgumentError, match=r"Stack 'stack' has 2 recurrent layers .*; expected one"):
        compare(stack("GRU", "GRU"), layer)
