"""A prepared layer: repeated calls, many threads, copies, all kinds of arrays, and divided batches."""

from __future__ import annotations

import copy
import pickle
import sys
import threading
import unittest.mock
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from layers import DTYPES, bfloat16, float16, random_inputs, random_layer, random_weights
from numpy.typing import NDArray
from rows import each_row

from pyrnnx import ONNX_LAYOUTS, Activation, Layer, RecurrentOp, Stack

Array = NDArray[Any]
HALVES = (float16, bfloat16)
OPERATORS: dict[str, dict[str, Any]] = {
    "RNN": {"cell": "RNN", "direction": "reverse"},
    "GRU": {"cell": "GRU", "direction": "bidirectional", "clip": 0.75},
    "GRU linear_before_reset": {"cell": "GRU", "direction": "reverse", "linear_before_reset": True},
    "LSTM": {"cell": "LSTM", "direction": "bidirectional"},
    "LSTM input_forget": {"cell": "LSTM", "input_forget": True},
    "RNN Softplus": {"cell": "RNN", "activations": ((Activation("Softplus"),),)},
}
each_operator = each_row("name", OPERATORS)


def operator(name: str, hidden_size: int) -> RecurrentOp:
    return RecurrentOp(hidden_size=hidden_size, **OPERATORS[name])


def assert_same_bits(actual: tuple[Array, ...], expected: tuple[Array, ...]) -> None:
    assert len(actual) == len(expected)
    for a, e in zip(actual, expected, strict=True):
        assert (a.shape, a.dtype) == (e.shape, e.dtype)
        assert a.tobytes() == e.tobytes()


def example(name: str, dtype: Any = np.float32) -> tuple[RecurrentOp, dict[str, Any], dict[str, Any]]:
    op = operator(name, 17)
    weights = random_weights(op, 3, dtype, peepholes=op.has_cell_state)
    return op, weights, random_inputs(op, (5, 7, 3), dtype)


# Called often, from many threads


@each_operator
def test_many_calls_are_each_a_one_shot_call(name: str) -> None:
    op, weights, _ = example(name)
    layer = Layer(op, **weights)
    results = []
    for seed, (T, N) in enumerate([(5, 7), (1, 1), (9, 2), (5, 7), (0, 3), (2, 19), (5, 7)]):
        inputs = random_inputs(op, (T, N, 3), seed=seed)
        results.append((layer(**inputs), inputs))
    for outputs, inputs in results:  # and no call has touched the results of another
        assert_same_bits(outputs, Layer(op, **weights)(**inputs))


@each_operator
def test_calls_from_eight_threads_at_once(name: str) -> None:
    op, weights, _ = example(name)
    layer = Layer(op, **weights)
    calls = [random_inputs(op, (5 + k % 4, 7 + k % 3, 3), seed=k) for k in range(64)]
    expected = [layer(**inputs) for inputs in calls]
    barrier = threading.Barrier(8)

    def work(first: int) -> list[tuple[Array, ...]]:
        barrier.wait()
        return [layer(**calls[k]) for k in range(first, len(calls), 8)]

    with ThreadPoolExecutor(8) as pool:
        for first, results in enumerate(pool.map(work, range(8))):
            for outputs, wanted in zip(results, expected[first::8], strict=True):
                assert_same_bits(outputs, wanted)


def call_sees_other_thread(call: Callable[[], Any]) -> bool:
    """Return whether another Python thread runs during `call`.

    The switch interval is so long that a thread keeps the GIL until it releases it. The other thread is woken before
    the call; if it runs before the end of the call, the call has released the GIL.
    """
    going_on, seen, go = [True], [], threading.Event()

    def witness() -> None:
        go.wait()
        seen.append(going_on[0])

    thread = threading.Thread(target=witness)
    thread.start()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        go.set()
        call()
        going_on[0] = False
    finally:
        sys.setswitchinterval(interval)
    thread.join()
    return seen == [True]


def test_gil_is_released() -> None:
    op = operator("LSTM", 128)
    layer = random_layer(op, 64, peepholes=op.has_cell_state)
    X = np.ones((300, 16, 64), np.float32)  # no lengths: NumPy has nothing to do that could release the GIL instead
    assert call_sees_other_thread(lambda: layer(X))
    if getattr(sys, "_is_gil_enabled", lambda: True)():  # a free-threaded Python has none to hold
        assert not call_sees_other_thread(lambda: sum(range(3 * 10**6)))  # the witness can tell


