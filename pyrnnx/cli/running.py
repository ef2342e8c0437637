"""Subjects of `pyrnnx run`: a whole model or one recurrent layer, in one call or push by push."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, PyrnnxError, shortened, shown
from pyrnnx.models.model import Model, layer_values
from pyrnnx.operator.conventions import CALL_ARGUMENTS, CANONICAL, rearrange
from pyrnnx.operator.tensor_info import TensorInfo

HINT = "--input"
Arrays = dict[str, Any]


class Subject(ABC):
    """Model or layer to run.

    Attributes
    ----------
    label : str
        Name in errors and headings.
    inputs : sequence of TensorInfo
    outputs : sequence of TensorInfo
        Declared outputs, as far as they are known.
    fed, states : frozenset of str
        Of a stream: inputs that it sets itself after the first push, and outputs that it saves for the next push.
    ends : frozenset of str
        Outputs that are final states of a layer: Y_h and Y_c.
    """

    label: str
    inputs: Sequence[TensorInfo]
    outputs: Sequence[TensorInfo] = ()
    fed: frozenset[str] = frozenset()
    states: frozenset[str] = frozenset()
    ends: frozenset[str] = frozenset()

    @abstractmethod
    def calls(self, provided: Mapping[str, AnyArray], seed: int | None, dims: Mapping[str, int]) -> Iterator[Arrays]:
        """Yield inputs of a call for one choice of sizes after another.

        Missing inputs are random; without a seed only those that the call needs.
        """

    @abstractmethod
    def call(self, inputs: Arrays) -> Arrays:
        """Return the outputs of one call."""

    @abstractmethod
    def prepare_stream(self) -> None:
        """Set `fed` and `states` for a stream.

        Raises
        ------
        PyrnnxError
            A model or layer that cannot be streamed.
        """

    @abstractmethod
    def begin(self, inputs: Arrays) -> Callable[[Arrays], Arrays]:
        """Begin a stream with the batch size and initial states of these inputs; return its push function."""

    @abstractmethod
    def time_axis(self, name: str) -> int | None:
        """Return the time axis of an input or output, or None if it is unknown."""

    def needed(self) -> Sequence[TensorInfo]:
        """Return the required inputs."""
        return [info for info in self.inputs if not info.optional]

    @abstractmethod
    def lengths(self) -> frozenset[str]:
        """Return the inputs that are lengths of rows."""


class WholeModel(Subject):
    """Model of either format."""

    def __init__(self, model: Model) -> None:
        self.model, self.label, self.inputs, self.outputs = model, model.label, model.inputs, model.outputs
        axes: dict[str, set[str]] = {}
        layers = layer_values(model).values()
        for values in layers:
            for value in values.values():
                for name in value.names:
                    axes.setdefault(name, set()).add(value.axes)
        self.ends = frozenset(
            {name for values in layers for end in ("Y_h", "Y_c") if end in values for name in values[end].names}
        )
        self._axes = {name: next(iter(choices)) for name, choices in axes.items() if len(choices) == 1}
        self._pairs: dict[str, str] = {}

    def calls(self, provided: Mapping[str, AnyArray], seed: int | None, dims: Mapping[str, int]) -> Iterator[Arrays]:
        from pyrnnx.comparison.model_runs import random_calls

        return random_calls(self.model, provided, seed or 0, dims, "run", HINT)

    def call(self, inputs: Arrays) -> Arrays:
        return self.model(inputs)

    def prepare_stream(self) -> None:
        has_variables = bool(getattr(self.model, "variables", ()))  # a stream saves them in any case
        try:
            stream = self.model.stream()
        except ArgumentError:
            if not has_variables:
                raise
            stream = self.model.stream({})
        self._pairs = dict(stream.states)
        self.fed, self.states = frozenset(self._pairs.values()), frozenset(self._pairs)

    def begin(self, inputs: Arrays) -> Callable[[Arrays], Arrays]:
        stream = self.model.stream(self._pairs, initial={name: inputs[name] for name in self.fed & inputs.keys()})
        return lambda arrays: stream.push({name: value for name, value in arrays.items() if name not in self.fed})

    def time_axis(self, name: str) -> int | None:
        axis = self._axes.get(name, "").find("T")
        return None if axis < 0 else axis

    def lengths(self) -> frozenset[str]:
        return frozenset(info.name for info in self.inputs if self._axes.get(info.name) == "N")


class OneLayer(Subject):
    """Recurrent layer alone; if it has no weights, they are random."""

    def __init__(self, layer: Any) -> None:
        self._layer, self.label = layer, layer.label
        self._convention = layer.convention
        if layer.op is None:
            raise ArgumentError(f"run: {layer.label} does not declare its hidden_size; expected a layer with weights")
        keys = [key for key in CALL_ARGUMENTS if key != "initial_c" or layer.op.has_cell_state]
        self._names = {self._convention.name_of(key): key for key in keys if self._axes(key) or key == "X"}
        self._constants = frozenset(getattr(layer, "constants", ()))
        optional = {key: key != "X" and key not in self._convention.required for key in CALL_ARGUMENTS}
        self.inputs = [
            TensorInfo(name, aliases=() if name == key else (key,), optional=optional[key] or key in self._constants)
            for name, key in self._names.items()
        ]
        self._bound = layer

    def _axes(self, name: str) -> str:
        return str(self._convention.axes_of(name))

    def calls(self, provided: Mapping[str, AnyArray], seed: int | None, dims: Mapping[str, int]) -> Iterator[Arrays]:
        from pyrnnx.comparison.layers import prepared_call
        from pyrnnx.testing.same.errors import named_after

        canonical: Arrays = {}
        for name, array in provided.items():
            key = self._names[name]
            axes = self._axes(key)
            if array.ndim != len(axes):
                raise ArgumentError(f"run: input {shown(name)} has shape {array.shape}; expected {len(axes)} axes")
            canonical[key] = rearrange(array, axes, CANONICAL.axes_of(key)) if key != "sequence_lens" else array
        with named_after("run"):
            (self._bound, _), arrays = prepared_call(self._layer, self._layer, canonical, seed or 0, dims)
        T, N = arrays["X"].shape[:2]
        inputs: Arrays = {}
        for name, key in self._names.items():
            if name in provided:
                inputs[name] = provided[name]
            elif key == "sequence_lens":
                if key in self._convention.required:
                    inputs[name] = np.full(N, T, np.int32) if seed is None else arrays[key]
            elif key not in self._constants and (seed is not None or key in ("X", *self._convention.required)):
                inputs[name] = rearrange(arrays[key].astype(self._bound.dtype), CANONICAL.axes_of(key), self._axes(key))
        yield inputs

    def call(self, inputs: Arrays) -> Arrays:
        arguments = {self._names[name]: np.ascontiguousarray(array) for name, array in inputs.items()}
        names = [self._convention.name_of(name) for name in self._bound.output_names]
        return dict(zip(names, self._bound.run(**arguments), strict=True))

    def prepare_stream(self) -> None:
        names = {key: self._convention.name_of(key) for key in ("initial_h", "initial_c", "Y_h", "Y_c")}
        self.fed = frozenset({names["initial_h"], names["initial_c"]} & self._names.keys())
        self.states = frozenset({names["Y_h"], names["Y_c"]})

    def begin(self, inputs: Arrays) -> Callable[[Arrays], Arrays]:
        by_name = {self._names[name]: array for name, array in inputs.items()}
        stream = self._bound.stream(by_name["X"].shape[self._axes("X").index("N")])
        states = [name for name in ("initial_h", "initial_c") if name in by_name]
        if states:
            stream.state = tuple(np.ascontiguousarray(by_name[name]) for name in states)
        names = [self._convention.name_of(name) for name in self._bound.output_names]

        def push(arrays: Arrays) -> Arrays:
            Y = stream.push(np.ascontiguousarray(arrays["X"]))
            return dict(zip(names, (Y, *stream.state), strict=True))

        return push

    def time_axis(self, name: str) -> int | None:
        for key in ("X", "Y"):
            if name == self._convention.name_of(key):
                axis = self._axes(key).find("T")
                return None if axis < 0 else axis
        return None

    def lengths(self) -> frozenset[str]:
        return frozenset({self._convention.name_of("sequence_lens")})


def first_that_runs(
    subject: Subject, provided: Mapping[str, AnyArray], seed: int | None, dims: Mapping[str, int]
) -> tuple[Arrays, Arrays]:
    """Return the first inputs of `Subject.calls` that the subject accepts, and its outputs.

    Raises
    ------
    PyrnnxError
        The subject accepts none; the error is the first one.
    """
    errors: list[PyrnnxError] = []
    inputs: Arrays = {}
    for inputs in subject.calls(provided, seed, dims):
        try:
            return inputs, subject.call(inputs)
        except PyrnnxError as error:  # noqa: PERF203  # only a call shows whether sizes are right
            errors.append(error)
    if len(errors) == 1:
        raise errors[0]
    ones = [name for name, array in inputs.items() if name not in provided and np.asarray(array).dtype.kind in "iu"]
    integers = ", ".join(map(shown, ones))
    hint = f"; set the integers {integers} by --input NAME=NUMBER" if ones else ""
    raise type(errors[0])(
        f"run: {shortened(subject.label)} does not run on random inputs of its declared sizes; set others by --dim or "
        f"--input{hint} ({shortened(str(errors[0]).removeprefix(f'{subject.label}: '))})"
    ) from errors[0]
