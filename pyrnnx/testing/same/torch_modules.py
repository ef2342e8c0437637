"""PyTorch's recurrent modules as layers: described as pyrnnx layers, and run by PyTorch."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.frontends.torch.tensors import as_numpy
from pyrnnx.operator.conventions import TORCH, TORCH_BATCH_FIRST, Convention


def torch_package() -> Any:
    """Return PyTorch if it is already imported, else None."""
    return sys.modules.get("torch")


def as_tensor(array: AnyArray, like: Any) -> Any:
    """Return a tensor on the device of another, with NumPy's bfloat16 as PyTorch's."""
    torch = torch_package()
    if array.dtype.name == "bfloat16":
        tensor = torch.from_numpy(array.astype(np.float32)).to(torch.bfloat16)
    else:
        tensor = torch.from_numpy(np.ascontiguousarray(array).copy())
    return tensor if like is None else tensor.to(like.device)


def is_module(value: Any) -> bool:
    torch = torch_package()
    return torch is not None and isinstance(value, torch.nn.Module)


def takes_states(module: Any) -> bool:
    """Return whether states are one argument after X, as for nn.RNN, GRU and LSTM of any depth."""
    return isinstance(module, torch_package().nn.RNNBase)


def is_recurrent(module: Any) -> bool:
    """Return whether a module is a cell, or nn.RNN, GRU or LSTM with one layer and no projection."""
    nn = torch_package().nn
    if isinstance(module, nn.RNNBase):
        return bool(module.num_layers == 1 and not module.proj_size)
    return isinstance(module, (nn.RNNCell, nn.GRUCell, nn.LSTMCell))


def joins_directions(convention: Convention) -> bool:
    """Return whether PyTorch's own Y joins the directions in its last axis."""
    return convention in (TORCH, TORCH_BATCH_FIRST)


def split_directions(Y: Any, num_directions: int) -> Any:
    """Return [.., D*H] as [.., D, H]; any other value unchanged."""
    if Y.ndim != 3 or Y.shape[-1] % num_directions:
        return Y
    return Y.reshape(*Y.shape[:-1], num_directions, Y.shape[-1] // num_directions)


def run_layer(module: Any, arrays: Mapping[str, AnyArray], *, always_packed: bool = False) -> dict[str, AnyArray]:
    """Run a recurrent module on arrays in its own arrangement, by canonical name; return outputs in the same way.

    Rows are packed if their lengths differ from that of X; with `always_packed`, if there are lengths.
    """
    torch, like = torch_package(), next(module.parameters())
    tensors = {name: as_tensor(array, like) for name, array in arrays.items()}
    with torch.no_grad():
        if isinstance(module, torch.nn.RNNBase):
            return _run_sequence(module, tensors, always_packed)
        result = module(tensors["X"], _states(module, tensors))
    last = result if isinstance(result, tuple) else (result,)
    values = {name: as_numpy("PyTorch", name, value) for name, value in zip(("Y_h", "Y_c"), last, strict=False)}
    return {"Y": values["Y_h"], **values}


def _states(module: Any, tensors: Mapping[str, Any]) -> Any:
    h, c = tensors.get("initial_h"), tensors.get("initial_c")
    if not isinstance(module, (torch_package().nn.LSTM, torch_package().nn.LSTMCell)) or (h is None and c is None):
        return h
    zeros = torch_package().zeros_like(h if c is None else c)
    return (zeros if h is None else h, zeros if c is None else c)


def _run_sequence(module: Any, tensors: Mapping[str, Any], always_packed: bool) -> dict[str, AnyArray]:
    X, rnn = tensors["X"], torch_package().nn.utils.rnn
    lengths: Any = tensors.get("sequence_lens")
    seq_length = X.shape[1 if module.batch_first else 0]
    is_packed = lengths is not None and (always_packed or bool((lengths != seq_length).any()))
    if is_packed:
        X = rnn.pack_padded_sequence(X, lengths.cpu().long(), batch_first=module.batch_first, enforce_sorted=False)
    Y, last = module(X, _states(module, tensors))
    if is_packed:
        Y, _ = rnn.pad_packed_sequence(Y, batch_first=module.batch_first, total_length=seq_length)
    Y = split_directions(Y, 2 if module.bidirectional else 1)
    values = (Y, *last) if isinstance(last, tuple) else (Y, last)
    return {name: as_numpy("PyTorch", name, value) for name, value in zip(("Y", "Y_h", "Y_c"), values, strict=False)}


def run_module(module: Any, /, *by_place: AnyArray, **by_name: AnyArray) -> Any:
    """Run any module on tensors; nn.RNN, GRU and LSTM take their states as a tuple."""
    torch, like = torch_package(), next(module.parameters(), None)
    places, named = [as_tensor(a, like) for a in by_place], {name: as_tensor(a, like) for name, a in by_name.items()}
    if takes_states(module) and len(places) > 1:
        places = [places[0], places[1] if len(places) == 2 else tuple(places[1:])]
    with torch.no_grad():
        return module(*places, **named)
