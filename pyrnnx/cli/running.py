"""What `pyrnnx run` runs: a whole model, or one recurrent layer, in one call or push by push."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pyrnnx.conventions import CALL_ARGUMENTS, CANONICAL, rearrange
from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, PyrnnxError, shortened, shown
from pyrnnx.model import Model
from pyrnnx.tensor_info import TensorInfo

HINT = "--input"
Arrays = dict[str, Any]


class Subject(ABC):
    """What is run.

    Attributes
    ----------
    label : str
        As errors and headings name it.
    inputs : sequence of TensorInfo
        What it takes.
    outputs : sequence of TensorInfo
        What is known of what it gives.
    fed, states : frozenset of str
        Of a stream: inputs that it gives itself, but for the first push; and outputs that are kept for the next push.
    ends : frozenset of str
        Outputs that are what a layer ends with: Y_h and Y_c.
    """

    label: str
    inputs: Sequence[TensorInfo]
    outputs: Sequence[TensorInfo] = ()
    fed: frozenset[str] = frozenset()
    states: frozenset[str] = frozenset()
    ends: frozenset[str] = frozenset()

    @abstractmethod
    def calls(self, given: Mapping[str, AnyArray], seed: int | None, dims: Mapping[str, int]) -> Iterator[Arrays]:
        """Inputs of a call, random where they are not given, of sizes after sizes; None: random where they must be."""

    @abstractmethod
    def call(self, inputs: Arrays) -> Arrays:
        """One call."""

    @abstractmethod
    def prepare_stream(self) -> None:
        """Find out what a stream keeps, so that `fed` and `states` say it.

        Raises
        ------
        PyrnnxError
            A model or layer that cannot be streamed.
        """

    @abstractmethod
    def begin(self, inputs: Arrays) -> Callable[[Arrays], Arrays]:
        """A new stream, for pushes of so many rows as these inputs have, from the states among them: what pushes."""

    @abstractmethod
    def time_axis(self, name: str) -> int | None:
        """Which axis of an input or output is time, where that is known."""

    def needed(self) -> Sequence[TensorInfo]:
        """The inputs without which there is no call."""
        return [info for info in self.inputs if not info.optional]

    @abstractmethod
    def lengths(self) -> frozenset[str]:
        """Inputs that are lengths of rows."""


class WholeModel(Subject):
    """A model of either format."""

    def __init__(self, model: Model) -> None:
        self.model, self.label, self.inputs, self.outputs = model, model.label, model.inputs, model.outputs
        axes: dict[str, set[str]] = {}
        layers = model._layer_values().values()
        for values in layers:
            for one in values.values():
                for name in one.names:
                    axes.setdefault(name, set()).add(one.axes)
        self.ends = frozenset(
            {name for values in layers for end in ("Y_h", "Y_c") if end in values for name in values[end].names}
        )
        self._axes = {name: next(iter(found)) for name, found in axes.items() if len(found) == 1}
        self._pairs: dict[str, str] = {}

    def calls(self, given: Mapping[str, AnyArray], seed: int | None, dims: Mapping[str, int]) -> Iterator[Arrays]:
        from pyrnnx.comparison.model_runs import random_calls

        return random_calls(self.model, given, seed or 0, dims, "run", HINT)

    def call(self, inputs: Arrays) -> Arrays:
        return self.model(inputs)

    def prepare_stream(self) -> None:
        has_variables = bool(getattr(self.model, "variables", ()))  # those a stream keeps without being told
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
        place = self._axes.get(name, "").find("T")
        return None if place < 0 else place

    def lengths(self) -> frozenset[str]:
        return frozenset(info.name for info in self.inputs if self._axes.get(info.name) == "N")


class OneLayer(Subject):
    """A recurrent layer alone; its weights are random where it has none."""

    def __init__(self, layer: Any) -> None:
        self._layer, self.label = layer, layer.label
        self._convention = layer.convention
        if layer.op is None:
            raise ArgumentError(f"run: {layer.label} does not say its hidden_size; expected a layer with weights")
        names = [one for one in CALL_ARGUMENTS if one != "initial_c" or layer.op.has_cell_state]
        self._names = {self._convention.name_of(one): one for one in names if self._axes(one) or one == "X"}
        self._constants = frozenset(getattr(layer, "constants", ()))
        optional = {one: one != "X" and one not in self._convention.required for one in CALL_ARGUMENTS}
        self.inputs = [
            TensorInfo(name, aliases=() if name == one else (one,), optional=optional[one] or one in self._constants)
            for name, one in self._names.items()
        ]
        self._bound = layer

    def _axes(self, name: str) -> str:
        return str(self._convention.axes_of(name))

    def calls(self, given: Mapping[str, AnyArray], seed: int | None, dims: Mapping[str, int]) -> Iterator[Arrays]:
        from pyrnnx.comparison.layers import prepared_call
        from pyrnnx.testing.same.errors import named_after

        canonical: Arrays = {}
        for name, array in given.items():
            one = self._names[name]
            axes = self._axes(one)
            if array.ndim != len(axes):
                raise ArgumentError(f"run: input {shown(name)} has shape {array.shape}; expected {len(axes)} axes")
            canonical[one] = rearrange(array, axes, CANONICAL.axes_of(one)) if one != "sequence_lens" else array
        with named_after("run"):
            (self._bound, _), arrays = prepared_call(self._layer, self._layer, canonical, seed or 0, dims)
        T, N = arrays["X"].shape[:2]
        made: Arrays = {}
        for name, one in self._names.items():
            if name in given:
                made[name] = given[name]
            elif one == "sequence_lens":
                if one in self._convention.required:
                    made[name] = np.full(N, T, np.int32)
            elif one not in self._constants and (seed is not None or one in ("X", *self._convention.required)):
                made[name] = rearrange(arrays[one].astype(self._bound.dtype), CANONICAL.axes_of(one), self._axes(one))
        yield made

    def call(self, inputs: Arrays) -> Arrays:
        given = {self._names[name]: np.ascontiguousarray(array) for name, array in inputs.items()}
        names = [self._convention.name_of(name) for name in self._bound.output_names]
        return dict(zip(names, self._bound.run(**given), strict=True))

    def prepare_stream(self) -> None:
        names = {one: self._convention.name_of(one) for one in ("initial_h", "initial_c", "Y_h", "Y_c")}
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
        for one in ("X", "Y"):
            if name == self._convention.name_of(one):
                place = self._axes(one).find("T")
                return None if place < 0 else place
        return None

    def lengths(self) -> frozenset[str]:
        return frozenset({self._convention.name_of("sequence_lens")})


def first_that_runs(
    subject: Subject, given: Mapping[str, AnyArray], seed: int | None, dims: Mapping[str, int]
) -> tuple[Arrays, Arrays]:
    """The first of inputs of several sizes, as of `Subject.calls`, that are not rejected, and what they give.

    Raises
    ------
    PyrnnxError
        What is said of the first, if there is none.
    """
    errors: list[PyrnnxError] = []
    inputs: Arrays = {}
    for inputs in subject.calls(given, seed, dims):
        try:
            return inputs, subject.call(inputs)
        except PyrnnxError as error:  # noqa: PERF203  # whether sizes suit is what a call tells
            errors.append(error)
    if len(errors) == 1:
        raise errors[0]
    ones = [name for name, array in inputs.items() if name not in given and np.asarray(array).dtype.kind in "iu"]
    hint = (
        f"; {', '.join(map(shown, ones))} was 1, as random integers are: --input NAME=NUMBER gives it" if ones else ""
    )
    raise type(errors[0])(
        f"run: {shortened(subject.label)} does not run on random inputs of the sizes that it declares; --dim and "
        f"--input can give others{hint} ({shortened(str(errors[0]).removeprefix(f'{subject.label}: '))})"
    ) from errors[0]
