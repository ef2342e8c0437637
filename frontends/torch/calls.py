"""Calls of accelerated modules: what runs on pyrnnx, and why the rest runs on PyTorch."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import numpy as np
import torch
from torch.autograd import forward_ad
from torch.nn.utils.rnn import PackedSequence
from torch.utils._device import DeviceContext

from pyrnnx import config
from pyrnnx._internal.dtypes import FLOAT_TYPES, AnyArray
from pyrnnx.errors import PyrnnxError, shown
from pyrnnx.operator.check import inner_contiguous
from pyrnnx.operator.conventions import TORCH, TORCH_CELL
from pyrnnx.operator.op import CellName
from pyrnnx.stacks.borrowed_stack import BorrowedStack

from .state_dict import Layout, operators
from .tensors import bfloat16

Declined = str  # the reason why PyTorch runs a call
_count_modes, _mode_at = torch._C._len_torch_function_stack, torch._C._get_function_stack_at
# Checks for other code that may read or replace the call's tensors; each takes about 0.1 us.
_AMBIENT: tuple[tuple[Any, Declined | None], ...] = (
    (torch._C._get_tracing_state, "torch.jit traces the call"),
    (torch._C._are_functorch_transforms_active, "a functorch transform is active (torch.func: vmap, grad, jvp, ...)"),
    (torch._C._len_torch_dispatch_stack, "a TorchDispatchMode is active (a with block, such as FakeTensorMode)"),
    (_count_modes, None),  # `_why_not_in_modes` has the reason
    (torch._C._is_any_autocast_enabled, "autocast is enabled (torch.autocast)"),
)
_GRADIENTS = "gradients are needed: call it under torch.no_grad() or torch.inference_mode()"
DTYPES = {getattr(torch, name): name for name in FLOAT_TYPES}
TENSORS = (torch.Tensor, torch.nn.Parameter)
_CELL_BIASES = ("bias_ih", "bias_hh")


class Runner:
    """Runs a module's calls, with packed weights that it prepares again whenever the parameters changed.

    Copies of a module, also pickled, pack their own weights: a runner pickles as an empty one.
    """

    def __init__(self) -> None:
        self._packed: PackedModule | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Runner, ()

    def run(self, module: Any, input: Any, hx: Any) -> Any:
        """Return the module's results, or a string that says why PyTorch must run the call."""
        reason = _why_not_here(module, input, hx)
        if reason is not None:
            return reason
        packed = self._packed
        if packed is None or not packed.is_current(module):
            self._packed = None
            try:
                self._packed = packed = PackedModule(module)
            except PyrnnxError as error:
                return str(error)
        if packed.is_cell:
            return _run_cell(packed, input, hx)
        if isinstance(input, PackedSequence):
            return _run_packed(packed, module, input, hx)
        return _run_tensor(packed, module, input, hx)


def _why_not_in_modes() -> Declined | None:
    """Return which TorchFunctionMode may replace the call; one that makes the CPU the default device does not."""
    for k in range(_count_modes()):
        mode = _mode_at(k)
        if type(mode) is not DeviceContext:
            return f"a TorchFunctionMode is active (with {type(mode).__name__}())"
        if mode.device.type != "cpu":
            return f"the default device is {mode.device} (torch.set_default_device, or with torch.device)"
    return None


def _why_not_here(module: Any, input: Any, hx: Any) -> Declined | None:
    for is_active, reason in _AMBIENT:
        if is_active():
            cause = reason or _why_not_in_modes()
            if cause is not None:
                return cause
    if forward_ad._current_level >= 0:
        return "forward-mode automatic differentiation is active"
    if module.training and getattr(module, "dropout", 0) and module.num_layers > 1:
        return "the module is in training mode with dropout"
    if torch.is_grad_enabled():
        for parameter in module._parameters.values():
            if parameter is not None and parameter.requires_grad:
                return _GRADIENTS
        data = input.data if isinstance(input, PackedSequence) else input
        for tensor in (data, *hx) if isinstance(hx, (tuple, list)) else (data, hx):
            if getattr(tensor, "requires_grad", False):
                return _GRADIENTS
    return None


def _threads() -> int:
    threads: int = torch.get_num_threads()
    return min(threads, config.get_num_threads())


def _empty(packed: PackedModule, shape: tuple[int, ...]) -> tuple[torch.Tensor, AnyArray]:
    """Return an uninitialized tensor and its memory as an array."""
    if packed.dtype is torch.bfloat16:
        tensor = torch.empty(shape, dtype=packed.dtype)
        return tensor, array_of(tensor)
    array = np.empty(shape, packed.stack.dtype)  # NumPy allocates in a tenth of PyTorch's time
    return torch.from_numpy(array), array


def _read_states(packed: PackedModule, hx: Any, shape: tuple[int, ...]) -> tuple[AnyArray | None, ...] | Declined:
    """Return h and, for an LSTM, c as arrays, None for zero."""
    has_cell_state = packed.stack.has_cell_state
    if hx is None:
        return (None,) * (1 + has_cell_state)
    if has_cell_state and (not isinstance(hx, (tuple, list)) or len(hx) != 2):
        return "hx is not a pair of tensors; expected (h_0, c_0)"
    tensors = hx if has_cell_state else (hx,)
    for tensor in tensors:
        reason = why_not_plain("hx", tensor, packed.dtype)
        if reason is not None:
            return reason
        if tensor.shape != shape:
            return f"hx has shape {tuple(tensor.shape)}; expected {shape}"
    return tuple([inner_contiguous("accelerate", "hx", array_of(tensor)) for tensor in tensors])


