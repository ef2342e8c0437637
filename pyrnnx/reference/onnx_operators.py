"""ONNX's RNN, GRU and LSTM: gates in the orders i; z, r, h; i, o, f, c; B is Wb, then Rb."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from . import arguments
from .activations import resolve_activations
from .arguments import REQUIRED, Array, OracleError
from .cells import Direction, run_directions, split

ORDERS = {"RNN": "i", "GRU": "zrh", "LSTM": "iofc"}  # order of the gates in W, R, Wb, Rb
PEEPHOLES = "iof"  # order of the gates in P
GATES = {operator: len(order) for operator, order in ORDERS.items()}  # number of gates

_COMMON = {
    "X": REQUIRED,
    "W": REQUIRED,
    "R": REQUIRED,
    "B": None,
    "sequence_lens": None,
    "initial_h": None,
    "activations": None,
    "activation_alpha": (),
    "activation_beta": (),
    "clip": None,
    "direction": "forward",
    "hidden_size": None,
    "layout": 0,
    "output_sequence": 0,
    "threshold_shift": 0.0,
    "steps": False,
    "step": None,
}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "RNN": _COMMON,
    "GRU": {**_COMMON, "linear_before_reset": 0},
    "LSTM": {**_COMMON, "initial_c": None, "P": None, "input_forget": 0, "coupled_gate": "f"},
}


def rnn(X: ArrayLike, W: ArrayLike, R: ArrayLike, **optional: Any) -> tuple[Any, ...]:
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
    return run("RNN", X, W, R, **optional)


def gru(X: ArrayLike, W: ArrayLike, R: ArrayLike, **optional: Any) -> tuple[Any, ...]:
    """Run ONNX GRU in float64: Ht = (1 - zt) (.) ht + zt (.) Ht-1; all equations are in `cells.gru_step`.

    The arguments and results are those of `rnn`, except: W is [D, 3*H, I], R [D, 3*H, H] with the gates z, r, h, and B
    [D, 6*H]: Wb of z, r, h, then Rb of z, r, h. `activations` are f of z and r, and g of h; four names for two
    directions. linear_before_reset is 0, or 1 (since opset 3): r scales Ht-1*(Rh^T) + Rbh instead of Ht-1. `steps`
    returns "z", "r", "h", their arguments "z_in" and so on, and "H".

    Raises
    ------
    OracleError
        The specification does not allow a shape or value.

    Notes
    -----
    Source: specification of GRU, opsets 1, 3, 7, 14 and 22. If it is silent, this follows ONNX Runtime.
    """
    return run("GRU", X, W, R, **optional)


def lstm(X: ArrayLike, W: ArrayLike, R: ArrayLike, **optional: Any) -> tuple[Any, ...]:
    """Run ONNX LSTM in float64: Ct = ft (.) Ct-1 + it (.) ct, Ht = ot (.) h(Ct); see `cells.lstm_step`.

    The arguments are those of `rnn`, except: W is [D, 4*H, I], R [D, 4*H, H] with the gates i, o, f, c, and B [D, 8*H]:
    Wb of i, o, f, c, then Rb of i, o, f, c. initial_c has the shape of initial_h. P is [D, 3*H], the peepholes of
    i, o, f: those of i and f multiply Ct-1, that of o multiplies Ct; default: zeros. `activations` are f of i, o and f,
    g of c, and h of the cell state; six names for two directions. input_forget is 0, or 1: f = 1 - i, and the weights,
    biases and peephole of f are unused. `coupled_gate`, not an attribute, is "f", or "i" for OpenVINO's input_forget,
    i = 1 - f.

    The results are those of `rnn` and, after Y_h, Y_c, the cell state. `steps` returns "i", "o", "f", "c", their
    arguments "i_in" and so on (NaN for a gate that is 1 - the other), "C", which is the argument of h, and "H".

    Raises
    ------
    OracleError
        The specification does not allow a shape or value.

    Notes
    -----
    Source: specification of LSTM, opsets 1, 7, 14 and 22. If it is silent, this follows ONNX Runtime.
    """
    return run("LSTM", X, W, R, **optional)


def run(operator: str, *arrays: Any, **optional: Any) -> tuple[Any, ...]:
    """Check arrays and attributes, split them by directions and gates, and run with layout 0."""
    a = arguments.bind(ARGUMENTS, operator, arrays, optional)
    for name in ("layout", "output_sequence", "linear_before_reset", "input_forget"):
        arguments.one_of(operator, name, getattr(a, name), (0, 1))
    arguments.one_of(operator, "coupled_gate", a.coupled_gate, ("f", "i"))
    if a.clip is not None and not a.clip > 0:
        raise OracleError(f"{operator}: clip is {a.clip!r}; expected a positive number")
    D, _, H = arguments.shape_of(operator, "R", a.R, "num_directions, gates*hidden_size, hidden_size")
    reverse = arguments.directions(operator, a.direction, D)
    arguments.hidden_size(operator, a.hidden_size, H)
    G, order = GATES[operator], ORDERS[operator]
    if a.layout:
        N, T, I = arguments.shape_of(operator, "X", a.X, "batch_size, seq_length, input_size")
    else:
        T, N, I = arguments.shape_of(operator, "X", a.X, "seq_length, batch_size, input_size")
    functions = resolve_activations(
        operator,
        D,
        names=a.activations,
        alphas=a.activation_alpha,
        betas=a.activation_beta,
        threshold_shift=a.threshold_shift,
    )

    X = arguments.floats(operator, "X", a.X, (N, T, I) if a.layout else (T, N, I))
    W = arguments.floats(operator, "W", a.W, (D, G * H, I))
    R = arguments.floats(operator, "R", a.R, (D, G * H, H))
    Wb, Rb = np.split(arguments.optional_floats(operator, "B", a.B, (D, 2 * G * H)), 2, axis=1)
    P = arguments.optional_floats(operator, "P", a.P, (D, 3 * H))
    lens = arguments.lengths(operator, "sequence_lens", a.sequence_lens, T, N)
    states = {"H": "initial_h", "C": "initial_c"} if operator == "LSTM" else {"H": "initial_h"}
    initial = {
        state: arguments.optional_floats(operator, name, getattr(a, name), (N, D, H) if a.layout else (D, N, H))
        for state, name in states.items()
    }
    directions = [
        Direction(
            W=split(W[d], order),
            R=split(R[d], order),
            Wb=split(Wb[d], order),
            Rb=split(Rb[d], order),
            functions=functions[d],
            clip=np.inf if a.clip is None else a.clip,
            reverse=reverse[d],
            linear_before_reset=bool(a.linear_before_reset),
            P=split(P[d], PEEPHOLES),
            coupled_gate=a.coupled_gate if a.input_forget else "",
        )
        for d in range(D)
    ]
    if a.layout:  # [N, T, I] -> [T, N, I] and [N, D, H] -> [D, N, H]
        X, initial = X.swapaxes(0, 1), {name: state.swapaxes(0, 1) for name, state in initial.items()}
    Y, last, values = run_directions(operator, directions, X, lens, initial, steps=a.steps, step=a.step)
    results: list[Array] = [Y, *last.values()]
    if a.layout:  # [T, D, N, H] -> [N, T, D, H] and [D, N, H] -> [N, D, H]
        results = [Y.transpose(2, 0, 1, 3), *(state.swapaxes(0, 1) for state in last.values())]
    return (*results, values) if a.steps else tuple(results)
