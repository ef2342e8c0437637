"""ONNX's RNN, GRU and LSTM: gates in the orders i; z, r, h; i, o, f, c; B is Wb, then Rb."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from . import arguments
from .activations import resolve_activations
from .arguments import Array, OracleError
from .cells import Direction, Step, run_directions, split

ORDERS = {"RNN": "i", "GRU": "zrh", "LSTM": "iofc"}  # order of the gates in W, R, Wb, Rb
PEEPHOLES = "iof"  # order of the gates in P
GATES = {operator: len(order) for operator, order in ORDERS.items()}  # number of gates


def rnn(
    X: ArrayLike,
    W: ArrayLike,
    R: ArrayLike,
    *,
    B: ArrayLike | None = None,
    sequence_lens: ArrayLike | None = None,
    initial_h: ArrayLike | None = None,
    activations: Sequence[str] | None = None,
    activation_alpha: Sequence[float] | None = (),
    activation_beta: Sequence[float] | None = (),
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
    output_sequence: int = 0,
    threshold_shift: float = 0.0,
    steps: bool = False,
    step: Step | None = None,
) -> tuple[Any, ...]:
    """Run ONNX RNN in float64: Ht = f(Xt*(Wi^T) + Ht-1*(Ri^T) + Wbi + Rbi).

    T = seq_length, N = batch_size, I = input_size, H = hidden_size, D = num_directions. Arrays of any floating-point or
    integer dtype are widened to float64. All results are float64.

    Parameters
    ----------
    X : array_like
        [T, N, I]; with layout 1 [N, T, I].
    W : array_like
        [D, H, I].
    R : array_like
        [D, H, H]. Opsets 1 to 6 specify ``Ht-1*Ri`` instead of ``Ht-1*(Ri^T)``; R is transposed in every opset, as in
        ONNX's version converter.
    B : array_like, optional
        [D, 2*H]: Wb, Rb. Default: zeros.
    sequence_lens : array_like of integers, optional
        [N]: the length of each row, 0 to T. Default: T.
    initial_h : array_like, optional
        [D, N, H]; with layout 1 [N, D, H]. Default: zeros.
    activations : sequence of str, optional
        Forward, then reverse: 1 or 2 names of `ACTIVATIONS`; case is ignored.
    activation_alpha, activation_beta : sequence of float, optional
        Each function with an alpha (a beta) consumes the next value. Default: those of the ONNX operator with the
        function's name.
    clip : float, optional
        Positive bound of the arguments of activations, from -clip to clip. It does not bound C in an LSTM's h(C).
    direction : str
        "forward", "reverse" or "bidirectional". Reverse runs the valid steps of a row from its last to its first; Y
        stays in the order of time.
    hidden_size : int, optional
        hidden_size of R.
    layout : int
        0, or 1 (since opset 14): order of the axes of X, the initial states and the results.
    output_sequence : int
        Before opset 7: whether Y is an output. Here it is always returned.
    threshold_shift : float
        Offset added to every alpha of ThresholdedRelu, where the function jumps; not an attribute. If a small shift
        changes a result, the result depends on rounding.
    steps : bool
        Whether to return the values of every step.
    step : callable, optional
        Other equations of a step, called as those in `cells.STEPS`; not an attribute. It shows what a mistake in them
        would compute.

    Returns
    -------
    Y : ndarray
        [T, D, N, H]; with layout 1 [N, T, D, H]. Zero beyond a row's length.
    Y_h : ndarray
        [D, N, H]; with layout 1 [N, D, H]: the state after a row's last valid step; zero for a row of length 0.
    values : dict of str to ndarray
        With `steps`: argument "i_in" (clipped) and result "i" of each gate's activation, and the state "H". Always
        [T, D, N, H] in the order of time; NaN beyond a row's length.

    Raises
    ------
    OracleError
        The specification does not allow a shape or value.

    Notes
    -----
    Source: specification of RNN, opsets 1, 7, 14 and 22. If it is silent, this follows ONNX Runtime.
    """
    return _run(
        "RNN", X, W, R, B, sequence_lens, {"H": initial_h},
        activations, activation_alpha, activation_beta, threshold_shift, step,
        clip=clip, direction=direction, hidden_size=hidden_size, layout=layout, output_sequence=output_sequence,
        steps=steps,
    )  # fmt: skip


def gru(
    X: ArrayLike,
    W: ArrayLike,
    R: ArrayLike,
    *,
    B: ArrayLike | None = None,
    sequence_lens: ArrayLike | None = None,
    initial_h: ArrayLike | None = None,
    activations: Sequence[str] | None = None,
    activation_alpha: Sequence[float] | None = (),
    activation_beta: Sequence[float] | None = (),
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
    linear_before_reset: int = 0,
    output_sequence: int = 0,
    threshold_shift: float = 0.0,
    steps: bool = False,
    step: Step | None = None,
) -> tuple[Any, ...]:
    """Run ONNX GRU in float64: Ht = (1 - zt) (.) ht + zt (.) Ht-1; all equations are in `cells.gru_step`.

    Parameters
    ----------
    W, R : array_like
        [D, 3*H, I] and [D, 3*H, H], gates z, r, h.
    B : array_like, optional
        [D, 6*H]: Wb of z, r, h, then Rb of z, r, h. Default: zeros.
    activations : sequence of str, optional
        f of z and r, and g of h; four names for two directions.
    linear_before_reset : int
        0, or 1 (since opset 3): r scales Ht-1*(Rh^T) + Rbh instead of Ht-1.
    X, sequence_lens, initial_h, activation_alpha, activation_beta, clip, direction, hidden_size, layout, \
