"""Subjects of scoring: a layer, a stack or a model."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray, named_dtype
from pyrnnx.errors import ArgumentError, UnsupportedError, shown
from pyrnnx.layers.layer import Layer
from pyrnnx.load import is_source, read_model_or_layer
from pyrnnx.models import state_pairs
from pyrnnx.models.inputs import given_names
from pyrnnx.models.model import Model, layer_values
from pyrnnx.operator.check import as_array
from pyrnnx.operator.quantized import Quantized
from pyrnnx.operator.tensor_info import TensorInfo
from pyrnnx.scoring.declared import fixed, names_of, sequences_input
from pyrnnx.scoring.interface import Input, Subject
from pyrnnx.scoring.proof import Proof, proof_of_model
from pyrnnx.scoring.proof.values import ROWS, TIME, Atom, Axis, Value, axis_of, constant
from pyrnnx.scoring.streamed import Streamed
from pyrnnx.stacks.stack import Stack

_STATES = ("initial_h", "initial_c")


class _OfLayer(Subject):
    def __init__(self, layer: Layer, outputs: Sequence[str] | None) -> None:
        self.label, self._layer = layer.label, layer
        convention = layer.convention
        axes = convention.axes_of("X")
        if layer.constants:
            constants = ", ".join(layer.constants)
            raise UnsupportedError(f"score: {layer.label} has the constants {constants}; expected a layer without them")
        if not {"T", "N"} <= set(axes):
            raise UnsupportedError(
                f"score: {layer.label} takes X [{', '.join(axes)}]; expected sequences (T) of rows (N)"
            )
        self.input = Input("X", layer.dtype, axes, tuple(layer.input_size if axis == "I" else None for axis in axes))
        self.has_lengths = True
        self._outputs = given_names(f"score: {layer.label}", outputs) if outputs is not None else layer.output_names
        for name in self._outputs:
            if name not in layer.output_names:
                allowed = ", ".join(layer.output_names)
                raise ArgumentError(f"score: {layer.label}: outputs has {shown(name)}; expected names out of {allowed}")
        self.axes = {name: convention.axes_of(name if name == "Y" else "state") for name in self._outputs}

    @property
    def what(self) -> Any:
        return self._layer

    def proof(self) -> Proof:
        return _proof_of_layers([self._layer])

    def call(self, batch: AnyArray, lengths: AnyArray) -> Mapping[str, AnyArray]:
        layer = self._layer
        sizes = {"N": len(lengths), "D": layer.op.num_directions, "H": layer.op.hidden_size}
        state = np.zeros([sizes[axis] for axis in layer.convention.axes_of("state")], layer.dtype)
        # Explicit zeros: conventions that require states get them, and for the others they are the default.
        states = (state, state) if layer.op.has_cell_state else (state,)
        results = Layer.run(layer, batch, lengths.astype(np.int32), *states)
        outputs = dict(zip(layer.output_names, results, strict=True))
        return {name: outputs[name] for name in self._outputs}


class _OfStack(Subject):
    """Stack as a subject; if hidden sizes differ, the states of layer k are the output "Y_h.k"."""

    def __init__(self, stack: Stack, outputs: Sequence[str] | None) -> None:
        self.label, self._stack = stack.label, stack
        axes = "NTI" if stack.batch_first else "TNI"
        self.input = Input("X", stack.dtype, axes, tuple(stack.input_size if axis == "I" else None for axis in axes))
        self.has_lengths = True
        self._outputs = None if outputs is None else given_names(f"score: {stack.label}", outputs)
        self.axes = {"Y": axes}

    @property
    def what(self) -> Any:
        return self._stack

    def proof(self) -> Proof:
        return _proof_of_layers(self._stack.layers)

    def call(self, batch: AnyArray, lengths: AnyArray) -> Mapping[str, AnyArray]:
        outputs: dict[str, AnyArray] = {}
        for name, value in zip(self._stack.output_names, self._stack.run(batch, lengths), strict=True):
            if isinstance(value, list):
                outputs |= {f"{name}.{k}": state for k, state in enumerate(value) if state is not None}
            else:
                outputs[name] = value
        for name in self._outputs or ():
            if name not in outputs:
                raise ArgumentError(
                    f"{self.label}: outputs has {shown(name)}; expected names out of {', '.join(outputs)}"
                )
        return {name: outputs[name] for name in self._outputs or outputs}


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
        # A copy of an IR with variables: each call resets them, and must not change the caller's model.
        self._has_variables = bool(getattr(model, "variables", ()))
        self.label, self._model = model.label, copy.deepcopy(model) if self._has_variables else model
        infos = {info.name: info for info in model.inputs}
        self._constants = {key: as_array(f"score: {self.label}", shown(key), value) for key, value in constants.items()}
        values = layer_values(model)
        known = {name: value.axes for layer in values.values() for value in layer.values() for name in value.names}
        of_lengths = {
            name for layer in values.values() if "sequence_lens" in layer for name in layer["sequence_lens"].names
        }
        self.lengths = self._lengths_input(lengths, infos, of_lengths)
        self._states = self._state_shapes(values, infos)
        supplied = {*self._constants, *self._states, self.lengths}
        info = sequences_input(self.label, name, infos, supplied, self._hint(infos))
        self.input = _input(self.label, info, axes or known.get(info.name))
        self.has_lengths = self.lengths is not None and "N" in self.input.axes
        self._outputs = given_names(f"score: {self.label}", outputs) if outputs is not None else None
        names = self._outputs or [output.name for output in model.outputs]
        # Operators before a layer may change the axes, so that the layer's rows are not the rows of the input.
        same = "N" in self.input.axes and known.get(info.name) == self.input.axes
        self.axes = {output: known[output] for output in names if same and output in known}

    def _lengths_input(
        self, name: str | None, infos: Mapping[str, TensorInfo], of_lengths: Iterable[str]
    ) -> str | None:
        if name is not None and (not isinstance(name, str) or name not in infos):
            raise ArgumentError(f"score: {self.label}: lengths is {shown(name)}; expected one of {names_of(infos)}")
        return name or next((key for key in infos if key in of_lengths and key not in self._constants), None)

    def _state_shapes(self, values: Any, infos: Mapping[str, TensorInfo]) -> dict[str, tuple[str, dict[str, int], str]]:
        """Return axes, sizes and dtypes of the inputs that are initial states and have no other value."""
        states = {}
        for key, layer in values.items():
            op = self._model.layers[key].op
            for argument in _STATES:
                for name in layer[argument].names if argument in layer else ():
                    if name in infos and not infos[name].optional and name not in self._constants:
                        if op is None:
                            raise UnsupportedError(
                                f"score: {self.label}: {key} declares no hidden_size; expected {shown(name)} in inputs"
                            )
                        sizes = {"D": op.num_directions, "H": op.hidden_size}
                        states[name] = layer[argument].axes, sizes, str(infos[name].dtype)
        return states

    def _hint(self, infos: Mapping[str, TensorInfo]) -> str:
        """Return the end of a message on inputs without a value: which of them a stream would feed back."""
        try:
            pairs = state_pairs.pairs_of(self.label, self._model.inputs, self._model.outputs, None)
        except ArgumentError:
            return ""
        fed = {before: after for after, before in pairs.items() if before not in (*self._constants, *self._states)}
        words = ", ".join(f"{shown(after)} as {shown(before)}" for before, after in fed.items())
        return f"; or stream=True, which feeds {words} back from call to call" if fed else ""

    @property
    def what(self) -> Any:
        return self._model, self._constants

    def proof(self) -> Proof:
        takes = self.input
        X = Value(tuple(map(_axis, takes.axes, takes.shape)), zero=True)  # `Input.batch` pads with zeros
        rows = _axis("N", takes.size("N"))
        inputs = {takes.name: X} | {name: constant(array) for name, array in self._constants.items()}
        for name, (axes, sizes, _) in self._states.items():
            inputs[name] = Value(tuple(rows if axis == "N" else axis_of(sizes[axis]) for axis in axes))
        if self.lengths is not None:
            inputs[self.lengths] = Value((rows,), is_lengths=True)
        return proof_of_model(self._model, inputs, self._outputs or [output.name for output in self._model.outputs])

    def call(self, batch: AnyArray, lengths: AnyArray) -> Mapping[str, AnyArray]:
        inputs: dict[str, Any] = {self.input.name: batch, **self._constants}
        rows = len(lengths)
        for name, (axes, sizes, dtype) in self._states.items():
            inputs[name] = np.zeros([rows if axis == "N" else sizes[axis] for axis in axes], named_dtype(dtype))
        if self.lengths is not None:
            declared = next(info.dtype for info in self._model.inputs if info.name == self.lengths)
            inputs[self.lengths] = lengths.astype(named_dtype(declared or "int32"))
        if self._has_variables:
            self._model.reset_state()  # type: ignore[attr-defined]  # a method of IRs only
        results: dict[str, Any] = self._model(inputs, outputs=self._outputs)
        return results


def _axis(letter: str, size: int | None) -> Axis:
    return (Atom(letter, size),) if letter in (ROWS, TIME) or size is None else axis_of(size)


def _proof_of_layers(layers: Iterable[Any]) -> Proof:
    """Return the proof for layers: rows are independent unless a layer quantizes X with one scale for the batch."""
    for layer in layers:
        if layer.weight_dtype is None and any(isinstance(array, Quantized) for array in layer._kept.values()):
            reason = f"{layer.label} quantizes X with one scale for the whole batch"
            return Proof(reason, reason)
    return Proof()


def subject_of(
    model: Any,
    *,
    input: str | None,  # as the argument of `score`
    axes: str | None,
    lengths: str | None,
    inputs: Mapping[str, Any] | None,
    outputs: Sequence[str] | None,
    stream: bool | Mapping[str, str] = False,
    step: int | None = None,
) -> Subject:
    """Return the subject of a model, a layer, a stack or a path; `step` is the size of a frame with its context.

    Raises
    ------
    PyrnnxError
        As `pyrnnx.score` raises.
    """
    if is_source(model) or isinstance(model, bytes):
        model = read_model_or_layer(model)
    if not isinstance(stream, (bool, Mapping)):
        raise ArgumentError(f"score: stream is {shown(stream)}; expected True, False or a mapping {{output: input}}")
    is_stream = stream is not False
    if isinstance(model, (Layer, Stack)):
        if is_stream:
            raise ArgumentError(
                f"score: {model.label}: stream is {shown(stream)}; expected False, because a layer or stack takes "
                "whole sequences"
            )
        for name, value in (("input", input), ("axes", axes), ("lengths", lengths), ("inputs", inputs)):
            if value is not None:
                raise ArgumentError(
                    f"score: {model.label}: {name} is {shown(value)}; expected None for a layer or stack"
                )
        return _OfLayer(model, outputs) if isinstance(model, Layer) else _OfStack(model, outputs)
    if not isinstance(model, Model):
        raise ArgumentError(
            f"score: model has type {type(model).__name__}; expected a path, a Model, a Stack, or a Layer with weights"
        )
    if inputs is not None and not isinstance(inputs, Mapping):
        raise ArgumentError(f"score: inputs is {shown(inputs)}; expected a mapping of arrays by names of inputs")
    if not is_stream:
        return _OfModel(model, input, axes, lengths, inputs or {}, outputs)
    if lengths is not None:
        raise ArgumentError(
            f"score: lengths is {shown(lengths)}; expected None for a stream, which has one step a push"
        )
    states = None if stream is True else dict(stream)  # type: ignore[arg-type]
    return Streamed(model, states, input, axes, inputs or {}, outputs, step)


def _input(label: str, info: TensorInfo, axes: Any) -> Input:
    declared = info.in_words()
    if axes is None:
        raise ArgumentError(
            f"score: {label}: the axes of time steps (T) and rows (N) of {shown(info.name)} ({declared}) are unknown; "
            'expected axes, such as "NTI", or "TI" for a model without batches'
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
            f"score: {label}: axes is {shown(axes)}; expected {len(info.shape)} letters, because {shown(info.name)} is "
            f"{declared}"
        )
    dtype = np.dtype(named_dtype(info.dtype or "float32"))
    return Input(info.name, dtype, axes, tuple(map(fixed, info.shape or [None] * len(axes))))
