"""Matrix instructions for many rows: as exact as without them, and the same bits however a call is divided.

A model of the matrices runs on any machine, and stands for them here; where the processor has them, it gives the same
bits.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import numpy as np
import pytest
from layers import MATRICES, bfloat16, needs_matrices, random_inputs, random_layer, random_weights
from numpy.typing import NDArray
from rows import each_row

from pyrnnx import (
    Activation,
    Direction,
    Layer,
    RecurrentOp,
    config,
    get_batch_invariant,
    set_batch_invariant,
    set_num_threads,
)

Array = NDArray[Any]
F32 = np.float32
ROWS = 16  # from which on matrices multiply
CELLS: dict[str, dict[str, Any]] = {
    "RNN": {"cell": "RNN"},
    "GRU": {"cell": "GRU"},
    "GRU, linear": {"cell": "GRU", "linear_before_reset": True},
    "LSTM": {"cell": "LSTM"},
    "LSTM, coupled": {"cell": "LSTM", "input_forget": True},
}
SUM = ((Activation("Affine", 1.0, 0.0),),)  # h is the sum itself: bits of products, not of functions

pytestmark = needs_matrices


@pytest.fixture(params=MATRICES, autouse=True)
def isa(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    name: str = request.param
    monkeypatch.setattr(config, "ISA", name)
    return name


def same_bits(a: tuple[Array, ...], b: tuple[Array, ...]) -> bool:
    return all(x.tobytes() == y.tobytes() for x, y in zip(a, b, strict=True))


def by_elements(layer: Layer, *arguments: Any) -> tuple[Array, ...]:
    """Return the results of the layer without matrices."""
    before = get_batch_invariant()
    set_batch_invariant(True)
    results = layer(*arguments)
    set_batch_invariant(before)
    return results


def sums(depth: int, H: int, *, seed: int = 0, **keywords: Any) -> Layer:
    """A layer whose h is X W^T + B + h R^T."""
    op = RecurrentOp("RNN", H, activations=SUM)
    return random_layer(op, depth, seed=seed, **keywords)


# N, I, H: one matrix of rows and less than two, whole ones; columns in pairs and not; k below, at and beyond 32.
SIZES = {
    "one k": (16, 1, 160),
    "one matrix of rows": (17, 31, 144),
    "two": (32, 32, 160),
    "three": (33, 33, 158),
    "many rows": (70, 64, 129),
    "no input": (20, 0, 131),
}
FEW = ("one k", "three", "no input")  # sizes of the default suite
# The least H that matrices multiply, with so many inputs.
I = 95
LEAST = {"RNN": 128, "GRU": 64, "LSTM": 48}


@pytest.mark.skipif(len(MATRICES) < 2, reason="needs AMX, and a build with PYRNNX_BUILD_MODEL=1")
@each_row("weight_dtype", [None, "bfloat16"])
@each_row("scale", [1.0, 1e-18, 1e15])
@each_row("sizes", SIZES)
def test_the_processor_does_what_the_model_says(
    sizes: str, scale: float, weight_dtype: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    N, I, H = SIZES[sizes]
    rng = np.random.default_rng(1)
    X = (rng.normal(size=(3, N, I)) * scale * 10.0 ** rng.uniform(-6, 0, (3, N, I))).astype(F32)
    weights: Any = random_weights(RecurrentOp("RNN", H, activations=SUM), I)
    if scale < 1:
        weights = {name: (a * scale).astype(F32) for name, a in weights.items()}
    bits = []
    for name in MATRICES:
        monkeypatch.setattr(config, "ISA", name)
        layer = Layer(RecurrentOp("RNN", H, activations=SUM), **weights, weight_dtype=weight_dtype)
        bits.append(layer(X))
    assert same_bits(*bits)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize(
    "sizes", [name if name in FEW else pytest.param(name, marks=pytest.mark.slow) for name in SIZES]
)
def test_matrices_are_as_exact_as_elements(cell: str, sizes: str) -> None:
    N, I, H = SIZES[sizes]
    op = RecurrentOp(hidden_size=H, direction=Direction("bidirectional"), **CELLS[cell])
    layer = random_layer(op, I)
    wide: Any = {name: a.astype(np.float64) for name, a in layer.weights.items()}
    exact = Layer(op, **wide)
    given_arrays = random_inputs(op, (3, N, I), lens=[3] * ROWS + [2] * (N - ROWS))
    states = [given_arrays[name] for name in ("initial_h", "initial_c") if name in given_arrays]
    arguments = (given_arrays["X"], given_arrays["sequence_lens"], *states)
    expected = exact(*(a if a.dtype == np.int32 else a.astype(np.float64) for a in arguments))
    matrices, elements = layer(*arguments), by_elements(layer, *arguments)
    for ours, other, right in zip(matrices, elements, expected, strict=True):
        assert np.abs(ours - right).max() < 2e-6  # some roundings of sums below 4
        # both errors are some roundings; which is the larger one is chance where sums are short
        assert np.sqrt(np.mean((ours - right) ** 2)) < 1.2 * np.sqrt(np.mean((other - right) ** 2)) + 1e-9
    assert not same_bits(matrices, elements)


# Values whose row is not split, but multiplied element by element.
LEFT_OUT: dict[str, Any] = {
    "NaN": np.nan,
    "Inf": np.inf,
    "-Inf": -np.inf,
    "beyond bfloat16": np.finfo(F32).max,
    "huge": -1e25,
    "tiny": 1e-35,
    "subnormal": 1e-42,
}


@pytest.mark.parametrize("where", ["X", "initial_h"])
@pytest.mark.parametrize(
    "cell", [cell if cell == "LSTM" else pytest.param(cell, marks=pytest.mark.slow) for cell in CELLS]
)
@pytest.mark.parametrize("value", LEFT_OUT)
def test_rows_that_cannot_be_split(value: str, cell: str, where: str) -> None:
    """They have the bits of a call without matrices, and all others those that they have beside usual rows."""
    N, H = 37, LEAST[CELLS[cell]["cell"]] + 2
    op = RecurrentOp(hidden_size=H, **CELLS[cell])
    layer = random_layer(op, I)
    arrays = random_inputs(op, (1, N, I))
    states = [np.zeros_like(arrays[name]) for name in ("initial_h", "initial_c") if name in arrays]
    X = arrays["X"]
    X[0, [3, 4, 20]] = 0
    usual = layer(X, None, *states)
    rows = [3, 4, 20]
    target = X if where == "X" else states[0]
    target[0, rows, 7] = LEFT_OUT[value]
    results, elements = layer(X, None, *states), by_elements(layer, X, None, *states)
    others = np.setdiff1d(np.arange(N), rows)
    for ours, other, before in zip(results, elements, usual, strict=True):
        np.testing.assert_array_equal(ours[..., rows, :], other[..., rows, :])
        assert ours[..., others, :].tobytes() == before[..., others, :].tobytes()
        assert np.isfinite(ours[..., others, :]).all()
    if value == "NaN":
        assert np.isnan(results[0][0, 0, rows]).any(-1).all()


@each_row("value", ["NaN", "Inf", "beyond bfloat16", "huge"])
@each_row("name", ["W", "R"])
def test_weights_that_cannot_be_split(name: str, value: str) -> None:
    op = RecurrentOp("LSTM", 50, Direction("bidirectional"))
    weights: Any = random_weights(op, I)
    weights[name][1, 140, 17] = LEFT_OUT[value]
    layer, X = Layer(op, **weights), random_inputs(op, (2, 20, I))["X"]
    assert same_bits(layer(X), by_elements(layer, X))


@each_row("seed", range(6))
def test_bits_depend_on_no_plan(seed: int) -> None:
    """Neither on the number of threads, nor on the call; and results are those of elements, but for rounding."""
    rng = np.random.default_rng(seed)
    T, N, I, more, threads = rng.integers((1, 16, 60, 0, 2), (4, 71, 131, 31, 6)).tolist()
    cell, direction = list(CELLS)[seed % len(CELLS)], list(Direction)[seed % 3]
    dtype: Any = [np.float32, np.float16, bfloat16, np.float32][seed % 4]
    lens, odd_rows = ["ragged", "few", "full"][(seed + seed // 3) % 3], seed % 2
    H = LEAST[CELLS[cell]["cell"]] + more
    op = RecurrentOp(hidden_size=H, direction=direction, **CELLS[cell])
    layer = random_layer(op, I, dtype, seed=seed)
    arrays = random_inputs(op, (T, N, I), dtype, seed=seed)
    few = np.where(np.arange(N) % 7, 1, T).astype(np.int32)
    lengths = {"full": None, "ragged": arrays["sequence_lens"], "few": few}[lens]
    states = [arrays[name] for name in ("initial_h", "initial_c") if name in arrays]
    X = arrays["X"]
    if odd_rows and I:
        X[:, rng.integers(0, N, 3), 0] = 1e-39 if dtype is np.float16 else 1e25
    set_num_threads(1)
    expected = layer(X, lengths, *states)
    assert same_bits(layer(X, lengths, *states), expected)
    set_num_threads(threads)
    assert same_bits(layer(X, lengths, *states), expected)
    tolerance = 3e-6 if dtype is np.float32 else 2e-3 if dtype is np.float16 else 2e-2
    for ours, other in zip(expected, by_elements(layer, X, lengths, *states), strict=True):
        np.testing.assert_allclose(ours.astype(F32), other.astype(F32), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("shared", [("forward", 40, 20, 330), ("bidirectional", 9, 40, 130), ("forward", 100, 19, 129)])
@pytest.mark.parametrize("cell", CELLS)
def test_teams_of_threads_give_the_same_bits(isa: str, cell: str, shared: tuple[str, int, int, int]) -> None:
    direction, T, N, H = shared
    T, H = (T, H) if isa == "amx" else (2, 130)  # the model is slow
    op = RecurrentOp(hidden_size=H, direction=Direction(direction), **CELLS[cell])
    layer, arrays = random_layer(op, 19), random_inputs(op, (T, N, 19))
    arguments = arrays["X"], arrays["sequence_lens"], arrays["initial_h"]
    set_num_threads(1)
    expected = layer(*arguments)
    for threads in (2, 3, 7):
        set_num_threads(threads)
        assert same_bits(layer(*arguments), expected), threads


def test_first_calls_at_once() -> None:
    """Each of them may be the one that splits the weights."""
    op = RecurrentOp("LSTM", 60, Direction("bidirectional"))
    arrays = random_inputs(op, (2, 20, I))
    expected = random_layer(op, I)(arrays["X"])
    for _ in range(2):
        layer, start = random_layer(op, I), Barrier(8)

        def first(layer: Layer = layer, start: Barrier = start) -> tuple[Array, ...]:
            start.wait()
            return layer(arrays["X"])

        with ThreadPoolExecutor(8) as pool:
            results = [pool.submit(first) for _ in range(8)]
        assert all(same_bits(result.result(), expected) for result in results)


@each_row("cell", CELLS)
def test_rows_depend_on_no_other_row(cell: str) -> None:
    op = RecurrentOp(hidden_size=LEAST[CELLS[cell]["cell"]] + 3, **CELLS[cell])
    layer, arrays = random_layer(op, I), random_inputs(op, (2, 59, I))
    Y = layer(arrays["X"], None, arrays["initial_h"])[0]
    for rows in (slice(0, 16), slice(20, 51), slice(43, 59)):
        some = layer(arrays["X"][:, rows], None, np.ascontiguousarray(arrays["initial_h"][:, rows]))[0]
        assert some.tobytes() == np.ascontiguousarray(Y[:, :, rows]).tobytes()


@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_weights_in_bfloat16_are_multiplied_by_rows_in_bfloat16(scale: float) -> None:
    layer = sums(45, 150, weight_dtype="bfloat16")
    X = (np.random.default_rng(3).normal(size=(1, 30, 45)) * scale).astype(F32)
    W, X_rounded = (a.astype(bfloat16).astype(np.float64) for a in (layer.weights["W"][0], X[0]))
    B = layer.weights["B"][0].astype(np.float64)
    exact = X_rounded @ W.T + B[:150] + B[150:]
    np.testing.assert_allclose(layer(X)[0][0, 0], exact, rtol=0, atol=1e-6)  # sums below 8, of 45 terms
    assert np.abs(by_elements(layer, X)[0][0, 0] - exact).max() > 1e-4 * scale


@each_row("small", [1e-38, 1e-40])
@each_row("cell", CELLS)
def test_a_stream_gives_the_whole_where_sums_are_subnormal(cell: str, small: float) -> None:
    """Its first push has a state of zeros to multiply by, the call has none."""
    op = RecurrentOp(hidden_size=160, **CELLS[cell])
    weights: Any = random_weights(op, 0)
    layer = Layer(op, weights["W"], weights["R"], np.full_like(weights["B"], small))
    X = np.zeros((1, ROWS, 0), F32)
    assert layer.stream(ROWS).push(X).tobytes() == layer(X)[0].tobytes()
