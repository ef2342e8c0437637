"""OpenVINO's RNNCell-1, GRUCell-3, LSTMCell-4 and LSTMCell-1: one step, without axes of time and directions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from .openvino_arrays import run_operation


def rnn_cell(
    X: ArrayLike,
    H: ArrayLike,
    W: ArrayLike,
    R: ArrayLike,
    B: ArrayLike,
    *,
    hidden_size: int | None = None,
    activations: Sequence[str] = (),
    activations_alpha: Sequence[float] = (),
    activations_beta: Sequence[float] = (),
    clip: float | None = None,
    threshold_shift: float = 0.0,
    steps: bool = False,
) -> Any:
    """Run OpenVINO RNNCell-1 in float64: one step of `rnn_sequence`.

    Parameters
    ----------
    X : array_like
        [N, I], N = batch_size, I = input_size.
    H : array_like
        [N, hidden_size]: the state before the step.
    W, R, B : array_like
        [hidden_size, I], [hidden_size, hidden_size] and [hidden_size].
    hidden_size, activations, activations_alpha, activations_beta, clip, threshold_shift, steps
        See `rnn_sequence`.

    Returns
    -------
    Ho : ndarray
        [N, hidden_size]: the state after the step.
    values : dict of str to ndarray
        With `steps`, see `rnn_sequence`: [1, 1, N, hidden_size].

    Raises
    ------
    OracleError
        The specification does not allow a shape or value.

    Notes
    -----
    Source: specification of RNNCell, version 1.
    """
    results = run_operation(
        "RNNCell-1", {"H": H}, X, None, W, R, B, None,
        activations, activations_alpha, activations_beta, threshold_shift,
        hidden_size=hidden_size, clip=clip, steps=steps,
    )  # fmt: skip
    return results if steps else results[0]


def gru_cell(
    X: ArrayLike,
    H: ArrayLike,
    W: ArrayLike,
    R: ArrayLike,
    B: ArrayLike,
    *,
    hidden_size: int | None = None,
    activations: Sequence[str] = (),
    activations_alpha: Sequence[float] = (),
    activations_beta: Sequence[float] = (),
    clip: float | None = None,
    linear_before_reset: bool = False,
    threshold_shift: float = 0.0,
    steps: bool = False,
) -> Any:
    """Run OpenVINO GRUCell-3 in float64, one step of `gru_sequence`, and return Ho, with `steps` (Ho, values).

    The arguments are those of `rnn_cell`, except: W [3*hidden_size, I] and R [3*hidden_size, hidden_size] have gates
    z, r, h. B is [3*hidden_size], or with linear_before_reset [4*hidden_size]: z and r summed, then Wb_h, then Rb_h.

    Raises
    ------
    OracleError
        The specification does not allow a shape or value.
    """
    results = run_operation(
        "GRUCell-3", {"H": H}, X, None, W, R, B, None,
        activations, activations_alpha, activations_beta, threshold_shift,
        hidden_size=hidden_size, clip=clip, linear_before_reset=linear_before_reset, steps=steps,
    )  # fmt: skip
    return results if steps else results[0]


def lstm_cell(
    X: ArrayLike,
    H: ArrayLike,
    C: ArrayLike,
    W: ArrayLike,
    R: ArrayLike,
    B: ArrayLike,
    *,
    hidden_size: int | None = None,
    activations: Sequence[str] = (),
    activations_alpha: Sequence[float] = (),
    activations_beta: Sequence[float] = (),
    clip: float | None = None,
    threshold_shift: float = 0.0,
    steps: bool = False,
) -> tuple[Any, ...]:
    """Run OpenVINO LSTMCell-4 in float64, one step of `lstm_sequence`, and return Ho, Co, with `steps` also values.

    The arguments are those of `rnn_cell`, except: C and Co, the cell state, have the shape of H. W [4*hidden_size, I],
    R [4*hidden_size, hidden_size] and B [4*hidden_size] have the gates f, i, c, o.

    Raises
    ------
    OracleError
        The specification does not allow a shape or value.
    """
    return run_operation(
        "LSTMCell-4", {"H": H, "C": C}, X, None, W, R, B, None,
        activations, activations_alpha, activations_beta, threshold_shift,
        hidden_size=hidden_size, clip=clip, steps=steps,
    )  # fmt: skip


def lstm_cell_1(
    X: ArrayLike,
    H: ArrayLike,
    C: ArrayLike,
    W: ArrayLike,
    R: ArrayLike,
    B: ArrayLike | None = None,
    P: ArrayLike | None = None,
    *,
    hidden_size: int | None = None,
    activations: Sequence[str] = (),
    activations_alpha: Sequence[float] = (),
    activations_beta: Sequence[float] = (),
    clip: float | None = None,
    input_forget: bool = False,
    threshold_shift: float = 0.0,
    steps: bool = False,
) -> tuple[Any, ...]:
    """Run OpenVINO LSTMCell-1 in float64: `lstm_cell` with peepholes and input_forget, one step of `lstm_sequence_1`.

    B and P [3*hidden_size], the peepholes of f, i, o, are optional. Default: zeros. With input_forget, i = 1 - f.

    Raises
    ------
    OracleError
        The specification does not allow a shape or value.
    """
    return run_operation(
        "LSTMCell-1", {"H": H, "C": C}, X, None, W, R, B, P,
        activations, activations_alpha, activations_beta, threshold_shift,
        hidden_size=hidden_size, clip=clip, input_forget=input_forget, steps=steps,
    )  # fmt: skip
