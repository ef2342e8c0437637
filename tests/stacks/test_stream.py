"""Streams of stacks: a sequence pushed in chunks of any size has the results of one call."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from layers import DTYPES
from rows import each_row
from stacks import Description, I, random_layers, random_states

from pyrnnx import ONNX_LAYOUTS, OPENVINO_SEQUENCE, PyrnnxError, Stack, StackStream

# float32: the same sums in the same order on the SIMD engine; BLAS may order them by the shape of a product
TOLERANCE = 1e-6
N = 3
FORWARD: dict[str, tuple[Description, ...]] = {
    "LSTMs": (("LSTM", "forward", 5), ("LSTM", "forward", 5)),
    "all cells": (("RNN", "forward", 5), ("LSTM", "forward", 5), ("GRU", "forward", 5)),
    "all sizes": (("LSTM", "forward", 4), ("GRU", "forward", 7), ("LSTM", "forward", 17)),
    "no cell state": (("GRU", "forward", 5), ("RNN", "forward", 5)),
}
CONVENTIONS = (ONNX_LAYOUTS[0], OPENVINO_SEQUENCE, ONNX_LAYOUTS[1])
each_stack = each_row("name", FORWARD)


def stack_of(name: str, dtype: Any = np.float32, batch_first: bool = False) -> Stack:
    return Stack(random_layers(FORWARD[name], dtype, convention=CONVENTIONS), batch_first=batch_first)


def inputs(T: int, dtype: Any = np.float32, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=(T, N, I)).astype(dtype)


def states_of(stack: Stack) -> tuple[Any, ...]:
    forms = zip(stack.state_forms, random_states(stack, N), strict=True)
    return tuple(form.join(states) for form, states in forms if form.exists)


def flat(states: Any) -> list[Any]:
    return [a for one in states for a in (one if isinstance(one, list) else [one]) if a is not None]


def assert_same(actual: Any, wanted: Any, tolerance: float = 0.0) -> None:
    for a, b in zip(flat(actual), flat(wanted), strict=True):
        np.testing.assert_allclose(a.astype(np.float64), b.astype(np.float64), atol=tolerance, rtol=0)


def turned(X: Any, batch_first: bool) -> Any:
    return X.swapaxes(0, 1) if batch_first else X


@each_row("batch_first", [False, True])
@each_stack
@each_row("seed", range(6))
def test_pushes_give_the_whole(name: str, batch_first: bool, seed: int) -> None:
    stack, rng = stack_of(name, batch_first=batch_first), np.random.default_rng(seed)
    lengths = rng.integers(0, 1 + seed, (rng.integers(1, 6), N))  # steps of each row in each push; none for seed 0
    totals = np.sum(lengths, axis=0)
    X, stream, begin = inputs(int(totals.max())), stack.stream(N), np.zeros(N, int)
    whole, *last = stack(turned(X, batch_first), totals)
    whole = turned(whole, batch_first)
    for steps in lengths:
        chunk = np.full((max(steps), N, I), np.nan, np.float32)
        for row, n in enumerate(steps):
            chunk[:n, row] = X[begin[row] : begin[row] + n, row]
        Y = turned(stream.push(turned(chunk, batch_first), steps), batch_first)
        for row, n in enumerate(steps):
            np.testing.assert_allclose(Y[:n, row], whole[begin[row] : begin[row] + n, row], atol=TOLERANCE)
            assert not Y[n:, row].any()
        begin += steps
    # A call gives zero for a row without steps; so the states of the stream are, which began with zero.
    assert_same(stream.state, last, TOLERANCE)


@each_row("dtype", DTYPES, ids=str)
@each_stack
def test_states_go_on(name: str, dtype: Any) -> None:
    stack = stack_of(name, dtype)
    X, stream, other = inputs(7, dtype), stack.stream(N), stack.stream(N)
    initial = states_of(stack)
    stream.state = initial
    assert_same(stream.state, initial)
    assert all(one.dtype == (np.float64 if dtype == np.float64 else np.float32) for one in flat(stream.state))
    first = stream.push(X[:3])
    assert first.dtype == dtype
    other.state = stream.state
    second = other.push(X[3:])
    np.testing.assert_array_equal(stream.push(X[3:]), second)
    if dtype in (np.float32, np.float64):  # states of others are rounded between layers of a call alone
        assert_same([np.concatenate([first, second])], stack(X, None, *initial)[:1], TOLERANCE)
    stream.reset()
    assert not any(one.any() for one in flat(stream.state))


def test_a_state_is_a_copy() -> None:
    stream = stack_of("LSTMs").stream(N)
    X = inputs(4)
    stream.push(X)
    state = stream.state
    kept = [one.copy() for one in flat(state)]
    stream.push(X)
    assert_same(state, kept)
    stream.state = state
    for one in flat(state):
        one.fill(np.nan)
    assert_same(stream.state, kept)


@each_row("copied", [copy.copy, copy.deepcopy, lambda stream: pickle.loads(pickle.dumps(stream))])
@each_stack
def test_copies(name: str, copied: Callable[[StackStream], StackStream]) -> None:
    stream, X = stack_of(name).stream(N), inputs(6)
    stream.push(X[:2])
    again = copied(stream)
    assert repr(again) == repr(stream)
    assert "<StackStream of <Stack: " in repr(again)
    np.testing.assert_array_equal(again.push(X[2:]), stream.push(X[2:]))
    again.reset()
    assert stream.state[0] is not None
    assert any(one.any() for one in flat(stream.state))


def test_empty_pushes() -> None:
    stack = stack_of("all cells")
    stream = stack.stream(N)
    stream.push(inputs(2))
    before = stream.state
    assert stream.push(inputs(0)).shape == (0, N, 5)
    assert_same(stream.state, before)
    assert stack.stream(0).push(np.zeros((4, 0, I), np.float32)).shape == (4, 0, 5)


STREAMS: list[tuple[tuple[Description, ...], Any, str]] = [
    ((("GRU", "forward", 5), ("LSTM", "bidirectional", 5)), N, r"layers\[1\] \(LSTM\) has direction bidirectional; ex"),
    ((("GRU", "reverse", 5),), N, r"layers\[0\] \(GRU\) has direction reverse; expected forward, because"),
    (FORWARD["LSTMs"], -1, "batch_size is -1; expected an integer, 0 or above"),
]


@each_row(("layers", "batch_size", "message"), STREAMS, ids=[row[-1] for row in STREAMS])
def test_what_has_no_stream(layers: tuple[Description, ...], batch_size: Any, message: str) -> None:
    with pytest.raises(PyrnnxError, match=f"^Stack: stream: {message}"):
        Stack(random_layers(layers)).stream(batch_size)


ONES = np.ones((2, N, I), np.float32)
PUSHES: dict[str, tuple[tuple[Any, ...], str]] = {
    "batch_size": ((ONES[:, :2],), r"X has shape \(2, 2, 3\); expected \(seq_length, batch_size=3, input_size=3\)"),
    "dtype": ((ONES.astype(np.float64),), "X has dtype float64; expected float32"),
    "lengths": ((ONES, [3, 1, 1]), r"sequence_lens\[0\] is 3; expected 0 <= length <= seq_length=2"),
}


@each_row(("arguments", "message"), PUSHES.values(), ids=PUSHES)
def test_pushes_that_do_not_fit(arguments: tuple[Any, ...], message: str) -> None:
    stream = stack_of("all cells").stream(N)
    stream.push(inputs(2))
    before = stream.state
    with pytest.raises(PyrnnxError, match=f"^Stack: stream: {message}"):
        stream.push(*arguments)
    assert_same(stream.state, before)


PAIR = "state is (?s:.*); expected a tuple of 2: initial_h, initial_c"
ALL, CELL = np.ones((3, N, 5), np.float32), np.ones((1, N, 5), np.float32)
SHAPE = r"\(num_directions=3, batch_size=3, hidden_size=5\)"
STATES: list[tuple[Any, str]] = [
    (None, PAIR),
    ((ALL,), PAIR),
    ((ALL[:2], CELL), rf"initial_h has shape \(2, 3, 5\); expected {SHAPE}"),
    ((ALL.astype(float), CELL), "initial_h has dtype float64; expected float32"),
]


@each_row(("state", "message"), STATES, ids=[row[-1] for row in STATES])
def test_states_that_do_not_fit(state: Any, message: str) -> None:
    stream = stack_of("all cells").stream(N)
    with pytest.raises(PyrnnxError, match=f"^Stack: stream: {message}"):
        stream.state = state


@each_row("batch_first", [False, True])
@each_stack
def test_a_large_push(name: str, batch_first: bool) -> None:
    """A push of more elements than the fast path takes, and one that takes it."""
    stack, X = stack_of(name, batch_first=batch_first), inputs(2**16 // (N * I) + 1)
    stream = stack.stream(N)
    parts = [turned(stream.push(turned(part, batch_first)), batch_first) for part in (X, X[:2])]
    whole = turned(stack(turned(np.concatenate([X, X[:2]]), batch_first))[0], batch_first)
    np.testing.assert_allclose(np.concatenate(parts), whole, rtol=0, atol=TOLERANCE)
