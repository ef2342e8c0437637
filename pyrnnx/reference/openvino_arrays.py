"""Arrays of OpenVINO's operations: batch first, summed biases of W and R, and OpenVINO's orders of gates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from . import arguments
from .activations import activations_by_place
from .arguments import Array, OracleError
from .cells import Direction, Gates, run_directions, split

ORDERS = {"RNN": "i", "GRU": "zrh", "LSTM": "fico"}  # order of the gates in W, R and B
PEEPHOLES = "fio"  # order of the gates in P


def run_operation(
    operation: str,
    states: Mapping[str, ArrayLike],
    X: ArrayLike,
    sequence_lengths: ArrayLike | None,
    W: ArrayLike,
    R: ArrayLike,
    B: ArrayLike | None,
    P: ArrayLike | None,
    activations: Sequence[str],
    activations_alpha: Sequence[float],
    activations_beta: Sequence[float],
    threshold_shift: float,
    *,
    hidden_size: int | None,
    direction: str = "forward",
    clip: float | None,
    linear_before_reset: bool = False,
    input_forget: bool = False,
    steps: bool,
) -> tuple[Any, ...]:
    """Run a sequence, or a cell: one step, whose arrays have no axes of time and directions.

    `operation` has its version, as in "LSTMSequence-1".
    """
    cell = operation.partition("Cell" if "Cell" in operation else "Sequence")[0]
    order = ORDERS[cell]
    arguments.one_of(operation, "linear_before_reset", linear_before_reset, (False, True))
    arguments.one_of(operation, "input_forget", input_forget, (False, True))
    if clip is not None and not clip >= 0:
        raise OracleError(f"{operation}: clip is {clip!r}; expected a positive number, or 0 or infinity for none")
    N, T, I, D, size = _sizes(operation, X, R)
    arguments.hidden_size(operation, hidden_size, size)
    reverse = arguments.directions(operation, str(direction).lower(), D)
    if "Sequence" in operation:
        arguments.required(operation, "sequence_lengths", sequence_lengths)
    if operation != "LSTMCell-1":
        arguments.required(operation, "B", B)
    lens = arguments.lengths(operation, "sequence_lengths", sequence_lengths, T, N)
    functions = activations_by_place(
        operation, cell, D, activations, activations_alpha, activations_beta, threshold_shift
    )
    # axes that the arrays of a cell do not have
    t, d = ((), ()) if "Cell" in operation else ((T,), (D,))
    gates, blocks = len(order) * size, (len(order) + bool(linear_before_reset)) * size
    X = arguments.floats(operation, "X", X, (N, *t, I)).reshape(N, T, I)
    W = arguments.floats(operation, "W", W, (*d, gates, I)).reshape(D, gates, I)
    R = arguments.floats(operation, "R", R, (*d, gates, size)).reshape(D, gates, size)
    B = arguments.optional_floats(operation, "B", B, (*d, blocks)).reshape(D, blocks)
    P = arguments.optional_floats(operation, "P", P, (*d, 3 * size)).reshape(D, 3 * size)
    directions = [
        Direction(
            W=split(W[k], order),
            R=split(R[k], order),
            **split_bias(B[k], order, linear_before_reset),
            functions=functions,
            clip=clip or np.inf,
            reverse=reverse[k],
            linear_before_reset=bool(linear_before_reset),
            P=split(P[k], PEEPHOLES),
            coupled_gate="i" if input_forget else "",
        )
        for k in range(D)
    ]
    initial = {
        name: arguments.floats(operation, name, state, (N, *d, size)).reshape(N, D, size).swapaxes(0, 1)
        for name, state in states.items()
    }
    Y, last, values = run_directions(cell, directions, X.swapaxes(0, 1), lens, initial, steps=steps)
    results = [state.swapaxes(0, 1).reshape(N, *d, size) for state in last.values()]
    if "Sequence" in operation:  # [T, D, N, H] -> [N, D, T, H]
        results.insert(0, Y.transpose(2, 1, 0, 3))
    return (*results, values) if steps else tuple(results)


def _sizes(operation: str, X: ArrayLike, R: ArrayLike) -> tuple[int, int, int, int, int]:
    """Return N, T, I, D and hidden_size."""
    if "Cell" in operation:
        N, I = arguments.shape_of(operation, "X", X, "batch_size, input_size")
        _, size = arguments.shape_of(operation, "R", R, "gates*hidden_size, hidden_size")
        return N, 1, I, 1, size
    N, T, I = arguments.shape_of(operation, "X", X, "batch_size, seq_length, input_size")
    D, _, size = arguments.shape_of(operation, "R", R, "num_directions, gates*hidden_size, hidden_size")
    return N, T, I, D, size


def split_bias(B: Array, order: str, linear_before_reset: bool) -> dict[str, Gates]:
    """Return the summed biases as Wb; only with linear_before_reset, the last gate h has a separate Rb."""
    Wb = split(B, order + "H") if linear_before_reset else split(B, order)  # H: Rb of h
    Rb = {gate: np.zeros_like(Wb[gate]) for gate in order}
    if linear_before_reset:
        Rb["h"] = Wb.pop("H")
    return {"Wb": Wb, "Rb": Rb}
