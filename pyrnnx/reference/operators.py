"""The recurrent operators of ONNX and OpenVINO: how each arranges its arrays, and one function that runs any."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from . import arguments
from .activations import Activation, activations_by_place, resolve_activations
from .arguments import REQUIRED, Array, OracleError
from .cells import Direction, run_directions, split

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}  # number of gates
_FLAGS = ("layout", "output_sequence", "linear_before_reset", "input_forget")
_AXES = {
    "T": "seq_length",
    "N": "batch_size",
    "I": "input_size",
    "D": "num_directions",
    "G": "gates*hidden_size",
    "H": "hidden_size",
}


_WEIGHTS = {"W": "GI", "R": "GH", "B": "B", "P": "P"}  # axes; B and P have blocks of hidden_size


class Format(NamedTuple):
    """Arrangement of the arrays of an operator."""

    gates: dict[str, str]  # order of the gates in W, R and biases
    peepholes: str  # order of the gates in P
    lengths: str
    states: tuple[str, str]  # arguments for H and C
    X: str  # axes, by the letters of `_AXES`
    Y: str
    state: str
    weights: str  # first axis of W, R, B and P


ONNX = Format(
    gates={"RNN": "i", "GRU": "zrh", "LSTM": "iofc"},
    peepholes="iof",
    lengths="sequence_lens",
    states=("initial_h", "initial_c"),
    X="TNI",
    Y="TDNH",
    state="DNH",
    weights="D",
)
ONNX_LAYOUTS = (ONNX, ONNX._replace(X="NTI", Y="NTDH", state="NDH"))
SEQUENCE = Format(
    gates={**ONNX.gates, "LSTM": "fico"},
    peepholes="fio",
    lengths="sequence_lengths",
    states=("H", "C"),
    X="NTI",
    Y="NDTH",
    state="NDH",
    weights="D",
)
CELL = SEQUENCE._replace(X="NI", state="NH", weights="")


def _row(inputs: str, common: dict[str, Any], **own: Any) -> dict[str, Any]:
    """Return the arguments of an operator with their defaults; an input with a question mark is optional."""
    arrays = {name.rstrip("?"): None if name.endswith("?") else REQUIRED for name in inputs.split()}
    return {**arrays, **common, **own}


_ANY = {"hidden_size": None, "clip": None, "threshold_shift": 0.0, "steps": False}
_ONNX = {
    **_ANY,
    "activations": None,
    "activation_alpha": (),
    "activation_beta": (),
    "direction": "forward",
    "layout": 0,
    "output_sequence": 0,
}
_OPENVINO = {**_ANY, "activations": (), "activations_alpha": (), "activations_beta": ()}
_SEQUENCE = {**_OPENVINO, "direction": "forward"}
_INPUTS = "X W R B? sequence_lens? initial_h?"

# The arguments of each operator, with their defaults.
OPERATORS: dict[str, dict[str, Any]] = {
    "RNN": _row(_INPUTS, _ONNX),
    "GRU": _row(_INPUTS, _ONNX, linear_before_reset=0),
    "LSTM": _row(f"{_INPUTS} initial_c? P?", _ONNX, input_forget=0, coupled_gate="f"),
    "RNNSequence-5": _row("X H sequence_lengths W R B", _SEQUENCE),
    "GRUSequence-5": _row("X H sequence_lengths W R B", _SEQUENCE, linear_before_reset=False),
    "LSTMSequence-5": _row("X H C sequence_lengths W R B", _SEQUENCE),
    "LSTMSequence-1": _row("X H C sequence_lengths W R B P?", _SEQUENCE, input_forget=False),
    "RNNCell-1": _row("X H W R B", _OPENVINO),
    "GRUCell-3": _row("X H W R B", _OPENVINO, linear_before_reset=False),
    "LSTMCell-4": _row("X H C W R B", _OPENVINO),
    "LSTMCell-1": _row("X H C W R B? P?", _OPENVINO, input_forget=False),
}


def rnn(X: ArrayLike, W: ArrayLike, R: ArrayLike, **optional: Any) -> tuple[Any, ...]:
    """Run ONNX RNN in float64: Ht = f(Xt*(Wi^T) + Ht-1*(Ri^T) + Wbi + Rbi); see `run`."""
    return run("RNN", X, W, R, **optional)


def gru(X: ArrayLike, W: ArrayLike, R: ArrayLike, **optional: Any) -> tuple[Any, ...]:
    """Run ONNX GRU in float64: Ht = (1 - zt) (.) ht + zt (.) Ht-1; see `run` and `cells.gru_step`."""
    return run("GRU", X, W, R, **optional)


def lstm(X: ArrayLike, W: ArrayLike, R: ArrayLike, **optional: Any) -> tuple[Any, ...]:
    """Run ONNX LSTM in float64: Ct = ft (.) Ct-1 + it (.) ct, Ht = ot (.) h(Ct); see `run` and `cells.lstm_step`."""
    return run("LSTM", X, W, R, **optional)


def run(operator: str, *arrays: Any, **optional: Any) -> tuple[Any, ...]:
    """Run an operator of ONNX or OpenVINO in float64; the equations are in `cells`.

    T = seq_length, N = batch_size, I = input_size, H = hidden_size, D = num_directions, G = number of gates. Arrays of
    any floating-point or integer dtype are widened to float64. OpenVINO's cells are one step: their arrays have no axes
    T and D.

    Parameters
    ----------
    operator : str
        Key of `OPERATORS`: "RNN", "GRU" or "LSTM" of ONNX; "RNNSequence-5", "LSTMCell-1" and so on of OpenVINO. Each
        has a subset of the following arguments, by its own names; arrays can be passed in the operator's order.
    X : array_like
        ONNX: [T, N, I], with layout 1 [N, T, I]. OpenVINO: [N, T, I].
    W, R : array_like
        [D, G*H, I] and [D, G*H, H]. Gates in ONNX: i; z, r, h; i, o, f, c. In OpenVINO: f, i, c, o of an LSTM. Opsets 1
        to 6 specify ``Ht-1*Ri`` instead of ``Ht-1*(Ri^T)``; R is transposed in every opset, as in ONNX's version
        converter.
    B : array_like
        ONNX: [D, 2*G*H], Wb of all gates, then Rb; default: zeros. OpenVINO: [D, G*H], the sum of Wb and Rb; with
        linear_before_reset [D, 4*H]: z and r summed, then Wb_h, then Rb_h. Optional in LSTMCell-1.
    sequence_lens (OpenVINO: sequence_lengths) : array_like of integers
        [N]: the length of each row, 0 to T. Default in ONNX: T.
    initial_h, initial_c (OpenVINO: H, C) : array_like
        ONNX: [D, N, H], with layout 1 [N, D, H]; default: zeros. OpenVINO: [N, D, H].
    P : array_like, optional
        LSTM of ONNX and of version 1 of OpenVINO: [D, 3*H], the peepholes of i, o, f; in OpenVINO f, i, o. Those of i
        and f multiply Ct-1, that of o multiplies Ct. Default: zeros.
    activations : sequence of str, optional
        Names of `ACTIVATIONS` for f, g and h; case is ignored. ONNX: for each direction. OpenVINO: for both; the list
        may be repeated, as OpenVINO does for some bidirectional operations. Default: `DEFAULT_ACTIVATIONS`.
    activation_alpha, activation_beta (OpenVINO: activations_alpha, activations_beta) : sequence of float, optional
        ONNX: each function with an alpha (a beta) consumes the next value. OpenVINO: at the same indices as in
        `activations`. Default: those of the ONNX operator with the function's name.
    clip : float, optional
        Positive bound of the arguments of activations, from -clip to clip. It does not bound C in an LSTM's h(C).
        OpenVINO: 0 or infinity is no bound.
    direction : str
        "forward", "reverse" or "bidirectional"; OpenVINO ignores case. Reverse runs the valid steps of a row from its
        last to its first; Y stays in the order of time.
    hidden_size : int, optional
        hidden_size of R.
    layout : int
        ONNX: 0, or 1 (since opset 14).
    output_sequence : int
        ONNX before opset 7: whether Y is an output. Here it is always returned.
    linear_before_reset : int or bool
        GRU: whether r scales Ht-1*(Rh^T) + Rbh instead of Ht-1.
    input_forget : int or bool
        LSTM of ONNX: whether f = 1 - i; the weights, biases and peephole of f are unused. In version 1 of OpenVINO, i =
        1 - f, as in OpenVINO's own reference and tests; the specification does not say which.
    coupled_gate : str
        LSTM of ONNX, not an attribute: "f", or "i" for OpenVINO's input_forget.
    threshold_shift : float
        Offset added to every alpha of ThresholdedRelu, where the function jumps; not an attribute. If a small shift
        changes a result, the result depends on rounding.
    steps : bool
        Whether to return the values of every step.

    Returns
    -------
    Y : ndarray
        ONNX: [T, D, N, H], with layout 1 [N, T, D, H]. OpenVINO: [N, D, T, H]; not of a cell. Zero beyond a row's
        length.
    Y_h, Y_c : ndarray
        The states after a row's last valid step, with the axes of the initial ones; zero for a row of length 0. Y_c of
        an LSTM.
    values : dict of str to ndarray
        With `steps`: the values that `STEP_VALUES` names: argument "i_in" (clipped; NaN for a gate that is 1 - the
        other) and result "i" of each gate's activation, and the states. Always [T, D, N, H] in the order of time; NaN
        beyond a row's length.

    Raises
    ------
    OracleError
        The operator or an argument is unknown, or the specification does not allow a shape or value.

    Notes
    -----
    Sources: specifications of RNN, opsets 1, 7, 14 and 22, of GRU, opsets 1, 3, 7, 14 and 22, of LSTM, opsets 1, 7, 14
    and 22, and of OpenVINO's operations. If they are silent, this follows ONNX Runtime, and OpenVINO's CPU plugin with
    static shapes.
    """
    if operator not in OPERATORS:
        raise OracleError(f"operator is {operator!r}; expected {', '.join(OPERATORS)}")
    a = arguments.bind(OPERATORS, operator, arrays, optional)
    for name in _FLAGS:
        arguments.one_of(operator, name, getattr(a, name), (0, 1))
    arguments.one_of(operator, "coupled_gate", a.coupled_gate, ("f", "i"))
    is_onnx, is_cell = operator in GATES, "Cell" in operator
    form = ONNX_LAYOUTS[a.layout] if is_onnx else CELL if is_cell else SEQUENCE
    cell = operator.partition("Cell" if is_cell else "Sequence")[0]
    order = form.gates[cell]
    sizes = {"T": 1, "D": 1, **_sizes(operator, "R", a.R, f"{form.weights}GH"), **_sizes(operator, "X", a.X, form.X)}
    T, N, D, H = (sizes[axis] for axis in "TNDH")
    sizes |= {"G": len(order) * H, "P": 3 * H}
    sizes["B"] = 2 * sizes["G"] if is_onnx else (len(order) + bool(a.linear_before_reset)) * H
    arguments.hidden_size(operator, a.hidden_size, H)
    reverse = arguments.directions(operator, a.direction if is_onnx else str(a.direction).lower(), D)
    functions = _functions(operator, cell, D, is_onnx, a)

    def canonical(name: str, axes: str, to: str) -> Array:
        """Return an array, zeros for None, with other axes."""
        shape = [sizes[axis] for axis in axes]
        return _arranged(arguments.optional_floats(operator, name, getattr(a, name), shape), axes, to)

    X = canonical("X", form.X, "TNI")
    W, R, B, P = (canonical(name, form.weights + axes, "D" + axes) for name, axes in _WEIGHTS.items())
    lens = arguments.lengths(operator, form.lengths, getattr(a, form.lengths), T, N)
    states = dict(zip("HC" if cell == "LSTM" else "H", form.states, strict=False))
    initial = {state: canonical(name, form.state, "DNH") for state, name in states.items()}
    biases = [_biases(B[d], order, is_onnx, a.linear_before_reset) for d in range(D)]
    directions = [
        Direction(
            W=split(W[d], order),
            R=split(R[d], order),
            Wb=biases[d][0],
            Rb=biases[d][1],
            functions=functions[d],
            clip=_clip(operator, is_onnx, a.clip),
            reverse=reverse[d],
            linear_before_reset=bool(a.linear_before_reset),
            P=split(P[d], form.peepholes),
            coupled_gate="" if not a.input_forget else a.coupled_gate if is_onnx else "i",
        )
        for d in range(D)
    ]
    Y, last, values = run_directions(cell, directions, X, lens, initial, steps=a.steps)
    results = [] if is_cell else [_arranged(Y, "TDNH", form.Y)]
    results += [_arranged(state, "DNH", form.state) for state in last.values()]
    return (*results, values) if a.steps else tuple(results)


def _sizes(operator: str, name: str, value: ArrayLike, axes: str) -> dict[str, int]:
    shape = np.shape(value)
    if len(shape) != len(axes):
        raise OracleError(f"{operator}: {name} has shape {shape}; expected [{', '.join(_AXES[axis] for axis in axes)}]")
    return dict(zip(axes, shape, strict=True))


def _arranged(array: Array, axes: str, to: str) -> Array:
    """Return a view with the axes `to`: a missing one gets length 1, and one that is not in `to` has length 1."""
    for axis in to:
        if axis not in axes:
            array, axes = array[np.newaxis], axis + axes
    superfluous = "".join(axis for axis in axes if axis not in to)
    view: Array = array.transpose([axes.index(axis) for axis in superfluous + to])[(0,) * len(superfluous)]
    return view


def _functions(operator: str, cell: str, D: int, is_onnx: bool, a: Any) -> Sequence[list[Activation]]:
    if is_onnx:
        names, alphas, betas = a.activations, a.activation_alpha, a.activation_beta
        return resolve_activations(
            operator, D, names=names, alphas=alphas, betas=betas, threshold_shift=a.threshold_shift
        )
    names, alphas, betas = a.activations, a.activations_alpha, a.activations_beta
    return [activations_by_place(operator, cell, D, names, alphas, betas, a.threshold_shift)] * D


def _clip(operator: str, is_onnx: bool, clip: float | None) -> float:
    if clip is not None and not (clip > 0 if is_onnx else clip >= 0):
        or_none = "" if is_onnx else ", or 0 or infinity for none"
        raise OracleError(f"{operator}: clip is {clip!r}; expected a positive number{or_none}")
    return clip or np.inf


def _biases(
    B: Array, order: str, is_onnx: bool, linear_before_reset: bool
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return Wb and Rb. A sum counts as Wb; only with linear_before_reset, it has a separate Rb of gate h."""
    if is_onnx:
        Wb, Rb = np.split(B, 2)
        return split(Wb, order), split(Rb, order)
    blocks = split(B, order + "H") if linear_before_reset else split(B, order)  # H: Rb of h
    zero = np.zeros_like(blocks[order[0]])
    return blocks, {gate: blocks["H"] if gate == "h" and linear_before_reset else zero for gate in order}
