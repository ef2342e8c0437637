"""The ONNX operators RNN, GRU and LSTM in float64 NumPy: an oracle to be read beside the operator texts.

It imports nothing of pyrnnx, checks nothing, and runs one row and one step at a time. Arrays of any dtype are widened
to float64 and all results are float64. Where the texts are silent it follows ONNX Runtime:

- a row's last state is the one after its last valid step; Y is zero beyond the row's length; a row of length 0 is zero
- ``reverse`` runs a row's valid steps backwards, Y stays in time order
- ``clip`` bounds what goes into f and g, not what goes into the LSTM's h
- with ``input_forget`` the forget gate is 1 - i and its parameters are unused; OpenVINO, whose texts are silent too,
  has it the other way round: with ``coupled_gate`` "i" the input gate is 1 - f, and its parameters are unused
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]


# Activation functions: x, alpha, beta -> y. All of them pass NaN on.


def sigmoid(x: Array) -> Array:
    e = np.exp(-np.abs(x))  # never overflows; 1/(1 + e^-x) = e^x/(1 + e^x)
    return np.where(x >= 0, 1.0, e) / (1.0 + e)


def softsign(x: Array) -> Array:
    return np.where(np.isinf(x), np.sign(x), x / (1.0 + np.where(np.isinf(x), 0.0, np.abs(x))))


ACTIVATIONS: dict[str, Callable[[Array, float, float], Array]] = {
    "Relu": lambda x, alpha, beta: np.maximum(x, 0.0),
    "Tanh": lambda x, alpha, beta: np.tanh(x),
    "Sigmoid": lambda x, alpha, beta: sigmoid(x),
    "Affine": lambda x, alpha, beta: alpha * x + beta,
    "LeakyRelu": lambda x, alpha, beta: np.where(x >= 0, x, alpha * x),
    "ThresholdedRelu": lambda x, alpha, beta: np.where(x < alpha, 0.0, x),  # NaN is not below alpha
    "ScaledTanh": lambda x, alpha, beta: alpha * np.tanh(beta * x),
    "HardSigmoid": lambda x, alpha, beta: np.minimum(np.maximum(alpha * x + beta, 0.0), 1.0),
    "Elu": lambda x, alpha, beta: np.where(x >= 0, x, alpha * np.expm1(np.minimum(x, 0.0))),
    "Softsign": lambda x, alpha, beta: softsign(x),
    "Softplus": lambda x, alpha, beta: np.logaddexp(0.0, x),
}

# The functions that take a parameter, with the default of the ONNX operator of that name; ScaledTanh is no operator.
ALPHA: dict[str, float | None] = {
    "Affine": 1.0,
    "LeakyRelu": 0.01,
    "ThresholdedRelu": 1.0,
    "ScaledTanh": None,
    "HardSigmoid": 0.2,
    "Elu": 1.0,
}
BETA: dict[str, float | None] = {"Affine": 0.0, "ScaledTanh": None, "HardSigmoid": 0.5}

# activations of one direction; they are also the functions f, g, h of the equations
DEFAULT_ACTIVATIONS = {"RNN": ("Tanh",), "GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh")}
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


@dataclass(frozen=True)
class Activation:
    name: str
    alpha: float
    beta: float

    def __call__(self, x: Array) -> Array:
        return ACTIVATIONS[self.name](x, self.alpha, self.beta)


def resolve_activations(
    operator: str,
    num_directions: int,
    *,
    names: Sequence[str] | None = None,
    alphas: Sequence[float] = (),
    betas: Sequence[float] = (),
    threshold_shift: float = 0.0,
) -> list[list[Activation]]:
    """One list of functions per direction. Each function that takes an alpha (a beta) takes the next one given."""
    per_direction = len(DEFAULT_ACTIVATIONS[operator])
    names = list(names or DEFAULT_ACTIVATIONS[operator] * num_directions)[: per_direction * num_directions]
    canonical = {name.lower(): name for name in ACTIVATIONS}
    next_alpha, next_beta = iter(alphas or ()), iter(betas or ())
    functions = []
    for name in (canonical[name.lower()] for name in names):
        alpha = next(next_alpha, ALPHA[name]) if name in ALPHA else 0.0
        beta = next(next_beta, BETA[name]) if name in BETA else 0.0
        assert alpha is not None, name  # ScaledTanh has no defaults
        assert beta is not None, name
        shift = threshold_shift if name == "ThresholdedRelu" else 0.0
        functions.append(Activation(name, float(alpha) + shift, float(beta)))
    return [functions[d * per_direction : (d + 1) * per_direction] for d in range(num_directions)]


# Cells: one row, one step. x is [I]; h and c are [H]; W, R, Wb, Rb, P are per gate, in ONNX's order.


@dataclass(frozen=True)
class Direction:
    """The parameters of one direction, split into gates."""

    W: Array  # [G, H, I]
    R: Array  # [G, H, H]
    Wb: Array  # [G, H]
    Rb: Array  # [G, H]
    P: Array  # [3, H]
    functions: list[Activation]
    clip: float
    linear_before_reset: int = 0
    input_forget: int = 0
    coupled_gate: str = "f"

    def clipped(self, x: Array) -> Array:
        return np.minimum(np.maximum(x, -self.clip), self.clip)


def rnn_cell(p: Direction, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
    (f,) = p.functions
    return f(p.clipped(x @ p.W[0].T + h @ p.R[0].T + p.Wb[0] + p.Rb[0])), c


def gru_cell(p: Direction, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
    f, g = p.functions
    (Wz, Wr, Wh), (Rz, Rr, Rh), (Wbz, Wbr, Wbh), (Rbz, Rbr, Rbh) = p.W, p.R, p.Wb, p.Rb
    z = f(p.clipped(x @ Wz.T + h @ Rz.T + Wbz + Rbz))
    r = f(p.clipped(x @ Wr.T + h @ Rr.T + Wbr + Rbr))
    if p.linear_before_reset:
        hidden = g(p.clipped(x @ Wh.T + r * (h @ Rh.T + Rbh) + Wbh))
    else:
        hidden = g(p.clipped(x @ Wh.T + (r * h) @ Rh.T + Rbh + Wbh))
    return (1.0 - z) * hidden + z * h, c


def lstm_cell(p: Direction, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
    f_, g_, h_ = p.functions
    (Wi, Wo, Wf, Wc), (Ri, Ro, Rf, Rc), (Wbi, Wbo, Wbf, Wbc), (Rbi, Rbo, Rbf, Rbc) = p.W, p.R, p.Wb, p.Rb
    Pi, Po, Pf = p.P
    i = f_(p.clipped(x @ Wi.T + h @ Ri.T + Pi * c + Wbi + Rbi))
    f = f_(p.clipped(x @ Wf.T + h @ Rf.T + Pf * c + Wbf + Rbf))
    if p.input_forget:
        i, f = (1.0 - f, f) if p.coupled_gate == "i" else (i, 1.0 - i)
    cell = g_(p.clipped(x @ Wc.T + h @ Rc.T + Wbc + Rbc))
    C = f * c + i * cell
    o = f_(p.clipped(x @ Wo.T + h @ Ro.T + Po * C + Wbo + Rbo))
    return o * h_(C), C


CELLS = {"RNN": rnn_cell, "GRU": gru_cell, "LSTM": lstm_cell}


def run(
    operator: str,
    X: ArrayLike,
    W: ArrayLike,
    R: ArrayLike,
    *,
    B: ArrayLike | None = None,
    sequence_lens: ArrayLike | None = None,
    initial_h: ArrayLike | None = None,
    initial_c: ArrayLike | None = None,
    P: ArrayLike | None = None,
    activations: Sequence[str] | None = None,
    activation_alpha: Sequence[float] = (),
    activation_beta: Sequence[float] = (),
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
    linear_before_reset: int = 0,
    input_forget: int = 0,
    coupled_gate: str = "f",
    output_sequence: int = 0,
    threshold_shift: float = 0.0,
) -> tuple[Array, ...]:
    """(Y, Y_h), or (Y, Y_h, Y_c) of LSTM.

    `output_sequence` of old opsets only says whether Y may be left out; it never is here. `threshold_shift` is added to
    every alpha of ThresholdedRelu: results that a small shift changes hang on rounding, for the function jumps there.
    """

    def widened(a: ArrayLike | None, shape: tuple[int, ...]) -> Array:
        return np.zeros(shape) if a is None else np.asarray(a).astype(np.float64).reshape(shape)

    def batch_second(a: ArrayLike) -> Array:
        return np.swapaxes(np.asarray(a), 0, 1)

    if layout:  # batch first -> [T, N, I] and [D, N, H]
        X = batch_second(X)
        initial_h = None if initial_h is None else batch_second(initial_h)
        initial_c = None if initial_c is None else batch_second(initial_c)
    G = GATES[operator]
    T, N, I = np.shape(X)
    D, _, H = np.shape(R)
    X = widened(X, (T, N, I))
    W, R, P = widened(W, (D, G, H, I)), widened(R, (D, G, H, H)), widened(P, (D, 3, H))
    B = widened(B, (D, 2, G, H))
    initial_h, initial_c = widened(initial_h, (D, N, H)), widened(initial_c, (D, N, H))
    lens = np.full(N, T) if sequence_lens is None else np.asarray(sequence_lens)
    functions = resolve_activations(
        operator,
        D,
        names=activations,
        alphas=activation_alpha,
        betas=activation_beta,
        threshold_shift=threshold_shift,
    )

    limit = np.inf if clip is None else clip
    Y, Y_h, Y_c = np.zeros((T, D, N, H)), np.zeros((D, N, H)), np.zeros((D, N, H))
    for d in range(D):
        parameters = Direction(
            W[d], R[d], B[d, 0], B[d, 1], P[d], functions[d], limit, linear_before_reset, input_forget, coupled_gate
        )  # fmt: skip
        backward = direction == "reverse" or d == 1
        for n in range(N):
            if lens[n] == 0:
                continue
            h, c = initial_h[d, n], initial_c[d, n]
            for t in reversed(range(lens[n])) if backward else range(lens[n]):
                h, c = CELLS[operator](parameters, X[t, n], h, c)
                Y[t, d, n] = h
            Y_h[d, n], Y_c[d, n] = h, c
    if layout:  # Y [T, D, N, H] -> [N, T, D, H]
        Y, Y_h, Y_c = Y.transpose(2, 0, 1, 3), Y_h.swapaxes(0, 1), Y_c.swapaxes(0, 1)
    return (Y, Y_h, Y_c) if operator == "LSTM" else (Y, Y_h)


rnn = partial(run, "RNN")
gru = partial(run, "GRU")
lstm = partial(run, "LSTM")