# Copies


@each_row(
    "copied",
    [copy.copy, copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))],
    ids=["copy", "deepcopy", "pickle"],
)
@each_row("dtype", DTYPES)
@each_operator
def test_copies(name: str, dtype: Any, copied: Callable[[Layer], Layer]) -> None:
    op, weights, inputs = example(name, dtype)
    for convention in ONNX_LAYOUTS:
        layer = Layer(op, **weights, convention=convention, name="one", label=f"My{op.cell} 'one'")
        again = copied(layer)
        assert type(again) is Layer
        assert again.op == layer.op
        assert again.label == f"My{op.cell} 'one'"
        assert (again.dtype, again.input_size, again.convention) == (layer.dtype, 3, convention)
        if convention is ONNX_LAYOUTS[0]:
            assert_same_bits(again(**inputs), layer(**inputs))
        for key, array in again.weights.items():
            np.testing.assert_array_equal(array, weights[key], strict=True)


@each_row(
    "keywords", [{}, {"name": "a"}, {"weight_dtype": "int8"}, {"constants": {"initial_h": np.ones((1, 2, 4), "f4")}}]
)
def test_layers_are_equal_by_what_they_compute(keywords: dict[str, Any]) -> None:
    op = RecurrentOp("LSTM", 4)
    first = random_layer(op, 3, **keywords)
    for other in (copy.deepcopy(first), copy.copy(first), random_layer(op, 3, **keywords)):
        assert other == first
        assert hash(other) == hash(first)
    zero = {"initial_h": np.zeros((1, 2, 4), np.float32)}
    others = (
        random_layer(op, 3, seed=1),
        random_layer(op, 3, weight_dtype="bfloat16"),
        random_layer(op, 3, constants=zero),
    )
    assert all(first != other for other in (*others, "LSTM", None))


def test_repr_names_what_it_is() -> None:
    layer = random_layer(RecurrentOp("GRU", 4), 3, weight_dtype="int8")
    reduced = "float32 with weights in int8"
    assert repr(layer) == f"<Layer GRU: forward, input_size=3, hidden_size=4, {reduced}, ONNX, layout 0>"
    assert repr(layer.stream(2)) == f"<Stream of {layer!r}, batch_size=2>"
    op, weights, _ = example("GRU")
    text = repr(Layer(op, **weights, name="decoder"))
    for word in ("GRU 'decoder'", "bidirectional", "input_size=3", "hidden_size=17", "float32", "ONNX, layout 0"):
        assert word in text


# Weights


@each_operator
def test_weights_are_read_only_copies(name: str) -> None:
    op, weights, inputs = example(name)
    layer = Layer(op, **weights)
    expected = layer(**inputs)
    kept = {key: array.copy() for key, array in weights.items()}
    for array in weights.values():
        array[...] = np.nan
    assert_same_bits(layer(**inputs), expected)
    assert layer.weights.keys() == kept.keys()
    for key, array in layer.weights.items():
        np.testing.assert_array_equal(array, kept[key], strict=True)
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 0
    with pytest.raises(TypeError):
        layer.weights["W"] = kept["W"]  # type: ignore[index]


