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

import ml_dtypes
import numpy as np
import pytest
from layers import random_inputs, random_layer, random_weights
from numpy.typing import NDArray
from rows import each_row

from pyrnnx import ONNX_LAYOUTS, Activation, ArgumentError, Layer, RecurrentOp, Stack, UnsupportedError

Array = NDArray[Any]
DTYPES: dict[str, Any] = {
    "float32": np.float32,
    "float64": np.float64,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
}
HALVES = ("float16", "bfloat16")
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
def test_copies(name: str, dtype: str, copied: Callable[[Layer], Layer]) -> None:
    op, weights, inputs = example(name, DTYPES[dtype])
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


@each_operator
def test_call_does_not_touch_its_inputs(name: str) -> None:
    op, weights, inputs = example(name)
    before = {key: array.copy() for key, array in inputs.items()}
    outputs = Layer(op, **weights)(**inputs)
    for key, array in inputs.items():
        assert array.tobytes() == before[key].tobytes()
        array.flags.writeable = False
        assert not any(np.shares_memory(array, output) for output in outputs)
    assert_same_bits(Layer(op, **weights)(**inputs), outputs)  # read-only inputs do as well


# dtypes


@each_row("dtype", HALVES)
@each_operator
def test_halves_are_the_float32_run_rounded_once(name: str, dtype: str) -> None:
    op, weights, inputs = example(name, DTYPES[dtype])
    wide_weights = {key: array.astype(np.float32) for key, array in weights.items()}
    wide_inputs = {k: a if k == "sequence_lens" else a.astype(np.float32) for k, a in inputs.items()}
    expected = Layer(op, **wide_weights)(**wide_inputs)
    assert_same_bits(Layer(op, **weights)(**inputs), tuple(a.astype(DTYPES[dtype]) for a in expected))


@each_row("dtype", HALVES)
def test_halves_round_every_kind_of_number(dtype: str) -> None:
    kind = DTYPES[dtype]
    info: Any = ml_dtypes.finfo(kind)  # type: ignore[no-untyped-call]
    op = RecurrentOp("RNN", 1, activations=((Activation("Affine", 1.0, 0.0),),))
    layer = Layer(op, W=np.ones((1, 1, 1), kind), R=np.ones((1, 1, 1), kind))
    tiny, biggest, eps = float(info.smallest_subnormal), float(info.max), float(info.eps)
    values = [0.0, -0.0, tiny, 3 * tiny, float(info.tiny), 1.0, 1 + eps, 1 + 2 * eps, 1 + 3 * eps, biggest, np.inf]
    x, h = np.meshgrid([*values, *(-v for v in values), np.nan], [*values, eps / 2, -eps / 2, eps / 4, biggest / 4])
    X, initial_h = x.astype(kind).reshape(1, -1, 1), h.astype(kind).reshape(1, -1, 1)
    with np.errstate(all="ignore"):
        expected = (X.astype(np.float32) + initial_h.astype(np.float32)).astype(kind)
    Y, Y_h = layer(X, initial_h=initial_h)
    assert not np.isnan(expected).all()
    for actual in (Y[:, 0], Y_h):
        np.testing.assert_array_equal(actual.astype(np.float32), expected.astype(np.float32))


@each_row("dtype", HALVES)
def test_halves_keep_a_nan_of_any_bits(dtype: str) -> None:
    """A state in float32 may be a NaN whose bits, rounded as those of a number, are no NaN."""
    kind = DTYPES[dtype]
    op = RecurrentOp("RNN", 1, activations=((Activation("Affine", 1.0, 0.0),),))
    stream = Layer(op, W=np.ones((1, 1, 1), kind), R=np.ones((1, 1, 1), kind)).stream(1)
    for bits in (0x7FFFFFFF, 0x7FC00001, 0xFFFFFFFF):
        stream.state = (np.array([[[bits]]], np.uint32).view(np.float32),)
        assert np.isnan(stream.push(np.ones((1, 1, 1), kind)).astype(np.float32)).all(), hex(bits)


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


