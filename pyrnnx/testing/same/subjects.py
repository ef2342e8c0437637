"""Arguments of `assert_same`, as a recurrent layer, a whole model or a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.comparison.layers import label
from pyrnnx.errors import ArgumentError, printable, shortened, shown
from pyrnnx.frontends.onnx.layers import unbound_node
from pyrnnx.frontends.torch.tensors import as_numpy
from pyrnnx.layers.layer import Layer
from pyrnnx.load import is_source, read_model_or_layer
from pyrnnx.models.layers import AnyLayer, UnboundLayer
from pyrnnx.models.model import Model
from pyrnnx.operator import check
from pyrnnx.operator.conventions import (
    CALL_ARGUMENTS,
    CANONICAL,
    OUTPUTS,
    Convention,
    arguments_by_name,
    rearrange,
    weight_axes,
)
from pyrnnx.testing.same import torch_modules
from pyrnnx.testing.same.signatures import EVERYDAY_NAMES, Call, read_call

if TYPE_CHECKING:
    from onnx import NodeProto

WEIGHTS = ("W", "R", "B", "P")
_WEIGHTS_MISSING = "assert_same: {}: inputs has {}, but not {}; expected both W and R, or no weights"


@dataclass(frozen=True)
class LayerSubject:
    """A recurrent layer."""

    layer: AnyLayer
    node_names: Mapping[str, str] = field(default_factory=dict)  # of the inputs of an ONNX node, by argument
    module: Any = None  # of PyTorch, which runs it instead of pyrnnx

    @property
    def convention(self) -> Convention:
        return self.layer.convention

    @property
    def label(self) -> str:
        return label(self.layer)

    @property
    def has_cell_state(self) -> bool:
        return self.layer.op is None or self.layer.op.has_cell_state

    @property
    def order(self) -> tuple[str, ...]:
        """The canonical arguments of a call, in the layer's own order."""
        operation = getattr(self.layer, "operation", None)
        if operation is not None:
            return tuple(name for name in operation.inputs if name not in WEIGHTS)
        absent = set() if self.has_cell_state else {"initial_c"}
        if self.module is not None or not self.convention.axes_of("sequence_lens"):
            absent.add("sequence_lens")
        return tuple(name for name in CALL_ARGUMENTS if name not in absent)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Canonical names of the outputs of the layer's call."""
        operation = getattr(self.layer, "operation", None)
        cell = operation is None and not self.convention.axes_of("sequence_lens")
        everything = OUTPUTS if self.has_cell_state else OUTPUTS[:2]
        return operation.outputs if operation is not None else everything[1:] if cell else everything

    @property
    def names(self) -> dict[str, tuple[str, ...]]:
        """All names of each argument and each weight; the layer's own first."""
        everything = (*CALL_ARGUMENTS, *WEIGHTS)
        absent = set() if self.has_cell_state else {"initial_c", "P"}
        if not self.convention.axes_of("sequence_lens"):
            absent.add("sequence_lens")
        return {name: self._names_of(name) for name in everything if name not in absent}

    def _names_of(self, name: str) -> tuple[str, ...]:
        own = self.node_names.get(name, self.convention.name_of(name))
        return tuple(dict.fromkeys((own, self.convention.name_of(name), *EVERYDAY_NAMES[name])))

    def read_inputs(self, given: Mapping[str, Any]) -> tuple[dict[str, AnyArray], dict[str, AnyArray]]:
        """Return call arguments in canonical axes and weights as passed, by canonical name.

        Raises
        ------
        ArgumentError
            Names that are unknown or twice there, what is no array, another shape.
        """
        known = {own: name for name, own in self.node_names.items()} | {name: name for name in WEIGHTS}
        known |= arguments_by_name(self.convention)
        arrays: dict[str, AnyArray] = {}
        for key, value in given.items():
            name = known.get(key, key)
            if name not in self.names or name in arrays:
                problem = "twice" if name in arrays else shown(key)
                expected = ", ".join(names[0] for names in self.names.values())
                raise ArgumentError(f"assert_same: inputs has {problem}; expected names out of {expected}")
            if value is not None:
                arrays[name] = as_numpy("assert_same: inputs", key, value)
        weights = {name: arrays.pop(name) for name in WEIGHTS if name in arrays}
        return {name: self._canonical(name, array) for name, array in arrays.items()}, weights

    def _canonical(self, name: str, array: AnyArray) -> AnyArray:
        axes = self.convention.axes_of(name)
        if name == "sequence_lens":
            return array
        check.shape("assert_same: inputs", self.convention.name_of(name), array.shape, axes, {})
        return rearrange(array, axes, CANONICAL.axes_of(name))

    def bind(self, weights: Mapping[str, AnyArray]) -> LayerSubject:
        """Return the layer with the weights that a test passes, if any."""
        if not weights:
            return self
        if isinstance(self.layer, Layer):
            raise ArgumentError(f"assert_same: inputs has {', '.join(weights)}; {self.label} has its weights")
        missing = [name for name in ("W", "R") if name not in weights]
        if missing:
            raise ArgumentError(_WEIGHTS_MISSING.format(self.label, ", ".join(weights), missing[0]))
        bind: Callable[..., Layer] = self.layer.bind
        return LayerSubject(bind(**weights), self.node_names, self.module)


