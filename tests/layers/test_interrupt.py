"""Ctrl-C during a long call: it ends early with KeyboardInterrupt, and nothing else changes."""

from __future__ import annotations

import _thread
import signal
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pyrnnx import ArgumentError, Layer, RecurrentOp, Stack, config, set_num_threads
from pyrnnx._kernels import engines
from pyrnnx._kernels.pipeline import turn_steps
from pyrnnx.testing.numbers import Array

pytestmark = pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="Python handles signals in the main thread alone"
)

H = 2048  # a step reads 16 MB of weights: some milliseconds, so that few steps take long
T = 2000
DELAY = 0.03  # seconds


@pytest.fixture(params=[*engines.supported()[:1], "blas"], autouse=True)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(config, "ISA", request.param)
    return str(request.param)


def rnn(direction: Any = "forward", hidden_size: int = H, input_size: int = 1) -> Layer:
    D, generator = 1 + (direction == "bidirectional"), np.random.default_rng(0)
    W = generator.normal(size=(D, hidden_size, input_size)).astype(np.float32)
    return Layer(RecurrentOp("RNN", hidden_size, direction), W, np.zeros((D, hidden_size, hidden_size), np.float32))


def inputs(steps: int, rows: int = 1, size: int = 1) -> Array:
    return np.random.default_rng(1).random((steps, rows, size), np.float32) - np.float32(0.5)


def assert_interrupted(call: Callable[[], Any], error: type[BaseException] = KeyboardInterrupt) -> None:
    """The error of Ctrl-C, or of another handler, ends a call that takes seconds."""
    timer = threading.Timer(DELAY, _thread.interrupt_main)

    def interrupted() -> None:
        timer.start()  # on a busy machine this may wait for longer than DELAY
        call()
        timer.join()  # of a call that was too short: the error shall not arise elsewhere

    with pytest.raises(error):
        interrupted()
    timer.join()


@pytest.mark.parametrize(
    ("direction", "ragged", "threads"), [("forward", False, 1), ("reverse", True, 2), ("bidirectional", False, 2)]
)
def test_call_ends_early_and_the_layer_stays_usable(direction: str, ragged: bool, threads: int) -> None:
    set_num_threads(threads)
    layer, few = rnn(direction), inputs(3, 2)
    before = layer(few, [3, 2])
    D = layer.op.num_directions
    Y, Y_h = np.full((T, D, 2, H), np.nan, np.float32), np.full((D, 2, H), np.nan, np.float32)
    assert_interrupted(lambda: layer(inputs(T, 2), [T, T - 1] if ragged else None, out=(Y, Y_h)))
    assert np.isnan(Y).any(), "all time steps were computed"
    assert np.isnan(Y_h).all()
    for again, first in zip(layer(few, [3, 2]), before, strict=True):
        np.testing.assert_array_equal(again, first)


def test_stream_is_as_before_the_push() -> None:
    set_num_threads(1)
    layer = rnn()
    stream, other = layer.stream(1), layer.stream(1)
    for each in (stream, other):
        each.push(inputs(2))
    Y = np.full((T, 1, 1, H), np.nan, np.float32)
    assert_interrupted(lambda: stream.push(inputs(T), out=Y))
    assert np.isnan(Y).any(), "all time steps were computed"
    np.testing.assert_array_equal(stream.state, other.state)
    np.testing.assert_array_equal(stream.push(inputs(5)), other.push(inputs(5)))


def test_stream_of_a_stack_is_as_before_the_push() -> None:
    stack = Stack([rnn(hidden_size=3), rnn(input_size=3)])
    stream, other = stack.stream(1), stack.stream(1)
    for each in (stream, other):
        each.push(inputs(2))
    assert_interrupted(lambda: stream.push(inputs(T)))
    np.testing.assert_array_equal(stream.push(inputs(5)), other.push(inputs(5)))


def test_call_of_a_stack_in_a_pipeline(engine: str) -> None:
    set_num_threads(2)
    stack, few = Stack([rnn(hidden_size=99), rnn(hidden_size=99, input_size=99)]), inputs(80)
    assert (turn_steps(stack._chain.packed, 2, len(few), 1) > 0) == (engine != "blas")
    before = stack(few)
    assert_interrupted(lambda: stack(inputs(2_000_000)))
    for again, first in zip(stack(few), before, strict=True):
        np.testing.assert_array_equal(again, first)


def test_interrupted_within_one_time_step() -> None:
    """Many rows of one step, some of them without a step: row block after row block."""
    layer = rnn(hidden_size=512, input_size=512)
    rows, short = 30_000, 7
    Y = np.full((1, 1, rows, 512), np.nan, np.float32)
    lengths = np.repeat([1, 0], [rows - short, short]).astype(np.int32)
    assert_interrupted(lambda: layer(inputs(1, rows, 512), lengths, out=(Y, None)))
    assert np.isnan(Y).any(), "all rows were computed"


def test_handler_that_raises_nothing_changes_nothing() -> None:
    layer, X, calls = rnn(hidden_size=512), inputs(300), 0

    def handler(*_: Any) -> None:
        nonlocal calls
        calls += 1

    expected = layer(X)
    before = signal.signal(signal.SIGINT, handler)
    timer = threading.Timer(DELAY, _thread.interrupt_main)
    try:
        timer.start()
        computed = layer(X)
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert calls == 1
    for array, first in zip(computed, expected, strict=True):
        np.testing.assert_array_equal(array, first)


def test_memory_error_of_a_handler_ends_the_call() -> None:
    """It is not taken for one of the kernels', after which a call could be repeated from overwritten states."""
    layer, Y = rnn(), np.full((T, 1, 1, H), np.nan, np.float32)

    def handler(*_: Any) -> None:
        raise MemoryError("of the handler")

    before = signal.signal(signal.SIGINT, handler)
    try:
        assert_interrupted(lambda: layer(inputs(T), out=(Y, None)), ArgumentError)
    finally:
        signal.signal(signal.SIGINT, before)
    assert np.isnan(Y).any(), "all time steps were computed"


def test_call_in_another_thread_goes_on() -> None:
    """Python handles signals in the main thread: calls in others are not interrupted."""
    layer, X, results = rnn(hidden_size=512), inputs(300), []
    worker = threading.Thread(target=lambda: results.append(layer(X)))
    worker.start()
    assert_interrupted(worker.join)
    worker.join()
    np.testing.assert_array_equal(results[0][0], layer(X)[0])