def _unaligned(a: Array) -> Array:
    buffer = np.empty(a.nbytes + 1, np.uint8)
    view: Array = buffer[1:].view(a.dtype).reshape(a.shape)
    view[...] = a
    return view


VIEWS: dict[str, Callable[[Array], Array]] = {
    "Fortran order": np.asfortranarray,
    "batch and time swapped in memory": lambda a: np.ascontiguousarray(a.swapaxes(0, 1)).swapaxes(0, 1),
    "every second element": lambda a: np.repeat(a, 2, axis=-1)[..., ::2],
    "every second row": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "every third step": lambda a: np.repeat(a, 3, axis=0)[::3],
    "backwards in time": lambda a: a[::-1].copy()[::-1],
    "backwards in the batch": lambda a: a[:, ::-1].copy()[:, ::-1],
    "backwards in the input": lambda a: a[..., ::-1].copy()[..., ::-1],
    "part of a wider array": lambda a: np.pad(a, ((1, 2), (2, 1), (3, 4)))[1:-2, 2:-1, 3:-4],
    "unaligned": _unaligned,
    "swapped bytes": lambda a: a.astype(a.dtype.newbyteorder()),
    "nested lists": lambda a: a.tolist() if a.dtype == np.float64 else a,
}


@each_row("view", VIEWS.values(), ids=VIEWS)
@each_row("dtype", [np.float32, np.float64, np.float16], ids=lambda dtype: dtype.__name__)
@each_row("with_lens", [True, False], ids=["lens", "full"])
@each_row("name", ["GRU", "LSTM input_forget"])
def test_any_strides(name: str, with_lens: bool, dtype: Any, view: Callable[[Array], Array]) -> None:
    op, weights, inputs = example(name, dtype)
    if not with_lens:
        del inputs["sequence_lens"]
    layer = Layer(op, **weights)
    expected = layer(**inputs)
    changed = {key: array if key == "sequence_lens" else view(array) for key, array in inputs.items()}
    for actual, wanted in zip(layer(**changed), expected, strict=True):
        assert actual.dtype == dtype
        # the same numbers come in; a product may only add them up in another order, some 2^-24 (2^-53) of 1; float16
        # may then round to the neighbour
        atol = {np.float32: 1e-6, np.float64: 1e-14, np.float16: 1e-3}[dtype]
        np.testing.assert_allclose(actual.astype(np.float64), wanted.astype(np.float64), rtol=0, atol=atol)


@each_row("lengths", [np.arange(14, dtype=np.int32)[::2] % 6, np.zeros(7, ">i4") + 3], ids=["strided", "big-endian"])
def test_any_lengths_array(lengths: Array) -> None:
    op, weights, inputs = example("LSTM")
    layer = Layer(op, **weights)
    inputs["sequence_lens"] = lengths
    outputs = layer(**inputs)
    inputs["sequence_lens"] = np.array(lengths.tolist(), np.int32)
    assert_same_bits(outputs, layer(**inputs))


# The convention of a layer


def test_errors_name_layer_and_argument() -> None:
    op, weights, inputs = example("GRU")
    with pytest.raises(ArgumentError, match=r"GRU 'decoder': W has shape \(2, 50, 3\); expected .*3\*hidden_size=51"):
        Layer(op, weights["W"][:, 1:], weights["R"], name="decoder")
    with pytest.raises(UnsupportedError, match="GRU: P was given"):
        Layer(op, **weights, P=np.zeros((2, 51), np.float32))
    layer = Layer(op, **weights, name="decoder")
    with pytest.raises(UnsupportedError, match="GRU 'decoder': initial_c was given"):
        layer(inputs["X"], initial_c=inputs["initial_h"])
    with pytest.raises(ArgumentError, match=r"GRU 'decoder': X has shape \(5, 7, 2\); expected .*input_size=3"):
        layer(inputs["X"][..., :2])
