"""Streams: a sequence pushed in chunks of any size has the results of one call."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from layers import bfloat16, random_layer
from rows import each_row

from pyrnnx import (
    ONNX_LAYOUTS,
    OPENVINO_CELL,
    OPENVINO_SEQUENCE,
    Activation,
    Convention,
    Direction,
    Layer,
    PyrnnxError,
    RecurrentOp,
    config,
)
from pyrnnx.operator.conventions import CANONICAL, OPENVINO_SEQUENCE_1, convert_weights, rearrange
from pyrnnx.operator.op import CELLS, CellName

CONVENTIONS = {one.name: one for one in (*ONNX_LAYOUTS, OPENVINO_SEQUENCE)}
I, H = 3, 11
# float32: the same sums in the same order on the SIMD engine; BLAS may order them by the shape of a product
TOLERANCE = 1e-6


def layer_of(cell: CellName, convention: Convention = CANONICAL, dtype: Any = np.float32) -> Layer:
    return random_layer(RecurrentOp(cell, H), I, dtype, convention=convention)


def arranged(array: Any, argument: str, convention: Convention, back: bool = False) -> Any:
    axes = (CANONICAL.axes_of(argument), convention.axes_of(argument))
    return rearrange(array, *(reversed(axes) if back else axes))


@each_row("convention", CONVENTIONS.values(), ids=CONVENTIONS)
@each_row("cell", CELLS)
@each_row("seed", range(10))
def test_pushes_give_the_whole(cell: CellName, convention: Convention, seed: int) -> None:
    rng, N = np.random.default_rng(seed), 1 + seed % 5
    lengths = rng.integers(0, 1 + seed // 2, (rng.integers(1, 7), N))  # steps of each row in each push; none for seed 0
    totals = np.sum(lengths, axis=0)
    X = rng.normal(size=(totals.max(), N, I)).astype(np.float32)
    layer = layer_of(cell, convention)
    zero = layer.stream(N).state
    whole = layer.run(arranged(X, "X", convention), totals.astype(np.int32), *zero)
    stream, begin = layer.stream(N), np.zeros(N, int)
    parts: list[list[Any]] = [[] for _ in range(N)]
    for steps in lengths:
        chunk = np.full((max(steps), N, I), np.nan, np.float32)
        for row, n in enumerate(steps):
            chunk[:n, row] = X[begin[row] : begin[row] + n, row]
        Y = arranged(stream.push(arranged(chunk, "X", convention), np.array(steps, np.int32)), "Y", convention, True)
        for row, n in enumerate(steps):
            parts[row].append(Y[:n, 0, row])
            assert not Y[n:, 0, row].any()
        begin += steps
    expected = arranged(whole[0], "Y", convention, True)
    for row in range(N):
        np.testing.assert_allclose(np.concatenate(parts[row]), expected[: totals[row], 0, row], atol=TOLERANCE)
    for name, state, last in zip(("Y_h", "Y_c"), stream.state, whole[1:], strict=False):
        np.testing.assert_allclose(state, last, atol=TOLERANCE, err_msg=name)  # length 0: zero in both


def test_coupled_input_gate() -> None:
    """input_forget of OpenVINO, i = 1 - f, for gates that are no sigmoid."""
    functions = (Activation("HardSigmoid"), Activation("Tanh"), Activation("Tanh"))
    op = RecurrentOp("LSTM", H, activations=(functions,), input_forget=True)
    layer = random_layer(op, I, np.float64, convention=OPENVINO_SEQUENCE_1, peepholes=True)
    X = np.random.default_rng(5).normal(size=(2, 7, I))
    stream = layer.stream(2)
    Y, *last = layer.run(X, [7, 7], *stream.state)
    parts = [stream.push(X[:, begin:end]) for begin, end in ((0, 3), (3, 4), (4, 7))]
    np.testing.assert_allclose(np.concatenate(parts, axis=2), Y, rtol=0, atol=1e-14)  # float64: the order of sums
    np.testing.assert_allclose(stream.state, last, rtol=0, atol=1e-14)
    other = Layer(op, *layer.weights.values(), convention=replace(OPENVINO_SEQUENCE_1, coupled_gate="f"))
    assert not np.allclose(other.run(X, [7, 7], *layer.stream(2).state)[0], Y, atol=0.01)


DTYPES: dict[str, Any] = {"float32": np.float32, "float64": np.float64, "float16": np.float16, "bfloat16": bfloat16}


@pytest.mark.skipif(config.ISA == "blas", reason="BLAS sums in an order that depends on the shape of a product")
@each_row("dtype", DTYPES)
@each_row("convention", [CANONICAL, OPENVINO_SEQUENCE], ids=lambda convention: convention.name)
@each_row("cell", CELLS)
@each_row("seed", range(3))
def test_any_chunks_give_the_whole_bit_for_bit(cell: CellName, convention: Convention, dtype: str, seed: int) -> None:
    layer, N, rng = layer_of(cell, convention, DTYPES[dtype]), 3, np.random.default_rng(seed)
    sizes = rng.integers(0, 6, rng.integers(2, 9)).tolist()
    X = rng.normal(size=(sum(sizes), N, I)).astype(DTYPES[dtype])
    lens = [len(X)] * N
    zeros = [state.astype(layer.dtype) for state in layer.stream(N).state]
    Y, *last = layer.run(arranged(X, "X", convention), lens, *zeros)
    stream, begin, parts = layer.stream(N), 0, []
    for size in sizes:
        parts.append(stream.push(arranged(X[begin : begin + size], "X", convention)))
        begin += size
        if seed:  # in another stream, which goes on from there
            stream, state = layer.stream(N), stream.state
            stream.state = state
    whole = np.concatenate(parts, axis=convention.axes_of("Y").index("T"))
    assert (whole.dtype, whole.tobytes()) == (Y.dtype, Y.tobytes())
    for held, wanted in zip(stream.state, last, strict=True):
        assert held.dtype == (np.float64 if dtype == "float64" else np.float32)
        assert held.astype(layer.dtype).tobytes() == wanted.tobytes()


def test_steps_of_a_cell() -> None:
    layer = layer_of("LSTM")
    arrays: Any = convert_weights(layer.op, layer.weights, CANONICAL, OPENVINO_SEQUENCE)
    cell = Layer(layer.op, *(arrays[n][0] for n in "WRB"), convention=OPENVINO_CELL)
    X = np.random.default_rng(0).normal(size=(7, 2, I)).astype(np.float32)
    stream = cell.stream(2)
    Y = np.stack([stream.push(x) for x in X])
    np.testing.assert_allclose(Y, layer(X)[0][:, 0], atol=TOLERANCE)
    with pytest.raises(PyrnnxError, match="LSTM: sequence_lengths was given; the convention 'OpenVINO cell' has no"):
        stream.push(X[0], [1, 1])


def test_state_saved_and_restored_and_reset() -> None:
    layer = layer_of("LSTM")
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 4, 3, I)).astype(np.float32)
    stream = layer.stream(3)
    Y_first = stream.push(first)
    saved = stream.state
    Y_second = stream.push(second)
    stream.state = saved
    np.testing.assert_array_equal(stream.push(second), Y_second)
    for array in saved:
        array[:] = np.nan  # a copy: the stream does not see it
    stream.reset()
    np.testing.assert_array_equal(stream.push(first), Y_first)
    assert len(stream.state) == 2


BAD_STATES: dict[str, Any] = {
    "one of two": lambda h: (h,),
    "no tuple": lambda h: h,
    "other shape": lambda h: (h[:, :1], h),
    "other dtype": lambda h: (h.astype(np.float64), h),
    "None": lambda h: (h, None),
}


@each_row("bad", BAD_STATES.values(), ids=BAD_STATES)
def test_state_that_does_not_fit(bad: Any) -> None:
    stream = layer_of("LSTM").stream(3)
    with pytest.raises(PyrnnxError, match="LSTM: "):
        stream.state = bad(np.zeros((1, 3, H), np.float32))


SIZES = [(size, "batch_size is") for size in (-1, 2.0, "3", True, None, np.bool_(True), np.float32(2), -(10**4000))]
SIZES += [(size, "states of shape .* exceed memory") for size in (2**60, 2**80, 10**5000)]


@each_row(("batch_size", "words"), SIZES, ids=[f"{k}" for k in range(len(SIZES))])
def test_batch_size_is_an_integer_within_memory(batch_size: Any, words: str) -> None:
    with pytest.raises(PyrnnxError, match=f"LSTM: stream: {words}"):
        layer_of("LSTM").stream(batch_size)


@each_row("batch_size", [np.int64(2), np.uint8(2), np.array(2)], ids=repr)
def test_batch_size_may_be_of_numpy(batch_size: Any) -> None:
    stream = layer_of("LSTM").stream(batch_size)
    assert (stream.batch_size, type(stream.batch_size)) == (2, int)
    assert stream.push(np.ones((3, 2, I), np.float32)).shape == (3, 1, 2, H)


@each_row("direction", [Direction.REVERSE, Direction.BIDIRECTIONAL])
def test_only_forward(direction: Direction) -> None:
    op = RecurrentOp("RNN", 4, direction)
    layer = Layer(op, np.zeros((op.num_directions, 4, 2)), np.zeros((op.num_directions, 4, 4)))
    with pytest.raises(PyrnnxError, match=f"RNN: stream: direction is {direction.value}; expected forward"):
        layer.stream(1)


def test_chunk_of_another_batch() -> None:
    with pytest.raises(PyrnnxError, match="expected batch_size=3 as the stream"):
        layer_of("RNN").stream(3).push(np.zeros((2, 4, I), np.float32))


def test_out_over_steps_that_are_read_later() -> None:
    """More steps than the kernels read at once, and Y over those that they read then."""
    T, shift, size = 2000, 500, 8
    layer = random_layer(RecurrentOp("LSTM", size), size)
    memory = np.random.default_rng(0).normal(size=(T + shift, 1, size)).astype(np.float32)
    expected = layer.stream(1).push(memory[:T].copy())[:, 0]
    Y = layer.stream(1).push(memory[:T], out=memory[shift:].reshape(T, 1, 1, size))
    np.testing.assert_array_equal(Y[:, 0], expected)


@each_row("dtype", ["float16", "bfloat16"])
def test_state_of_halves_in_either_dtype(dtype: str) -> None:
    layer = layer_of("LSTM", CANONICAL, DTYPES[dtype])
    X = np.random.default_rng(0).normal(size=(4, 2, I)).astype(DTYPES[dtype])
    h, c = (np.full((1, 2, H), value, DTYPES[dtype]) for value in (0.25, -0.5))
    expected = layer(X, None, h, c)[0]
    for state in ((h, c), (h.astype(np.float32), c), [h.astype(np.float32), c.astype(np.float32)]):
        stream = layer.stream(2)
        stream.state = state
        assert stream.push(X).tobytes() == expected.tobytes()
    with pytest.raises(PyrnnxError, match="initial_c has dtype float64; expected"):
        stream.state = (h, c.astype(np.float64))


def test_a_copy_goes_on() -> None:
    layer = random_layer(RecurrentOp("LSTM", 5), 3, seed=3)
    stream = layer.stream(2)
    X = np.random.default_rng(4).normal(size=(6, 2, layer.input_size)).astype(layer.dtype)
    stream.push(X[:2])
    for again in (pickle.loads(pickle.dumps(stream)), copy.deepcopy(stream)):
        np.testing.assert_array_equal(again.push(X[2:4]), layer(X[:4])[0][2:])
