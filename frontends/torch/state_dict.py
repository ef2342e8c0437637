"""Stacks of layers from a state_dict of PyTorch: selection and checks of a recurrent module's names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from pyrnnx._internal.dtypes import FLOAT_TYPES, AnyArray
from pyrnnx.errors import ArgumentError, UnsupportedError, listed, shown
from pyrnnx.layers.layer import Layer
from pyrnnx.operator.conventions import TORCH, TORCH_BATCH_FIRST, Convention
from pyrnnx.operator.op import Activation, CellName, Direction, RecurrentOp
from pyrnnx.stacks.stack import Stack

from .files import open_arrays
from .tensors import as_numpy

if TYPE_CHECKING:
    import os

    Source: TypeAlias = Mapping[str, Any] | str | os.PathLike[str]

OPERATORS: Mapping[int, CellName] = {1: "RNN", 3: "GRU", 4: "LSTM"}  # by number of gates
NONLINEARITIES = {"tanh": "Tanh", "relu": "Relu"}
KINDS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
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
    """Build a stack from the weights of one recurrent module of PyTorch; only .pt files need PyTorch.

    Parameters
    ----------
    source : mapping, or path
        A state_dict: arrays or tensors by name. Or the path of its file: .safetensors, or .pt, .pth, .bin or .ckpt,
        which is read with ``torch.load(..., weights_only=True)`` and runs no code. Names of nested mappings, as in a
        checkpoint, are joined by ".": "state_dict.encoder.lstm.weight_ih_l0".
    prefix : str, optional
        Prefix of the module's names, with its ".": "encoder.lstm.". Default: the prefix of the only recurrent module.
    operator : str, optional
        "RNN", "GRU" or "LSTM", which the weights must fit. Default: taken from the shape of weight_hh.
    nonlinearity : str
        "tanh" or "relu" of an RNN, which a state_dict does not contain.
    batch_first : bool
        True if X and Y are [batch_size, seq_length, ...], which a state_dict does not contain.
    name : str, optional
        Name of the stack in errors. Default: the prefix.
    weight_dtype : str, optional
        "bfloat16" or "int8": store W and R in fewer bits, see `Layer`. Default: the dtype of the weights.

    Returns
    -------
    Stack
        The stack of `from_module`, with copies of the weights.

    Raises
    ------
    ArgumentError
        The prefix selects no recurrent module, or is needed to select one of several; a name is missing or unknown; or
        a shape or dtype does not fit.
    FormatError
        The file is broken, or contains more than arrays.
    UnsupportedError
        The module has proj_size, or is parametrized.
    PyrnnxError
        The package to read the file, safetensors or torch, is missing.
    """
    if not isinstance(prefix, str):
        raise ArgumentError(f"from_state_dict: prefix is {shown(prefix)}; expected a string")
    if operator is not None and (not isinstance(operator, str) or operator not in OPERATORS.values()):
        allowed = ", ".join(map(repr, OPERATORS.values()))
        raise ArgumentError(f"from_state_dict: operator is {shown(operator)}; expected one of {allowed}, or None")
    if not isinstance(batch_first, (bool, np.bool_)):
        raise ArgumentError(f"from_state_dict: batch_first is {shown(batch_first)}; expected True or False")
    with ExitStack() as closing:
        label, available, read = open_arrays(source, closing)
        prefix = _module_prefix(label, prefix, available)
        if prefix:
            label = f"{label}: {shown(prefix)}"
        names = {key.removeprefix(prefix): key for key in available if key.startswith(prefix)}
        _check_keys(label, list(names))
        arrays = {short: as_numpy(label, short, read(key)) for short, key in names.items()}
    convention = TORCH_BATCH_FIRST if batch_first else TORCH
    layers = build_layers(label, prefix, arrays, operator, nonlinearity, convention, weight_dtype)
    return Stack(layers, batch_first=bool(batch_first), name=name or prefix.removesuffix(".") or None)


def _module_prefix(label: str, prefix: str, available: Iterable[str]) -> str:
    """Return the prefix of a module: `prefix`, or if it is "" the prefix of the only module."""
    parsed = [match for key in available if (match := _KEY.fullmatch(key))]
    prefixes = list(dict.fromkeys("" if match[1] is None else f"{match[1]}." for match in parsed))
    if prefix in prefixes:
        return prefix
    if not prefix and len(prefixes) == 1:
        return prefixes[0]
    if not prefixes:
        raise ArgumentError(
            f"{label}: it has no weights of a recurrent module; expected names such as weight_ih_l0 and weight_hh_l0"
        )
    text = f"is {shown(prefix)}" if prefix else "was not given"
    expected = "none: the names have no prefix" if prefixes == [""] else f"one of {listed(map(shown, prefixes))}"
    raise ArgumentError(f"{label}: prefix {text}; expected {expected}")


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
    """Build layers from all arrays of one module, by names without prefix; `layer_label` is the `label` of `Layer`."""
    layout = _check_keys(label, list(arrays))
    options: dict[str, Any] = {"convention": convention, "label": layer_label, "weight_dtype": weight_dtype}
    cell, hidden_size = _cell(label, arrays[f"weight_hh{layout.suffixes[0]}"], layout.suffixes[0], operator)
    rows = operators(label, arrays, layout, cell, hidden_size, nonlinearity, convention)
    names = [f"{prefix}{end.removeprefix('_')}" or None for end in layout.suffixes[:: layout.num_directions]]
    return [
        Layer(op, weights["W"], weights["R"], weights.get("B"), name=name, **options)
        for name, (op, weights) in zip(names, rows, strict=True)
    ]


def operators(
    label: str,
    arrays: Mapping[str, AnyArray],
    layout: Layout,
    cell: CellName,
    hidden_size: int,
    nonlinearity: Any,
    convention: Convention,
) -> Iterator[tuple[RecurrentOp, dict[str, AnyArray]]]:
    """Yield the operator of each layer with copies of its W, R and, if the module has biases, B."""
    _check_arrays(label, arrays, layout, _GATES[cell], hidden_size)
    D = layout.num_directions
    op = RecurrentOp(
        cell,
        hidden_size,
        Direction.BIDIRECTIONAL if D == 2 else Direction.FORWARD,
        _activations(label, cell, nonlinearity) * D,
        linear_before_reset=cell == "GRU",
        label=label,
    )
    for k in range(layout.num_layers):
        ends = layout.suffixes[k * D : (k + 1) * D]
        W, R, *biases = (np.stack([arrays[kind + end] for end in ends]) for kind in layout.kinds)
        weights = {"W": W, "R": R} | ({"B": np.concatenate(biases, axis=-1)} if biases else {})
        if not convention.has_directions:
            weights = {name: array[0] for name, array in weights.items()}
        yield op, weights


_GATES: Mapping[str, int] = {operator: gates for gates, operator in OPERATORS.items()}


@dataclass(frozen=True)
class Layout:
    """The names of a module's arrays: `kinds` followed by `suffixes` of layers and directions."""

    num_layers: int
    num_directions: int
    suffixes: tuple[str, ...]
    kinds: tuple[str, ...]

    @classmethod
    def of(cls, num_layers: int, num_directions: int, is_cell: bool, has_biases: bool) -> Layout:
        ends = ("", "_reverse")[:num_directions]
        suffixes = ("",) if is_cell else tuple(f"_l{k}{end}" for k in range(num_layers) for end in ends)
        return cls(num_layers, num_directions, suffixes, KINDS if has_biases else KINDS[:2])

    @property
    def keys(self) -> list[str]:
        return [kind + suffix for suffix in self.suffixes for kind in self.kinds]


