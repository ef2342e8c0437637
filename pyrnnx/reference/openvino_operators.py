"""OpenVINO's sequences and cells: batch first, summed biases of W and R, and OpenVINO's orders of gates."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import arguments
from .activations import activations_by_place
from .arguments import REQUIRED, Array, OracleError
from .cells import Direction, Gates, run_directions, split

ORDERS = {"RNN": "i", "GRU": "zrh", "LSTM": "fico"}  # order of the gates in W, R and B
PEEPHOLES = "fio"  # order of the gates in P

_COMMON = {
    "hidden_size": None,
    "activations": (),
    "activations_alpha": (),
    "activations_beta": (),
    "clip": None,
    "threshold_shift": 0.0,
    "steps": False,
}


def _row(inputs: str, **own: Any) -> dict[str, Any]:
    """Return the arguments of an operation with their defaults; an input with a question mark is optional."""
    arrays = {name.rstrip("?"): None if name.endswith("?") else REQUIRED for name in inputs.split()}
    return {**arrays, **_COMMON, **own}


ARGUMENTS: dict[str, dict[str, Any]] = {
    "RNNSequence-5": _row("X H sequence_lengths W R B", direction="forward"),
    "GRUSequence-5": _row("X H sequence_lengths W R B", direction="forward", linear_before_reset=False),
    "LSTMSequence-5": _row("X H C sequence_lengths W R B", direction="forward"),
    "LSTMSequence-1": _row("X H C sequence_lengths W R B P?", direction="forward", input_forget=False),
    "RNNCell-1": _row("X H W R B"),
    "GRUCell-3": _row("X H W R B", linear_before_reset=False),
    "LSTMCell-4": _row("X H C W R B"),
    "LSTMCell-1": _row("X H C W R B? P?", input_forget=False),
}


def run(operation: str, *arrays: Any, **attributes: Any) -> tuple[Any, ...]:
    """Run a sequence or a cell of OpenVINO in float64; the equations are in `cells`.

    T = seq_length, N = batch_size, I = input_size, D = num_directions, G = number of gates. Arrays of any
    floating-point or integer dtype are widened to float64. A cell is one step: its arrays have no axes T and D.

    Parameters
    ----------
    operation : str
        Key of `ARGUMENTS`, with the version: "LSTMSequence-1".
    X : array_like
        [N, T, I].
    H, C : array_like
        [N, D, hidden_size]: the initial state, and the cell state of an LSTM.
    sequence_lengths : array_like of integers
        [N]: the length of each row, 0 to T; not of a cell.
    W, R : array_like
        [D, G*hidden_size, I] and [D, G*hidden_size, hidden_size] with the gates in the order of `ORDERS`.
    B : array_like
        [D, G*hidden_size]: the sum of the biases of W and R. With linear_before_reset [D, 4*hidden_size]: z and r
        summed, then Wb_h, then Rb_h. Optional in LSTMCell-1; default: zeros.
    P : array_like, optional
        [D, 3*hidden_size]: the peepholes of an LSTM of version 1, in the order of `PEEPHOLES`. Those of f and i
        multiply Ct-1, that of o multiplies Ct. Default: zeros.
    hidden_size : int, optional
        hidden_size of R.
    direction : str
        "forward", "reverse" or "bidirectional"; case is ignored. Reverse runs the valid steps of a row from last to
        first; Y stays in the order of time.
    activations : sequence of str
        Names of `ACTIVATIONS` for f, g and h of both directions; case is ignored. The list may be repeated, as OpenVINO
        does for some bidirectional operations. Default: `DEFAULT_ACTIVATIONS`.
    activations_alpha, activations_beta : sequence of float
        Parameters of the functions, at the same indices as in `activations`. Default: those of the ONNX operator with
        the function's name.
    clip : float, optional
        Bound of the arguments of activations, from -clip to clip. None, 0 or infinity: no bound.
    linear_before_reset : bool
        Whether r scales Ht-1*(Rh^T) + Rbh instead of Ht-1; of a GRU.
    input_forget : bool
        Whether i = 1 - f (ONNX: f = 1 - i), as in OpenVINO's own reference and tests; the specification does not say
        which. The weights, bias and peephole of i are unused, and "i_in" of `steps` is NaN. Of an LSTM of version 1.
    threshold_shift : float
        Offset added to every alpha of ThresholdedRelu; not an attribute. See `onnx_operators.rnn`.
    steps : bool
        Whether to return the values of every step.

    Returns
    -------
    Y : ndarray
        [N, D, T, hidden_size]; zero beyond a row's length. Not of a cell.
    Ho, Co : ndarray
        [N, D, hidden_size]: the states after a row's last valid step; zero for a row of length 0. Co of an LSTM.
    values : dict of str to ndarray
        With `steps`: the values that `STEP_VALUES` names, [T, D, N, hidden_size] in the order of time; NaN beyond a
        row's length.

    Raises
    ------
    OracleError
        The specification does not allow a shape or value.

    Notes
    -----
    Sources: specifications of these operations. If they are silent, this follows OpenVINO's CPU plugin with static
    shapes.
    """
    a = arguments.bind(ARGUMENTS, operation, arrays, attributes)
    is_cell = "Cell" in operation
    cell = operation.partition("Cell" if is_cell else "Sequence")[0]
    order = ORDERS[cell]
    arguments.one_of(operation, "linear_before_reset", a.linear_before_reset, (False, True))
    arguments.one_of(operation, "input_forget", a.input_forget, (False, True))
    if a.clip is not None and not a.clip >= 0:
        raise OracleError(f"{operation}: clip is {a.clip!r}; expected a positive number, or 0 or infinity for none")
    if is_cell:
        T, D = 1, 1
        N, I = arguments.shape_of(operation, "X", a.X, "batch_size, input_size")
        _, size = arguments.shape_of(operation, "R", a.R, "gates*hidden_size, hidden_size")
    else:
        N, T, I = arguments.shape_of(operation, "X", a.X, "batch_size, seq_length, input_size")
        D, _, size = arguments.shape_of(operation, "R", a.R, "num_directions, gates*hidden_size, hidden_size")
    arguments.hidden_size(operation, a.hidden_size, size)
    reverse = arguments.directions(operation, str(a.direction).lower(), D)
    lens = arguments.lengths(operation, "sequence_lengths", a.sequence_lengths, T, N)
    functions = activations_by_place(
        operation, cell, D, a.activations, a.activations_alpha, a.activations_beta, a.threshold_shift
    )

    t, d = ((), ()) if is_cell else ((T,), (D,))  # axes that the arrays of a cell do not have
    gates, blocks = len(order) * size, (len(order) + bool(a.linear_before_reset)) * size
    X = arguments.floats(operation, "X", a.X, (N, *t, I)).reshape(N, T, I)
    W = arguments.floats(operation, "W", a.W, (*d, gates, I)).reshape(D, gates, I)
    R = arguments.floats(operation, "R", a.R, (*d, gates, size)).reshape(D, gates, size)
    B = arguments.optional_floats(operation, "B", a.B, (*d, blocks)).reshape(D, blocks)
    P = arguments.optional_floats(operation, "P", a.P, (*d, 3 * size)).reshape(D, 3 * size)
    directions = [
        Direction(
            W=split(W[k], order),
            R=split(R[k], order),
            **split_bias(B[k], order, a.linear_before_reset),
            functions=functions,
            clip=a.clip or np.inf,
            reverse=reverse[k],
            linear_before_reset=bool(a.linear_before_reset),
            P=split(P[k], PEEPHOLES),
            coupled_gate="i" if a.input_forget else "",
        )
        for k in range(D)
    ]
    initial = {
        name: arguments.floats(operation, name, getattr(a, name), (N, *d, size)).reshape(N, D, size).swapaxes(0, 1)
        for name in ("HC" if cell == "LSTM" else "H")
    }
    Y, last, values = run_directions(cell, directions, X.swapaxes(0, 1), lens, initial, steps=a.steps)
    results = [state.swapaxes(0, 1).reshape(N, *d, size) for state in last.values()]
    if not is_cell:  # [T, D, N, H] -> [N, D, T, H]
        results.insert(0, Y.transpose(2, 1, 0, 3))
    return (*results, values) if a.steps else tuple(results)


def split_bias(B: Array, order: str, linear_before_reset: bool) -> dict[str, Gates]:
    """Return the summed biases as Wb; only with linear_before_reset, the last gate h has a separate Rb."""
    Wb = split(B, order + "H") if linear_before_reset else split(B, order)  # H: Rb of h
    Rb = {gate: np.zeros_like(Wb[gate]) for gate in order}
    if linear_before_reset:
        Rb["h"] = Wb.pop("H")
    return {"Wb": Wb, "Rb": Rb}