def test_attributes_are_set_once() -> None:
    layer = random_layer(RecurrentOp("LSTM", 3), 2)
    for attribute in ("op", "weights", "weight_dtype", "label"):
        with pytest.raises(AttributeError, match=f"LSTM: {attribute} cannot be changed; expected a new Layer"):
            setattr(layer, attribute, getattr(layer, attribute))
        with pytest.raises(AttributeError, match=f"LSTM: {attribute} cannot be changed"):
            delattr(layer, attribute)
    for holder in (Stack([layer]), copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        with pytest.raises(AttributeError, match="dtype cannot be changed"):
            holder.dtype = np.dtype(np.float64)
    for stream, attribute in ((layer.stream(2), "layer"), (Stack([layer]).stream(2), "stack")):
        for name in (attribute, "batch_size"):
            with pytest.raises(AttributeError, match=name):
                setattr(stream, name, getattr(stream, name))


def test_attributes_of_a_caller_are_not_those_of_the_layer() -> None:
    layer = random_layer(RecurrentOp("LSTM", 3), 2)
    layer.epoch = 3  # type: ignore[attr-defined]
    layer.epoch += 1  # type: ignore[attr-defined]
    with unittest.mock.patch.object(layer, "run", return_value=()):
        assert layer.run(None) == ()
    assert layer.run(np.ones((2, 1, 2), np.float32))[0].shape == (2, 1, 1, 3)


# dtypes


@each_row("dtype", HALVES)
@each_operator
def test_halves_are_the_float32_run_rounded_once(name: str, dtype: Any) -> None:
    op, weights, inputs = example(name, dtype)
    wide_weights = {key: array.astype(np.float32) for key, array in weights.items()}
    wide_inputs = {k: a if k == "sequence_lens" else a.astype(np.float32) for k, a in inputs.items()}
    expected = Layer(op, **wide_weights)(**wide_inputs)
    assert_same_bits(Layer(op, **weights)(**inputs), tuple(a.astype(dtype) for a in expected))


@each_row("dtype", HALVES)
def test_halves_keep_a_nan_of_any_bits(dtype: Any) -> None:
    """A state in float32 may be a NaN whose bits, rounded as those of a number, are no NaN."""
    op = RecurrentOp("RNN", 1, activations=((Activation("Affine", 1.0, 0.0),),))
    stream = Layer(op, W=np.ones((1, 1, 1), dtype), R=np.ones((1, 1, 1), dtype)).stream(1)
    for bits in (0x7FFFFFFF, 0x7FC00001, 0xFFFFFFFF):
        stream.state = (np.array([[[bits]]], np.uint32).view(np.float32),)
        assert np.isnan(stream.push(np.ones((1, 1, 1), dtype)).astype(np.float32)).all(), hex(bits)


# Splitting: STATE_BYTES and CHUNK_BYTES of plan.pyx bound a block of rows and a chunk of steps, to 2 MiB
# and 1 MiB at most; the sizes below need more.
# A row takes 4*H + G*H + I elements of state, a step of a row G*H + I of a chunk.
BIG = {  # T, N, I, H: with float64 below, a block holds 2^21/8/(8*129+7) = 252 rows of an LSTM
    "rows": (3, 531, 7, 129),
    "time steps": (330, 3, 7, 129),
    "rows and time steps": (5, 1100, 3, 65),
    "a row larger than a block": (3, 3, 131200, 2),
    "one row of many steps": (4201, 1, 3, 33),
    "sums in several blocks of k": (2, 21, 600, 5),  # PANEL_BYTES of tiles.h, 22 KiB, is a part of 600 columns
}


def selected(inputs: Mapping[str, Any], row: int) -> dict[str, Any]:
    return {
        key: array[row : row + 1] if key == "sequence_lens" else array[:, row : row + 1]
        for key, array in inputs.items()
    }


@each_row("sizes", BIG.values(), ids=BIG)
@each_row("name", ["RNN", "GRU", "LSTM"])
def test_big_batches_are_row_by_row_runs(name: str, sizes: tuple[int, int, int, int]) -> None:
    T, N, I, H = sizes
    op = operator(name, H)
    layer = random_layer(op, I, np.float64, peepholes=op.has_cell_state)
    inputs = random_inputs(op, (T, N, I), np.float64)
    inputs["X"] /= max(1, I**0.5)
    outputs = layer(**inputs)
    rows = range(N) if N < 10 else sorted({0, 1, N - 1, *range(2, N, 97)})
    for row in rows:
        for whole, alone in zip(outputs, layer(**selected(inputs, row)), strict=True):
            # only the order of the sums of a product may differ: 2^-53 a rounding, contracted by the activations
            np.testing.assert_allclose(whole[..., row : row + 1, :], alone, rtol=0, atol=1e-11)
    lens = inputs["sequence_lens"]
    for row in range(N):
        assert not outputs[0][lens[row] :, :, row].any()
        assert outputs[0][: lens[row], :, row].all()


# Arrays that are not contiguous


@each_row("lengths", [np.arange(14, dtype=np.int32)[::2] % 6, np.zeros(7, ">i4") + 3], ids=["strided", "big-endian"])
def test_any_lengths_array(lengths: Array) -> None:
    op, weights, inputs = example("LSTM")
    layer = Layer(op, **weights)
    inputs["sequence_lens"] = lengths
    outputs = layer(**inputs)
    inputs["sequence_lens"] = np.array(lengths.tolist(), np.int32)
    assert_same_bits(outputs, layer(**inputs))