def _check_keys(label: str, keys: list[str]) -> Layout:
    """Return the layout; raise if a name is missing or does not belong to a recurrent module."""
    matches = {key: _KEY.fullmatch(key) for key in keys}
    parametrized = [key for key in keys if "parametrizations." in key or key.endswith(("_g", "_v", "_orig"))]
    if parametrized:
        raise UnsupportedError(
            f"{label}: the weights are parametrized ({listed(map(shown, parametrized))}); expected weights after "
            "torch.nn.utils.parametrize.remove_parametrizations, or remove_weight_norm"
        )
    parsed = [match for match in matches.values() if match is not None and match[1] is None]
    if any(match[2].endswith("_hr") for match in parsed):
        raise UnsupportedError(
            f"{label}: weight_hr belongs to an LSTM with proj_size, for which ONNX and OpenVINO have no operator; "
            "expected proj_size=0"
        )
    numbers = {int(match[3]) for match in parsed if match[3] is not None} or {0}
    num_layers = max(numbers) + 1
    if len(numbers) != num_layers:
        absent = next(k for k in range(num_layers) if k not in numbers)
        raise ArgumentError(f"{label}: it has layer {num_layers - 1}, but not layer {absent}; expected all from 0")
    num_directions = 2 if any(match[4] for match in parsed) else 1
    has_biases = any(key.startswith("bias_") for key in keys)
    is_cell = all(match[3] is None for match in parsed)
    layout = Layout.of(num_layers, num_directions, is_cell, has_biases)
    known = layout.keys
    unknown = [key for key in keys if key not in known]
    if unknown:
        expected = "weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0 and the same of other layers and directions"
        raise ArgumentError(f"{label}: it has unknown names {listed(map(shown, unknown))}; expected {expected}")
    missing = [key for key in known if key not in matches]
    if missing:
        raise ArgumentError(f"{label}: it has no {listed(missing)}; expected all weights of layers and directions")
    return layout