output_sequence, threshold_shift, steps, step
        See `rnn`.

    Returns
    -------
    Y, Y_h : ndarray
        See `rnn`.
    values : dict of str to ndarray
        With `steps`, see `rnn`: "z", "r", "h", their arguments "z_in" and so on, and "H".

    Raises
    ------
    OracleError
        The specification does not allow a shape or value.

    Notes
    -----
    Source: specification of GRU, opsets 1, 3, 7, 14 and 22. If it is silent, this follows ONNX Runtime.
    """
    return _run(
        "GRU", X, W, R, B, sequence_lens, {"H": initial_h},
        activations, activation_alpha, activation_beta, threshold_shift, step,
        clip=clip, direction=direction, hidden_size=hidden_size, layout=layout, output_sequence=output_sequence,
        linear_before_reset=linear_before_reset, steps=steps,
    )  # fmt: skip


def lstm(
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
    activation_alpha: Sequence[float] | None = (),
    activation_beta: Sequence[float] | None = (),
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    input_forget: int = 0,
    layout: int = 0,
    output_sequence: int = 0,
    coupled_gate: str = "f",
    threshold_shift: float = 0.0,
    steps: bool = False,
    step: Step | None = None,
) -> tuple[Any, ...]:
    """Run ONNX LSTM in float64: Ct = ft (.) Ct-1 + it (.) ct, Ht = ot (.) h(Ct); see `cells.lstm_step`.

    Parameters
    ----------
    W, R : array_like
        [D, 4*H, I] and [D, 4*H, H], gates i, o, f, c.
    B : array_like, optional
        [D, 8*H]: Wb of i, o, f, c, then Rb of i, o, f, c. Default: zeros.
    initial_c : array_like, optional
        Same shape as initial_h.
    P : array_like, optional
        [D, 3*H]: peepholes of i, o, f. Those of i and f multiply Ct-1, that of o multiplies Ct. Default: zeros.
    activations : sequence of str, optional
        f of i, o and f, g of c, and h of the cell state; six names for two directions.
    input_forget : int
        0, or 1: f = 1 - i, and the weights, biases and peephole of f are unused.
    coupled_gate : str
        "f", or "i" for OpenVINO's input_forget, i = 1 - f; not an attribute.
    X, sequence_lens, initial_h, activation_alpha, activation_beta, clip, direction, hidden_size, layout, \
