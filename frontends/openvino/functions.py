"""The recurrent operations as functions, inputs in port order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from pyrnnx import check, scalars
from pyrnnx.conventions import AnyArray
from pyrnnx.errors import UnsupportedError, shown

from .attributes import build_op
from .layers import BoundLayer
from .schemas import WEIGHTS, Operation, find_operation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Unpack

LATEST = 16  # opset that the functions are of, unless told otherwise


class CellAttributes(TypedDict, total=False):
    """Attributes of RNNCell and LSTMCell."""

    hidden_size: int | None
    activations: Sequence[str]
    activations_alpha: Sequence[float]
    activations_beta: Sequence[float]
    clip: float | None


class SequenceAttributes(CellAttributes, total=False):
    """Attributes of RNNSequence."""

    direction: str


class LSTMCellAttributes(CellAttributes, total=False):
    """Attributes of LSTMCell; input_forget of version 1 only."""

    input_forget: bool


class LSTMSequenceAttributes(SequenceAttributes, total=False):
    """Attributes of LSTMSequence; input_forget of version 1 only."""

    input_forget: bool


class GRUCellAttributes(CellAttributes, total=False):
    """Attributes of GRUCell."""

    linear_before_reset: bool


class GRUSequenceAttributes(SequenceAttributes, total=False):
    """Attributes of GRUSequence."""

    linear_before_reset: bool


def rnn_sequence(
    X: Any, H: Any, sequence_lengths: Any, W: Any, R: Any, B: Any, **attributes: Unpack[SequenceAttributes]
) -> tuple[AnyArray, AnyArray]:
    """OpenVINO RNNSequence-5: Ht = f(Xt*W^T + Ht-1*R^T + B).

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
    **attributes
        hidden_size (default: as R tells), direction ("forward", "reverse", "bidirectional"), activations (default
        ("tanh",); shared by both directions), activations_alpha, activations_beta (by place in activations), clip
        (None, 0 or inf: none).

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
    Y, Ho = _run("RNNSequence", (X, H, sequence_lengths, W, R, B), dict(attributes))
    return Y, Ho


def gru_sequence(
    X: Any, H: Any, sequence_lengths: Any, W: Any, R: Any, B: Any, **attributes: Unpack[GRUSequenceAttributes]
) -> tuple[AnyArray, AnyArray]:
    """OpenVINO GRUSequence-5: gates z, r, h; Ht = (1 - zt) (.) ht + zt (.) Ht-1.

    As `rnn_sequence`, with W [num_directions, 3*hidden_size, input_size], R [num_directions, 3*hidden_size,
    hidden_size], B [num_directions, 3*hidden_size], or with linear_before_reset [num_directions, 4*hidden_size]: z and
    r summed, then Wb_h, Rb_h; default activations ("sigmoid", "tanh").

    Raises
    ------
    PyrnnxError
        An array or attribute that the specification does not allow.
    """
    Y, Ho = _run("GRUSequence", (X, H, sequence_lengths, W, R, B), dict(attributes))
    return Y, Ho


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
    **attributes: Unpack[LSTMSequenceAttributes],
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """OpenVINO LSTMSequence-5: gates f, i, c, o; Ct = ft (.) Ct-1 + it (.) ct; Ht = ot (.) h(Ct).

    As `rnn_sequence`, with the initial cell state C like H, the last one Co like Ho, W [num_directions, 4*hidden_size,
    input_size], R [num_directions, 4*hidden_size, hidden_size], B [num_directions, 4*hidden_size]; default activations
    ("sigmoid", "tanh", "tanh"). With an opset below 5 it is LSTMSequence-1, which also has peepholes P
    [num_directions, 3*hidden_size] of f, i, o, and the attribute input_forget (i = 1 - f, where ONNX
    has f = 1 - i: the weights, bias and peephole of i are unused).

    Raises
    ------
    PyrnnxError
        An array or attribute that the specification does not allow.
    """
    Y, Ho, Co = _run("LSTMSequence", (X, H, C, sequence_lengths, W, R, B, P), dict(attributes), opset)
    return Y, Ho, Co


def rnn_cell(X: Any, H: Any, W: Any, R: Any, B: Any, **attributes: Unpack[CellAttributes]) -> AnyArray:
    """OpenVINO RNNCell-1: one step of `rnn_sequence`.

    X [batch_size, input_size], H and the result [batch_size, hidden_size], W [hidden_size, input_size],
    R [hidden_size, hidden_size], B [hidden_size].

    Raises
    ------
    PyrnnxError
        An array or attribute that the specification does not allow.
    """
    (Ho,) = _run("RNNCell", (X, H, W, R, B), dict(attributes))
    return Ho


def gru_cell(X: Any, H: Any, W: Any, R: Any, B: Any, **attributes: Unpack[GRUCellAttributes]) -> AnyArray:
    """OpenVINO GRUCell-3: one step of `gru_sequence`.

    X [batch_size, input_size], H and the result [batch_size, hidden_size], W [3*hidden_size, input_size],
    R [3*hidden_size, hidden_size], B [3*hidden_size], or [4*hidden_size] with linear_before_reset.

    Raises
    ------
    PyrnnxError
        An array or attribute that the specification does not allow.
    """
    (Ho,) = _run("GRUCell", (X, H, W, R, B), dict(attributes))
    return Ho


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
    **attributes: Unpack[LSTMCellAttributes],
) -> tuple[AnyArray, AnyArray]:
    """OpenVINO LSTMCell-4: one step of `lstm_sequence`; returns Ho, Co.

    X [batch_size, input_size], H, C and the results [batch_size, hidden_size], W [4*hidden_size, input_size],
    R [4*hidden_size, hidden_size], B [4*hidden_size]. With an opset below 4 it is LSTMCell-1, where B is optional, and
    which also has peepholes P [3*hidden_size] of f, i, o, and the attribute input_forget
    (i = 1 - f).

    Raises
    ------
    PyrnnxError
        An array or attribute that the specification does not allow.
    """
    Ho, Co = _run("LSTMCell", (X, H, C, W, R, B, P), dict(attributes), opset)
    return Ho, Co


def _run(
    operation_type: str, arrays: tuple[Any, ...], attributes: dict[str, Any], opset: int = LATEST
) -> tuple[AnyArray, ...]:
    opset = scalars.integer(operation_type, "opset", opset, 1)
    operation = find_operation(operation_type, opset)
    assert operation is not None  # only the LSTMs are told an opset, and they are in the first
    for name in attributes:
        if name not in operation.attributes or name == "weights_format":
            allowed = ", ".join(one for one in operation.attributes if one != "weights_format")
            raise UnsupportedError(f"{operation.type}: attribute {shown(name)} is unknown; expected one of {allowed}")
    given = dict(zip((*operation.inputs, "P"), arrays, strict=False))
    op = build_op(operation, operation.type, _hidden_size(operation, given["R"], attributes), attributes)
    X = check.floating_array(operation.type, "X", given["X"])
    weights = {name: given.pop(name) for name in WEIGHTS if name in given}
    for name, value in weights.items():
        check.same_dtype(operation.type, name, value, X.dtype, "X")
    return BoundLayer(operation, op, **weights)(*given.values())


def _hidden_size(operation: Operation, R: Any, attributes: dict[str, Any]) -> int:
    """As the attribute says, else as R tells."""
    hidden_size = attributes.get("hidden_size")
    if hidden_size is None:
        return check.hidden_size(operation.type, operation.cell, operation.convention, R)
    return scalars.integer(operation.type, "hidden_size", hidden_size, 1)
