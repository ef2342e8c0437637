"""Recurrent operations as functions, with inputs in port order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyrnnx._internal import scalars
from pyrnnx._internal.dtypes import AnyArray
from pyrnnx._internal.signatures import known_arguments
from pyrnnx.errors import ArgumentError, UnsupportedError
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
    Y, Ho = _run("RNNSequence", locals())
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

    Arguments, results and errors are as in `rnn_sequence`, with other shapes of weights: W [num_directions,
    3*hidden_size, input_size], R [num_directions, 3*hidden_size, hidden_size], B [num_directions, 3*hidden_size]. With
    linear_before_reset, B is [num_directions, 4*hidden_size]: the sums of z and r, then Wb_h, Rb_h.
    """
    Y, Ho = _run("GRUSequence", locals())
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

    Arguments, results and errors are as in `rnn_sequence`. The initial cell state C has the shape of H, the last one Co
    the shape of Ho. Weights are W [num_directions, 4*hidden_size, input_size], R [num_directions, 4*hidden_size,
    hidden_size], B [num_directions, 4*hidden_size].

    An opset below 5 runs LSTMSequence-1. It also has peepholes P [num_directions, 3*hidden_size] of f, i, o, and the
    attribute input_forget, by default False. It means i = 1 - f, which leaves the weights, bias and peephole of i
    unused; ONNX has f = 1 - i.
    """
    Y, Ho, Co = _run("LSTMSequence", locals())
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
    """Run OpenVINO RNNCell-1, one step of `rnn_sequence`, with its arguments and errors.

    X [batch_size, input_size], H and the result [batch_size, hidden_size], W [hidden_size, input_size],
    R [hidden_size, hidden_size], B [hidden_size].
    """
    (Ho,) = _run("RNNCell", locals())
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
    """Run OpenVINO GRUCell-3, one step of `gru_sequence`, with its arguments and errors.

    X [batch_size, input_size], H and the result [batch_size, hidden_size], W [3*hidden_size, input_size],
    R [3*hidden_size, hidden_size], B [3*hidden_size], or [4*hidden_size] with linear_before_reset.
    """
    (Ho,) = _run("GRUCell", locals())
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
    """Run OpenVINO LSTMCell-4, one step of `lstm_sequence`, with its arguments and errors; return Ho, Co.

    X [batch_size, input_size], H, C and the results [batch_size, hidden_size], W [4*hidden_size, input_size],
    R [4*hidden_size, hidden_size], B [4*hidden_size]. An opset below 4 runs LSTMCell-1: B is optional, and it also has
    peepholes P [3*hidden_size] of f, i, o, and the attribute input_forget, by default False (i = 1 - f).
    """
    Ho, Co = _run("LSTMCell", locals())
    return Ho, Co


def _run(operation_type: str, arguments: dict[str, Any]) -> tuple[AnyArray, ...]:
    """Run an operation on the arguments of its function."""
    opset = scalars.integer(operation_type, "opset", arguments.pop("opset", LATEST), 1)
    operation = find_operation(operation_type, opset)
    assert operation is not None  # only LSTMs take an opset, and opset 1 has both
    if arguments.get("input_forget") is None:
        arguments.pop("input_forget", None)
    elif "input_forget" not in operation.attributes:
        allowed = ", ".join(operation.attributes)
        raise UnsupportedError(
            f"{operation_type}: argument 'input_forget' is unknown; {operation.versioned_name} has {allowed}"
        )
    convention = operation.convention
    # P, the last input of version 1, may follow for any version.
    keys = dict.fromkeys((*operation.inputs, "P") if "P" in arguments else operation.inputs)
    inputs = {key: arguments.pop(convention.name_of(key)) for key in keys}
    hidden_size = arguments.pop("hidden_size")
    if hidden_size is None:
        hidden_size = check.hidden_size(operation_type, operation.cell, convention, inputs["R"])
    op = build_op(operation, operation_type, hidden_size, arguments)
    weights = {name: inputs.pop(name) for name in WEIGHTS if name in inputs}
    try:
        layer = BoundLayer(operation, op, **weights)
    except ArgumentError:
        check.like_x(operation_type, inputs["X"], weights)
        raise
    return layer._for_one_call()(*inputs.values())
