"""Weights in PyTorch's arrangement, and the oracle's results for them, reordered by hand layer by layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pyrnnx import Stack, reference
from pyrnnx.testing.numbers import Array

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
# Blocks of PyTorch (r, z, n; i, f, g, o) in ONNX's order (z, r, h; i, o, f, c)
TO_ONNX = {"RNN": [0], "GRU": [1, 0, 2], "LSTM": [0, 3, 1, 2]}


def state_dict(
    cell: str,
    I: int,
    H: int,
    *,
    layers: int = 1,
    directions: int = 1,
    bias: bool = True,
    seed: int = 0,
    dtype: Any = float,
) -> dict[str, Array]:
    """Return a state dict of nn.RNN, GRU or LSTM."""
    rng, rows = np.random.default_rng(seed), GATES[cell] * H
    found: dict[str, Array] = {}
    for k in range(layers):
        for end in (f"_l{k}", f"_l{k}_reverse")[:directions]:
            shapes: dict[str, tuple[int, ...]]
            shapes = {"weight_ih": (rows, I if k == 0 else directions * H), "weight_hh": (rows, H)}
            shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)} if bias else {}
            found |= {kind + end: (rng.normal(size=shape) / 2).astype(dtype) for kind, shape in shapes.items()}
    return found


def onnx_weights(cell: str, state: dict[str, Array], layer: int, directions: int) -> dict[str, Array]:
    """W, R and B of one layer in ONNX's arrangement."""
    ends = (f"_l{layer}", f"_l{layer}_reverse")[:directions]

    def arranged(kind: str) -> Array:
        blocks = [np.split(state[kind + end], GATES[cell]) for end in ends]
        return np.stack([np.concatenate([one[k] for k in TO_ONNX[cell]]) for one in blocks])

    weights = {"W": arranged("weight_ih"), "R": arranged("weight_hh")}
    if "bias_ih" + ends[0] in state:
        weights["B"] = np.concatenate([arranged("bias_ih"), arranged("bias_hh")], axis=1)
    return weights


@dataclass(frozen=True)
class Case:
    """A module of PyTorch, in numbers; `options` are those of from_state_dict that its state does not tell."""

    cell: str
    layers: int
    directions: int
    state: dict[str, Array]
    options: dict[str, Any]

    @property
    def attributes(self) -> dict[str, Any]:
        """Return the attributes of ONNX's operator."""
        relu = {"activations": ["Relu"] * self.directions} if self.options.get("nonlinearity") == "relu" else {}
        return relu | ({"linear_before_reset": 1} if self.cell == "GRU" else {})

    def expected(self, X: Array, lens: Array, states: list[Array]) -> list[Array]:
        """Return the oracle's Y [T, N, D*H], Y_h and Y_c."""
        last: list[list[Array]] = [[] for _ in states]
        D = self.directions
        for k in range(self.layers):
            initial = dict(zip(("initial_h", "initial_c"), (one[k * D : (k + 1) * D] for one in states), strict=False))
            direction = "bidirectional" if D == 2 else "forward"
            arguments = {
                **onnx_weights(self.cell, self.state, k, D),
                **initial,
                "sequence_lens": lens,
                **self.attributes,
            }
            Y, *ends = reference.run(self.cell, X, direction=direction, **arguments)
            for found, one in zip(last, ends, strict=True):
                found.append(one)
            X = Y.transpose(0, 2, 1, 3).reshape(*X.shape[:2], -1)
        return [X, *(np.concatenate(one) for one in last)]


def random_case(seed: int) -> Case:
    rng = np.random.default_rng(seed)
    cell, _, nonlinearity = ("RNN", "RNN relu", "GRU", "LSTM")[seed % 4].partition(" ")
    layers, D, bias = int(rng.integers(1, 4)), int(rng.integers(1, 3)), bool(rng.integers(2))
    I, H = int(rng.integers(1, 6)), int(rng.integers(5, 10))
    state = state_dict(cell, I, H, layers=layers, directions=D, bias=bias, seed=seed)
    options: dict[str, Any] = {"batch_first": bool(rng.integers(2))}
    return Case(cell, layers, D, state, options | ({"nonlinearity": nonlinearity} if nonlinearity else {}))


def random_inputs(stack: Stack, seed: int) -> tuple[Array, Array, list[Array]]:
    """X [T, N, I], lengths, and the states of all layers."""
    rng = np.random.default_rng((seed, 1))
    T, N = 7, int(rng.integers(1, 6))
    rows, H, count = sum(stack.num_directions), stack.hidden_sizes[0], len(stack.output_names) - 1
    lens = np.append([T], rng.integers(1, T + 1, N))[:N].astype(np.int32)
    arrays = rng.normal(size=(T, N, stack.input_size)), *(rng.normal(size=(rows, N, H)) for _ in range(count))
    X, *states = (array.astype(stack.dtype) for array in arrays)
    return X, lens, states


def assert_close(found: Any, wanted: Any, atol: float) -> None:
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert np.abs(other).max() > 0.01  # and they are numbers
        np.testing.assert_allclose(one, other, rtol=0, atol=atol)
