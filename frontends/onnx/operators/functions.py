"""Functions `rnn`, `gru` and `lstm`: calls of ONNX operators, inputs by position and attributes by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from pyrnnx._internal.dtypes import AnyArray, dtype_name
from pyrnnx._internal.signatures import known_arguments
from pyrnnx.errors import ArgumentError, UnsupportedError
from pyrnnx.layers.layer import Layer
from pyrnnx.operator import check
from pyrnnx.operator.conventions import ONNX_LAYOUTS

from .schemas import DEFAULT_OPSET, WEIGHTS, Schema, build_op, read_attributes, schema

LayerType = TypeVar("LayerType", bound=Layer)


def build_layer(
    definition: Schema,
    label: str,
    weights: Mapping[str, Any],
    attributes: Mapping[str, Any],
    make: Callable[..., LayerType],
) -> LayerType:
    """Return the layer that `make`, such as `Layer`, builds of an operator in an opset.

    `weights` are W, R, B and P, and `attributes` those that `read_attributes` returns.
    """
    hidden_size = attributes["hidden_size"]
    if hidden_size is None:
        hidden_size = check.hidden_size(label, definition.cell, ONNX_LAYOUTS[0], weights.get("R"))
    op = build_op(definition, label, attributes, hidden_size)
    convention = ONNX_LAYOUTS[attributes.get("layout", 0)]
    layer = make(op, *map(weights.get, WEIGHTS), convention=convention, label=label)
    dtype = dtype_name(layer.dtype)
    if dtype not in definition.dtypes:
        allowed = ", ".join(definition.dtypes)
        raise UnsupportedError(f"{label}: W has dtype {dtype}; {definition} allows {allowed}")
    return layer


@known_arguments("RNN")
def rnn(
    X: Any,
    W: Any,
    R: Any,
    B: Any = None,
    sequence_lens: Any = None,
    initial_h: Any = None,
    *,
    opset: int = DEFAULT_OPSET,
    activations: Sequence[str] | None = None,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    clip: float | None = None,
    direction: str | None = None,
    hidden_size: int | None = None,
    layout: int | None = None,
    output_sequence: int | None = None,
) -> tuple[AnyArray, AnyArray]:
    """Run ONNX RNN (opsets 1, 7, 14, 22): Ht = f(Xt*(Wi^T) + Ht-1*(Ri^T) + Wbi + Rbi).

    Every call prepares the weights; `pyrnnx.Layer` prepares them once for many calls.

    Parameters
    ----------
    X : array_like
        [seq_length, batch_size, input_size]; float32, float64, float16 or (opset 22) bfloat16.
    W : array_like
        [num_directions, hidden_size, input_size], of the dtype of X, like all other arrays but sequence_lens.
    R : array_like
        [num_directions, hidden_size, hidden_size].
    B : array_like, optional
        [num_directions, 2*hidden_size]: Wb, Rb. Default: zero.
    sequence_lens : array_like of int32, optional
        [batch_size]: length of each row, 0 to seq_length. Default: seq_length.
    initial_h : array_like, optional
        [num_directions, batch_size, hidden_size]. Default: zero.
    opset : int
        Opset; the newest definition that is not above it applies.
    activations : sequence of str, optional
        f for each direction. Default: Tanh.
    activation_alpha, activation_beta : sequence of float, optional
        Parameters of the activations, in order, for those that have them. Default: the function's own.
    clip : float, optional
        Bound of the input of each activation, positive. Default: none.
    direction : str, optional
        "forward" (the default), "reverse" or "bidirectional".
    hidden_size : int, optional
        Default: from R.
    layout : int, optional
        1: batch_size is the first axis, see below. From opset 14 on. Default: 0.
    output_sequence : int, optional
        0 (the default) or 1: below opset 7, whether the node returns Y. This function always does.

    Returns
    -------
    Y : ndarray
        [seq_length, num_directions, batch_size, hidden_size], of the dtype of X; zero beyond a row's length.
    Y_h : ndarray
        [num_directions, batch_size, hidden_size]: the state after each row's last step; zero for length 0.

    With layout=1 the axes are: X [batch_size, seq_length, input_size], Y [batch_size, seq_length,
    num_directions, hidden_size], initial_h and Y_h [batch_size, num_directions, hidden_size].

    Raises
    ------
    PyrnnxError
        An array, attribute or opset is not allowed.
    """
    Y, Y_h = _run("RNN", **locals())
    return Y, Y_h


@known_arguments("GRU")
def gru(
    X: Any,
    W: Any,
    R: Any,
    B: Any = None,
    sequence_lens: Any = None,
    initial_h: Any = None,
    *,
    opset: int = DEFAULT_OPSET,
    activations: Sequence[str] | None = None,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    clip: float | None = None,
    direction: str | None = None,
    hidden_size: int | None = None,
    linear_before_reset: int | None = None,
    layout: int | None = None,
    output_sequence: int | None = None,
) -> tuple[AnyArray, AnyArray]:
    """Run ONNX GRU (opsets 1, 3, 7, 14, 22): gates z, r, h; Ht = (1 - zt) (.) ht + zt (.) Ht-1.

    Every call prepares the weights; `pyrnnx.Layer` prepares them once for many calls.

    Parameters
    ----------
    X : array_like
        [seq_length, batch_size, input_size]; float32, float64, float16 or (opset 22) bfloat16.
    W : array_like
        [num_directions, 3*hidden_size, input_size], gates z, r, h; of the dtype of X, like all other arrays but
        sequence_lens.
    R : array_like
        [num_directions, 3*hidden_size, hidden_size].
    B : array_like, optional
        [num_directions, 6*hidden_size]: Wb[zrh], Rb[zrh]. Default: zero.
    sequence_lens : array_like of int32, optional
        [batch_size]: length of each row, 0 to seq_length. Default: seq_length.
    initial_h : array_like, optional
        [num_directions, batch_size, hidden_size]. Default: zero.
    opset : int
        Opset; the newest definition that is not above it applies.
    activations : sequence of str, optional
        f and g for each direction. Default: Sigmoid, Tanh.
    activation_alpha, activation_beta : sequence of float, optional
        Parameters of the activations, in order, for those that have them. Default: the function's own.
    clip : float, optional
        Bound of the input of each activation, positive. Default: none.
    direction : str, optional
        "forward" (the default), "reverse" or "bidirectional".
    hidden_size : int, optional
        Default: from R.
    linear_before_reset : int, optional
        1: the reset gate is applied to Ht-1*(Rh^T) + Rbh, not to Ht-1. From opset 3 on. Default: 0.
    layout : int, optional
        1: batch_size is the first axis, see below. From opset 14 on. Default: 0.
    output_sequence : int, optional
        0 (the default) or 1: below opset 7, whether the node returns Y. This function always does.

    Returns
    -------
    Y : ndarray
        [seq_length, num_directions, batch_size, hidden_size], of the dtype of X; zero beyond a row's length.
    Y_h : ndarray
        [num_directions, batch_size, hidden_size]: the state after each row's last step; zero for length 0.

    With layout=1 the axes are: X [batch_size, seq_length, input_size], Y [batch_size, seq_length,
    num_directions, hidden_size], initial_h and Y_h [batch_size, num_directions, hidden_size].

    Raises
    ------
    PyrnnxError
        An array, attribute or opset is not allowed.
    """
    Y, Y_h = _run("GRU", **locals())
    return Y, Y_h


@known_arguments("LSTM")
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
    opset: int = DEFAULT_OPSET,
    activations: Sequence[str] | None = None,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    clip: float | None = None,
    direction: str | None = None,
    hidden_size: int | None = None,
    input_forget: int | None = None,
    layout: int | None = None,
    output_sequence: int | None = None,
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Run ONNX LSTM (opsets 1, 7, 14, 22): gates i, o, f, c; Ct = ft (.) Ct-1 + it (.) ct; Ht = ot (.) h(Ct).

    Every call prepares the weights; `pyrnnx.Layer` prepares them once for many calls.

    Parameters
    ----------
    X : array_like
        [seq_length, batch_size, input_size]; float32, float64, float16 or (opset 22) bfloat16.
    W : array_like
        [num_directions, 4*hidden_size, input_size], gates i, o, f, c; of the dtype of X, like all other arrays but
        sequence_lens.
    R : array_like
        [num_directions, 4*hidden_size, hidden_size].
    B : array_like, optional
        [num_directions, 8*hidden_size]: Wb[iofc], Rb[iofc]. Default: zero.
    sequence_lens : array_like of int32, optional
        [batch_size]: length of each row, 0 to seq_length. Default: seq_length.
    initial_h, initial_c : array_like, optional
        [num_directions, batch_size, hidden_size]. Default: zero.
    P : array_like, optional
        [num_directions, 3*hidden_size]: peepholes of i, o, f. Default: none.
    opset : int
        Opset; the newest definition that is not above it applies.
    activations : sequence of str, optional
        f, g and h for each direction. Default: Sigmoid, Tanh, Tanh.
    activation_alpha, activation_beta : sequence of float, optional
        Parameters of the activations, in order, for those that have them. Default: the function's own.
    clip : float, optional
        Bound of the input of each activation, positive. Default: none.
    direction : str, optional
        "forward" (the default), "reverse" or "bidirectional".
    hidden_size : int, optional
        Default: from R.
    input_forget : int, optional
        1: the forget gate is 1 - it. Default: 0.
    layout : int, optional
        1: batch_size is the first axis, see below. From opset 14 on. Default: 0.
    output_sequence : int, optional
        0 (the default) or 1: below opset 7, whether the node returns Y. This function always does.

    Returns
    -------
    Y : ndarray
        [seq_length, num_directions, batch_size, hidden_size], of the dtype of X; zero beyond a row's length.
    Y_h, Y_c : ndarray
        [num_directions, batch_size, hidden_size]: the states after each row's last step; zero for length 0.

    With layout=1 the axes are: X [batch_size, seq_length, input_size], Y [batch_size, seq_length,
    num_directions, hidden_size], the states [batch_size, num_directions, hidden_size].

    Raises
    ------
    PyrnnxError
        An array, attribute or opset is not allowed.
    """
    Y, Y_h, Y_c = _run("LSTM", **locals())
    return Y, Y_h, Y_c


def _run(
    operator: str,
    *,
    opset: Any,
    X: Any,
    W: Any,
    R: Any,
    B: Any,
    P: Any = None,
    sequence_lens: Any,
    initial_h: Any,
    initial_c: Any = None,
    **attributes: Any,
) -> tuple[AnyArray, ...]:
    definition = schema(operator, opset)
    read = read_attributes(definition, operator, attributes)
    weights = {"W": W, "R": R, "B": B, "P": P}
    try:
        layer = build_layer(definition, operator, weights, read, Layer)
    except ArgumentError:
        check.like_x(operator, X, weights)
        raise
    return layer._for_one_call().run(X, sequence_lens, initial_h, initial_c)
