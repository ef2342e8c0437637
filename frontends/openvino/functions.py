"""Recurrent operations as functions, with inputs in port order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyrnnx._internal import scalars
from pyrnnx._internal.dtypes import AnyArray
from pyrnnx._internal.signatures import known_arguments
from pyrnnx.errors import UnsupportedError
from pyrnnx.operator import check

from .attributes import build_op
from .layers import BoundLayer
from .schemas import WEIGHTS, find_operation

LATEST = 16  # default opset of the functions


@known_arguments("RNNSequence")
def rnn_sequence(
    X: Any,
    H: Any,
    sequence_lengths: Any,
    W: Any,
    R: Any,
    B: Any,
    *,
    hidden_size: int | None = None,
    direction: str = "forward",
    activations: Sequence[str] = ("tanh",),
    activations_alpha: Sequence[float] = (),
    activations_beta: Sequence[float] = (),
    clip: float | None = None,
) -> tuple[AnyArray, AnyArray]:
    """Run OpenVINO RNNSequence-5: Ht = f(Xt*W^T + Ht-1*R^T + B).

    Every call prepares the weights; `BoundLayer` prepares them once for many calls.

    Parameters
    ----------
    X : array_like
        [batch_size, seq_length, input_size]; float32, float64, float16 or bfloat16.
    H : array_like
        Initial state [batch_size, num_directions, hidden_size]. H, W, R and B have the dtype of X.
    sequence_lengths : array_like of any integer type
        [batch_size]: length of each row, 0 to seq_length.
    W : array_like
        [num_directions, hidden_size, input_size].
    R : array_like
        [num_directions, hidden_size, hidden_size].
    B : array_like
        [num_directions, hidden_size]: the sum of the biases of W and R.
    hidden_size : int, optional
        Default: taken from the shape of R.
    direction : str
        "forward", "reverse" or "bidirectional".
    activations : sequence of str
        Shared by both directions.
    activations_alpha, activations_beta : sequence of float
        Their parameters, by index in `activations`.
    clip : float, optional
        Bound of the inputs of activations. None, 0 or infinity: no clipping.

    Returns
    -------
    Y : ndarray
        [batch_size, num_directions, seq_length, hidden_size]; zero beyond a row's length.
    Ho : ndarray
        [batch_size, num_directions, hidden_size]: the state after each row's last step; zero for length 0.

    Raises
    ------
    PyrnnxError
        The specification does not allow an array or attribute.
    """
    Y, Ho = _run(
        "RNNSequence",
        (X, H, sequence_lengths, W, R, B),
        hidden_size,
        direction=direction,
        activations=activations,
        activations_alpha=activations_alpha,
        activations_beta=activations_beta,
        clip=clip,
    )
    return Y, Ho


@known_arguments("GRUSequence")
def gru_sequence(
    X: Any,
    H: Any,
    sequence_lengths: Any,
    W: Any,
    R: Any,
    B: Any,
    *,
    hidden_size: int | None = None,
    direction: str = "forward",
    activations: Sequence[str] = ("sigmoid", "tanh"),
    activations_alpha: Sequence[float] = (),
    activations_beta: Sequence[float] = (),
    clip: float | None = None,
    linear_before_reset: bool = False,
) -> tuple[AnyArray, AnyArray]:
    """Run OpenVINO GRUSequence-5: gates z, r, h; Ht = (1 - zt) (.) ht + zt (.) Ht-1.

    Arguments and results are as in `rnn_sequence`, with other shapes of weights: W [num_directions, 3*hidden_size,
    input_size], R [num_directions, 3*hidden_size, hidden_size], B [num_directions, 3*hidden_size]. With
    linear_before_reset, B is [num_directions, 4*hidden_size]: the sums of z and r, then Wb_h, Rb_h.

    Every call prepares the weights; `BoundLayer` prepares them once for many calls.

    Raises
    ------
    PyrnnxError
        The specification does not allow an array or attribute.
    """
    Y, Ho = _run(
        "GRUSequence",
        (X, H, sequence_lengths, W, R, B),
        hidden_size,
        direction=direction,
        activations=activations,
        activations_alpha=activations_alpha,
        activations_beta=activations_beta,
        clip=clip,
        linear_before_reset=linear_before_reset,
    )
    return Y, Ho


@known_arguments("LSTMSequence")
def lstm_sequence(
    X: Any,
    H: Any,
    C: Any,
    sequence_lengths: Any,
    W: Any,
    R: Any,
    B: Any,
    P: Any = None,
    *,
    opset: int = LATEST,
    hidden_size: int | None = None,
    direction: str = "forward",
    activations: Sequence[str] = ("sigmoid", "tanh", "tanh"),
    activations_alpha: Sequence[float] = (),
    activations_beta: Sequence[float] = (),
    clip: float | None = None,
    input_forget: bool | None = None,
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Run OpenVINO LSTMSequence-5: gates f, i, c, o; Ct = ft (.) Ct-1 + it (.) ct; Ht = ot (.) h(Ct).

    Arguments and results are as in `rnn_sequence`. The initial cell state C has the shape of H, the last one Co the
    shape of Ho. Weights are W [num_directions, 4*hidden_size, input_size], R [num_directions, 4*hidden_size,
    hidden_size], B [num_directions, 4*hidden_size].

    An opset below 5 runs LSTMSequence-1. It also has peepholes P [num_directions, 3*hidden_size] of f, i, o, and the
    attribute input_forget, by default False. It means i = 1 - f, which leaves the weights, bias and peephole of i
    unused; ONNX has f = 1 - i.

    Every call prepares the weights; `BoundLayer` prepares them once for many calls.

    Raises
    ------
    PyrnnxError
        The specification does not allow an array or attribute.
    """
    Y, Ho, Co = _run(
        "LSTMSequence",
        (X, H, C, sequence_lengths, W, R, B, P),
        hidden_size,
        opset=opset,
        direction=direction,
        activations=activations,
        activations_alpha=activations_alpha,
        activations_beta=activations_beta,
        clip=clip,
        input_forget=input_forget,
    )
    return Y, Ho, Co