def _cell(label: str, R: AnyArray, suffix: str, operator: str | None) -> tuple[CellName, int]:
    """Return the cell and hidden_size by the shape of weight_hh, [G*hidden_size, hidden_size]."""
    gates = R.shape[0] // R.shape[1] if R.ndim == 2 and R.shape[1] and R.shape[0] % R.shape[1] == 0 else 0
    if gates not in OPERATORS:
        raise ArgumentError(
            f"{label}: weight_hh{suffix} has shape {R.shape}; expected (G*hidden_size, hidden_size), with G = 1 for an "
            "RNN, 3 for a GRU, 4 for an LSTM"
        )
    H = R.shape[1]
    if operator is not None and operator != OPERATORS[gates]:
        raise ArgumentError(
            f"{label}: weight_hh{suffix} has shape {R.shape}, which fits operator {OPERATORS[gates]!r}; expected "
            f"({_GATES[operator]}*hidden_size, hidden_size) for {operator!r}"
        )
    return OPERATORS[gates], H


def _check_arrays(label: str, arrays: Mapping[str, AnyArray], layout: Layout, G: int, H: int) -> None:
    """Raise if shapes or dtypes do not fit each other."""
    rows, D = G * H, layout.num_directions
    first = arrays[layout.keys[0]]
    if first.dtype.name not in FLOAT_TYPES:
        raise ArgumentError(
            f"{label}: {layout.keys[0]} has dtype {first.dtype}; expected one of {', '.join(FLOAT_TYPES)}"
        )
    for k, suffix in enumerate(layout.suffixes):
        inputs: int | str = D * H if k >= D else first.shape[1] if first.ndim == 2 else "input_size"
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


def _activations(label: str, cell: CellName, nonlinearity: Any) -> tuple[tuple[Activation, ...], ...]:
    if not isinstance(nonlinearity, str) or nonlinearity not in NONLINEARITIES:
        allowed = " or ".join(map(repr, NONLINEARITIES))
        raise ArgumentError(f"{label}: nonlinearity is {shown(nonlinearity)}; expected {allowed}")
    if cell != "RNN":
        if nonlinearity != "tanh":
            raise ArgumentError(f"{label}: nonlinearity is {nonlinearity!r} with weights of {cell}; only an RNN has it")
        return ()
    return ((Activation(NONLINEARITIES[nonlinearity]),),)
