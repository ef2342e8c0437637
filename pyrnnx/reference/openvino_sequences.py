"""OpenVINO's RNNSequence-5, GRUSequence-5, LSTMSequence-5 and LSTMSequence-1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from .openvino_arrays import run_operation


def rnn_sequence(
    X: ArrayLike,
    H: ArrayLike,
    sequence_lengths: ArrayLike,
    W: ArrayLike,
    R: ArrayLike,
    B: ArrayLike,
    *,
    hidden_size: int | None = None,
    direction: str = "forward",
    activations: Sequence[str] = (),
    activations_alpha: Sequence[float] = (),
    activations_beta: Sequence[float] = (),
    clip: float | None = None,
    threshold_shift: float = 0.0,
    steps: bool = False,
) -> tuple[Any, ...]:
    """Run OpenVINO RNNSequence-5 in float64: Ht = f(Xt*(Wi^T) + Ht-1*(Ri^T) + Wbi + Rbi).

    T = seq_length, N = batch_size, I = input_size, D = num_directions. Arrays of any floating-point or integer dtype
    are widened to float64. All results are float64.

    Parameters
    ----------
    X : array_like
        [N, T, I].
    H : array_like
        [N, D, hidden_size]: the initial state.
    sequence_lengths : array_like of integers
        [N]: the length of each row, 0 to T.
    W : array_like
        [D, hidden_size, I].
    R : array_like
        [D, hidden_size, hidden_size].
    B : array_like
        [D, hidden_size]: the sum of the biases of W and R.
    hidden_size : int, optional
        hidden_size of R.
    direction : str
        "forward", "reverse" or "bidirectional"; case is ignored. Reverse runs the valid steps of a row from last to
        first; Y stays in the order of time.
    activations : sequence of str
        One name of `ACTIVATIONS` for both directions; case is ignored. Default: tanh. The list may repeat it, as
        OpenVINO does for some bidirectional operations.
    activations_alpha, activations_beta : sequence of float
        Parameters of the functions, at the same indices as in `activations`. Default: those of the ONNX operator with
        the function's name.
    clip : float, optional
        Bound of the arguments of activations, from -clip to clip. None, 0 or infinity: no bound.
    threshold_shift : float
        Offset added to every alpha of ThresholdedRelu, where the function jumps; not an attribute. If a small shift
        changes a result, the result depends on rounding.
    steps : bool
        Whether to return the values of every step.

    Returns
    -------
    Y : ndarray
        [N, D, T, hidden_size]; zero beyond a row's length.
    Ho : ndarray
        [N, D, hidden_size]: the state after a row's last valid step; zero for a row of length 0.
    values : dict of str to ndarray
        With `steps`: argument "i_in" (clipped) and result "i" of each gate's activation, and the state "H". Always
        [T, D, N, hidden_size] in the order of time; NaN beyond a row's length.

    Raises
    ------
    OracleError
        The specification does not allow a shape or value.

    Notes
    -----
    Source: specification of RNNSequence-5. If it is silent, this follows OpenVINO's CPU plugin with static
    shapes.
    """
    return run_operation(
        "RNNSequence-5", {"H": H}, X, sequence_lengths, W, R, B, None,
        activations, activations_alpha, activations_beta, threshold_shift,
        hidden_size=hidden_size, direction=direction, clip=clip, steps=steps,
    )  # fmt: skip


def gru_sequence(
    X: ArrayLike,
    H: ArrayLike,
    sequence_lengths: ArrayLike,
    W: ArrayLike,
    R: ArrayLike,
    B: ArrayLike,
    *,
    hidden_size: int | None = None,
    direction: str = "forward",
    activations: Sequence[str] = (),
    activations_alpha: Sequence[float] = (),
    activations_beta: Sequence[float] = (),
    clip: float | None = None,
    linear_before_reset: bool = False,
    threshold_shift: float = 0.0,
    steps: bool = False,
) -> tuple[Any, ...]:
    """Run OpenVINO GRUSequence-5 in float64; the equations are in `cells.gru_step`.

    The arguments are those of `rnn_sequence`, except: W [D, 3*hidden_size, I] and R [D, 3*hidden_size, hidden_size]
    have the gates z, r, h. B is [D, 3*hidden_size], or with linear_before_reset [D, 4*hidden_size]: z and r summed,
    then Wb_h, then Rb_h. `activations` are f of z and r, and g of h (default: sigmoid, tanh). `steps` returns "z", "r",
    "h", their arguments "z_in" and so on, and "H".

    Raises
    ------
    OracleError
        The specification does not allow a shape or value.
    """
    return run_operation(
        "GRUSequence-5", {"H": H}, X, sequence_lengths, W, R, B, None,
        activations, activations_alpha, activations_beta, threshold_shift,
        hidden_size=hidden_size, direction=direction, clip=clip, linear_before_reset=linear_before_reset, steps=steps,
    )  # fmt: skip


def lstm_sequence(
    X: ArrayLike,
    H: ArrayLike,
    C: ArrayLike,
    sequence_lengths: ArrayLike,
    W: ArrayLike,
    R: ArrayLike,
    B: ArrayLike,
    *,
    hidden_size: int | None = None,
    direction: str = "forward",
    activations: Sequence[str] = (),
    activations_alpha: Sequence[float] = (),
    activations_beta: Sequence[float] = (),
    clip: float | None = None,
    threshold_shift: float = 0.0,
    steps: bool = False,
) -> tuple[Any, ...]:
    """Run OpenVINO LSTMSequence-5 in float64 (equations: `cells.lstm_step`), and return Y, Ho, Co.

    The arguments are those of `rnn_sequence`, except: C and Co, the cell state, have the shape of H. W [D,
    4*hidden_size, I], R [D, 4*hidden_size, hidden_size] and B [D, 4*hidden_size] have the gates f, i, c, o.
    `activations` are f of f, i and o, g of c, and h of the cell state (default: sigmoid, tanh, tanh). `steps` returns
    "i", "o", "f", "c", their arguments "i_in" and so on, "C", which is the argument of h, and "H".

    Raises
    ------
    OracleError
        The specification does not allow a shape or value.
    """
    return run_operation(
        "LSTMSequence-5", {"H": H, "C": C}, X, sequence_lengths, W, R, B, None,
        activations, activations_alpha, activations_beta, threshold_shift,
        hidden_size=hidden_size, direction=direction, clip=clip, steps=steps,
    )  # fmt: skip


def lstm_sequence_1(
    X: ArrayLike,
    H: ArrayLike,
    C: ArrayLike,
    sequence_lengths: ArrayLike,
    W: ArrayLike,
    R: ArrayLike,
    B: ArrayLike,
    P: ArrayLike | None = None,
    *,
    hidden_size: int | None = None,
    direction: str = "forward",
    activations: Sequence[str] = (),
    activations_alpha: Sequence[float] = (),
    activations_beta: Sequence[float] = (),
    clip: float | None = None,
    input_forget: bool = False,
    threshold_shift: float = 0.0,
    steps: bool = False,
) -> tuple[Any, ...]:
    """Run OpenVINO LSTMSequence-1 in float64: `lstm_sequence` with peepholes and input_forget.

    Parameters
    ----------
    P : array_like, optional
        [D, 3*hidden_size]: peepholes of f, i, o. Those of f and i multiply Ct-1, that of o multiplies Ct.
        Default: zeros.
    input_forget : bool
        Whether i = 1 - f (ONNX: f = 1 - i), as in OpenVINO's own reference and tests; the specification does not say
        which. The weights, bias and peephole of i are unused, and "i_in" of `steps` is NaN.

    Raises
    ------
    OracleError
        The specification does not allow a shape or value.
    """
    return run_operation(
        "LSTMSequence-1", {"H": H, "C": C}, X, sequence_lengths, W, R, B, P,
        activations, activations_alpha, activations_beta, threshold_shift,
        hidden_size=hidden_size, direction=direction, clip=clip, input_forget=input_forget, steps=steps,
    )  # fmt: skip
