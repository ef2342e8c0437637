"""Results written to `out`: the same numbers, and an error for arrays that do not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from layers import DTYPES, random_layer
from numpy.lib.stride_tricks import as_strided
from rows import each_row

from pyrnnx import ArgumentError, Direction, Layer, RecurrentOp
from pyrnnx.operator.conventions import CANONICAL, ONNX_LAYOUTS, OPENVINO_SEQUENCE, Convention
from pyrnnx.operator.op import CELLS, CellName

T, N, I, H = 7, 3, 5, 5
CONVENTIONS = {one.name: one for one in (*ONNX_LAYOUTS, OPENVINO_SEQUENCE)}
rng = np.random.default_rng(5)


def layer_of(cell: CellName, dtype: Any = np.float32, convention: Convention = CANONICAL, **options: Any) -> Layer:
    return random_layer(RecurrentOp(cell, H, **options), I, dtype, convention=convention)


def random_input(*shape: int, dtype: Any = np.float32) -> Any:
    return rng.normal(size=shape).astype(dtype)


def unset(result: Any) -> Any:
    return np.full_like(result, np.nan)


def as_it_is(out: Any) -> Any:
    return out


def sliced(out: Any) -> Any:
    return np.full((*out.shape[:-1], 2 * out.shape[-1]), np.nan, out.dtype)[..., ::2]


def turned(out: Any) -> Any:
    return np.full(out.shape[::-1], np.nan, out.dtype).T[::-1]


def outer_axes_turned(out: Any) -> Any:
    """Return an array of NaN with permuted outer axes, which the kernels write directly."""
    turned = np.full((*out.shape[-2::-1], out.shape[-1]), np.nan, out.dtype)
    return turned.transpose((*range(out.ndim - 2, -1, -1), out.ndim - 1))


def unaligned(out: Any) -> Any:
    return np.empty(out.nbytes + 1, np.uint8)[1:].view(out.dtype).reshape(out.shape)


@each_row("arranged", [as_it_is, sliced, turned, outer_axes_turned, unaligned])
@each_row("dtype", DTYPES)
@each_row("cell", CELLS)
def test_layer_writes_what_it_returns(cell: CellName, dtype: Any, arranged: Callable[[Any], Any]) -> None:
    layer = layer_of(cell, dtype, direction=Direction.BIDIRECTIONAL)
    for steps, lengths in ((T, None), (T, np.array([2, 0, T], np.int32)), (0, None), (0, [0, 0, 0])):
        X = random_input(steps, N, I, dtype=dtype)
        expected = layer(X, lengths)
        out = tuple(arranged(unset(result)) for result in expected)
        written = layer(X, lengths, out=out)
        assert all(a is b for a, b in zip(written, out, strict=True))
        for a, b in zip(written, expected, strict=True):
            np.testing.assert_array_equal(a, b)


@each_row("convention", CONVENTIONS.values(), ids=CONVENTIONS)
@each_row("cell", CELLS)
@each_row("arranged", [as_it_is, sliced, turned, outer_axes_turned, unaligned])
def test_push_writes_what_it_returns(cell: CellName, convention: Convention, arranged: Callable[[Any], Any]) -> None:
    layer = layer_of(cell, convention=convention)
    one, other = layer.stream(N), layer.stream(N)
    axes = convention.axes_of("X")
    for steps in (1, 4, 1, 0, 2):
        X = random_input(*({"T": steps, "N": N, "I": I}[axis] for axis in axes))
        expected = one.push(X)
        out = arranged(unset(expected))
        assert other.push(X, out=out) is out
        np.testing.assert_array_equal(out, expected)
        for a, b in zip(one.state, other.state, strict=True):
            np.testing.assert_array_equal(a, b)


@each_row("cell", CELLS)
def test_results_over_the_inputs(cell: CellName) -> None:
    layer = layer_of(cell, direction=Direction.REVERSE)
    X, states = random_input(T, N, I), [random_input(1, N, H) for _ in layer.output_names[1:]]
    expected = layer.run(X, None, *states)
    memory = np.concatenate([X.ravel(), np.zeros(N * I, np.float32)])
    for shift in (0, N * I):  # Y on X, and one step further
        memory[: X.size] = X.ravel()
        over = memory[: X.size].reshape(T, N, I)
        Y = memory[shift : shift + X.size].reshape(T, 1, N, H)
        moved = [state.copy() for state in states]
        layer.run(over, None, *moved, out=(Y, *moved))
        for a, b in zip((Y, *moved), expected, strict=True):
            np.testing.assert_array_equal(a, b)


def test_last_states_over_each_others_initial_ones() -> None:
    layer, X = layer_of("LSTM"), random_input(T, N, I)
    h, c = random_input(1, N, H), random_input(1, N, H)
    _, Y_h, Y_c = layer(X, None, h, c)
    layer(X, None, h, c, out=(None, c, h))
    np.testing.assert_array_equal(c, Y_h)
    np.testing.assert_array_equal(h, Y_c)


def read_only(Y: Any) -> Any:
    Y.flags.writeable = False
    return Y


WRONG: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a list": (lambda Y: Y.tolist(), r"is \[.*expected an array of float32 \(2, 1, 3, 5\)"),
    "a subclass": (np.ma.masked_array, "is (?s:.*)expected an array of float32"),
    "dtype": (lambda Y: Y.astype(np.float64), r"is an array of float64 \(2, 1, 3, 5\); expected an array of float32"),
    "byte order": (lambda Y: Y.astype(">f4"), "is an array of >f4 .*expected an array of float32"),
    "shape": (lambda Y: Y[:, 0], r"is an array of float32 \(2, 3, 5\); expected .*\(2, 1, 3, 5\)"),
    "a longer one": (lambda Y: np.zeros((3, 1, 3, 5), np.float32), r"is an array of float32 \(3, 1, 3, 5\)"),
    "read-only": (read_only, "is read-only; expected an array of float32 .* that can be written to"),
    "shared elements": (lambda Y: as_strided(Y, Y.shape, (4, 4, 4, 4)), r"has strides \(4, 4, 4, 4\), which share"),
}


@each_row(("make", "message"), WRONG.values(), ids=WRONG)
def test_arrays_that_cannot_hold_a_result(make: Callable[[Any], Any], message: str) -> None:
    layer, X = layer_of("LSTM"), random_input(2, N, I)
    stream = layer.stream(N)
    Y = stream.push(X)
    before, h = stream.state, np.full((1, N, H), np.nan, np.float32)
    with pytest.raises(ArgumentError, match=f"^LSTM: stream: out {message}"):
        stream.push(X, out=make(Y))
    for a, b in zip(stream.state, before, strict=True):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(ArgumentError, match=f"^LSTM: out: Y {message}"):
        layer(X, out=(make(Y.copy()), h, None))
    assert np.isnan(h).all()


@each_row("out", [np.zeros(2), [None] * 3, (None, None), (), "out", 3], ids=str)
def test_no_tuple_of_results(out: Any) -> None:
    layer = layer_of("LSTM")
    with pytest.raises(
        ArgumentError, match=r"LSTM: out is .*; expected a tuple of 3, each an array or None: Y, Y_h, Y_c"
    ):
        layer(random_input(T, N, I), out=out)


def test_results_that_share_memory() -> None:
    layer, X = layer_of("LSTM"), random_input(T, N, I)
    state = np.zeros((2, N, H), np.float32)
    for h, c in ((state[:1], state[:1]), (state[1:], as_strided(state, (1, N, H), (4 * H, 4 * H, 4)))):
        if np.shares_memory(h, c):
            with pytest.raises(ArgumentError, match="LSTM: out: Y_c shares memory with out: Y_h"):
                layer(X, out=(None, h, c))
    assert not state.any()
    both = np.zeros((1, N, 2 * H), np.float32)
    even, odd = both[..., ::2], both[..., 1::2]
    _, Y_h, Y_c = layer(X)
    layer(X, out=(None, even, odd))  # one between the other, which is no harm
    np.testing.assert_array_equal(even, Y_h)
    np.testing.assert_array_equal(odd, Y_c)
