"""What is scored: a model or a layer, called with batches of sequences."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyrnnx.check import as_array
from pyrnnx.dtypes import AnyArray, named_dtype
from pyrnnx.errors import ArgumentError, UnsupportedError, shown
from pyrnnx.layer import Layer
from pyrnnx.load import is_source, load
from pyrnnx.model import Model
from pyrnnx.model_inputs import given_names
from pyrnnx.stack import Stack
from pyrnnx.tensor_info import Dimension, Interval, TensorInfo

_STATES = ("initial_h", "initial_c")


@dataclass(frozen=True)
class Input:
    """The input that takes the sequences.

    Attributes
    ----------
    name : str
    dtype : numpy.dtype
    axes : str
        A letter each: T of the time steps, N, if there is one, of the rows of a batch, others of what a step holds.
    shape : tuple
        As declared, in the order of `axes`; None where it is open.
    """

    name: str
    dtype: np.dtype[Any]
    axes: str
    shape: tuple[int | None, ...]

    def size(self, axis: str) -> int | None:
        """The declared size of an axis; None of one that is open, or not there."""
        return self.shape[self.axes.index(axis)] if axis in self.axes else None

    @property
    def step(self) -> tuple[int | None, ...]:
        """The declared sizes of a step."""
        return tuple(size for axis, size in zip(self.axes, self.shape, strict=True) if axis not in "TN")

    def batch(self, items: Sequence[AnyArray], rows: int, steps: int) -> AnyArray:
        """Items [T, ...] in one array of this input; zero where they end."""
        made = np.zeros((rows, steps, *items[0].shape[1:]), self.dtype)
        for row, item in zip(made, items, strict=False):
            row[: len(item)] = item
        order = "N" + "T" + "".join(axis for axis in self.axes if axis not in "TN")
        if "N" not in self.axes:
            made, order = made[0], order[1:]
        return np.ascontiguousarray(made.transpose([order.index(axis) for axis in self.axes]))


class Subject(ABC):
    """A model or a layer, as scoring calls it; can be pickled.

    Attributes
    ----------
    label : str
    input : Input
    has_lengths : bool
        Whether it takes the lengths of rows, so that a batch may hold items of different lengths.
    lengths : str or None
        The input that takes the lengths, of a model.
    axes : mapping
        Of outputs whose axes are known, by name: letters as in `Input`.
    """

    label: str
    input: Input
    has_lengths: bool
    lengths: str | None = None
    axes: Mapping[str, str]

    @property
    @abstractmethod
    def what(self) -> Any:
        """The model or layer itself."""

    @abstractmethod
    def call(self, batch: AnyArray, lengths: AnyArray) -> Mapping[str, AnyArray]:
        """The outputs by name.

        Raises
        ------
        PyrnnxError
            As of the model.
        """


class _OfLayer(Subject):
    def __init__(self, layer: Layer, outputs: Sequence[str] | None) -> None:
        self.label, self._layer = layer.label, layer
        convention = layer.convention
        axes = convention.axes_of("X")
        if layer.constants:
            held = ", ".join(layer.constants)
            raise UnsupportedError(f"score: {layer.label} holds {held} of a batch; expected a layer without constants")
        if not {"T", "N"} <= set(axes):
            raise UnsupportedError(f"score: {layer.label} takes X [{', '.join(axes)}]; expected one with sequences (T)")
        self.input = Input("X", layer.dtype, axes, tuple(layer.input_size if one == "I" else None for one in axes))
        self.has_lengths = True
        self._outputs = given_names(f"score: {layer.label}", outputs) if outputs is not None else layer.output_names
        for name in self._outputs:
            if name not in layer.output_names:
                allowed = ", ".join(layer.output_names)
                raise ArgumentError(f"score: {layer.label}: outputs has {shown(name)}; expected of {allowed}")
        self.axes = {name: convention.axes_of(name if name == "Y" else "state") for name in self._outputs}

    @property
    def what(self) -> Any:
        return self._layer

    def call(self, batch: AnyArray, lengths: AnyArray) -> Mapping[str, AnyArray]:
        layer = self._layer
        sizes = {"N": len(lengths), "D": layer.op.num_directions, "H": layer.op.hidden_size}
        state = np.zeros([sizes[axis] for axis in layer.convention.axes_of("state")], layer.dtype)
        # Conventions that require states are given zeros, which others take for what is not given.
        states = (state, state) if layer.op.has_cell_state else (state,)
        results = Layer.run(layer, batch, lengths.astype(np.int32), *states)
        found = dict(zip(layer.output_names, results, strict=True))
        return {name: found[name] for name in self._outputs}


class _OfStack(Subject):
    """Where layers differ in hidden_size, and have no common array of states, "Y_h.0" is that of the first."""

    def __init__(self, stack: Stack, outputs: Sequence[str] | None) -> None:
        self.label, self._stack = stack.label, stack
        axes = "NTI" if stack.batch_first else "TNI"
        self.input = Input("X", stack.dtype, axes, tuple(stack.input_size if one == "I" else None for one in axes))
        self.has_lengths = True
        self._outputs = None if outputs is None else given_names(f"score: {stack.label}", outputs)
        self.axes = {"Y": axes}

    @property
    def what(self) -> Any:
        return self._stack

    def call(self, batch: AnyArray, lengths: AnyArray) -> Mapping[str, AnyArray]:
        found: dict[str, AnyArray] = {}
        for name, value in zip(self._stack.output_names, self._stack.run(batch, lengths), strict=True):
            if isinstance(value, list):
                found |= {f"{name}.{k}": one for k, one in enumerate(value) if one is not None}
            else:
                found[name] = value
        for name in self._outputs or ():
            if name not in found:
                raise ArgumentError(f"{self.label}: outputs has {shown(name)}; expected of {', '.join(found)}")
        return {name: found[name] for name in self._outputs or found}


class _OfModel(Subject):
    def __init__(
        self,
        model: Model,
        name: str | None,
        axes: str | None,
        lengths: str | None,
        constants: Mapping[str, Any],
        outputs: Any,
    ) -> None:
        self.label, self._model = model.label, model
        infos = {info.name: info for info in model.inputs}
        self._constants = {one: as_array(f"score: {self.label}", shown(one), value) for one, value in constants.items()}
        values = model._layer_values()
        known = {one: value.axes for layer in values.values() for value in layer.values() for one in value.names}
        of_lengths = {
            one for layer in values.values() if "sequence_lens" in layer for one in layer["sequence_lens"].names
        }
        self.lengths = self._lengths_input(lengths, infos, of_lengths)
        self._states = self._state_shapes(values, infos)
        taken = {*self._constants, *self._states, self.lengths}
        info = self._sequences_input(name, infos, taken)
        self.input = _input(self.label, info, axes or known.get(info.name))
        self.has_lengths = self.lengths is not None and "N" in self.input.axes
        self._outputs = given_names(f"score: {self.label}", outputs) if outputs is not None else None
        names = self._outputs or [one.name for one in model.outputs]
        self.axes = {one: known[one] for one in names if one in known and "N" in self.input.axes}

    def _lengths_input(self, given: str | None, infos: Mapping[str, TensorInfo], found: Iterable[str]) -> str | None:
        if given is not None and (not isinstance(given, str) or given not in infos):
            raise ArgumentError(f"score: {self.label}: lengths is {shown(given)}; expected an input of {_names(infos)}")
        return given or next((one for one in infos if one in found and one not in self._constants), None)

    def _state_shapes(self, values: Any, infos: Mapping[str, TensorInfo]) -> dict[str, tuple[str, dict[str, int], str]]:
        """Inputs that layers begin with and that nothing else gives: their axes, sizes and dtypes."""
        found = {}
        for key, layer in values.items():
            op = self._model.layers[key].op
            for argument in _STATES:
                for one in layer[argument].names if argument in layer else ():
                    if one in infos and not infos[one].optional and one not in self._constants:
                        sizes = {"D": op.num_directions, "H": op.hidden_size}
                        found[one] = layer[argument].axes, sizes, str(infos[one].dtype)
        return found

    def _sequences_input(self, name: Any, infos: Mapping[str, TensorInfo], taken: Iterable[Any]) -> TensorInfo:
        if name is not None:
            if not isinstance(name, str) or name not in infos:
                raise ArgumentError(f"score: {self.label}: input is {shown(name)}; expected one of {_names(infos)}")
            left = [one for one, info in infos.items() if one not in (*taken, name) and not info.optional]
            if left:
                raise ArgumentError(
                    f"score: {self.label}: inputs lacks {', '.join(map(shown, left))}, which the model needs "
                    f"beside the sequences of {shown(name)}"
                )
            return infos[name]
        left = [one for one, info in infos.items() if one not in taken and not info.optional]
        if len(left) != 1:
            raise ArgumentError(
                f"score: {self.label}: the inputs {', '.join(map(shown, left)) or 'none'} are open; expected input, "
                "the name of the one that takes the sequences, and the others in inputs"
            )
        return infos[left[0]]

    @property
    def what(self) -> Any:
        return self._model, self._constants

    def call(self, batch: AnyArray, lengths: AnyArray) -> Mapping[str, AnyArray]:
        given: dict[str, Any] = {self.input.name: batch, **self._constants}
        rows = len(lengths)
        for name, (axes, sizes, dtype) in self._states.items():
            given[name] = np.zeros([rows if axis == "N" else sizes[axis] for axis in axes], named_dtype(dtype))
        if self.lengths is not None:
            declared = next(info.dtype for info in self._model.inputs if info.name == self.lengths)
            given[self.lengths] = lengths.astype(named_dtype(declared or "int32"))
        results: dict[str, Any] = self._model(given, outputs=self._outputs)
        return results


def subject_of(
    model: Any,
    *,
    input: str | None,  # as the argument of `score`
    axes: str | None,
    lengths: str | None,
    inputs: Mapping[str, Any] | None,
    outputs: Sequence[str] | None,
) -> Subject:
    """A model, a layer or a path, as scoring calls it.

    Raises
    ------
    PyrnnxError
        As of `pyrnnx.score`.
    """
    if is_source(model) or isinstance(model, bytes):
        model = load(model)
    if isinstance(model, (Layer, Stack)):
        for name, value in (("input", input), ("axes", axes), ("lengths", lengths), ("inputs", inputs)):
            if value is not None:
                raise ArgumentError(f"score: {model.label}: {name} is {shown(value)}; expected none of it for a layer")
        return _OfLayer(model, outputs) if isinstance(model, Layer) else _OfStack(model, outputs)
    if not isinstance(model, Model):
        raise ArgumentError(
            f"score: model is a {type(model).__name__}; expected a path, a Model, a Stack, or a Layer with weights"
        )
    if inputs is not None and not isinstance(inputs, Mapping):
        raise ArgumentError(f"score: inputs is {shown(inputs)}; expected a mapping of arrays by names of inputs")
    return _OfModel(model, input, axes, lengths, inputs or {}, outputs)


def _input(label: str, info: TensorInfo, axes: Any) -> Input:
    declared = info.in_words()
    if axes is None:
        raise ArgumentError(
            f"score: {label}: which axes of {shown(info.name)} ({declared}) are time steps (T) and rows of a batch (N) "
            'is not known; expected axes, such as "NTI", or "TI" of a model without batches'
        )
    if (
        not isinstance(axes, str)
        or "T" not in axes
        or len(set(axes)) != len(axes)
        or not (axes.isalpha() and axes.isupper())
    ):
        raise ArgumentError(
            f'score: {label}: axes is {shown(axes)}; expected different letters with a T, such as "NTI"'
        )
    if info.shape is not None and len(info.shape) != len(axes):
        raise ArgumentError(
            f"score: {label}: axes is {shown(axes)}; expected {len(info.shape)} letters, for {shown(info.name)} is "
            f"{declared}"
        )
    dtype = np.dtype(named_dtype(info.dtype or "float32"))
    return Input(info.name, dtype, axes, tuple(map(_fixed, info.shape or [None] * len(axes))))


def _fixed(dimension: Dimension) -> int | None:
    if isinstance(dimension, Interval):
        return dimension.low if dimension.low == dimension.high else None
    return dimension if isinstance(dimension, int) else None


def _names(infos: Iterable[str]) -> str:
    return ", ".join(map(shown, infos)) or "none"
