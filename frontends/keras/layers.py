"""Stacks of layers from Keras' recurrent layers, by their configuration and weights, without an import of Keras."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from pyrnnx.errors import ArgumentError, PyrnnxError, UnsupportedError, printable, shortened, shown
from pyrnnx.stacks.stack import Stack

from .config import RECURRENT, is_of_keras, read_config
from .weights import build_stack, read_arrays

OLDEST = 3  # major version of Keras


def from_layer(layer: Any, *, name: str | None = None, weight_dtype: str | None = None) -> Stack:
    """Copy the layer, or stacked layers, of a recurrent layer of Keras 3 to a stack.

    Parameters
    ----------
    layer : keras.layers.SimpleRNN, GRU, LSTM, Bidirectional or RNN
        A built layer. The cells of an RNN are SimpleRNNCell, GRUCell or LSTMCell; a list of cells becomes stacked
        layers. Activations are tanh, sigmoid, relu, linear, hard_sigmoid, softsign, softplus, elu, leaky_relu. Biases
        and a GRU's reset_after are optional.
    name : str, optional
        Name of the stack in errors. Default: the name of the layer.
    weight_dtype : str, optional
        "bfloat16" or "int8": store W and R in fewer bits, see `pyrnnx.Layer`. Default: the dtype of the weights.

    Returns
    -------
    Stack
        A stack with batch_first; call it as ``stack(X, sequence_lens, initial_h, initial_c)``. It always returns the
        results of both return_sequences and return_state: Y [batch_size, seq_length, D*units] and the last states.
        Those of Bidirectional are [h forward, h backward] and [c forward, c backward]. For a mask that keeps the first
        steps of each row, pass its sums as sequence_lens. Y is zero after them, as with zero_output_for_mask, and the
        last states of a row of length 0 are zeros. Dropout, stateful, unroll and a mixed_float16 policy have no effect.

    Raises
    ------
    ArgumentError
        The argument is not a layer of Keras, or is not built.
    UnsupportedError
        The layer is of another class, a subclass, or Keras 2; or it has another activation, merge_mode "sum", "mul" or
        "ave", or go_backwards with return_sequences, whose output is in reverse order.

    Source: keras.layers.SimpleRNN, GRU, LSTM, RNN, Bidirectional of Keras 3.
    """
    kind = type(layer)
    if not is_of_keras(kind.__module__) or kind.__name__ not in RECURRENT:
        class_path = f"{kind.__module__}.{kind.__qualname__}"
        error = UnsupportedError if any(is_of_keras(base.__module__) for base in kind.__mro__) else ArgumentError
        allowed = ", ".join(f"keras.layers.{name}" for name in RECURRENT)
        raise error(f"from_layer: {shown(class_path)} was given; expected one of {allowed}")
    label = printable(shortened(f"{kind.__name__} {shown(layer.name)}"))
    version = str(getattr(sys.modules.get("keras"), "__version__", OLDEST))
    if version.partition(".")[0].isdecimal() and int(version.partition(".")[0]) < OLDEST:
        raise UnsupportedError(f"{label}: it is of Keras {shown(version)}; expected Keras {OLDEST} or newer")
    try:
        config, weights = layer.get_config(), layer.get_weights()
    except Exception as error:
        raise PyrnnxError(f"{label}: its configuration cannot be read ({shortened(str(error))})") from error
    layer_config = read_config(label, kind.__name__, config)
    for cell in _cells(layer):
        _check_functions(label, cell)
    if not weights:
        raise ArgumentError(f"{label}: it has no weights, because it is not built; build or call it first")
    arrays = read_arrays(label, weights)
    return build_stack(label, layer_config, arrays, layer.name if name is None else name, weight_dtype)


def _cells(layer: Any) -> Iterator[Any]:
    for part in (layer, getattr(layer, "forward_layer", None), getattr(layer, "backward_layer", None)):
        cell = getattr(part, "cell", None)
        if cell is not None:
            yield from getattr(cell, "cells", [cell])


def _check_functions(label: str, cell: Any) -> None:
    """Raise if a class or function is not Keras' own, which the configuration does not show."""
    if not is_of_keras(type(cell).__module__):
        raise UnsupportedError(f"{label}: the cell is a {shown(type(cell).__qualname__)}; expected a cell of Keras")
    for argument in ("activation", "recurrent_activation"):
        function = getattr(cell, argument, None)
        if function is not None and not is_of_keras(getattr(function, "__module__", "keras")):
            raise UnsupportedError(f"{label}: {argument} is {shown(function)}; expected a function of Keras")
