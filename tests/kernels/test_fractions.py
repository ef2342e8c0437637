"""Steps of the usual cells, whose gates are fractions with a common division, over the whole range of their arguments.

Each input is one sum of a gate, R is 0, and H is 1, so a step is a formula, which long double computes here. Only with
linear_before_reset there is a bias, RB of the candidate: what r multiplies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from rows import each_row

from pyrnnx import Layer, RecurrentOp, config
from pyrnnx._kernels import engines

Array = NDArray[Any]
POINTS = 4000
RB = 1.5
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


def linear_gru(a: Array, h: Array) -> list[Array]:
    return gru(np.stack([a[0], a[0], a[2] + RB * sigmoid(a[1])]), h)


def lstm(a: Array, h: Array, c: Array) -> list[Array]:
    i, o, f = sigmoid(a[0]), sigmoid(a[1]), sigmoid(a[2])
    c = f * c + i * np.tanh(a[3])
    return [o * np.tanh(c), c]


class Step(NamedTuple):
    op: RecurrentOp
    gates: int
    formula: Callable[..., list[Array]]
    half_units: int  # roundings: 6 of a tanh, 3 of a sigmoid, and a few for products and the division


LINEAR = "GRU with linear_before_reset"
STEPS = {
    "RNN": Step(RecurrentOp("RNN", 1), 1, rnn, 6),
    "GRU": Step(RecurrentOp("GRU", 1), 3, gru, 12),
    LINEAR: Step(RecurrentOp("GRU", 1, linear_before_reset=True), 3, linear_gru, 12),
    "LSTM": Step(RecurrentOp("LSTM", 1), 4, lstm, 16),
}


def step(cell: str, W: Array, X: Array, states: list[Array], times: int = 1) -> list[Array]:
    """Return Y_h, or Y_h and Y_c, after steps of rows [rows, inputs] with W [gates, inputs] and states [rows]."""
    B = np.array([[0, 0, 0, 0, 0, RB]], W.dtype) if cell == LINEAR else None
    layer = Layer(STEPS[cell].op, W[None], np.zeros((1, len(W), 1), W.dtype), B)
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
@each_row("cell", STEPS)
def test_a_step_is_its_formula(cell: str, dtype: Any, isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors are relative to the terms, which may cancel; a sigmoid below tiny may be about tiny."""
    monkeypatch.setattr(config, "ISA", isa)
    _, gates, formula, half_units = STEPS[cell]
    rng, info = np.random.default_rng(5), np.finfo(dtype)
    sums = arguments(dtype, gates, 1)
    states = [rng.uniform(-2, 2, POINTS).astype(dtype) for _ in range(2 if cell == "LSTM" else 1)]
    results = step(cell, np.eye(gates, dtype=dtype), sums.T, states)
    wide = [array.astype(np.longdouble) for array in (sums, *states)]
    expected = formula(*wide)
    terms = formula(np.concatenate([wide[0][:-1], abs(wide[0][-1:])]), *map(abs, wide[1:]))
    if "GRU" in cell:  # 1 - z may be computed as that
        terms[0] += formula(np.stack([np.full(POINTS, -np.inf), wide[0][1], abs(wide[0][2])]), 0)[0]
    if cell == "LSTM":  # h is that of the rounded c
        expected[0] = sigmoid(wide[0][1]) * np.tanh(results[1].astype(np.longdouble))
        terms[0] = abs(expected[0])
    for name, result, value, scale in zip(("h", "c"), results, expected, terms, strict=False):
        bound = half_units * info.eps / 2 * scale + 8 * info.tiny
        error = np.abs(result - value)
        worst = int((error / bound).argmax())
        assert (error <= bound).all(), (name, sums[:, worst], result[worst], value[worst])
    if "GRU" not in cell:
        assert np.abs(results[0]).max() <= 1


