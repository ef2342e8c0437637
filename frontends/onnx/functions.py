"""`rnn`, `gru` and `lstm`: one call of an ONNX operator, inputs by position and attributes by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from pyrnnx import check
from pyrnnx.conventions import ONNX_LAYOUTS, AnyArray
from pyrnnx.errors import shown
from pyrnnx.layer import Layer

from .attributes import build_op, flag, read_attributes
from .schemas import Schema, schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Unpack


class RNNAttributes(TypedDict, total=False):
    """Attributes of the ONNX operator RNN, of all opsets."""

    activations: Sequence[str] | None
    activation_alpha: Sequence[float] | None
    activation_beta: Sequence[float] | None
    clip: float | None
    direction: str | None
    hidden_size: int | None
    layout: int | None
    output_sequence: int | None


class GRUAttributes(RNNAttributes, total=False):
    """Attributes of the ONNX operator GRU, of all opsets."""

    linear_before_reset: int | None


class LSTMAttributes(RNNAttributes, total=False):
    """Attributes of the ONNX operator LSTM, of all opsets."""

    input_forget: int | None


LayerType = TypeVar("LayerType", bound=Layer)


def build_layer(
    operator: str,
    opset: Any,
    weights: Mapping[str, Any],
    attributes: Mapping[str, Any],
    name: str | None,
    cls: type[LayerType],
    constants: Mapping[str, Any] | None = None,
) -> LayerType:
    """The prepared layer of one operator at one opset: every attribute and dtype checked against that opset."""
    definition = schema(operator, opset)
    label = operator if not name else f"{operator} {shown(name)}"
    read = read_attributes(definition, label, attributes)
    flag(label, "output_sequence", read)  # Y is always given, so that both of its values are served
    arrays = {key: _weight(definition, label, key, value) for key, value in weights.items()}
    hidden_size = check.hidden_size(label, operator, ONNX_LAYOUTS[0], arrays["R"])
    op = build_op(definition, label, read, hidden_size)
    convention = ONNX_LAYOUTS[flag(label, "layout", read)]
    weight_arrays = (arrays["W"], arrays["R"], arrays.get("B"), arrays.get("P"))
    return cls(op, *weight_arrays, convention=convention, name=name, label=label, constants=constants)


def _weight(definition: Schema, label: str, name: str, value: Any) -> AnyArray | None:
    if value is None:
        return None
    array = check.floating_array(label, name, value)
    check.float_type_name(label, name, array, definition.dtypes, str(definition))
    return array


def rnn(
    X: Any,
    W: Any,
    R: Any,
    B: Any = None,
    sequence_lens: Any = None,
    initial_h: Any = None,
    *,
    opset: int = 22,
    **attributes: Unpack[RNNAttributes],
) -> tuple[AnyArray, AnyArray]:
    """ONNX RNN (opsets 1, 7, 14, 22): Ht = f(Xt*(Wi^T) + Ht-1*(Ri^T) + Wbi + Rbi).

    Parameters
    ----------
    X : array_like
        [seq_length, batch_size, input_size]; float32, float64, float16 or (opset 22) bfloat16.
    W : array_like
        [num_directions, hidden_size, input_size], of the dtype of X, as all that follow but sequence_lens.
    R : array_like
        [num_directions, hidden_size, hidden_size].
    B : array_like, optional
        [num_directions, 2*hidden_size]: Wb, Rb. Default: zero.
    sequence_lens : array_like of int32, optional
        [batch_size]: length of each row, 0 to seq_length. Default: seq_length.
    initial_h : array_like, optional
        [num_directions, batch_size, hidden_size]. Default: zero.
    opset : int
        The opset whose definition applies: the newest one that is not above it.
    **attributes
        activations, activation_alpha, activation_beta, clip, direction, hidden_size; layout (opset 14 on);
        output_sequence (below opset 7), as in the operator text.

    Returns
    -------
    Y : ndarray
        [seq_length, num_directions, batch_size, hidden_size], of the dtype of X; zero beyond a row's length.
    Y_h : ndarray
        [num_directions, batch_size, hidden_size]: the state after each row's last step; zero for length 0.

    With layout=1 the axes are those of the text: X [batch_size, seq_length, input_size], Y [batch_size, seq_length,
    num_directions, hidden_size], initial_h and Y_h [batch_size, num_directions, hidden_size].

    Raises
    ------
    PyrnnxError
        An array, attribute or opset that the text does not allow.
    """
    weights = {"W": W, "R": R, "B": B}
    Y, Y_h = _run("RNN", opset, X, weights, dict(attributes), (sequence_lens, initial_h))
    return Y, Y_h


def gru(
    X: Any,
    W: Any,
    R: Any,
    B: Any = None,
    sequence_lens: Any = None,
    initial_h: Any = None,
    *,
    opset: int = 22,
    **attributes: Unpack[GRUAttributes],
) -> tuple[AnyArray, AnyArray]:
    """ONNX GRU (opsets 1, 3, 7, 14, 22): gates z, r, h; Ht = (1 - zt) (.) ht + zt (.) Ht-1.

    Parameters
    ----------
    X : array_like
        [seq_length, batch_size, input_size]; float32, float64, float16 or (opset 22) bfloat16.
    W : array_like
        [num_directions, 3*hidden_size, input_size], gates z, r, h; of the dtype of X, as all that follow but
        sequence_lens.
    R : array_like
        [num_directions, 3*hidden_size, hidden_size].
    B : array_like, optional
        [num_directions, 6*hidden_size]: Wb[zrh], Rb[zrh]. Default: zero.
    sequence_lens, initial_h, opset
        As of `rnn`.
    **attributes
        Those of `rnn`, and linear_before_reset (opset 3 on).

    Returns
    -------
    Y, Y_h : ndarray
        As of `rnn`, with the same shapes for layout=1.

    Raises
    ------
    PyrnnxError
        An array, attribute or opset that the text does not allow.
    """
    weights = {"W": W, "R": R, "B": B}
    Y, Y_h = _run("GRU", opset, X, weights, dict(attributes), (sequence_lens, initial_h))
    return Y, Y_h


def lstm(
    X: Any,
    W: Any,
    R: Any,
    B: Any = None,
    sequence_lens: Any = None,
    initial_h: Any = None,
    initial_c: Any = None,
    P: Any = None,
    *,
    opset: int = 22,
    **attributes: Unpack[LSTMAttributes],
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """ONNX LSTM (opsets 1, 7, 14, 22): gates i, o, f, c; Ct = ft (.) Ct-1 + it (.) ct; Ht = ot (.) h(Ct).

    Parameters
    ----------
    X : array_like
        [seq_length, batch_size, input_size]; float32, float64, float16 or (opset 22) bfloat16.
    W : array_like
        [num_directions, 4*hidden_size, input_size], gates i, o, f, c; of the dtype of X, as all that follow but
        sequence_lens.
    R : array_like
        [num_directions, 4*hidden_size, hidden_size].
    B : array_like, optional
        [num_directions, 8*hidden_size]: Wb[iofc], Rb[iofc]. Default: zero.
    sequence_lens, initial_h, opset
        As of `rnn`.
    initial_c : array_like, optional
        [num_directions, batch_size, hidden_size]. Default: zero.
    P : array_like, optional
        [num_directions, 3*hidden_size]: peepholes of i, o, f. Default: none.
    **attributes
        Those of `rnn`, and input_forget.

    Returns
    -------
    Y, Y_h, Y_c : ndarray
        As of `rnn`; Y_c, the cell state after each row's last step, is like Y_h.

    Raises
    ------
    PyrnnxError
        An array, attribute or opset that the text does not allow.
    """
    weights = {"W": W, "R": R, "B": B, "P": P}
    Y, Y_h, Y_c = _run("LSTM", opset, X, weights, dict(attributes), (sequence_lens, initial_h, initial_c))
    return Y, Y_h, Y_c


def _run(
    operator: str, opset: Any, X: Any, weights: Mapping[str, Any], attributes: Mapping[str, Any], rest: tuple[Any, ...]
) -> tuple[AnyArray, ...]:
    X = check.floating_array(operator, "X", X)
    check.float_type_name(operator, "X", X, schema(operator, opset).dtypes, str(schema(operator, opset)))
    for name, value in weights.items():
        check.same_dtype(operator, name, value, X.dtype, "X")
    return build_layer(operator, opset, weights, attributes, None, Layer)(X, *rest)
