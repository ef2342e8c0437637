"""Calls of a whole model one after the other, with what each leaves for the next: its states."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy as np

from pyrnnx import config, feedback, notebook
from pyrnnx.dtypes import AnyArray, named_dtype
from pyrnnx.errors import ArgumentError, shortened, shown
from pyrnnx.model_inputs import read_inputs
from pyrnnx.tensor_info import Dimension, Interval, TensorInfo


class Runnable(Protocol):
    """What a stream needs of a model."""

    label: str
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]

    @property
    def layers(self) -> Mapping[str, Any]: ...
    def _run(self, inputs: dict[str, Any], outputs: tuple[str, ...]) -> dict[str, Any]: ...
    def _again(self, arrays: tuple[Any, ...]) -> dict[str, Any] | None: ...


class Carrier(NamedTuple):
    """A model as a stream runs it.

    Attributes
    ----------
    model : Runnable
        With inputs and outputs for the states of layers, behind those of the model. The inputs are optional: without
        them the layers begin as they do in a call.
    states : mapping
        Those inputs, by those outputs.
    starts : mapping
        Of inputs that are fed back, the defaults.
    absent : frozenset of str
        Inputs that may have no value between calls, for the model then computes one.
    """

    model: Any
    states: Mapping[str, str] = {}
    starts: Mapping[str, AnyArray] = {}
    absent: frozenset[str] = frozenset()


class ModelStream:
    """A model that is called step by step, its states kept from push to push; made by `Model.stream`.

    Not for several threads at once: a stream has a state. Several streams of one model are independent, and share its
    weights.

    Attributes
    ----------
    model : Model
    states : mapping
        The inputs that are fed back, by the outputs that they are. Those of layers that begin inside the model are not
        among them, but in `state`.
    """

    def __init__(
        self,
        model: Runnable,
        states: Mapping[str, str] | None,
        initial: Mapping[str, Any] | None,
        layers: bool | frozenset[str],
        carrier: Callable[[frozenset[str], bool | frozenset[str]], Carrier],
    ) -> None:
        self.model, self._label, self._layers = model, f"{model.label}: stream", layers
        self.states: Mapping[str, str] = feedback.pairs_of(self._label, model.inputs, model.outputs, states)
        fed = frozenset(self.states.values())
        self._carrier = carrier(fed, layers)
        if not self.states and not self._carrier.states:
            found = feedback.candidates(model.inputs, model.outputs)
            raise ArgumentError(
                f"{self._label}: nothing is kept from call to call: no layer begins inside the model, and no outputs "
                f"are inputs by their names; expected states={{output: input}}, of those that agree: {found}"
            )
        outputs = [info.name for info in model.outputs]
        self._wanted = (*outputs, *(name for name in self._carrier.states if name not in outputs))
        # What is returned, too, is copied: a caller may write to it.
        pairs = [*self.states.items(), *self._carrier.states.items()]  # an output can be in both
        self._copied = [(output, name) for output, name in pairs if output in outputs]
        self._taken = [(output, name) for output, name in pairs if output not in outputs]
        self._pushed = [info for info in model.inputs if info.name not in fed]
        self._names = [info.name for info in self._pushed]
        own = set(self._carrier.states.values())
        self._fed = [info for info in model.inputs if info.name in fed]
        held = [*self._fed, *(info for info in self._carrier.model.inputs if info.name in own)]
        self._held = [replace(info, optional=True) for info in held]
        self._reserved = {name for info in self._fed for name in (info.name, *info.aliases)}
        self._initial = {} if initial is None else self._checked("initial", initial)
        self._first = self._beginning()
        self._values = dict(self._first)

    def push(self, /, *arrays: Any, **named: Any) -> dict[str, Any]:
        """The next call.

        Parameters
        ----------
        *arrays : array_like, or one mapping of them
            As of a call of the model, without the inputs that are fed back.
        **named : array_like
            The same by their names.

        Returns
        -------
        dict
            {name: array}: the model's outputs as a call gives them, those that are fed back among them.

        Raises
        ------
        PyrnnxError
            What a call rejects; an input that is fed back; states whose sizes neither their declarations nor the other
            inputs tell; a layer whose sequence_lens are not seq_length. The states are then as before.
        """
        results = self.again(arrays, named)
        return self._kept(self._run(arrays, named)) if results is None else results

    def again(self, arrays: tuple[Any, ...], named: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any] | None:
        """As `push`, of what has the dtypes and shapes of a push before; else None."""
        results = self._run_again(arrays, named)
        return None if results is None else self._kept(results)

    def run_checked(self, given: dict[str, Any], outputs: tuple[str, ...]) -> dict[str, Any]:
        """As `push`, of inputs that are as a call checks them: the values of these names."""
        wanted = dict.fromkeys((*outputs, *self._wanted))
        results = self._kept(self._called(given, tuple(wanted)))
        return {name: results[name] for name in outputs}

    def _kept(self, results: dict[str, Any]) -> dict[str, Any]:
        """The results without the states, which are those of the next push; one that they lack begins anew there."""
        values = {name: results[output].copy() for output, name in self._copied}
        for output, name in self._taken:
            if output in results:
                values[name] = results.pop(output)
        self._values = values
        return results

    def _run_again(self, arrays: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any] | None:
        """As `_run`; None of what has not the dtypes and shapes of a push before."""
        if len(self._values) < len(self._held):  # with all of them, a name that is a state's is there twice
            return None
        if len(arrays) == 1 and type(arrays[0]) is dict:
            given = arrays[0]
        elif len(arrays) <= len(self._names):
            given = dict(zip(self._names, arrays, strict=False))
        else:
            return None
        inputs = {**given, **named, **self._values}
        if len(inputs) != len(given) + len(named) + len(self._values):  # a name that was given twice
            return None
        results: dict[str, Any] | None = self._carrier.model._again((inputs,))
        return results

    def _run(self, arrays: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
        names = arrays[0] if len(arrays) == 1 and isinstance(arrays[0], Mapping) else ()
        for name in (*names, *named):
            if name in self._reserved:
                raise ArgumentError(
                    f"{self._label}: input {shown(name)} is fed back; expected {_listed(self._pushed)}, and states in "
                    "stream.state = {...}"
                )
        return self._called(read_inputs(self._label, self._pushed, arrays, named), self._wanted)

    def _called(self, given: dict[str, Any], outputs: tuple[str, ...]) -> dict[str, Any]:
        states = self._values
        if len(states) < len(self._held):
            symbols = _symbols(self._pushed, given)
            states = self._zeros([info for info in self._fed if info.name not in states], symbols) | states
            checked = read_inputs(self._label, self._held, (states,))
        else:
            checked = read_inputs(self._label, self._held, tuple([states[info.name] for info in self._held]))
        results: dict[str, Any] = self._carrier.model._run({**given, **checked}, outputs)
        return results

    def reset(self) -> None:
        """Begin anew, as the stream began."""
        self._values = dict(self._first)

    @property
    def state(self) -> dict[str, AnyArray]:
        """What the next push begins with, by the names of inputs; of a layer that begins inside the model, by its name
        and that of its initial state ("lstm.initial_h", of an IR "lstm.H"). Copies.

        Before the first push, it has no states whose sizes that push will tell. Assign a mapping to go on from there,
        with all states, or with those of the beginning; what has a default in the model may be missing, and begins as
        after `reset`.
        """
        return {info.name: np.array(self._values[info.name]) for info in self._held if info.name in self._values}

    @state.setter
    def state(self, state: Mapping[str, Any]) -> None:
        checked = self._checked("state", state)
        self._check_names(checked)
        self._values = {**self._first, **checked}

    def restore(self, state: Mapping[str, Any]) -> None:
        """As assigning `state`, but what it lacks begins as after `reset`."""
        self._values = {**self._first, **self._checked("state", state)}

    def _check_names(self, state: Mapping[str, AnyArray]) -> None:
        """Reject a state that lacks some, unless these have defaults in the model, or it is that of the beginning."""
        if state.keys() == self._first.keys() and (state or not self._values):
            return
        given = {*state, *(info.name for info in self._fed if info.optional), *self._carrier.absent}
        missing = [info for info in self._held if info.name not in given]
        if missing:
            raise ArgumentError(
                f"{self._label}: state lacks {_listed(missing)}; expected {_listed(self._held)} (reset() begins anew)"
            )

    def _checked(self, what: str, values: Mapping[str, Any]) -> dict[str, AnyArray]:
        """States as copies, checked as a call checks inputs."""
        if not isinstance(values, Mapping):
            raise ArgumentError(
                f"{self._label}: {what} is {shown(values)}; expected a mapping of arrays: {_listed(self._held)}"
            )
        checked = read_inputs(f"{self._label}: {what}", self._held, (values,))
        return {name: np.array(value) for name, value in checked.items()}

    def _beginning(self) -> dict[str, AnyArray]:
        """The states that are known before the first push."""
        found = {**self._carrier.starts, **self._initial}
        known = [info for info in self._fed if info.name not in found and _sizes(info, {}) is not None]
        return {**found, **self._zeros(known, {})}

    def _zeros(self, infos: Sequence[TensorInfo], symbols: Mapping[str, int]) -> dict[str, AnyArray]:
        """Zeros for states, if all of them are within what a call may take."""
        shapes: dict[str, tuple[int, ...]] = {}
        taken, limit = 0, config.get_memory_limit()
        for info in infos:
            shape = _sizes(info, symbols)
            if shape is None or info.dtype == "str":
                raise ArgumentError(
                    f"{self._label}: the state {feedback.described(info)} has no beginning: the inputs of the push do "
                    f"not tell its open sizes; expected it in stream(initial={{{shown(info.name)}: array}}), or in "
                    "stream.state = {...}"
                )
            size = math.prod(shape) * _itemsize(str(info.dtype))
            if taken + size > limit:
                beside = f" beside {taken} of other states" if taken else ""
                raise ArgumentError(
                    f"{self._label}: zeros for the state {feedback.described(info)} would take {size} bytes{beside}; a "
                    f"call may take {limit} (pyrnnx.set_memory_limit allows more)"
                )
            shapes[info.name], taken = shape, taken + size
        return {info.name: self._zero(info, shapes[info.name]) for info in infos}

    def _zero(self, info: TensorInfo, shape: tuple[int, ...]) -> AnyArray:
        try:
            return np.zeros(shape, named_dtype(str(info.dtype)))
        except (MemoryError, ValueError, TypeError) as error:  # TypeError: a dtype of ml_dtypes
            raise ArgumentError(
                f"{self._label}: zeros for the state {feedback.described(info)} cannot be made ({error})"
            ) from error

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.model, dict(self.states), self._initial, self._layers, self._values)

    def _repr_html_(self) -> str:
        parts = [
            notebook.table((title, ""), [(info.name, info.in_words()) for info in infos])
            for title, infos in ((f"each push to {self.model.label}", self._pushed), ("states", self._held))
        ]
        return notebook.whole(*parts)

    def __repr__(self) -> str:
        names = ", ".join(shortened(info.name) for info in self._held)
        return f"<{type(self).__name__} of {self.model.label}: ({_listed(self._pushed)}), states {names}>"


def _itemsize(dtype: str) -> int:
    try:
        return named_dtype(dtype).itemsize
    except TypeError:
        return 1  # of ml_dtypes: zeros of it are refused


def _restored(model: Any, states: Any, initial: Any, layers: Any, values: Any) -> ModelStream:
    stream: ModelStream = model.stream(states, initial=initial, layers=layers)
    stream.restore(values)
    return stream


def _listed(infos: Sequence[TensorInfo]) -> str:
    return ", ".join(shortened(info.name) for info in infos) or "none"


def _symbols(infos: Sequence[TensorInfo], arrays: Mapping[str, Any]) -> dict[str, int]:
    """What the shapes of arrays say of the symbols in their declarations."""
    found: dict[str, int] = {}
    for info in infos:
        shape = getattr(arrays.get(info.name), "shape", ())
        for dimension, size in zip(info.shape or (), shape, strict=False):
            if isinstance(dimension, str):
                found.setdefault(dimension, size)
    return found


def _sizes(info: TensorInfo, symbols: Mapping[str, int]) -> tuple[int, ...] | None:
    """The shape, if all of it is known."""
    sizes = [_size(dimension, symbols) for dimension in info.shape or ()]
    known = [size for size in sizes if size is not None]
    return None if info.shape is None or len(known) != len(sizes) else tuple(known)


def _size(dimension: Dimension, symbols: Mapping[str, int]) -> int | None:
    if isinstance(dimension, str):
        return symbols.get(dimension)
    if isinstance(dimension, Interval):
        return dimension.low if dimension.low == dimension.high else None
    return dimension
