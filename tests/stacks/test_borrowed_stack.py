"""Stacks of somebody else's arrays, beside `Stack`: results, and changes of the arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from rows import each_row
from torch_weights import state_dict

from pyrnnx import PyrnnxError
from pyrnnx.frontends.torch import from_state_dict
from pyrnnx.operator.conventions import TORCH, TORCH_CELL, Convention
from pyrnnx.stacks.borrowed_stack import BorrowedStack
from pyrnnx.stacks.stack import Stack
from pyrnnx.testing.numbers import Array

T, N, I, H = 6, 3, 5, 7


def borrowed(arrays: dict[str, Array], stack: Stack, convention: Convention = TORCH) -> BorrowedStack:
    weights = (dict(layer.weights) for layer in stack.layers)
    if not convention.has_directions:
        weights = ({name: array[0] for name, array in row.items()} for row in weights)
    rows: Iterator[Any] = zip((layer.op for layer in stack.layers), weights, strict=True)
    return BorrowedStack("LSTM", tuple(arrays.values()), rows, convention)


@each_row("cell", ("RNN", "GRU", "LSTM"))
@each_row("layers", (1, 3))
@each_row("directions", (1, 2))
def test_results_of_a_stack(cell: str, layers: int, directions: int) -> None:
    arrays = state_dict(cell, I, H, layers=layers, directions=directions)
    stack = from_state_dict(arrays)
    same, rng = borrowed(arrays, stack), np.random.default_rng(0)
    for k in range(5):
        X, lengths = rng.normal(size=(T, N, I)), [None, np.array([6, 2, 4])][k % 2]
        initial = [rng.normal(size=(layers * directions, N, H)) for _ in range(1 + (cell == "LSTM"))]
        Y, last = np.full((T, N, directions, H), np.nan), tuple(np.full_like(state, np.nan) for state in initial)
        assert same.run_joined(1, X, lengths, tuple(initial), Y, last)
        for a, b in zip((Y.reshape(T, N, -1), *last), stack(X, lengths, *initial), strict=True):
            np.testing.assert_array_equal(a, b)


@each_row("cell", ("RNN", "GRU", "LSTM"))
def test_a_step_of_a_cell(cell: str) -> None:
    arrays = state_dict(cell, I, H)
    stack = from_state_dict(arrays)
    same, rng = borrowed(arrays, stack, TORCH_CELL), np.random.default_rng(0)
    X, count = rng.normal(size=(N, I)), 1 + (cell == "LSTM")
    initial = [rng.normal(size=(N, H)) for _ in range(count)]
    last = tuple(np.full((N, H), np.nan) for _ in range(count))
    assert same.step(1, X, tuple(initial), last)
    for a, b in zip(last, stack(X[None], None, *(state[None] for state in initial))[1:], strict=True):
        np.testing.assert_array_equal(a, b[0])


def test_changes_are_seen() -> None:
    arrays = state_dict("GRU", I, H)
    stack = borrowed(arrays, from_state_dict(arrays))
    for array in arrays.values():
        assert stack.is_current()
        kept = array.flat[-1]
        array.flat[-1] = np.nextafter(kept, 2)
        assert not stack.is_current()
        array.flat[-1] = kept
    assert stack.is_current()


def test_arrays_that_the_kernels_cannot_read() -> None:
    arrays = state_dict("GRU", I, H)
    stack = borrowed(arrays, from_state_dict(arrays))
    Y, last = np.empty((T, N, 1, H)), (np.empty((1, N, H)),)
    for X in (np.zeros((T, N, 2 * I))[:, :, ::2], np.zeros((T, N, I + 1)), np.zeros((T, N, I), np.float32)):
        assert not stack.run_joined(1, X, None, (None,), Y, last)


def test_weights_that_cannot_be_packed() -> None:
    arrays = state_dict("GRU", I, H)
    layer = from_state_dict(arrays).layers[0]
    wide = np.lib.stride_tricks.as_strided(layer.weights["W"], (1, 3 * H, 2**40), (0, 0, 0))
    with pytest.raises(PyrnnxError, match="LSTM: the weights cannot be packed"):
        BorrowedStack("LSTM", tuple(arrays.values()), [(layer.op, {"W": wide, "R": layer.weights["R"]})], TORCH)
