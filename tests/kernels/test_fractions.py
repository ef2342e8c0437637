"""Steps of the usual cells, whose gates are fractions with a common division, over the whole range of their arguments.

Each input is one sum of a gate, R is 0, and H is 1, so a step is a formula, which long double computes here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rows import each_row

from pyrnnx import Layer, RecurrentOp, config
from pyrnnx._kernels import engines
from pyrnnx.operator.op import CellName

Array = NDArray[Any]
POINTS = 4000
# Roundings, each of half a unit: 6 of a tanh, 3 of a sigmoid, and a few for products and the division.
HALF_UNITS = {"RNN": 6, "GRU": 12, "LSTM": 16}
each_isa = each_row("isa", [*engines.supported(), "blas"])
each_dtype = each_row("dtype", [np.float32, np.float64])


def sigmoid(x: Array) -> Array:
    e = np.exp(-np.abs(x))
    return np.asarray(np.where(x < 0, e, 1) / (1 + e))


def rnn(a: Array, h: Array) -> list[Array]:
    return [np.tanh(a[0])]


def gru(a: Array, h: Array) -> list[Array]:
    z, not_z = sigmoid(a[0]), sigmoid(-a[0])
    return [not_z * np.tanh(a[2]) + z * h]


def lstm(a: Array, h: Array, c: Array) -> list[Array]:
    i, o, f = sigmoid(a[0]), sigmoid(a[1]), sigmoid(a[2])
    c = f * c + i * np.tanh(a[3])
    return [o * np.tanh(c), c]


STEPS: dict[CellName, tuple[int, Callable[..., list[Array]]]] = {"RNN": (1, rnn), "GRU": (3, gru), "LSTM": (4, lstm)}
each_cell = each_row("cell", STEPS)


def step(cell: CellName, W: Array, X: Array, states: list[Array], times: int = 1) -> list[Array]:
    """Return Y_h, or Y_h and Y_c, after steps of rows [rows, inputs] with W [gates, inputs] and states [rows]."""
    layer = Layer(RecurrentOp(cell, 1), W[None], np.zeros((1, len(W), 1), W.dtype))
    results = layer(np.broadcast_to(X, (times, *X.shape)), None, *(state[None, :, None] for state in states))
    return [result[0, :, 0] for result in results[1:]]


def arguments(dtype: Any, count: int, seed: int) -> Array:
    """Return values of every size, small and moderate ones, and edges, in [count, POINTS]."""
    rng, info = np.random.default_rng(seed), np.finfo(dtype)
    sizes = np.exp(rng.uniform(np.log(float(info.tiny)), np.log(1e4), (count, POINTS)))
    moderate = rng.uniform(-30, 30, (count, POINTS))
    edges = rng.choice([0.0, 1e-12, 9.0, 9.1, 19.1, 88.0, 104.0, 746.0, float(info.tiny), 1e6], (count, POINTS))
    kind = rng.integers(0, 10, (count, POINTS))
    values = np.where(kind < 3, sizes, np.where(kind < 9, moderate, edges)) * rng.choice([-1, 1], (count, POINTS))
    return np.asarray(values, dtype)


@each_isa
@each_dtype
@each_cell
def test_a_step_is_its_formula(cell: CellName, dtype: Any, isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors are relative to the terms, which may cancel; a sigmoid below tiny may be about tiny."""
    monkeypatch.setattr(config, "ISA", isa)
    gates, formula = STEPS[cell]
    rng, info = np.random.default_rng(5), np.finfo(dtype)
    sums = arguments(dtype, gates, 1)
    states = [rng.uniform(-2, 2, POINTS).astype(dtype) for _ in range(2 if cell == "LSTM" else 1)]
    results = step(cell, np.eye(gates, dtype=dtype), sums.T, states)
    wide = [array.astype(np.longdouble) for array in (sums, *states)]
    expected = formula(*wide)
    terms = formula(np.concatenate([wide[0][:-1], abs(wide[0][-1:])]), *map(abs, wide[1:]))
    if cell == "GRU":
        terms[0] += np.tanh(abs(wide[0][2]))  # 1 - z may be computed as that
    if cell == "LSTM":  # h is that of the rounded c
        expected[0] = sigmoid(wide[0][1]) * np.tanh(results[1].astype(np.longdouble))
        terms[0] = abs(expected[0])
    for name, result, value, scale in zip(("h", "c"), results, expected, terms, strict=False):
        bound = HALF_UNITS[cell] * info.eps / 2 * scale + 8 * info.tiny
        error = np.abs(result - value)
        worst = int((error / bound).argmax())
        assert (error <= bound).all(), (name, sums[:, worst], result[worst], value[worst])
    if cell != "GRU":
        assert np.abs(results[0]).max() <= 1


@each_isa
@each_dtype
@each_cell
def test_limits(cell: CellName, dtype: Any, isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Infinite arguments give the limits (a sigmoid is at least about tiny), and the largest c does not overflow."""
    monkeypatch.setattr(config, "ISA", isa)
    gates, formula = STEPS[cell]
    tiny, most = np.finfo(dtype).tiny, np.finfo(dtype).max / 2
    X = np.array([np.inf, -np.inf, np.nan, 0], dtype)
    states = [np.array([0.5, 0.5, 0.5, 0.5], dtype), np.array([most, 0.5, 0.5, most], dtype)][
        : 2 if cell == "LSTM" else 1
    ]
    results = step(cell, np.ones((gates, 1), dtype), X[:, None], states)
    for result, value in zip(results, formula(np.array([X] * gates), *states), strict=True):
        np.testing.assert_allclose(result, value, rtol=2 * np.finfo(dtype).eps, atol=2 * tiny)


@each_isa
@each_dtype
@each_row("cell", ["GRU", "LSTM"])
def test_a_saturated_gate_keeps_a_state(cell: CellName, dtype: Any, isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """z is 1, or f is 1 and i about 0: any state, also the largest, stays within a unit."""
    monkeypatch.setattr(config, "ISA", isa)
    gates, rng = STEPS[cell][0], np.random.default_rng(3)
    state = rng.uniform(-2, 2, POINTS).astype(dtype)
    state[::10] = np.finfo(dtype).max
    # z, r, h; i, o, f, c
    ranges = {"GRU": [(100, 200), (-3, 3), (-3, 3)], "LSTM": [(-200, -150), (-3, 3), (100, 200), (-3, 3)]}[cell]
    X = np.stack([rng.uniform(*ends, POINTS) for ends in ranges], 1).astype(dtype)
    states = [state] if cell == "GRU" else [np.zeros(POINTS, dtype), state]
    results = step(cell, np.eye(gates, dtype=dtype), X, states, times=200)
    np.testing.assert_allclose(results[-1], state, rtol=np.finfo(dtype).eps, atol=0)