@known_arguments("RNNCell")
def rnn_cell(
    X: Any,
    H: Any,
    W: Any,
    R: Any,
    B: Any,
    *,
    hidden_size: int | None = None,
    activations: Sequence[str] = ("tanh",),
    activations_alpha: Sequence[float] = (),
    activations_beta: Sequence[float] = (),
    clip: float | None = None,
) -> AnyArray:
    """Run OpenVINO RNNCell-1, one step of `rnn_sequence`.

    X [batch_size, input_size], H and the result [batch_size, hidden_size], W [hidden_size, input_size],
    R [hidden_size, hidden_size], B [hidden_size].

    Every call prepares the weights; `BoundLayer` prepares them once for many calls.

    Raises
    ------
    PyrnnxError
        The specification does not allow an array or attribute.
    """
    (Ho,) = _run(
        "RNNCell",
        (X, H, W, R, B),
        hidden_size,
        activations=activations,
        activations_alpha=activations_alpha,
        activations_beta=activations_beta,
        clip=clip,
    )
    return Ho


@known_arguments("GRUCell")
def gru_cell(
    X: Any,
    H: Any,
    W: Any,
    R: Any,
    B: Any,
    *,
    hidden_size: int | None = None,
    activations: Sequence[str] = ("sigmoid", "tanh"),
    activations_alpha: Sequence[float] = (),
    activations_beta: Sequence[float] = (),
    clip: float | None = None,
    linear_before_reset: bool = False,
) -> AnyArray:
    """Run OpenVINO GRUCell-3, one step of `gru_sequence`.

    X [batch_size, input_size], H and the result [batch_size, hidden_size], W [3*hidden_size, input_size],
    R [3*hidden_size, hidden_size], B [3*hidden_size], or [4*hidden_size] with linear_before_reset.

    Every call prepares the weights; `BoundLayer` prepares them once for many calls.

    Raises
    ------
    PyrnnxError
        The specification does not allow an array or attribute.
    """
    (Ho,) = _run(
        "GRUCell",
        (X, H, W, R, B),
        hidden_size,
        activations=activations,
        activations_alpha=activations_alpha,
        activations_beta=activations_beta,
        clip=clip,
        linear_before_reset=linear_before_reset,
    )
    return Ho


@known_arguments("LSTMCell")
def lstm_cell(
    X: Any,
    H: Any,
    C: Any,
    W: Any,
    R: Any,
    B: Any = None,
    P: Any = None,
    *,
    opset: int = LATEST,
    hidden_size: int | None = None,
    activations: Sequence[str] = ("sigmoid", "tanh", "tanh"),
    activations_alpha: Sequence[float] = (),
    activations_beta: Sequence[float] = (),
    clip: float | None = None,
    input_forget: bool | None = None,
) -> tuple[AnyArray, AnyArray]:
    """Run OpenVINO LSTMCell-4, one step of `lstm_sequence`; return Ho, Co.

    X [batch_size, input_size], H, C and the results [batch_size, hidden_size], W [4*hidden_size, input_size],
    R [4*hidden_size, hidden_size], B [4*hidden_size]. An opset below 4 runs LSTMCell-1: B is optional, and it also has
    peepholes P [3*hidden_size] of f, i, o, and the attribute input_forget, by default False (i = 1 - f).

    Every call prepares the weights; `BoundLayer` prepares them once for many calls.

    Raises
    ------
    PyrnnxError
        The specification does not allow an array or attribute.
    """
    Ho, Co = _run(
        "LSTMCell",
        (X, H, C, W, R, B, P),
        hidden_size,
        opset=opset,
        activations=activations,
        activations_alpha=activations_alpha,
        activations_beta=activations_beta,
        clip=clip,
        input_forget=input_forget,
    )
    return Ho, Co


def _run(
    operation_type: str,
    arrays: tuple[Any, ...],
    hidden_size: Any,
    *,
    opset: Any = LATEST,
    input_forget: Any = None,
    **attributes: Any,
) -> tuple[AnyArray, ...]:
    """Run an operation on `arrays` in port order; P, the last input of version 1, may follow for any version."""
    opset = scalars.integer(operation_type, "opset", opset, 1)
    operation = find_operation(operation_type, opset)
    assert operation is not None  # only LSTMs take an opset, and opset 1 has both
    if input_forget is not None:
        if "input_forget" not in operation.attributes:
            allowed = ", ".join(operation.attributes)
            raise UnsupportedError(
                f"{operation_type}: argument 'input_forget' is unknown; {operation.versioned_name} has {allowed}"
            )
        attributes["input_forget"] = input_forget
    inputs = dict(zip((*operation.inputs, "P"), arrays, strict=False))
    if hidden_size is None:
        hidden_size = check.hidden_size(operation_type, operation.cell, operation.convention, inputs["R"])
    op = build_op(operation, operation_type, hidden_size, attributes)
    weights = {name: inputs.pop(name) for name in WEIGHTS if name in inputs}
    return BoundLayer(operation, op, **weights)._for_one_call()(*inputs.values())
