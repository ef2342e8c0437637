"""PyTorch's recurrent modules as stacks of layers."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pyrnnx.conventions import TORCH, TORCH_BATCH_FIRST, TORCH_CELL, Convention
from pyrnnx.errors import ArgumentError, PyrnnxError, UnsupportedError, shown
from pyrnnx.layer import Layer
from pyrnnx.stack import Stack

from .state_dict import build_layers
from .tensors import as_numpy

KINDS = ("RNN", "GRU", "LSTM", "RNNCell", "GRUCell", "LSTMCell")
LISTED = 10  # submodules that a message names


def from_module(module: Any, *, name: str | None = None, weight_dtype: str | None = None) -> Stack:
    """The layers of a torch.nn.RNN, GRU or LSTM, or of an RNNCell, GRUCell or LSTMCell, with copies of its weights.

    Parameters
    ----------
    module : torch.nn.Module
        Of any num_layers, one or both directions, batch_first or not, with or without biases, on any device, in
        float32, float64, float16 or bfloat16.
    name : str, optional
        Of the stack, for errors.
    weight_dtype : str, optional
        "bfloat16" or "int8": keep W and R in fewer bits, see `Layer`. Default: that of the weights.

    Returns
    -------
    Stack
        Called as ``stack(X, sequence_lens, initial_h, initial_c)``, with X as the module takes it. It gives Y, Y_h and,
        of an LSTM, Y_c as the module gives output, h_n and c_n; lengths are those of pack_padded_sequence. A cell is a
        layer that runs forward over a whole sequence, of which the module's own call is a single step.

    Raises
    ------
    ArgumentError
        Something else than these modules; a module in training mode whose dropout would change the results.
    UnsupportedError
        proj_size; a subclass with a forward of its own; weights that are parametrized.

    Source: torch.nn.RNN, torch.nn.GRU, torch.nn.LSTM.
    """
    label = f"from_module: {type(module).__name__}"
    nn = _torch().nn
    kind = next((one for one in KINDS if isinstance(module, getattr(nn, one))), None)
    if kind is None:
        raise ArgumentError(
            f"from_module: {shown(type(module).__name__)} was given; expected one of "
            f"{', '.join(f'torch.nn.{one}' for one in KINDS)}{_recurrent_submodules(nn, module)}"
        )
    if type(module).forward is not getattr(nn, kind).forward:
        raise UnsupportedError(f"{label}: has a forward of its own; expected that of torch.nn.{kind}")
    if module.training and getattr(module, "dropout", 0) and getattr(module, "num_layers", 1) > 1:
        # What it computes as it stands is random; nothing that could be built here is equal to it.
        raise ArgumentError(
            f"{label}: is in training mode with dropout={shown(module.dropout)}; expected module.eval() before"
        )
    batch_first = bool(getattr(module, "batch_first", False))
    convention = TORCH_BATCH_FIRST if batch_first else TORCH
    layers = _layers(label, module, convention, weight_dtype)
    return Stack(layers, batch_first=batch_first, name=name)


def module_layer(module: Any, label: str) -> Layer:
    """The layer of a recurrent module that has one, in the convention of its own calls: a cell has no sequences.

    Raises
    ------
    PyrnnxError
        A module with other parameters than those of recurrent modules.
    """
    sequence = TORCH_BATCH_FIRST if getattr(module, "batch_first", False) else TORCH
    convention = sequence if isinstance(module, _torch().nn.RNNBase) else TORCH_CELL
    (layer,) = _layers(label, module, convention, None, label)
    return layer


def _layers(
    label: str, module: Any, convention: Convention, weight_dtype: str | None, layer_label: str | None = None
) -> list[Layer]:
    nn = _torch().nn
    operator = next(one for one in KINDS if isinstance(module, getattr(nn, one))).removesuffix("Cell")
    arrays = {key: as_numpy(label, key, value) for key, value in module.state_dict().items()}
    nonlinearity = module.nonlinearity if operator == "RNN" else "tanh"
    return build_layers(label, "", arrays, operator, nonlinearity, convention, weight_dtype, layer_label)


def _torch() -> Any:
    try:
        return import_module("torch")
    except ImportError as error:
        raise PyrnnxError(
            "from_module needs PyTorch; install torch, or use from_state_dict, which needs it not"
        ) from error


def _recurrent_submodules(nn: Any, module: Any) -> str:
    """For a message: where in a model such modules are."""
    if not isinstance(module, nn.Module):
        return ""
    kinds = tuple(getattr(nn, one) for one in KINDS)
    found = [shown(name) for name, one in module.named_modules() if isinstance(one, kinds)]
    more = "" if len(found) <= LISTED else f" and {len(found) - LISTED} more"
    return f", as its submodules {', '.join(found[:LISTED])}{more}" if found else ""
