"""Packed weights of a recurrent module, and the check that its parameters are still those that were packed."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import torch

from pyrnnx._internal.dtypes import FLOAT_TYPES, AnyArray
from pyrnnx.errors import PyrnnxError, shown
from pyrnnx.operator.conventions import TORCH, TORCH_CELL
from pyrnnx.operator.op import CellName
from pyrnnx.stacks.borrowed_stack import BorrowedStack

from .state_dict import Layout, operators
from .tensors import bfloat16

DTYPES = {getattr(torch, name): name for name in FLOAT_TYPES}
TENSORS = (torch.Tensor, torch.nn.Parameter)
_CELL_BIASES = ("bias_ih", "bias_hh")


def why_not_plain(name: str, tensor: Any, dtype: torch.dtype) -> str | None:
    """Return why the kernels cannot read a tensor, or None if its memory is plain numbers of the dtype."""
    problem = None
    if type(tensor) not in TENSORS:
        problem = f"is a {type(tensor).__name__}; expected a torch.Tensor"
    elif tensor.dtype is not dtype:
        problem = f"has dtype {tensor.dtype}; expected {dtype}"
    elif not tensor.is_cpu:
        problem = f"is on {tensor.device}; expected the CPU"
    elif tensor.is_nested:
        problem = "is a nested tensor; expected a padded one or a PackedSequence"
    elif tensor.layout is not torch.strided:
        problem = f"has layout {tensor.layout}; expected torch.strided"
    elif tensor.is_neg():
        problem = f"is a negative view, whose signs are not in memory; expected {name}.resolve_neg()"
    elif tensor._is_zerotensor():
        problem = f"is a zero tensor without memory; expected {name}.clone()"
    elif not tensor.untyped_storage().nbytes() and tensor.numel():
        problem = "has no memory, because its storage was freed; expected one that has"
    return problem and f"{name} {problem}"


def array_of(tensor: torch.Tensor) -> AnyArray:
    """Return a plain tensor's memory as an array, without a copy."""
    if tensor.requires_grad:
        tensor = tensor.detach()
    if tensor.dtype is torch.bfloat16:
        array: AnyArray = tensor.view(torch.int16).numpy()
        return array.view(bfloat16())
    array = tensor.numpy()
    return array


class PackedModule:
    """The weights of a module, packed, with what they were packed from."""

    def __init__(self, module: Any) -> None:
        cell, nonlinearity = _cell(module)
        self.is_cell = not isinstance(module, torch.nn.RNNBase)
        if getattr(module, "proj_size", 0):
            raise PyrnnxError("the module has proj_size, which the kernels do not have")
        self._configuration_of = attrgetter(*_attributes(module))
        self._configuration = self._configuration_of(module)
        num_layers, D = (1, 1) if self.is_cell else (module.num_layers, 2 if module.bidirectional else 1)
        # A cell's forward adds the biases that are there, whatever its attribute bias says.
        has_bias = module._parameters.get("bias_ih") is not None if self.is_cell else module.bias
        layout = Layout.of(num_layers, D, self.is_cell, has_bias)
        names = layout.keys
        if not self.is_cell and set(names) != set(module._flat_weights_names):
            raise PyrnnxError("num_layers, bidirectional and bias are not those that the parameters were made for")
        self._absent = _CELL_BIASES if self.is_cell and not has_bias else ()
        parameters = {name: module._parameters.get(name) for name in names}
        dtype: Any = getattr(parameters[names[0]], "dtype", None)
        for name, parameter in parameters.items():
            _check_parameter(name, parameter, dtype)
        self.dtype, self.input_size, self.hidden_size = dtype, module.input_size, module.hidden_size
        arrays = {name: array_of(parameter) for name, parameter in parameters.items()}
        if arrays[names[0]].shape[-1:] != (module.input_size,):
            raise PyrnnxError(f"{names[0]} has shape {arrays[names[0]].shape}; input_size is {module.input_size}")
        # Identity, address, shape and dtype of each parameter; `is_current` compares the bytes.
        self._seen = [(name, p, p.data_ptr(), p.shape, p.dtype) for name, p in parameters.items()]
        convention = TORCH_CELL if self.is_cell else TORCH
        label = type(module).__name__
        rows = operators(label, arrays, layout, cell, module.hidden_size, nonlinearity, convention)
        self.stack = BorrowedStack(label, tuple(arrays.values()), rows, convention)
        self.states = num_layers * D

    def is_current(self, module: Any) -> bool:
        """Return whether the module's parameters and attributes are, byte for byte, what was packed."""
        if self._configuration_of(module) != self._configuration:
            return False
        parameters = module._parameters
        for name, parameter, address, shape, dtype in self._seen:
            if (
                parameters.get(name) is not parameter
                or parameter.data_ptr() != address
                or parameter.shape != shape
                or parameter.dtype is not dtype
                or not parameter.is_contiguous()
            ):
                return False
        for name in self._absent:
            if parameters.get(name) is not None:
                return False
        return self.stack.is_current()


def _attributes(module: Any) -> tuple[str, ...]:
    """Return the names of the attributes that decide what a module computes, apart from those that a call reads."""
    if isinstance(module, torch.nn.RNNBase):
        return ("input_size", "hidden_size", "bias", "mode", "num_layers", "bidirectional", "proj_size")
    return ("input_size", "hidden_size", *(("nonlinearity",) * isinstance(module, torch.nn.RNNCell)))


def _cell(module: Any) -> tuple[CellName, str]:
    """Return the cell and the nonlinearity that a module's forward computes."""
    nn = torch.nn
    if isinstance(module, (nn.LSTM, nn.LSTMCell)):
        return "LSTM", "tanh"
    if isinstance(module, (nn.GRU, nn.GRUCell)):
        return "GRU", "tanh"
    if isinstance(module, nn.RNNCell):
        return "RNN", module.nonlinearity
    if module.mode not in ("RNN_TANH", "RNN_RELU"):
        raise PyrnnxError(f"mode is {shown(module.mode)}; expected 'RNN_TANH' or 'RNN_RELU'")
    return "RNN", module.mode.removeprefix("RNN_").lower()


def _check_parameter(name: str, parameter: Any, dtype: Any) -> None:
    if parameter is None:
        raise PyrnnxError(f"{name} is not a parameter of its own (parametrized, weight-normed or pruned); expected one")
    if dtype not in DTYPES:
        raise PyrnnxError(f"{name} has dtype {dtype}; the kernels have {', '.join(FLOAT_TYPES)}")
    reason = why_not_plain(name, parameter, dtype)
    if reason is None and not parameter.is_contiguous():
        reason = f"{name} is not contiguous; expected contiguous memory"
    if reason is not None:
        raise PyrnnxError(reason)
