"""ONNX's RNN, GRU and LSTM: gates in the orders i; z, r, h; i, o, f, c; biases of W and R one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from . import arguments
from .activations import resolve_activations
from .arguments import Array, OracleError
from .cells import Direction, run_directions, split

ORDERS = {"RNN": "i", "GRU": "zrh", "LSTM": "iofc"}  # of the gates in W, R, Wb, Rb
PEEPHOLES = "iof"  # the order in P
GATES = {operator: len(order) for operator, order in ORDERS.items()}  # how many


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
) -> tuple[Any, ...]:
    """ONNX RNN in float64: Ht = f(Xt*(Wi^T) + Ht-1*(Ri^T) + Wbi + Rbi).

    With T = seq_length, N = batch_size, I = input_size, H = hidden_size, D = num_directions. Arrays of any
    floating-point or integer dtype are widened to float64, and all results are float64.

    Parameters
    ----------
    X : array_like
        [T, N, I]; with layout 1 [N, T, I].
    W : array_like
        [D, H, I].
    R : array_like
        [D, H, H]. The texts of opsets 1 to 6 write ``Ht-1*Ri`` where later ones have ``Ht-1*(Ri^T)``; it is transposed
        in every opset, as ONNX's version converter has it.
    B : array_like, optional
        [D, 2*H]: Wb, Rb. Default: zeros.
    sequence_lens : array_like of integers, optional
        [N]: the length of each row, 0 to T. Default: T.
    initial_h : array_like, optional
        [D, N, H]; with layout 1 [N, D, H]. Default: zeros.
    activations : sequence of str, optional
        Those of the forward direction, then those of the reverse one: 1 or 2 names of `ACTIVATIONS`, in any case.
    activation_alpha, activation_beta : sequence of float, optional
        Each function that takes an alpha (a beta) takes the next one; where they run out, the default of the ONNX
        operator of that name.
    clip : float, optional
        Bounds what goes into an activation to -clip and clip; positive. It does not bound C in an LSTM's h(C).
    direction : str
        "forward", "reverse" or "bidirectional". Reverse runs the valid steps of a row from its last to its first; Y
        stays in the order of time.
    hidden_size : int, optional
        As R has it.
    layout : int
        0, or 1 (from opset 14 on): the axes of X, of the initial states and of the results.
    output_sequence : int
        Below opset 7: whether Y is wanted. It is always returned.
    threshold_shift : float
        No attribute: it is added to every alpha of ThresholdedRelu, which jumps there. A result that a small shift
        changes hangs on rounding.
    steps : bool
        Whether to return every gate of every step, too.

    Returns
    -------
    Y : ndarray
        [T, D, N, H]; with layout 1 [N, T, D, H]. Zero beyond a row's length.
    Y_h : ndarray
        [D, N, H]; with layout 1 [N, D, H]: the state after a row's last valid step; zero for a row of length 0.
    values : dict of str to ndarray
        With `steps`: of each gate what goes into its activation, "i_in" (clipped), and what comes out, "i"; and the
        state "H". Always [T, D, N, H] in the order of time, and NaN where a row has no step.

    Raises
    ------
    OracleError
        A shape or value that the text does not allow.

    Notes
    -----
    Source: the text of RNN, opsets 1, 7, 14 and 22. Where it is silent, this follows ONNX Runtime.
    """
    return _run(
        "RNN", X, W, R, B, sequence_lens, {"H": initial_h},
        activations, activation_alpha, activation_beta, threshold_shift,
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
) -> tuple[Any, ...]:
    """ONNX GRU in float64: Ht = (1 - zt) (.) ht + zt (.) Ht-1; all equations are in `cells.gru_step`.

    Parameters
    ----------
    W, R : array_like
        [D, 3*H, I] and [D, 3*H, H]: the gates z, r, h.
    B : array_like, optional
        [D, 6*H]: Wb of z, r, h, then Rb of z, r, h. Default: zeros.
    activations : sequence of str, optional
        f of z and r, and g of h; for both directions four names.
    linear_before_reset : int
        0, or 1 (from opset 3 on): r scales Ht-1*(Rh^T) + Rbh instead of Ht-1.
    X, sequence_lens, initial_h, activation_alpha, activation_beta, clip, direction, hidden_size, layout, \
output_sequence, threshold_shift, steps
        As of `rnn`.

    Returns
    -------
    Y, Y_h : ndarray
        As of `rnn`.
    values : dict of str to ndarray
        With `steps`, as of `rnn`: the gates "z", "r", "h", what goes into them, "z_in" and so on, and "H".

    Raises
    ------
    OracleError
        A shape or value that the text does not allow.

    Notes
    -----
    Source: the text of GRU, opsets 1, 3, 7, 14 and 22. Where it is silent, this follows ONNX Runtime.
    """
    return _run(
        "GRU", X, W, R, B, sequence_lens, {"H": initial_h},
        activations, activation_alpha, activation_beta, threshold_shift,
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
) -> tuple[Any, ...]:
    """ONNX LSTM in float64: Ct = ft (.) Ct-1 + it (.) ct, Ht = ot (.) h(Ct); all equations are in `cells.lstm_step`.

    Parameters
    ----------
    W, R : array_like
        [D, 4*H, I] and [D, 4*H, H]: the gates i, o, f, c.
    B : array_like, optional
        [D, 8*H]: Wb of i, o, f, c, then Rb of i, o, f, c. Default: zeros.
    initial_c : array_like, optional
        As initial_h.
    P : array_like, optional
        [D, 3*H]: peepholes of i, o, f. Those of i and f see Ct-1, that of o sees Ct. Default: zeros.
    activations : sequence of str, optional
        f of i, o and f, g of c, and h of the cell state; for both directions six names.
    input_forget : int
        0, or 1: f = 1 - i. The weights, biases and peephole of f are unused then.
    coupled_gate : str
        No attribute: "f", or "i" for what OpenVINO makes of its input_forget, i = 1 - f.
    X, sequence_lens, initial_h, activation_alpha, activation_beta, clip, direction, hidden_size, layout, \
output_sequence, threshold_shift, steps
        As of `rnn`.

    Returns
    -------
    Y, Y_h : ndarray
        As of `rnn`.
    Y_c : ndarray
        As Y_h.
    values : dict of str to ndarray
        With `steps`, as of `rnn`: the gates "i", "o", "f", "c", what goes into them, "i_in" and so on (NaN for one
        that is 1 minus another), "C", which goes into h as it is, and "H".

    Raises
    ------
    OracleError
        A shape or value that the text does not allow.

    Notes
    -----
    Source: the text of LSTM, opsets 1, 7, 14 and 22. Where it is silent, this follows ONNX Runtime.
    """
    arguments.one_of("LSTM", "input_forget", input_forget, (0, 1))
    arguments.one_of("LSTM", "coupled_gate", coupled_gate, ("f", "i"))
    return _run(
        "LSTM", X, W, R, B, sequence_lens, {"H": initial_h, "C": initial_c},
        activations, activation_alpha, activation_beta, threshold_shift,
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
    """Arrays and attributes checked, split by directions and gates, run with layout 0."""
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
    Y, last, values = run_directions(operator, directions, X, lens, initial, steps=steps)
    results: list[Array] = [Y, *last.values()]
    if layout:  # [T, D, N, H] -> [N, T, D, H] and [D, N, H] -> [N, D, H]
        results = [Y.transpose(2, 0, 1, 3), *(state.swapaxes(0, 1) for state in last.values())]
    return (*results, values) if steps else tuple(results)
