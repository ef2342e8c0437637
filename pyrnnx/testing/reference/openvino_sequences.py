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
    """OpenVINO RNNSequence-5 in float64: Ht = f(Xt*(Wi^T) + Ht-1*(Ri^T) + Wbi + Rbi).

    With T = seq_length, N = batch_size, I = input_size, D = num_directions. Arrays of any floating-point or integer
    dtype are widened to float64, and all results are float64.

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
        As R has it.
    direction : str
        "forward", "reverse" or "bidirectional", in any case. Reverse runs the valid steps of a row from its last to its
        first; Y stays in the order of time.
    activations : sequence of str
        One name of `ACTIVATIONS`, in any case, for both directions; none: tanh. OpenVINO itself writes the list twice
        for some bidirectional operations: so may it be here.
    activations_alpha, activations_beta : sequence of float
        The parameters of the function at the same place of `activations`. Where there is none, the default of the ONNX
        operator of that name.
    clip : float, optional
        Bounds what goes into an activation to -clip and clip. None, 0 or infinity: none.
    threshold_shift : float
        No attribute: it is added to every alpha of ThresholdedRelu, which jumps there. A result that a small shift
        changes hangs on rounding.
    steps : bool
        Whether to return every gate of every step, too.

    Returns
    -------
    Y : ndarray
        [N, D, T, hidden_size]; zero beyond a row's length.
    Ho : ndarray
        [N, D, hidden_size]: the state after a row's last valid step; zero for a row of length 0.
    values : dict of str to ndarray
        With `steps`: of each gate what goes into its activation, "i_in" (clipped), and what comes out, "i"; and the
        state "H". Always [T, D, N, hidden_size] in the order of time, and NaN where a row has no step.

    Raises
    ------
    OracleError
        A shape or value that the specification does not allow.

    Notes
    -----
    Source: the specification of RNNSequence-5. Where it is silent, this follows OpenVINO's CPU plugin with static
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
    """OpenVINO GRUSequence-5 in float64; the equations are in `cells.gru_step`.

    As `rnn_sequence`, with W [D, 3*hidden_size, I] and R [D, 3*hidden_size, hidden_size] of the gates z, r, h;
    B [D, 3*hidden_size], or with linear_before_reset [D, 4*hidden_size]: z and r summed, then Wb_h, then Rb_h;
    `activations` of two names, f of z and r and g of h, by default sigmoid, tanh; and with `steps` the gates "z", "r",
    "h", what goes into them, "z_in" and so on, and "H".

    Raises
    ------
    OracleError
        A shape or value that the specification does not allow.
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
    """OpenVINO LSTMSequence-5 in float64; the equations are in `cells.lstm_step`. It returns Y, Ho, Co.

    As `rnn_sequence`, with C and Co, the cell state, like H and Ho; W [D, 4*hidden_size, I], R [D, 4*hidden_size,
    hidden_size] and B [D, 4*hidden_size] of the gates f, i, c, o; `activations` of three names, f of f, i and o, g of c
    and h of the cell state, by default sigmoid, tanh, tanh; and with `steps` the gates "i", "o", "f", "c", what goes
    into them, "i_in" and so on, "C", which goes into h as it is, and "H".

    Raises
    ------
    OracleError
        A shape or value that the specification does not allow.
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
    """OpenVINO LSTMSequence-1 in float64: `lstm_sequence` with peepholes and input_forget.

    Parameters
    ----------
    P : array_like, optional
        [D, 3*hidden_size]: peepholes of f, i, o. Those of f and i see Ct-1, that of o sees Ct. Default: zeros.
    input_forget : bool
        i = 1 - f, where ONNX has f = 1 - i. The texts do not say which; OpenVINO's own reference and its tests do. The
        weights, bias and peephole of i are unused then, and of the values of steps, "i_in" is NaN.

    Raises
    ------
    OracleError
        A shape or value that the specification does not allow.
    """
    return run_operation(
        "LSTMSequence-1", {"H": H, "C": C}, X, sequence_lengths, W, R, B, P,
        activations, activations_alpha, activations_beta, threshold_shift,
        hidden_size=hidden_size, direction=direction, clip=clip, input_forget=input_forget, steps=steps,
    )  # fmt: skip
