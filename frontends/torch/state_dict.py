"""A state_dict of PyTorch as a stack of layers: which of its names belong to a recurrent module, and how they fit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from pyrnnx.conventions import TORCH, TORCH_BATCH_FIRST, Convention
from pyrnnx.dtypes import FLOAT_TYPES, AnyArray
from pyrnnx.errors import ArgumentError, PyrnnxError, UnsupportedError, shortened, shown
from pyrnnx.layer import Layer
from pyrnnx.op import Activation, Direction, RecurrentOp
from pyrnnx.stack import Stack

from .files import open_arrays
from .tensors import as_numpy

if TYPE_CHECKING:
    import os

    Source: TypeAlias = Mapping[str, Any] | str | os.PathLike[str]

OPERATORS = {1: "RNN", 3: "GRU", 4: "LSTM"}  # by the gates of a cell
NONLINEARITIES = {"tanh": "Tanh", "relu": "Relu"}
LISTED = 10  # names that a message lists
_KEY = re.compile(r"(?:(.*)\.)?((?:weight|bias)_(?:ih|hh|hr))(?:_l(0|[1-9][0-9]{0,5})(_reverse)?)?", re.DOTALL)


def from_state_dict(
    source: Source,
    *,
    prefix: str = "",
    operator: str | None = None,
    nonlinearity: str = "tanh",
    batch_first: bool = False,
    name: str | None = None,
    weight_dtype: str | None = None,
) -> Stack:
    """The layers of one recurrent module of PyTorch from its weights; PyTorch is needed for .pt files only.

    Parameters
    ----------
    source : mapping, or path
        A state_dict: arrays or tensors by their names in it. Or a file of one: .safetensors; .pt, .pth, .bin or .ckpt,
        which is read with ``torch.load(..., weights_only=True)``, so that nothing in it is run. Mappings in mappings,
        as in a checkpoint, are joined by ".": "state_dict.encoder.lstm.weight_ih_l0".
    prefix : str, optional
        What stands before the names of the module, with its ".": "encoder.lstm.". It may be left out where there is
        one recurrent module only.
    operator : str, optional
        "RNN", "GRU" or "LSTM", as which the weights must fit. Default: as the shape of weight_hh tells.
    nonlinearity : str
        Of an RNN "tanh" or "relu": a state_dict does not hold it.
    batch_first : bool
        Whether X and Y are [batch_size, seq_length, ...]: a state_dict does not hold it.
    name : str, optional
        Of the stack, for errors. Default: the prefix.
    weight_dtype : str, optional
        "bfloat16" or "int8": keep W and R in fewer bits, see `Layer`. Default: that of the weights.

    Returns
    -------
    Stack
        As of `from_module`; it has copies of the weights.

    Raises
    ------
    ArgumentError
        A prefix under which there is no recurrent module, or that leaves open which; names that are missing or that
        such modules do not have; shapes and dtypes that do not fit.
    FormatError
        A file that is broken, or holds more than arrays.
    UnsupportedError
        Weights of a module with proj_size, or of a parametrized one.
    PyrnnxError
        A file whose package, safetensors or torch, is not installed; weights that exceed memory.
    """
    if not isinstance(prefix, str):
        raise ArgumentError(f"from_state_dict: prefix is {shown(prefix)}; expected a string")
    if operator is not None and (not isinstance(operator, str) or operator not in OPERATORS.values()):
        allowed = ", ".join(map(repr, OPERATORS.values()))
        raise ArgumentError(f"from_state_dict: operator is {shown(operator)}; expected one of {allowed}, or None")
    if not isinstance(batch_first, (bool, np.bool_)):
        raise ArgumentError(f"from_state_dict: batch_first is {shown(batch_first)}; expected True or False")
    with ExitStack() as closing:
        label, available = open_arrays(source, closing)
        found = _chosen(label, prefix, available)
        if found:
            label = f"{label}: {shown(found)}"
        own = [key for key in available if key.startswith(found)]
        _check_keys(label, [key[len(found) :] for key in own])
        try:
            arrays = {key[len(found) :]: as_numpy(label, key[len(found) :], available[key]) for key in own}
        except MemoryError as error:
            raise PyrnnxError(f"{label}: the arrays exceed memory ({shortened(str(error))})") from error
    convention = TORCH_BATCH_FIRST if batch_first else TORCH
    layers = build_layers(label, found, arrays, operator, nonlinearity, convention, weight_dtype)
    return Stack(layers, batch_first=bool(batch_first), name=name or found.removesuffix(".") or None)


def _chosen(label: str, prefix: str, available: Iterable[str]) -> str:
    """The prefix of the module that is meant: the one given, or the only one."""
    parsed = [match for key in available if (match := _KEY.fullmatch(key))]
    prefixes = list(dict.fromkeys("" if one[1] is None else f"{one[1]}." for one in parsed))
    if prefix in prefixes:
        return prefix
    if not prefix and len(prefixes) == 1:
        return prefixes[0]
    if not prefixes:
        raise ArgumentError(
            f"{label}: holds no weights of a recurrent module; expected names such as weight_ih_l0 and weight_hh_l0"
        )
    given = f"is {shown(prefix)}" if prefix else "was not given"
    raise ArgumentError(f"{label}: prefix {given}; expected one of {_listed(map(shown, prefixes))}")


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    return ", ".join(names[:LISTED]) + ("" if len(names) <= LISTED else f" and {len(names) - LISTED} more")


def build_layers(
    label: str,
    prefix: str,
    arrays: Mapping[str, AnyArray],
    operator: str | None,
    nonlinearity: str,
    convention: Convention,
    weight_dtype: str | None,
    layer_label: str | None = None,
) -> list[Layer]:
    """Layers from all arrays of one module by their names without the prefix; `layer_label` as `label` of `Layer`.

    Raises
    ------
    PyrnnxError
        As `from_state_dict`.
    """
    layout = _check_keys(label, list(arrays))
    options: dict[str, Any] = {"convention": convention, "label": layer_label, "weight_dtype": weight_dtype}
    try:
        return _layers(label, prefix, arrays, layout, operator, nonlinearity, options)
    except MemoryError as error:
        raise PyrnnxError(f"{label}: the layers exceed memory ({shortened(str(error))})") from error


def _layers(
    label: str,
    prefix: str,
    arrays: Mapping[str, AnyArray],
    layout: _Layout,
    operator: str | None,
    nonlinearity: str,
    options: Mapping[str, Any],
) -> list[Layer]:
    cell, hidden_size = _cell(label, arrays[f"weight_hh{layout.suffixes[0]}"], layout.suffixes[0], operator)
    _check_arrays(label, arrays, layout, _GATES[cell], hidden_size)
    D = layout.num_directions
    layers = []
    for k in range(layout.num_layers):
        ends = layout.suffixes[k * D : (k + 1) * D]
        W, R, *biases = (np.stack([arrays[kind + end] for end in ends]) for kind in layout.kinds)
        B = np.concatenate(biases, axis=-1) if biases else None
        if not options["convention"].has_directions:
            W, R, B = W[0], R[0], None if B is None else B[0]
        own = f"{prefix}{ends[0].removeprefix('_')}" or None
        op = RecurrentOp(
            cell,
            hidden_size,
            Direction.BIDIRECTIONAL if D == 2 else Direction.FORWARD,
            _activations(label, cell, nonlinearity) * D,
            linear_before_reset=cell == "GRU",
            label=label,
        )
        layers.append(Layer(op, W, R, B, name=own, **options))
    return layers


_GATES = {operator: gates for gates, operator in OPERATORS.items()}


@dataclass(frozen=True)
class _Layout:
    """Which arrays a module has: `suffixes` of the layers, of each both directions, and `kinds` before them."""

    num_layers: int
    num_directions: int
    suffixes: tuple[str, ...]
    kinds: tuple[str, ...]

    @property
    def keys(self) -> list[str]:
        return [kind + suffix for suffix in self.suffixes for kind in self.kinds]

    def __str__(self) -> str:
        directions = "both directions" if self.num_directions == 2 else "one direction"
        biases = "biases" if len(self.kinds) > 2 else "no biases"
        return f"{self.num_layers} layers, {directions} and {biases}"


def _check_keys(label: str, keys: list[str]) -> _Layout:
    """Reject names that a recurrent module does not have, and those of one that are missing."""
    matches = {key: _KEY.fullmatch(key) for key in keys}
    unknown = [key for key, match in matches.items() if match is None or match[1] is not None]
    parametrized = [key for key in unknown if "parametrizations." in key or key.endswith(("_g", "_v", "_orig"))]
    if parametrized:
        raise UnsupportedError(
            f"{label}: the weights are parametrized ({_listed(map(shown, parametrized))}); expected weights after "
            "torch.nn.utils.parametrize.remove_parametrizations, or remove_weight_norm"
        )
    if unknown:
        expected = "weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0 and those of other layers and directions"
        raise ArgumentError(f"{label}: unknown are {_listed(map(shown, unknown))}; expected {expected}")
    parsed = [match for match in matches.values() if match is not None]
    if any(match[2].endswith("_hr") for match in parsed):
        raise UnsupportedError(
            f"{label}: weight_hr is of an LSTM with proj_size, whose h has another size than its cell state: ONNX and "
            "OpenVINO have no such operator; expected proj_size=0"
        )
    numbered = [match for match in parsed if match[3] is not None]
    if numbered and len(numbered) != len(parsed):
        raise ArgumentError(f"{label}: has the names of a layer and of a cell, {_listed(keys)}; expected either")
    numbers = {int(match[3]) for match in numbered} or {0}
    num_layers = max(numbers) + 1
    if len(numbers) != num_layers:
        absent = next(k for k in range(num_layers) if k not in numbers)
        raise ArgumentError(f"{label}: has layer {num_layers - 1}, but not layer {absent}; expected all from 0")
    ends = ("", "_reverse") if any(match[4] for match in parsed) else ("",)
    suffixes = tuple(f"_l{k}{end}" for k in range(num_layers) for end in ends) if numbered else ("",)
    kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    has_biases = any(key.startswith("bias_") for key in keys)
    layout = _Layout(num_layers, len(ends), suffixes, kinds if has_biases else kinds[:2])
    missing = [key for key in layout.keys if key not in matches]
    if missing:
        raise ArgumentError(f"{label}: missing are {_listed(missing)}; expected all of {layout}")
    return layout


def _cell(label: str, R: AnyArray, suffix: str, operator: str | None) -> tuple[str, int]:
    """The cell that the shape of weight_hh [G*hidden_size, hidden_size] tells, and hidden_size."""
    gates = R.shape[0] // R.shape[1] if R.ndim == 2 and R.shape[1] and R.shape[0] % R.shape[1] == 0 else 0
    if gates not in OPERATORS:
        raise ArgumentError(
            f"{label}: weight_hh{suffix} has shape {R.shape}; expected (G*hidden_size, hidden_size), with G = 1 of an "
            "RNN, 3 of a GRU, 4 of an LSTM"
        )
    H = R.shape[1]
    if operator is not None and operator != OPERATORS[gates]:
        raise ArgumentError(
            f"{label}: weight_hh{suffix} has shape {R.shape}, that of operator {OPERATORS[gates]!r}; expected "
            f"({_GATES[operator]}*hidden_size, hidden_size) for {operator!r}"
        )
    return OPERATORS[gates], H


def _check_arrays(label: str, arrays: Mapping[str, AnyArray], layout: _Layout, G: int, H: int) -> None:
    """Reject shapes and dtypes that do not fit each other."""
    rows, D = G * H, layout.num_directions
    first = arrays[layout.keys[0]]
    if first.dtype.name not in FLOAT_TYPES:
        raise ArgumentError(
            f"{label}: {layout.keys[0]} has dtype {first.dtype}; expected one of {', '.join(FLOAT_TYPES)}"
        )
    for place, suffix in enumerate(layout.suffixes):
        inputs: int | str = D * H if place >= D else first.shape[1] if first.ndim == 2 else "input_size"
        shapes = {"weight_ih": (rows, inputs), "weight_hh": (rows, H), "bias_ih": (rows,), "bias_hh": (rows,)}
        for kind in layout.kinds:
            array, expected = arrays[kind + suffix], shapes[kind]
            if array.shape != expected:
                text = ", ".join(map(str, expected)) + ("," if len(expected) == 1 else "")
                raise ArgumentError(f"{label}: {kind}{suffix} has shape {array.shape}; expected ({text})")
            if array.dtype != first.dtype:
                raise ArgumentError(
                    f"{label}: {kind}{suffix} has dtype {array.dtype}; expected {first.dtype}, the dtype of "
                    f"{layout.keys[0]}"
                )


def _activations(label: str, cell: str, nonlinearity: Any) -> tuple[tuple[Activation, ...], ...]:
    if not isinstance(nonlinearity, str) or nonlinearity not in NONLINEARITIES:
        allowed = " or ".join(map(repr, NONLINEARITIES))
        raise ArgumentError(f"{label}: nonlinearity is {shown(nonlinearity)}; expected {allowed}")
    if cell != "RNN":
        if nonlinearity != "tanh":
            raise ArgumentError(f"{label}: nonlinearity is {nonlinearity!r} with weights of {cell}; only an RNN has it")
        return ()
    return ((Activation(NONLINEARITIES[nonlinearity]),),)