@each_isa
@each_dtype
@each_row("cell", ["RNN", "GRU", "LSTM"])
def test_limits(cell: str, dtype: Any, isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Infinite arguments give the limits (a sigmoid is at least about tiny), and the largest c does not overflow."""
    monkeypatch.setattr(config, "ISA", isa)
    _, gates, formula, _ = STEPS[cell]
    tiny, most = np.finfo(dtype).tiny, np.finfo(dtype).max
    X = np.array([np.inf, -np.inf, np.nan, 0], dtype)
    states = [np.array([0.5, 0.5, 0.5, 0.5], dtype), np.array([most, 0.5, 0.5, most], dtype)][
        : 2 if cell == "LSTM" else 1
    ]
    results = step(cell, np.ones((gates, 1), dtype), X[:, None], states)
    for result, value in zip(results, formula(np.array([X] * gates), *states), strict=True):
        np.testing.assert_allclose(result, value, rtol=2 * np.finfo(dtype).eps, atol=2 * tiny)


@each_isa
@each_dtype
@each_row("cell", ["GRU", LINEAR, "LSTM"])
def test_a_saturated_gate_keeps_a_state(cell: str, dtype: Any, isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """z is 1, or f is 1 and i about 0: any state, also the largest, stays within a unit."""
    monkeypatch.setattr(config, "ISA", isa)
    gates, rng = STEPS[cell].gates, np.random.default_rng(3)
    state = rng.uniform(-2, 2, POINTS).astype(dtype)
    state[::10] = np.finfo(dtype).max
    # z, r, h; i, o, f, c
    ranges = [(-200, -150), (-3, 3), (100, 200), (-3, 3)] if cell == "LSTM" else [(100, 200), (-3, 3), (-3, 3)]
    X = np.stack([rng.uniform(*ends, POINTS) for ends in ranges], 1).astype(dtype)
    states = [state] if cell != "LSTM" else [np.zeros(POINTS, dtype), state]
    results = step(cell, np.eye(gates, dtype=dtype), X, states, times=50)
    np.testing.assert_allclose(results[-1], state, rtol=np.finfo(dtype).eps, atol=0)


@each_isa
@each_row("cell", ["GRU", LINEAR, "LSTM with input_forget"])
def test_a_slow_leak_mixes_state_and_candidate(cell: str, isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gate of nearly 1 and its complement sum to 1: a state and a candidate of 1 stay 1."""
    monkeypatch.setattr(config, "ISA", isa)
    a = np.linspace(10, 18, 97, dtype=np.float32)
    X, state = np.full((4000, len(a), 4), 30, np.float32), np.ones((1, len(a), 1), np.float32)
    if cell in STEPS:
        layer = Layer(STEPS[cell].op, np.eye(4, dtype=np.float32)[None, :3], np.zeros((1, 3, 1), np.float32))
        X[..., 0], states = a, [state]
    else:
        op = RecurrentOp("LSTM", 1, input_forget=True)
        layer = Layer(op, np.eye(4, dtype=np.float32)[None], np.zeros((1, 4, 1), np.float32))
        X[..., 0], states = -a, [state, state]
    np.testing.assert_allclose(layer(X, None, *states)[-1], state, rtol=2e-7, atol=0)


@each_isa
@each_row("gate", ["f of an LSTM", "z of a GRU", "tanh of an RNN"])
def test_errors_have_no_mean(gate: str, isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long memory adds up the mean errors of its gates: beyond that of rounding, they are small in any interval."""
    monkeypatch.setattr(config, "ISA", isa)
    a = np.random.default_rng(0).uniform(np.arange(-8, 8)[:, None], np.arange(-7, 9)[:, None], (16, POINTS))
    a = a.ravel().astype(np.float32)
    zeros, ones, closed = np.zeros_like(a), np.ones_like(a), np.full_like(a, -100)
    cell, sums, states = {
        "f of an LSTM": ("LSTM", [closed, zeros, a, zeros], [zeros, ones]),
        "z of a GRU": ("GRU", [a, zeros, zeros], [ones]),
        "tanh of an RNN": ("RNN", [a], [zeros]),
    }[gate]
    result = step(cell, np.eye(len(sums), dtype=np.float32), np.stack(sums, 1), states)[-1]
    exact = (np.tanh if cell == "RNN" else sigmoid)(a.astype(np.longdouble))
    rounded = exact.astype(np.float32)
    means = ((result.astype(np.float64) - rounded) / np.spacing(abs(rounded))).reshape(-1, POINTS).mean(1)
    # errors of at most 5 units are about 1 on average, so that of a mean of POINTS is 0.02
    assert np.abs(means).max() < 0.12, means
