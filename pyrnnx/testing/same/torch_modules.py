"""PyTorch's recurrent modules as layers: what they compute, described as pyrnnx describes it, and run by PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyrnnx.conventions import TORCH, TORCH_BATCH_FIRST, Convention
from pyrnnx.dtypes import AnyArray
from pyrnnx.frontends.torch.modules import module_layer
from pyrnnx.frontends.torch.tensors import as_numpy
from pyrnnx.layer import Layer
from pyrnnx.testing.same.arrays import as_tensor, torch_package


def is_module(value: Any) -> bool:
    torch = torch_package()
    return torch is not None and isinstance(value, torch.nn.Module)


def takes_states(module: Any) -> bool:
    """Whether the states of a call stand in one argument after X: of nn.RNN, GRU and LSTM of any number of layers."""
    return isinstance(module, torch_package().nn.RNNBase)


def is_recurrent(module: Any) -> bool:
    """Whether a module is one recurrent layer: nn.RNN, GRU or LSTM with num_layers 1 and no projection, or a cell."""
    nn = torch_package().nn
    if isinstance(module, nn.RNNBase):
        return bool(module.num_layers == 1 and not module.proj_size)
    return isinstance(module, (nn.RNNCell, nn.GRUCell, nn.LSTMCell))


def layer_of(module: Any) -> Layer:
    """A module as a layer, with copies of its weights."""
    return module_layer(module, f"{type(module).__name__} of PyTorch")


def joins_directions(convention: Convention) -> bool:
    """Whether PyTorch's own Y has the directions side by side in its last axis."""
    return convention in (TORCH, TORCH_BATCH_FIRST)


def split_directions(Y: Any, num_directions: int) -> Any:
    """[.., D*H] as [.., D, H]; what is no such array, as it is."""
    if Y.ndim != 3 or Y.shape[-1] % num_directions:
        return Y
    return Y.reshape(*Y.shape[:-1], num_directions, Y.shape[-1] // num_directions)


def run_layer(module: Any, arrays: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """A recurrent module on arrays of its own arrangement by canonical name, and its outputs likewise."""
    torch, like = torch_package(), next(module.parameters())
    tensors = {name: as_tensor(array, like) for name, array in arrays.items()}
    with torch.no_grad():
        if isinstance(module, torch.nn.RNNBase):
            return _run_sequence(module, tensors)
        result = module(tensors["X"], _states(module, tensors))
    last = result if isinstance(result, tuple) else (result,)
    values = {name: as_numpy("PyTorch", name, one) for name, one in zip(("Y_h", "Y_c"), last, strict=False)}
    return {"Y": values["Y_h"], **values}


def _states(module: Any, tensors: Mapping[str, Any]) -> Any:
    h, c = tensors.get("initial_h"), tensors.get("initial_c")
    if not isinstance(module, (torch_package().nn.LSTM, torch_package().nn.LSTMCell)) or (h is None and c is None):
        return h
    zeros = torch_package().zeros_like(h if c is None else c)
    return (zeros if h is None else h, zeros if c is None else c)


def _run_sequence(module: Any, tensors: Mapping[str, Any]) -> dict[str, AnyArray]:
    X, lengths, rnn = tensors["X"], tensors.get("sequence_lens"), torch_package().nn.utils.rnn
    seq_length = X.shape[1 if module.batch_first else 0]
    packed = False
    if lengths is not None and (lengths != seq_length).any():
        packed = True
        X = rnn.pack_padded_sequence(X, lengths.cpu().long(), batch_first=module.batch_first, enforce_sorted=False)
    Y, last = module(X, _states(module, tensors))
    if packed:
        Y, _ = rnn.pad_packed_sequence(Y, batch_first=module.batch_first, total_length=seq_length)
    Y = split_directions(Y, 2 if module.bidirectional else 1)
    values = (Y, *last) if isinstance(last, tuple) else (Y, last)
    return {name: as_numpy("PyTorch", name, one) for name, one in zip(("Y", "Y_h", "Y_c"), values, strict=False)}


def run_module(module: Any, /, *by_place: AnyArray, **by_name: AnyArray) -> Any:
    """Any module on arrays as tensors; of nn.RNN, GRU and LSTM, what follows X is the tuple of states."""
    torch, like = torch_package(), next(module.parameters(), None)
    places, named = [as_tensor(a, like) for a in by_place], {name: as_tensor(a, like) for name, a in by_name.items()}
    if takes_states(module) and len(places) > 1:
        places = [places[0], places[1] if len(places) == 2 else tuple(places[1:])]
    with torch.no_grad():
        return module(*places, **named)