output_sequence, threshold_shift, steps, step
        See `rnn`.

    Returns
    -------
    Y, Y_h : ndarray
        See `rnn`.
    Y_c : ndarray
        Cell state, same shape as Y_h.
    values : dict of str to ndarray
        With `steps`, see `rnn`: "i", "o", "f", "c", their arguments "i_in" and so on (NaN for a gate that is 1 - the
        other), "C", which is the argument of h, and "H".

    Raises
    ------
    OracleError
        The specification does not allow a shape or value.

    Notes
    -----
    Source: specification of LSTM, opsets 1, 7, 14 and 22. If it is silent, this follows ONNX Runtime.
    """
    arguments.one_of("LSTM", "input_forget", input_forget, (0, 1))
    arguments.one_of("LSTM", "coupled_gate", coupled_gate, ("f", "i"))
    return _run(
        "LSTM", X, W, R, B, sequence_lens, {"H": initial_h, "C": initial_c},
        activations, activation_alpha, activation_beta, threshold_shift, step,
        clip=clip, direction=direction, hidden_size=hidden_size, layout=layout, output_sequence=output_sequence,
        P=P, coupled_gate=coupled_gate if input_forget else "", steps=steps,
    )  # fmt: skip


def _run(
    operator: str,
    X: ArrayLike,
    W: ArrayLike,
    R: ArrayLike,
    B: ArrayLike | None,
    sequence_lens: ArrayLike | None,
    states: Mapping[str, ArrayLike | None],
    activations: Sequence[str] | None,
    activation_alpha: Sequence[float] | None,
    activation_beta: Sequence[float] | None,
    threshold_shift: float,
    step: Step | None,
    *,
    clip: float | None,
    direction: str,
    hidden_size: int | None,
    layout: int,
    output_sequence: int,
    linear_before_reset: int = 0,
    P: ArrayLike | None = None,
    coupled_gate: str = "",
    steps: bool,
) -> tuple[Any, ...]:
    """Check arrays and attributes, split them by directions and gates, and run with layout 0."""
    arguments.one_of(operator, "layout", layout, (0, 1))
    arguments.one_of(operator, "output_sequence", output_sequence, (0, 1))
    arguments.one_of(operator, "linear_before_reset", linear_before_reset, (0, 1))
    if clip is not None and not clip > 0:
        raise OracleError(f"{operator}: clip is {clip!r}; expected a positive number")
    D, _, H = arguments.shape_of(operator, "R", R, "num_directions, gates*hidden_size, hidden_size")
    reverse = arguments.directions(operator, direction, D)
    arguments.hidden_size(operator, hidden_size, H)
    G = GATES[operator]
    if layout:
        N, T, I = arguments.shape_of(operator, "X", X, "batch_size, seq_length, input_size")
    else:
        T, N, I = arguments.shape_of(operator, "X", X, "seq_length, batch_size, input_size")

    X = arguments.floats(operator, "X", X, (N, T, I) if layout else (T, N, I))
    W = arguments.floats(operator, "W", W, (D, G * H, I))
    R = arguments.floats(operator, "R", R, (D, G * H, H))
    Wb, Rb = np.split(arguments.optional_floats(operator, "B", B, (D, 2 * G * H)), 2, axis=1)
    P = arguments.optional_floats(operator, "P", P, (D, 3 * H))
    lens = arguments.lengths(operator, "sequence_lens", sequence_lens, T, N)
    initial = {
        name: arguments.optional_floats(operator, f"initial_{name.lower()}", state, (N, D, H) if layout else (D, N, H))
        for name, state in states.items()
    }
    functions = resolve_activations(
        operator, D, names=activations, alphas=activation_alpha, betas=activation_beta, threshold_shift=threshold_shift
    )
    order = ORDERS[operator]
    directions = [
        Direction(
            W=split(W[d], order),
            R=split(R[d], order),
            Wb=split(Wb[d], order),
            Rb=split(Rb[d], order),
            functions=functions[d],
            clip=np.inf if clip is None else clip,
            reverse=reverse[d],
            linear_before_reset=bool(linear_before_reset),
            P=split(P[d], PEEPHOLES),
            coupled_gate=coupled_gate,
        )
        for d in range(D)
    ]
    if layout:  # [N, T, I] -> [T, N, I] and [N, D, H] -> [D, N, H]
        X, initial = X.swapaxes(0, 1), {name: state.swapaxes(0, 1) for name, state in initial.items()}
    Y, last, values = run_directions(operator, directions, X, lens, initial, steps=steps, step=step)
    results: list[Array] = [Y, *last.values()]
    if layout:  # [T, D, N, H] -> [N, T, D, H] and [D, N, H] -> [N, D, H]
        results = [Y.transpose(2, 0, 1, 3), *(state.swapaxes(0, 1) for state in last.values())]
    return (*results, values) if steps else tuple(results)
