"""Arguments of `assert_same`, as a recurrent layer, a whole model or a function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.comparison import opened
from pyrnnx.comparison.agreement import Rule
from pyrnnx.comparison.calls import label
from pyrnnx.errors import ArgumentError, printable, shortened, shown
from pyrnnx.frontends.torch.modules import module_layer
from pyrnnx.frontends.torch.tensors import as_numpy
from pyrnnx.layers.layer import Layer
from pyrnnx.models.layers import AnyLayer
from pyrnnx.models.model import Model
from pyrnnx.operator import check
from pyrnnx.operator.conventions import (
    CALL_ARGUMENTS,
    CANONICAL,
    OUTPUTS,
    Convention,
    arguments_by_name,
    axis_size,
    rearrange,
    weight_axes,
)
from pyrnnx.testing.same import torch_modules
from pyrnnx.testing.same.functions import EVERYDAY_NAMES, Call, read_call

WEIGHTS = ("W", "R", "B", "P")


class Options(NamedTuple):
    """Arguments of `assert_same` beside the two that it compares."""

    inputs: Mapping[str, Any] | None
    outputs: Sequence[str] | None
    rule: Rule
    seed: int


@dataclass(frozen=True)
class LayerSubject:
    """A recurrent layer."""

    layer: AnyLayer
    module: Any = None  # of PyTorch, which runs it instead of pyrnnx

    @property
    def convention(self) -> Convention:
        return self.layer.convention

    @property
    def label(self) -> str:
        return label(self.layer)

    @property
    def _absent(self) -> set[str]:
        """Names that its call does not have: a cell has no lengths and no Y."""
        has_cell_state = self.layer.op is None or self.layer.op.has_cell_state
        has_lengths = bool(self.convention.axes_of("sequence_lens"))
        absent = set() if has_cell_state else {"initial_c", "P", "Y_c"}
        return absent if has_lengths else {*absent, "sequence_lens", "Y"}

    @property
    def order(self) -> tuple[str, ...]:
        """The canonical arguments of a call, in the layer's own order."""
        operation = getattr(self.layer, "operation", None)
        absent = {*self._absent, *WEIGHTS, *(() if self.module is None else ("sequence_lens",))}
        return tuple(name for name in (operation.inputs if operation else CALL_ARGUMENTS) if name not in absent)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Canonical names of the outputs of the layer's call."""
        return tuple(name for name in OUTPUTS if name not in self._absent)

    @property
    def names(self) -> dict[str, tuple[str, ...]]:
        """All names of each argument and each weight; the layer's own first."""
        return {
            name: tuple(dict.fromkeys((self.convention.name_of(name), *spellings)))
            for name, spellings in EVERYDAY_NAMES.items()
            if name not in self._absent
        }

    def read_inputs(self, given: Mapping[str, Any]) -> dict[str, AnyArray]:
        """Return call arguments in canonical axes by canonical name."""
        known = arguments_by_name(self.convention)
        arrays: dict[str, AnyArray] = {}
        for key, value in given.items():
            name = known.get(key, key)
            if name not in CALL_ARGUMENTS or name not in self.names or name in arrays:
                problem = f"{shown(name)} twice" if name in arrays else shown(key)
                expected = ", ".join(names[0] for name, names in self.names.items() if name not in WEIGHTS)
                raise ArgumentError(f"assert_same: inputs has {problem}; expected names out of {expected}")
            if value is not None:
                arrays[name] = self._canonical(name, as_numpy("assert_same: inputs", key, value))
        return arrays

    def _canonical(self, name: str, array: AnyArray) -> AnyArray:
        if name == "sequence_lens":
            return array
        axes = self.convention.axes_of(name)
        check.shape("assert_same: inputs", self.convention.name_of(name), array.shape, axes, {})
        return rearrange(array, axes, CANONICAL.axes_of(name))


@dataclass(frozen=True)
class FunctionSubject:
    """A function of arrays: anything that can be called. A module of PyTorch is called with tensors."""

    label: str
    function: Any
    is_module: bool = False

    def read_call(self, order: Sequence[str], names: Mapping[str, Sequence[str]]) -> Call:
        if self.is_module and torch_modules.takes_states(self.function):
            return Call(tuple(name for name in order if name != "sequence_lens"), {})
        function = self.function.forward if self.is_module else self.function
        return read_call(self.label, function, order, names)

    def run(self, call: Call, arrays: Mapping[str, AnyArray]) -> Any:
        """Call the function with copies, because it may write to its arguments."""
        copies = {name: np.array(array, order="C") for name, array in arrays.items()}
        return call(partial(torch_modules.run_module, self.function) if self.is_module else self.function, copies)


Subject: TypeAlias = LayerSubject | FunctionSubject | Model


def read_subject(letter: str, value: Any) -> Subject:
    """Return a compared object as a layer, model or function."""
    subject = opened(value)
    if subject is not None:
        return subject if isinstance(subject, Model) else LayerSubject(subject)
    if torch_modules.is_module(value):
        if torch_modules.is_recurrent(value):
            layer = module_layer(value, f"{type(value).__name__} of PyTorch")
            return LayerSubject(layer, module=value)
        return FunctionSubject(f"{type(value).__name__} of PyTorch", value, is_module=True)
    if not callable(value) or isinstance(value, type):
        what = f"the class {value.__name__}" if isinstance(value, type) else printable(shown(value))
        raise ArgumentError(
            f"assert_same: {letter} is {what}; expected a layer, a model, the path of one, a stack, a module of "
            "PyTorch or a function"
        )
    return FunctionSubject(_function_label(value), value)


def _function_label(function: Any) -> str:
    while isinstance(function, partial):
        function = function.func
    name = getattr(function, "__qualname__", "") or type(function).__name__
    return f"the function {printable(shortened(name.rpartition('<locals>.')[2]))}"


def own_weights(layer: Layer) -> dict[str, AnyArray]:
    """Return the layer's weights in its own arrangement; absent optional ones are zero."""
    sizes = {"D": layer.op.num_directions, "H": layer.op.hidden_size, "I": layer.input_size}
    return {
        name: layer.weights.get(name, np.zeros([axis_size(axis, sizes) or 0 for axis in axes], layer.dtype))
        for name, axes in weight_axes(layer.op, layer.convention).items()
    }