def _wrong_shape(shape: tuple[int, ...], axes: str, input_size: int) -> Declined:
    if 0 in shape:
        return f"input has shape {tuple(shape)}, which is empty; expected no axis of size 0"
    unbatched = "(seq_length, {})" if "seq_length" in axes else "({},)"
    return f"input has shape {tuple(shape)}; expected ({axes}, {input_size}) or {unbatched.format(input_size)}"


def _as_results(packed: PackedModule, states: list[torch.Tensor]) -> Any:
    return tuple(states) if packed.stack.has_cell_state else states[0]


def _run_cell(packed: PackedModule, input: Any, hx: Any) -> Any:
    reason = why_not_plain("input", input, packed.dtype)
    if reason is not None:
        return reason
    shape = input.shape
    if len(shape) not in (1, 2) or shape[-1] != packed.input_size or 0 in shape:
        return _wrong_shape(shape, "batch_size", packed.input_size)
    outer = (*shape[:-1], packed.hidden_size)
    initial = _read_states(packed, hx, outer)
    if isinstance(initial, Declined):
        return initial
    X = inner_contiguous("accelerate", "input", array_of(input))
    results = [_empty(packed, outer) for _ in initial]
    arrays = tuple([array for _, array in results])
    if len(shape) == 1:
        X = X[None]
        initial = tuple([None if state is None else state[None] for state in initial])
        arrays = tuple([array[None] for array in arrays])
    if not packed.stack.step(_threads(), X, initial, arrays):
        return "the kernels cannot read the memory of the input"
    return _as_results(packed, [tensor for tensor, _ in results])


def _run_tensor(packed: PackedModule, module: Any, input: Any, hx: Any) -> Any:
    reason = why_not_plain("input", input, packed.dtype)
    if reason is not None:
        return reason
    shape, is_batched = input.shape, input.dim() == 3
    if len(shape) not in (2, 3) or shape[-1] != packed.input_size or 0 in shape:
        axes = "batch_size, seq_length" if module.batch_first else "seq_length, batch_size"
        return _wrong_shape(shape, axes, packed.input_size)
    batch_first = module.batch_first and is_batched
    T, N = (shape[1], shape[0]) if batch_first else (shape[0], shape[1] if is_batched else 1)
    outer = (packed.states, N, packed.hidden_size) if is_batched else (packed.states, packed.hidden_size)
    initial = _read_states(packed, hx, outer)
    if isinstance(initial, Declined):
        return initial
    X = inner_contiguous("accelerate", "input", array_of(input))
    D, H = packed.stack.num_directions, packed.hidden_size
    output, Y = _empty(packed, (T, N, D * H) if is_batched else (T, D * H))
    results = [_empty(packed, outer) for _ in initial]
    last = tuple([array for _, array in results])
    if batch_first:  # PyTorch, too, returns a transposed view
        X, output = X.transpose(1, 0, 2), output.transpose(0, 1)
    if not is_batched:
        X = X[:, None]
        initial = tuple([None if state is None else state[:, None] for state in initial])
        last = tuple([array[:, None] for array in last])
    if not packed.stack.run_joined(_threads(), X, None, initial, Y.reshape(T, N, D, H), last):
        return "the kernels cannot read the memory of the input"
    return output, _as_results(packed, [tensor for tensor, _ in results])


def _why_not_packed(packed: PackedModule, input: PackedSequence) -> Declined | None:
    data, batch_sizes = input.data, input.batch_sizes
    reason = why_not_plain("input.data", data, packed.dtype)
    reason = reason or why_not_plain("input.batch_sizes", batch_sizes, torch.int64)
    if reason is not None:
        return reason
    if data.dim() != 2 or data.shape[1] != packed.input_size:
        return f"input.data has shape {tuple(data.shape)}; expected (rows, {packed.input_size})"
    rows = batch_sizes.numpy()
    if rows.ndim != 1 or rows.size == 0 or (rows[1:] > rows[:-1]).any() or rows[-1] < 1 or rows.sum() != len(data):
        return "input.batch_sizes does not describe input.data; expected falling sizes whose sum is the number of rows"
    return None


def _run_packed(packed: PackedModule, module: Any, input: Any, hx: Any) -> Any:
    reason = _why_not_packed(packed, input)
    if reason is not None:
        return reason
    data, batch_sizes, order, inverse = input
    rows = batch_sizes.numpy()  # rows of each time step, the longest sequences first
    T, N, D, H = len(rows), int(rows[0]), packed.stack.num_directions, packed.hidden_size
    outer = (packed.states, N, H)
    if hx is not None and order is not None:
        given = _read_states(packed, hx, outer)  # permute_hidden raises errors of its own
        if isinstance(given, Declined):
            return given
        hx = module.permute_hidden(hx, order)
    initial = _read_states(packed, hx, outer)
    if isinstance(initial, Declined):
        return initial
    flat = inner_contiguous("accelerate", "input.data", array_of(data))
    output, flat_Y = _empty(packed, (len(data), D * H))
    results = [_empty(packed, outer) for _ in initial]
    lengths = None
    if rows[-1] == N:
        X, Y = flat.reshape(T, N, -1), flat_Y.reshape(T, N, D, H)
    else:
        present = np.arange(N) < rows[:, None]  # [T, N]
        lengths = present.sum(0)
        X, Y = np.empty((T, N, flat.shape[1]), flat.dtype), np.empty((T, N, D, H), flat.dtype)
        X[present] = flat  # the kernels do not read the rest
    if not packed.stack.run_joined(_threads(), X, lengths, initial, Y, tuple([array for _, array in results])):
        return "the kernels cannot read the memory of the input"
    if lengths is not None:
        flat_Y[:] = Y.reshape(T, N, D * H)[present]
    states = _as_results(packed, [tensor for tensor, _ in results])
    return PackedSequence(output, batch_sizes, order, inverse), module.permute_hidden(states, inverse)


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
