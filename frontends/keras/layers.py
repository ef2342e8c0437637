"""Recurrent layers of Keras as stacks of layers, from what they say of themselves: Keras is not imported."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from pyrnnx.errors import ArgumentError, PyrnnxError, UnsupportedError, printable, shortened, shown
from pyrnnx.stack import Stack

from .config import RECURRENT, is_of_keras, read_config
from .weights import build_stack, read_arrays

OLDEST = 3  # the major version of Keras whose functions these are


def from_layer(layer: Any, *, name: str | None = None, weight_dtype: str | None = None) -> Stack:
    """The layer, or layers, of a recurrent layer of Keras 3, with copies of its weights.

    Parameters
    ----------
    layer : keras.layers.SimpleRNN, GRU, LSTM, Bidirectional or RNN
        An RNN of SimpleRNNCell, GRUCell or LSTMCell, or of a list of them, which become layers after each other. With
        the activations tanh, sigmoid, relu, linear, hard_sigmoid, softsign, softplus, elu, leaky_relu; with or without
        biases; a GRU with or without reset_after. It has to be built.
    name : str, optional
        Of the stack, for errors. Default: the layer's.
    weight_dtype : str, optional
        "bfloat16" or "int8": keep W and R in fewer bits, see `pyrnnx.Layer`. Default: that of the weights.

    Returns
    -------
    Stack
        With batch_first, called as ``stack(X, sequence_lens, initial_h, initial_c)``. It always gives all that
        return_sequences and return_state ask for: Y [batch_size, seq_length, D*units] and the last states. Those of
        Bidirectional are [h forward, h backward] and [c forward, c backward]. Of a mask, which keeps the first steps of
        each row, sequence_lens are the sums: Y is zero beyond them, as with zero_output_for_mask, and a row of length 0
        ends in zeros. Dropout, which is for training, and stateful and unroll, which change no numbers, have no effect
        here; a mixed_float16 policy neither, as the weights are float32.

    Raises
    ------
    ArgumentError
        No layer of Keras, or one that is not built.
    UnsupportedError
        Another class, or a subclass; other activations; merge_mode "sum", "mul" or "ave"; go_backwards with
        return_sequences, whose output Keras gives in the order of processing; Keras 2.

    Source: keras.layers.SimpleRNN, GRU, LSTM, RNN, Bidirectional of Keras 3.
    """
    kind = type(layer)
    if not is_of_keras(kind.__module__) or kind.__name__ not in RECURRENT:
        of = f"{kind.__module__}.{kind.__qualname__}"
        error = UnsupportedError if any(is_of_keras(one.__module__) for one in kind.__mro__) else ArgumentError
        allowed = ", ".join(f"keras.layers.{one}" for one in RECURRENT)
        raise error(f"from_layer: {shown(of)} was given; expected one of {allowed}")
    label = printable(shortened(f"{kind.__name__} {shown(layer.name)}"))
    version = str(getattr(sys.modules.get("keras"), "__version__", OLDEST))
    if version.partition(".")[0].isdecimal() and int(version.partition(".")[0]) < OLDEST:
        raise UnsupportedError(f"{label}: is of Keras {shown(version)}; expected Keras {OLDEST} or newer")
    try:
        config, weights = layer.get_config(), layer.get_weights()
    except Exception as error:
        raise PyrnnxError(f"{label}: its configuration cannot be read ({shortened(str(error))})") from error
    read = read_config(label, kind.__name__, config)
    for cell in _cells(layer):
        _check_functions(label, cell)
    if not weights:
        raise ArgumentError(f"{label}: is not built and has no weights; expected a layer that was built or called")
    own = layer.name if name is None else name
    return build_stack(label, read, read_arrays(label, weights), own, weight_dtype)


def _cells(layer: Any) -> Iterator[Any]:
    """The cells of a layer, of a Bidirectional those of both of its layers."""
    for one in (layer, getattr(layer, "forward_layer", None), getattr(layer, "backward_layer", None)):
        cell = getattr(one, "cell", None)
        if cell is not None:
            yield from getattr(cell, "cells", [cell])


def _check_functions(label: str, cell: Any) -> None:
    """Reject classes and functions of others than Keras: its configuration names them as it does its own."""
    if not is_of_keras(type(cell).__module__):
        raise UnsupportedError(f"{label}: has a cell {shown(type(cell).__qualname__)} that is none of Keras")
    for argument in ("activation", "recurrent_activation"):
        function = getattr(cell, argument, None)
        if function is not None and not is_of_keras(getattr(function, "__module__", "keras")):
            raise UnsupportedError(f"{label}: {argument} is {shown(function)}; expected a function of Keras")
