"""Models as subjects: a call takes whole sequences."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray, named_dtype
from pyrnnx.errors import ArgumentError, UnsupportedError, shown
from pyrnnx.models import state_pairs
from pyrnnx.models.inputs import given_names
from pyrnnx.models.model import Model, layer_values
from pyrnnx.operator.check import as_array
from pyrnnx.operator.tensor_info import Dimension, Interval, TensorInfo
from pyrnnx.scoring.subjects.interface import Input, Options, Subject

_STATES = ("initial_h", "initial_c")


class ModelSubject(Subject):
    """Model as a subject."""

    def __init__(self, model: Model, options: Options) -> None:
        # A copy of an IR with variables: each call resets them, and must not change the caller's model.
        self._has_variables = bool(getattr(model, "variables", ()))
        self.label, self._model = model.label, copy.deepcopy(model) if self._has_variables else model
        self._infos = {info.name: info for info in model.inputs}
        self._constants = arrays_of(self.label, options)
        self.what = self._model, self._constants
        lengths, outputs = options.lengths, options.outputs
        if lengths is not None and (not isinstance(lengths, str) or lengths not in self._infos):
            raise ArgumentError(
                f"score: {self.label}: lengths is {shown(lengths)}; expected one of {_names_of(self._infos)}"
            )
        self.lengths, self.mixes_lengths = lengths, lengths is not None
        self._states = self._state_shapes()
        supplied = {*self._constants, *self._states, self.lengths}
        info = sequences_input(self.label, options.input, self._infos, supplied, self._hint())
        known = layer_axes(model)
        letters = checked_axes(self.label, info, options.axes, known.get(info.name))
        shape = tuple(map(fixed, info.shape or [None] * len(letters)))
        self.input = Input(info.name, named_dtype(info.dtype or "float32"), letters, shape)
        self._outputs = given_names(f"score: {self.label}", outputs) if outputs is not None else None
        names = self._outputs or [output.name for output in model.outputs]
        # Operators before a layer may change the axes, so that the layer's rows are not the rows of the input.
        same = "N" in self.input.axes and known.get(info.name) == self.input.axes
        self.axes = {output: known[output] for output in names if same and output in known}

    def _state_shapes(self) -> dict[str, tuple[str, dict[str, int]]]:
        """Return axes and sizes of the inputs that are initial states and have no other value."""
        states = {}
        for key, layer in layer_values(self._model).items():
            op = self._model.layers[key].op
            values = [layer[argument] for argument in _STATES if argument in layer]
            for name, axes in ((name, value.axes) for value in values for name in value.names):
                if name in self._infos and not self._infos[name].optional and name not in self._constants:
                    if op is None:
                        raise UnsupportedError(
                            f"score: {self.label}: {key} declares no hidden_size; expected {shown(name)} in inputs"
                        )
                    states[name] = axes, {"D": op.num_directions, "H": op.hidden_size}
        return states

    def _hint(self) -> str:
        """Return the end of a message on inputs without a value: what could supply them."""
        layers = [layer for layer in layer_values(self._model).values() if "sequence_lens" in layer]
        lengths = {name for layer in layers for name in layer["sequence_lens"].names}
        if self.lengths is None and (named := [name for name in self._infos if name in lengths]):
            return f"; or lengths={named[0]!r}, the lengths of the rows"
        try:
            pairs = state_pairs.pairs_of(self.label, self._model.inputs, self._model.outputs, None)
        except ArgumentError:
            return ""
        fed = {before: after for after, before in pairs.items() if before not in (*self._constants, *self._states)}
        words = ", ".join(f"{shown(after)} as {shown(before)}" for before, after in fed.items())
        return f"; or stream=True, which feeds {words} back from call to call" if fed else ""

    def call(self, batch: AnyArray, lengths: AnyArray) -> Mapping[str, AnyArray]:
        inputs: dict[str, Any] = {self.input.name: batch, **self._constants}
        for name, (axes, sizes) in self._states.items():
            shape = [len(lengths) if axis == "N" else sizes[axis] for axis in axes]
            inputs[name] = np.zeros(shape, named_dtype(str(self._infos[name].dtype)))
        if self.lengths is not None:
            inputs[self.lengths] = lengths.astype(named_dtype(self._infos[self.lengths].dtype or "int32"))
        if self._has_variables:
            self._model.reset_state()  # type: ignore[attr-defined]  # a method of IRs only
        results: dict[str, Any] = self._model(inputs, outputs=self._outputs)
        return results


def arrays_of(label: str, options: Options) -> dict[str, AnyArray]:
    return {name: as_array(f"score: {label}", shown(name), value) for name, value in (options.inputs or {}).items()}


def layer_axes(model: Model) -> dict[str, str]:
    layers = layer_values(model).values()
    return {name: value.axes for layer in layers for value in layer.values() for name in value.names}


def sequences_input(
    label: str, name: Any, infos: Mapping[str, TensorInfo], supplied: Iterable[Any], hint: str = ""
) -> TensorInfo:
    values = set(supplied)
    free = [key for key, info in infos.items() if key not in values and key != name and not info.optional]
    if name is not None:
        if not isinstance(name, str) or name not in infos:
            raise ArgumentError(
                f"score: {label}: input is {shown(name)}; expected one of {_names_of(infos)}", argument="input"
            )
        if free:
            raise ArgumentError(
                f"score: {label}: inputs lacks {_names_of(free)}, which the model needs besides the sequences of "
                f"{shown(name)}{hint}"
            )
        return infos[name]
    if len(free) != 1:
        problem = f"these inputs have no value: {_names_of(free)}" if free else "every input has a value"
        raise ArgumentError(
            f"score: {label}: {problem}; set the one that takes the sequences as input (--sequences), and the "
            f"others as inputs (--input){hint}"
        )
    return infos[free[0]]


def fixed(dimension: Dimension) -> int | None:
    """Return the size of a dimension; None if it is open."""
    if isinstance(dimension, Interval):
        return dimension.low if dimension.low == dimension.high else None
    return dimension if isinstance(dimension, int) else None


def _names_of(names: Iterable[str]) -> str:
    return ", ".join(map(shown, names)) or "none"


def checked_axes(label: str, info: TensorInfo, axes: Any, default: str | None, *, push: bool = False) -> str:
    """Return the letters of an input's axes: the argument `axes` of `score`, or the default; of a push if `push`."""
    letters = default if axes is None else axes
    example = '"NI", or "NTI" with time steps' if push else '"NTI", or "TI" for a model without batches'
    if letters is None:
        raise ArgumentError(
            f"score: {label}: the axes of {shown(info.name)} ({info.in_words()}){' in a push' if push else ''} are "
            f"unknown; expected axes, with T for time steps and N for rows, such as {example}"
        )
    is_word = isinstance(letters, str) and (not letters or (letters.isalpha() and letters.isupper()))
    if not is_word or len(set(letters)) != len(letters) or not (push or "T" in letters):
        needs = "" if push else " with a T"
        raise ArgumentError(
            f"score: {label}: axes is {shown(axes)}; expected different letters{needs}, such as {example}"
        )
    if info.shape is not None and len(info.shape) != len(letters):
        raise ArgumentError(
            f"score: {label}: axes is {shown(axes)}; expected {len(info.shape)} letters, because {shown(info.name)} is "
            f"{info.in_words()}"
        )
    return str(letters)
