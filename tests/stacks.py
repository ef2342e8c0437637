"""Random stacks, and their results by the oracle, layer by layer in float64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from layers import random_layer

from pyrnnx import CANONICAL, Convention, Direction, Layer, RecurrentOp, Stack, reference
from pyrnnx.comparison import oracle
from pyrnnx.operator.op import CELLS, CellName
from pyrnnx.testing.cases import draw
from pyrnnx.testing.numbers import Array

I = 3  # input_size of all
Description = tuple[CellName, str, int]  # cell, direction, hidden_size

STACKS: dict[str, tuple[Description, ...]] = {
    "one layer": (("GRU", "reverse", 5),),
    "two forward": (("LSTM", "forward", 5), ("LSTM", "forward", 5)),
    "bidirectional": (("LSTM", "bidirectional", 5), ("LSTM", "bidirectional", 5), ("LSTM", "bidirectional", 5)),
    "all cells": (("RNN", "bidirectional", 5), ("LSTM", "forward", 5), ("GRU", "reverse", 5)),
    "all sizes": (("LSTM", "bidirectional", 4), ("GRU", "bidirectional", 7), ("LSTM", "forward", 17)),
    "no cell state": (("GRU", "bidirectional", 5), ("RNN", "forward", 5)),
}


def random_layers(
    descriptions: Sequence[Description],
    dtype: Any = np.float32,
    *,
    convention: Convention | Sequence[Convention] = CANONICAL,
    names: bool = False,
) -> list[Layer]:
    """Layers that fit each other; LSTMs have peepholes where their convention does."""
    layers: list[Layer] = []
    input_size = I
    for k, (cell, direction, hidden_size) in enumerate(descriptions):
        own = convention if isinstance(convention, Convention) else convention[k % len(convention)]
        op = RecurrentOp(cell, hidden_size, direction=Direction(direction))
        has_peepholes = CELLS[cell].has_cell_state and bool(own.peepholes) and k == 0
        name = f"{cell.lower()}_{k}" if names else None
        layers.append(random_layer(op, input_size, dtype, convention=own, peepholes=has_peepholes, seed=k, name=name))
        input_size = op.num_directions * hidden_size
    return layers


def random_stack(name: str, dtype: Any = np.float32, *, batch_first: bool = False, **keywords: Any) -> Stack:
    return Stack(random_layers(STACKS[name], dtype, **keywords), batch_first=batch_first)


def random_inputs(stack: Stack, T: int, N: int, seed: int = 0) -> Array:
    X = draw(np.random.default_rng(seed), "X", (T, N, stack.input_size)).astype(stack.dtype)
    return np.ascontiguousarray(X.swapaxes(0, 1)) if stack.batch_first else X


def random_states(stack: Stack, N: int, seed: int = 0) -> tuple[list[Array | None], list[Array | None]]:
    """initial_h and initial_c, in their form for each layer."""
    rng = np.random.default_rng((seed, 1))
    h: list[Array | None] = []
    c: list[Array | None] = []
    for layer in stack.layers:
        shape = (layer.op.num_directions, N, layer.op.hidden_size)
        h.append(draw(rng, "initial_h", shape).astype(stack.dtype))
        c.append(draw(rng, "initial_c", shape).astype(stack.dtype) if layer.op.has_cell_state else None)
    return h, c


def joined(states: Sequence[Array | None]) -> Array:
    return np.concatenate([state for state in states if state is not None])


def apart(results: tuple[Any, ...]) -> list[Any]:
    """Y and all states that there are, one by one, of either form."""
    Y, *states = results
    return [Y, *(one for s in states for one in (s if isinstance(s, list) else [s]) if one is not None)]


def expected(
    stack: Stack, X: Array, lengths: Array | None, h: Sequence[Array | None], c: Sequence[Array | None]
) -> tuple[Array, list[Array], list[Array | None]]:
    """Y as the stack arranges it, and the last states of each layer: of the oracle, in float64."""
    Y = X.swapaxes(0, 1) if stack.batch_first else X
    last_h: list[Array] = []
    last_c: list[Array | None] = []
    for layer, one_h, one_c in zip(stack.layers, h, c, strict=True):
        arrays = {"X": Y, "sequence_lens": lengths, "initial_h": one_h, "initial_c": one_c}
        given = {name: array for name, array in arrays.items() if array is not None}
        arguments = oracle.arguments(layer, given) | {"X": Y.astype(np.float64)}
        Y_apart, Y_h, *more = reference.run(layer.op.cell, **arguments)
        T, D, N, H = Y_apart.shape
        Y = Y_apart.transpose(0, 2, 1, 3).reshape(T, N, D * H)
        last_h.append(Y_h)
        last_c.append(more[0] if more else None)
    return Y.swapaxes(0, 1) if stack.batch_first else Y, last_h, last_c
