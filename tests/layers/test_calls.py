"""Calls of a layer: arguments by any of their names, missing ones, and error messages."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from layers import bfloat16, random_layer
from rows import each_row

from pyrnnx import OPENVINO_CELL, OPENVINO_SEQUENCE, ArgumentError, Convention, Layer, PyrnnxError, RecurrentOp
from pyrnnx.frontends.onnx import rnn
from pyrnnx.frontends.openvino import rnn_sequence
from pyrnnx.operator.conventions import CANONICAL
from pyrnnx.operator.op import CellName

N, T, I, H = 3, 4, 2, 5


def layer_of(cell: CellName, convention: Convention = CANONICAL, dtype: Any = np.float32, **keywords: Any) -> Layer:
    return random_layer(RecurrentOp(cell, H), I, dtype, convention=convention, **keywords)


X = np.random.default_rng(2).normal(size=(T, N, I)).astype(np.float32)
LENS = np.array([4, 0, 2], np.int32)
STATE, CELL_STATE = (np.full((1, N, H), value, np.float32) for value in (0.25, -0.5))
SWAPPED = {"X": X.swapaxes(0, 1), "h": STATE.swapaxes(0, 1), "c": CELL_STATE.swapaxes(0, 1)}

NAMES = {
    "ONNX's": ("sequence_lens", "initial_h", "initial_c"),
    "OpenVINO's": ("sequence_lengths", "H", "C"),
    "mixed": ("sequence_lengths", "initial_h", "C"),
}


@each_row("names", NAMES.values(), ids=NAMES)
@each_row("convention", [CANONICAL, OPENVINO_SEQUENCE], ids=["ONNX", "OpenVINO"])
@each_row("method", ["run", "__call__"])
def test_arguments_by_name(method: str, convention: Convention, names: tuple[str, ...]) -> None:
    layer = layer_of("LSTM", convention)
    x, h, c = (X, STATE, CELL_STATE) if convention is CANONICAL else SWAPPED.values()
    expected = layer.run(x, LENS, h, c)
    call = getattr(layer, method)
    by_name = dict(zip(names, (LENS, h, c), strict=True))
    for results in (
        call(x, **by_name),
        call(X=x, **by_name),
        call(x, LENS, **{k: v for k, v in by_name.items() if v is not LENS}),
    ):
        for actual, wanted in zip(results, expected, strict=True):
            np.testing.assert_array_equal(actual, wanted)


BAD_NAMES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "unknown": (lambda layer: layer(X, lengths=LENS), "argument 'lengths' is unknown; expected X, sequence_lens, init"),
    "a weight": (lambda layer: layer(X, W=X), "argument 'W' is unknown"),
    "long": (lambda layer: layer(X, **{"x" * 10**6: X}), "argument 'xxx"),
    "twice": (lambda layer: layer(X, H=STATE, initial_h=STATE), "initial_h was given twice, also as H"),
    "by place": (lambda layer: layer(X, LENS, sequence_lengths=LENS), "sequence_lens was given twice, also as sequ"),
    "too many": (lambda layer: layer(X, LENS, *[STATE] * 3), "5 arrays were given; expected at most 4: X, sequence"),
    "no arguments": (lambda layer: layer(), "X is missing"),
    "X None": (lambda layer: layer(None), "X is missing"),
}


@each_row("name", BAD_NAMES)
def test_bad_names(name: str) -> None:
    call, words = BAD_NAMES[name]
    layer = layer_of("LSTM", name="decoder")
    for called in (layer, layer.run):
        with pytest.raises(ArgumentError) as caught:
            call(called)
        assert str(caught.value).startswith(f"LSTM 'decoder': {words}")
        assert len(str(caught.value)) < 500


BAD_LENGTHS: dict[str, tuple[Any, str]] = {
    "an int": (10, r"has shape \(\); expected \(batch_size=3,\)$"),
    "an integer of NumPy": (np.int64(10), r"has shape \(\); expected \(batch_size=3,\)$"),
    "rank and dtype": (np.ones((1, 2), np.int64), r"has shape \(1, 2\); expected \(batch_size=3,\)$"),
    "dtype": (np.ones(3, np.int64), r"has dtype int64; expected int32: sequence_lens\.astype\(np\.int32\)$"),
    "no integers": (["1", "2", "1"], "has dtype <U1; expected int32$"),
    "beyond an int64": ([2**63] * 3, r"has dtype uint64; expected int32: np\.asarray\(sequence_lens, np\.int32\)$"),
}


@each_row("name", BAD_LENGTHS)
def test_bad_lengths(name: str) -> None:
    """The greater fault is told: a shape before a dtype, where integers were given."""
    lengths, words = BAD_LENGTHS[name]
    with pytest.raises(ArgumentError, match=f"LSTM: sequence_lens {words}"):
        layer_of("LSTM")(X, lengths)


# Missing arguments

SEQUENCE = {"X": SWAPPED["X"]}
STATES = {"H": SWAPPED["h"], "C": SWAPPED["c"]}
MISSING: list[tuple[CellName, Convention, dict[str, Any], str]] = [
    ("LSTM", OPENVINO_SEQUENCE, SEQUENCE, "H, C and sequence_lengths are missing; they are required"),
    ("LSTM", OPENVINO_SEQUENCE, SEQUENCE | STATES, "sequence_lengths is missing; it is required"),
    ("GRU", OPENVINO_SEQUENCE, SEQUENCE, "H and sequence_lengths are missing; they are required"),
    ("LSTM", OPENVINO_CELL, {"X": X[0]}, "H and C are missing; they are required"),
    ("LSTM", OPENVINO_SEQUENCE, {}, "X is missing; it is required"),
    ("LSTM", OPENVINO_SEQUENCE, {"X": X[0]}, "X has shape (3, 2); expected"),
]


@each_row(("cell", "convention", "given", "words"), MISSING, ids=[row[-1] for row in MISSING])
def test_all_that_is_missing_is_named_after_x_was_checked(
    cell: CellName, convention: Convention, given: dict[str, Any], words: str
) -> None:
    with pytest.raises(ArgumentError) as caught:
        layer_of(cell, convention)(**given)
    assert str(caught.value).startswith(f"{cell}: {words}")


# dtypes

HINTS: dict[str, tuple[Any, Any, str]] = {  # dtypes of the layer and of X, and how the message ends
    "float64 for float32": (np.float32, np.float64, "float32, the dtype of the weights: X.astype(np.float32)"),
    "float32 for bfloat16": (bfloat16, np.float32, "bfloat16, the dtype of the weights: X.astype(ml_dtypes.bfloat16)"),
    "bfloat16 for float64": (np.float64, bfloat16, "float64, the dtype of the weights: X.astype(np.float64)"),
    "complex for float32": (np.float32, np.complex64, "float32, the dtype of the weights"),
    "text for float32": (np.float32, "U3", "float32, the dtype of the weights"),
}


@each_row("name", HINTS)
def test_a_dtype_error_says_how_to_convert(name: str) -> None:
    of_layer, of_x, words = HINTS[name]
    with pytest.raises(ArgumentError) as caught:
        layer_of("RNN", dtype=of_layer)(X.astype(of_x))
    assert str(caught.value).endswith(f"; expected {words}")


def test_a_dtype_error_of_weights() -> None:
    """The first array that differs from the others is named, X in a function."""
    W, R, B = np.ones((1, H, I)), np.ones((1, H, H), np.float32), np.ones((1, H), np.float32)
    with pytest.raises(ArgumentError, match=r"R has dtype float32; .* the dtype of W: R\.astype\(np\.float64\)$"):
        Layer(RecurrentOp("RNN", H), W, R)
    with pytest.raises(ArgumentError, match=r"W has dtype int64; .*: W\.astype\(np\.float32\)$"):
        Layer(RecurrentOp("RNN", H), W.astype(int), R)
    calls: list[Any] = [lambda: rnn(X, W, R), lambda: rnn_sequence(SWAPPED["X"], SWAPPED["h"], LENS, W, R, B)]
    for call in calls:
        with pytest.raises(ArgumentError, match=r"W has dtype float64; expected float32, the dtype of X: W\.astype"):
            call()


@each_row("convention", [CANONICAL, OPENVINO_SEQUENCE], ids=["ONNX", "OpenVINO"])
def test_arrays_whose_dtype_is_an_equal_object(convention: Convention) -> None:
    """Unpickled arrays have their own dtype objects."""
    layer = layer_of("LSTM", convention)
    given = (
        (X, LENS, STATE, CELL_STATE) if convention is CANONICAL else (SWAPPED["X"], LENS, SWAPPED["h"], SWAPPED["c"])
    )
    again = pickle.loads(pickle.dumps(given))
    copied = pickle.loads(pickle.dumps(layer))
    for other, arrays in ((layer, again), (copied, given), (copied, again)):
        for actual, wanted in zip(other.run(*arrays), layer.run(*given), strict=True):
            np.testing.assert_array_equal(actual, wanted, strict=True)


# Layers that cannot be made

BAD_LAYERS: dict[str, tuple[Callable[[], Any], str]] = {
    "no op": (lambda: Layer("LSTM", X, X), "^Layer: op is 'LSTM'; expected a RecurrentOp$"),  # type: ignore[arg-type]
    "no convention": (
        lambda: Layer(RecurrentOp("RNN", H), X, X, convention="ONNX"),  # type: ignore[arg-type]
        "^RNN: convention is 'ONNX'; expected a Convention$",
    ),
    "weights of another type": (
        lambda: layer_of("RNN", weight_dtype=["int8"]),
        r"RNN: weight_dtype is \['int8'\] with dtype float32; expected one of None, 'bfloat16', 'int8'",
    ),
    "sizes beyond those of BLAS": (
        lambda: Layer(RecurrentOp("RNN", 1), np.broadcast_to(np.float32(0), (1, 1, 2**31)), np.ones((1, 1, 1), "f4")),
        r"RNN: W has shape .*; expected sizes of at most 2147483647",
    ),
    "weights beyond memory": (
        lambda: Layer(
            RecurrentOp("RNN", 2**27),
            np.broadcast_to(np.float32(1), (1, 2**27, 2**27)),
            np.broadcast_to(np.float32(1), (1, 2**27, 2**27)),
        ),
        r"RNN: the weights cannot be prepared: W \(1, 134217728, 134217728\)",
    ),
}


@each_row("name", BAD_LAYERS)
def test_layers_that_cannot_be_made(name: str) -> None:
    make, words = BAD_LAYERS[name]
    with pytest.raises(ArgumentError, match=words):
        make()


@each_row("keyword", ["name", "label"])
def test_names_of_any_length(keyword: str) -> None:
    keywords: Any = {keyword: "n" * 50_000_000}
    layer = layer_of("LSTM", **keywords)
    assert len(layer.label) < 300
    assert len(repr(layer)) < 500
    with pytest.raises(PyrnnxError) as caught:
        layer(X[0])
    assert len(str(caught.value)) < 1000


@each_row("value", [3, b"x", ["x"], {}, 10**5000], ids=["int", "bytes", "list", "dict", "huge"])
@each_row("argument", ["name", "label"])
def test_names_are_strings(argument: str, value: Any) -> None:
    W, R = np.zeros((1, 4, 3), np.float32), np.zeros((1, 4, 4), np.float32)
    with pytest.raises(ArgumentError, match=f"RNN: {argument} is .*; expected a string"):
        Layer(RecurrentOp("RNN", 4), W, R, **{argument: value})


def test_biases_without_a_sum_give_nan_and_no_warning() -> None:
    """inf - inf is a result like others; warnings are errors here."""
    rng = np.random.default_rng(0)
    B = np.zeros((1, 2 * 4), np.float32)
    B[0, 1], B[0, 4 + 1] = np.inf, -np.inf
    op = RecurrentOp("RNN", 4)
    layer = Layer(op, rng.normal(size=(1, 4, 3)).astype("f4"), np.zeros((1, 4, 4), np.float32), B)
    Y, _ = layer(np.ones((1, 2, 3), np.float32))
    assert np.isnan(Y[..., 1]).all()
    assert np.isfinite(Y[..., [0, 2, 3]]).all()
