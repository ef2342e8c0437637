"""Weights in Keras' arrangement, and results of its layers by the formulas of its documentation.

Keras has kernels [input, gates*units], gates i, f, c, o of an LSTM and z, r, h of a GRU, and one bias, but for a GRU
with reset_after, which has two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pyrnnx.testing.numbers import Array

States = tuple[Any, ...]
Function = Callable[[Any], Any]


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


ACTIVATIONS: dict[str, Function] = {
    "tanh": np.tanh,
    "sigmoid": sigmoid,
    "relu": lambda x: np.maximum(x, 0),
    "linear": lambda x: x,
    "hard_sigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "softsign": lambda x: x / (1 + np.abs(x)),
    "softplus": lambda x: np.log1p(np.exp(x)),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.2 * x),
}


def simple_rnn(
    x: Any, states: States, kernel: Any, recurrent: Any, bias: Any, f: Function = np.tanh, _: Function = sigmoid
) -> States:
    return (f(np.dot(x, kernel) + bias + np.dot(states[0], recurrent)),)


def lstm(
    x: Any, states: States, kernel: Any, recurrent: Any, bias: Any, own: Function = np.tanh, gate: Function = sigmoid
) -> States:
    h, c = states
    i, f, g, o = np.split(np.dot(x, kernel) + np.dot(h, recurrent) + bias, 4)
    c = gate(f) * c + gate(i) * own(g)
    return gate(o) * own(c), c


def gru_reset_after(
    x: Any, states: States, kernel: Any, recurrent: Any, bias: Any, own: Function = np.tanh, gate: Function = sigmoid
) -> States:
    (h,) = states
    x_z, x_r, x_h = np.split(np.dot(x, kernel) + bias[0], 3)
    h_z, h_r, h_h = np.split(np.dot(h, recurrent) + bias[1], 3)
    z, r = gate(x_z + h_z), gate(x_r + h_r)
    return (z * h + (1 - z) * own(x_h + r * h_h),)


def gru_reset_before(
    x: Any, states: States, kernel: Any, recurrent: Any, bias: Any, own: Function = np.tanh, gate: Function = sigmoid
) -> States:
    (h,) = states
    x_z, x_r, x_h = np.split(np.dot(x, kernel) + bias, 3)
    R_z, R_r, R_h = np.split(recurrent, 3, axis=1)
    z, r = gate(x_z + np.dot(h, R_z)), gate(x_r + np.dot(h, R_r))
    return (z * h + (1 - z) * own(x_h + np.dot(r * h, R_h)),)


LAYERS: dict[str, tuple[str, Callable[..., States]]] = {
    "SimpleRNN": ("RNN", simple_rnn),
    "LSTM": ("LSTM", lstm),
    "GRU reset_after=True": ("GRU", gru_reset_after),
    "GRU reset_after=False": ("GRU", gru_reset_before),
}
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
GATE_ACTIVATIONS = ("hard_sigmoid", "tanh", "softsign")  # with a bound, so that states do not grow step by step


def run_keras(
    step: Callable[..., States],
    X: Any,
    initial: Sequence[Any],
    weights: Sequence[Any],
    lens: Sequence[int] | Array,
    backwards: bool,
    functions: Sequence[Function] = (),
) -> list[Any]:
    """Y [T, N, U] in the order of time, then the last states [N, U]."""
    (T, N), U = X.shape[:2], initial[0].shape[-1]
    Y, last = np.zeros((T, N, U)), [np.zeros((N, U)) for _ in initial]
    for n, length in enumerate(lens):
        states = tuple(one[n] for one in initial)
        for t in sorted(range(length), reverse=backwards):
            states = step(X[t, n], states, *weights, *functions)
            Y[t, n] = states[0]
            for k, state in enumerate(states):
                last[k][n] = state
    return [Y, *last]


@dataclass(frozen=True)
class Case:
    """A layer of Keras in numbers; `options` are those of from_weights that its arrays do not tell."""

    kind: str
    units: int
    weights: list[Array]
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def class_name(self) -> str:
        return self.kind.partition(" ")[0]

    @property
    def cell(self) -> str:
        return LAYERS[self.kind][0]

    @property
    def directions(self) -> int:
        return 2 if self.options["direction"] == "bidirectional" else 1

    def expected(self, X: Array, lens: Sequence[int] | Array, states: Sequence[Array]) -> list[Array]:
        """Y [T, N, D*U] in the order of time and the last states [D, N, U] in float64, of states [D, N, U]."""
        defaults = {"activation": "tanh", "recurrent_activation": "sigmoid"}
        functions = [ACTIVATIONS[self.options.get(name, default)] for name, default in defaults.items()]
        found, count = [], len(self.weights) // self.directions
        for d in range(self.directions):
            weights = [array.astype(float) for array in self.weights[d * count : (d + 1) * count]]
            if count == 2:
                columns = weights[0].shape[1]
                weights.append(np.zeros((2, columns) if "True" in self.kind else columns))
            backwards = d == 1 or self.options["direction"] == "reverse"
            initial = [state[d].astype(float) for state in states]
            found.append(run_keras(LAYERS[self.kind][1], X.astype(float), initial, weights, lens, backwards, functions))
        return [np.concatenate([one[0] for one in found], axis=-1), *map(np.stack, list(zip(*found, strict=True))[1:])]


def random_weights(
    kind: str, I: int, U: int, *, bias: bool = True, seed: int = 0, dtype: Any = np.float64
) -> list[Array]:
    """Return weights of one direction in the form of `get_weights`."""
    rng, columns = np.random.default_rng((seed, 2)), GATES[LAYERS[kind][0]] * U
    shapes: list[tuple[int, ...]] = [(I, columns), (U, columns)]
    if bias:
        shapes.append((2, columns) if "True" in kind else (columns,))
    return [(rng.normal(size=shape) / 2).astype(dtype) for shape in shapes]


def random_case(seed: int) -> Case:
    rng, activations = np.random.default_rng(seed), tuple(ACTIVATIONS)
    kind = list(LAYERS)[seed % 4]
    direction = ("forward", "reverse", "bidirectional")[int(rng.integers(3))]
    I, U, bias = int(rng.integers(1, 6)), int(rng.integers(5, 10)), bool(rng.integers(2))
    options: dict[str, Any] = {"direction": direction}
    if rng.integers(2):
        options["activation"] = activations[int(rng.integers(len(activations)))]
    if rng.integers(2):
        options["recurrent_activation"] = GATE_ACTIVATIONS[int(rng.integers(len(GATE_ACTIVATIONS)))]
    if "False" in kind and not bias:
        options["reset_after"] = False
    parts = [random_weights(kind, I, U, bias=bias, seed=seed + 1000 * d) for d in range(2)]
    weights = [array for part in parts[: 2 if direction == "bidirectional" else 1] for array in part]
    return Case(kind, U, weights, options)


def random_inputs(case: Case, seed: int) -> tuple[Array, Array, list[Array]]:
    """X [T, N, I], lengths, and states [D, N, U]."""
    rng = np.random.default_rng((seed, 1))
    T, N, dtype = 6, int(rng.integers(1, 6)), case.weights[0].dtype
    lens = np.append([T], rng.integers(0, T + 1, N))[:N].astype(np.int32)
    X = rng.normal(size=(T, N, case.weights[0].shape[0]))
    states = [rng.normal(size=(case.directions, N, case.units)) for _ in range(2 if case.cell == "LSTM" else 1)]
    return X.astype(dtype), lens, [state.astype(dtype) for state in states]
