"""The recurrent operations as functions, inputs in port order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyrnnx import check, scalars
from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import UnsupportedError
from pyrnnx.signatures import known_arguments

from .attributes import build_op
from .layers import BoundLayer
from .schemas import WEIGHTS, find_operation

LATEST = 16  # opset that the functions are of, unless told otherwise


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
    """OpenVINO RNNSequence-5: Ht = f(Xt*W^T + Ht-1*R^T + B).

    The weights are prepared anew in every call: for more calls with the same ones, `BoundLayer` prepares them once.

    Parameters
    ----------
    X : array_like
        [batch_size, seq_length, input_size]; float32, float64, float16 or bfloat16.
    H : array_like
        Initial state [batch_size, num_directions, hidden_size], of the dtype of X, as W, R and B.
    sequence_lengths : array_like of any integer type
        [batch_size]: length of each row, 0 to seq_length.
    W : array_like
        [num_directions, hidden_size, input_size].
    R : array_like
        [num_directions, hidden_size, hidden_size].
    B : array_like
        [num_directions, hidden_size]: the sum of the biases of W and R.
    hidden_size : int, optional
        Default: as R tells.
    direction : str
        "forward", "reverse" or "bidirectional".
    activations : sequence of str
        Shared by both directions.
    activations_alpha, activations_beta : sequence of float
        Their parameters, by place in `activations`.
    clip : float, optional
        Bound of what goes into an activation. None, 0 or infinity: none.

    Returns
    -------
    Y : ndarray
        [batch_size, num_directions, seq_length, hidden_size]; zero beyond a row's length.
    Ho : ndarray
        [batch_size, num_directions, hidden_size]: the state after each row's last step; zero for length 0.

    Raises
    ------
    PyrnnxError
        An array or attribute that the specification does not allow.
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
    """OpenVINO GRUSequence-5: gates z, r, h; Ht = (1 - zt) (.) ht + zt (.) Ht-1.

    As `rnn_sequence`, with W [num_directions, 3*hidden_size, input_size], R [num_directions, 3*hidden_size,
    hidden_size], B [num_directions, 3*hidden_size], or with linear_before_reset [num_directions, 4*hidden_size]: z and
    r summed, then Wb_h, Rb_h.

    The weights are prepared anew in every call: for more calls with the same ones, `BoundLayer` prepares them once.

    Raises
    ------
    PyrnnxError
        An array or attribute that the specification does not allow.
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
    """OpenVINO LSTMSequence-5: gates f, i, c, o; Ct = ft (.) Ct-1 + it (.) ct; Ht = ot (.) h(Ct).

    As `rnn_sequence`, with the initial cell state C like H, the last one Co like Ho, W [num_directions, 4*hidden_size,
    input_size], R [num_directions, 4*hidden_size, hidden_size], B [num_directions, 4*hidden_size]. With an opset below
    5 it is LSTMSequence-1, which also has peepholes P [num_directions, 3*hidden_size] of f, i, o, and the attribute
    input_forget, by default False (i = 1 - f, where ONNX has f = 1 - i: the weights, bias and peephole of i are
    unused).

    The weights are prepared anew in every call: for more calls with the same ones, `BoundLayer` prepares them once.

    Raises
    ------
    PyrnnxError
        An array or attribute that the specification does not allow.
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
    """OpenVINO RNNCell-1: one step of `rnn_sequence`.

    X [batch_size, input_size], H and the result [batch_size, hidden_size], W [hidden_size, input_size],
    R [hidden_size, hidden_size], B [hidden_size].

    The weights are prepared anew in every call: for more calls with the same ones, `BoundLayer` prepares them once.

    Raises
    ------
    PyrnnxError
        An array or attribute that the specification does not allow.
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
    """OpenVINO GRUCell-3: one step of `gru_sequence`.

    X [batch_size, input_size], H and the result [batch_size, hidden_size], W [3*hidden_size, input_size],
    R [3*hidden_size, hidden_size], B [3*hidden_size], or [4*hidden_size] with linear_before_reset.

    The weights are prepared anew in every call: for more calls with the same ones, `BoundLayer` prepares them once.

    Raises
    ------
    PyrnnxError
        An array or attribute that the specification does not allow.
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
    """OpenVINO LSTMCell-4: one step of `lstm_sequence`; returns Ho, Co.

    X [batch_size, input_size], H, C and the results [batch_size, hidden_size], W [4*hidden_size, input_size],
    R [4*hidden_size, hidden_size], B [4*hidden_size]. With an opset below 4 it is LSTMCell-1, where B is optional, and
    which also has peepholes P [3*hidden_size] of f, i, o, and the attribute input_forget, by default False (i = 1 - f).

    The weights are prepared anew in every call: for more calls with the same ones, `BoundLayer` prepares them once.

    Raises
    ------
    PyrnnxError
        An array or attribute that the specification does not allow.
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
    """`arrays`: in port order; the last of version 1, P, may be given to any."""
    opset = scalars.integer(operation_type, "opset", opset, 1)
    operation = find_operation(operation_type, opset)
    assert operation is not None  # only the LSTMs are told an opset, and they are in the first
    if input_forget is not None:
        if "input_forget" not in operation.attributes:
            allowed = ", ".join(operation.attributes)
            raise UnsupportedError(
                f"{operation_type}: argument 'input_forget' is unknown; {operation.versioned_name} has {allowed}"
            )
        attributes["input_forget"] = input_forget
    given = dict(zip((*operation.inputs, "P"), arrays, strict=False))
    if hidden_size is None:
        hidden_size = check.hidden_size(operation_type, operation.cell, operation.convention, given["R"])
    op = build_op(operation, operation_type, hidden_size, attributes)
    weights = {name: given.pop(name) for name in WEIGHTS if name in given}
    return BoundLayer(operation, op, **weights)._for_one_call()(*given.values())