@dataclass(frozen=True)
class FunctionSubject:
    """A function of arrays: anything that can be called. A module of PyTorch is called with tensors."""

    label: str
    function: Any
    is_module: bool = False

    def read_call(self, order: Sequence[str], names: Mapping[str, Sequence[str]], weights: Sequence[str] = ()) -> Call:
        if self.is_module and torch_modules.takes_states(self.function):
            return Call(tuple(name for name in order if name != "sequence_lens"), {})
        function = self.function.forward if self.is_module else self.function
        return read_call(self.label, function, order, names, weights)

    def __call__(self, call: Call, arrays: Mapping[str, AnyArray]) -> Any:
        return call(partial(torch_modules.run_module, self.function) if self.is_module else self.function, arrays)


Subject: TypeAlias = LayerSubject | FunctionSubject | Model


def read_subject(letter: str, value: Any, opset: int) -> Subject:
    """Return a compared object as a layer, model or function.

    Raises
    ------
    PyrnnxError
        What is none of all that; a path or a node that cannot be read.
    """
    if is_source(value):
        value = read_model_or_layer(value)
    if isinstance(value, Model):
        return value
    if isinstance(value, (Layer, UnboundLayer)) and not isinstance(value, type):
        return LayerSubject(value)
    if hasattr(value, "op_type") and hasattr(value, "attribute") and not isinstance(value, type):
        return _node(value, opset)
    if torch_modules.is_module(value):
        if torch_modules.is_recurrent(value):
            return LayerSubject(torch_modules.layer_of(value), module=value)
        return FunctionSubject(f"{type(value).__name__} of PyTorch", value, is_module=True)
    if not callable(value) or isinstance(value, type):
        what = f"the class {value.__name__}" if isinstance(value, type) else printable(shown(value))
        raise ArgumentError(
            f"assert_same: {letter} is {what}; expected a layer, a model, the path of one, an onnx.NodeProto, a module "
            "of PyTorch or a function"
        )
    return FunctionSubject(_function_label(value), value)


def _node(node: NodeProto, opset: int) -> LayerSubject:
    unbound = unbound_node(node, {}, opset)
    return LayerSubject(unbound, dict(unbound.parts.inputs))


def _function_label(function: Any) -> str:
    while isinstance(function, partial):
        function = function.func
    name = getattr(function, "__qualname__", "") or type(function).__name__
    return f"the function {printable(shortened(name.rpartition('<locals>.')[2]))}"


def own_weights(layer: Layer) -> dict[str, AnyArray]:
    """Return the layer's weights in its own arrangement; absent optional ones are zero."""
    sizes = {"D": layer.op.num_directions, "H": layer.op.hidden_size, "I": layer.input_size}
    return {
        name: layer.weights[name] if name in layer.weights else np.zeros(_shape(axes, sizes), layer.dtype)
        for name, axes in weight_axes(layer.op, layer.convention).items()
    }


def _shape(axes: Sequence[str], sizes: Mapping[str, int]) -> list[int]:
    from pyrnnx.operator.conventions import axis_size

    return [axis_size(axis, sizes) or 0 for axis in axes]
