"""Stacks of layers from PyTorch's recurrent modules."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pyrnnx.errors import ArgumentError, PyrnnxError, UnsupportedError, listed, shown
from pyrnnx.layers.layer import Layer
from pyrnnx.operator.conventions import TORCH, TORCH_BATCH_FIRST, TORCH_CELL, Convention
from pyrnnx.stacks.stack import Stack

from .state_dict import build_layers
from .tensors import as_numpy

KINDS = ("RNN", "GRU", "LSTM", "RNNCell", "GRUCell", "LSTMCell")


def from_module(module: Any, *, name: str | None = None, weight_dtype: str | None = None) -> Stack:
    """Copy the layers of a torch.nn.RNN, GRU or LSTM, or of an RNNCell, GRUCell or LSTMCell, to a stack.

    Parameters
    ----------
    module : torch.nn.Module
        A module with any num_layers, one or both directions, batch_first or not, with or without biases, on any
        device, in float32, float64, float16 or bfloat16.
    name : str, optional
        Name of the stack in errors.
    weight_dtype : str, optional
        "bfloat16" or "int8": store W and R in fewer bits, see `Layer`. Default: the dtype of the weights.

    Returns
    -------
    Stack
        Call it as ``stack(X, sequence_lens, initial_h, initial_c)``, with the X of the module and the lengths of
        pack_padded_sequence. It returns Y, Y_h and, for an LSTM, Y_c in the shapes of the module's output, h_n and c_n.
        The layer of a cell runs forward over a whole sequence, unlike the cell, whose calls run one step.

    Raises
    ------
    ArgumentError
        It is another module, or in training mode with a dropout that would change the results.
    UnsupportedError
        It has proj_size, a forward of its own, or parametrized weights.

    Source: torch.nn.RNN, torch.nn.GRU, torch.nn.LSTM.
    """
    label = f"from_module: {type(module).__name__}"
    nn = torch_package().nn
    kind = next((kind for kind in KINDS if isinstance(module, getattr(nn, kind))), None)
    if isinstance(module, type):
        own = module.__name__
        raise ArgumentError(f"from_module: {own} is a class; expected an instance, such as {own}(4, 8)")
    if kind is None:
        raise ArgumentError(
            f"from_module: {shown(type(module).__name__)} was given; expected one of "
            f"{', '.join(f'torch.nn.{row}' for row in KINDS)}{_recurrent_submodules(nn, module)}"
        )
    if type(module).forward is not getattr(nn, kind).forward:
        raise UnsupportedError(f"{label}: it has a forward of its own; expected the forward of torch.nn.{kind}")
    if module.training and getattr(module, "dropout", 0) and getattr(module, "num_layers", 1) > 1:
        # Its results are random: no stack is equal to it.
        raise ArgumentError(
            f"{label}: it is in training mode with dropout={shown(module.dropout)}; call module.eval() first"
        )
    batch_first = bool(getattr(module, "batch_first", False))
    convention = TORCH_BATCH_FIRST if batch_first else TORCH
    layers = _layers(label, module, convention, weight_dtype)
    return Stack(layers, batch_first=batch_first, name=name)


def module_layer(module: Any, label: str) -> Layer:
    """Return the layer of a recurrent module of one layer, in the convention of its calls: a cell has no sequences."""
    sequence = TORCH_BATCH_FIRST if getattr(module, "batch_first", False) else TORCH
    convention = sequence if isinstance(module, torch_package().nn.RNNBase) else TORCH_CELL
    (layer,) = _layers(label, module, convention, None, label)
    return layer


def _layers(
    label: str, module: Any, convention: Convention, weight_dtype: str | None, layer_label: str | None = None
) -> list[Layer]:
    nn = torch_package().nn
    operator = next(kind for kind in KINDS if isinstance(module, getattr(nn, kind))).removesuffix("Cell")
    arrays = {key: as_numpy(label, key, value) for key, value in module.state_dict().items()}
    nonlinearity = module.nonlinearity if operator == "RNN" else "tanh"
    return build_layers(label, "", arrays, operator, nonlinearity, convention, weight_dtype, layer_label)


def torch_package(label: str = "from_module") -> Any:
    """Return PyTorch; raise a PyrnnxError that begins with the label if it is not installed."""
    try:
        return import_module("torch")
    except ImportError as error:
        alternative = ", or use from_state_dict, which does not need it" if label == "from_module" else ""
        raise PyrnnxError(f"{label} needs PyTorch; install torch{alternative}") from error


def _recurrent_submodules(nn: Any, module: Any) -> str:
    if not isinstance(module, nn.Module):
        return ""
    kinds = tuple(getattr(nn, kind) for kind in KINDS)
    names = [shown(name) for name, inner in module.named_modules() if isinstance(inner, kinds)]
    return f", such as its submodules {listed(names)}" if names else ""
