"""Streams of models: calls one after another that keep states in between."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from pyrnnx import config
from pyrnnx._internal.dtypes import AnyArray, named_dtype
from pyrnnx._internal.immutable import Immutable
from pyrnnx.errors import ArgumentError, UnsupportedError, shortened, shown
from pyrnnx.models import state_pairs
from pyrnnx.models.inputs import Inputs, listed, read_inputs
from pyrnnx.operator.tensor_info import Interval, TensorInfo


class Carrier(NamedTuple):
    """A model that a stream runs, with its states as inputs and outputs.

    Attributes
    ----------
    model : Model
        Model with additional inputs and outputs, after its own, for the states of layers. The inputs are optional:
        without them, layers use the initial states of a call.
    states : mapping
        {additional output: additional input}.
    starts : mapping
        Defaults of inputs that are fed back.
    absent : frozenset of str
        Inputs that may have no value between calls, because the model then computes one.
    backward : tuple of str
        Layers whose states are fed back although they do not run forward.
    """

    model: Any
    states: Mapping[str, str] = {}
    starts: Mapping[str, AnyArray] = {}
    absent: frozenset[str] = frozenset()
    backward: tuple[str, ...] = ()


class ModelStream(Immutable):
    """A model that is called push by push and keeps its states in between; `Model.stream` creates it.

    A stream is not thread-safe. Several streams of one model are independent and share its weights.

    Attributes
    ----------
    model : Model
    states : mapping
        {output: input} of the inputs that are fed back. Only `state` has the states of layers that are not inputs of
        the model.
    state_infos : tuple of TensorInfo
        Declarations of all states, with the names of `state`.
    """

    _fixed = frozenset({"model", "states", "state_infos"})

    def __init__(
        self,
        model: Any,
        states: Mapping[str, str] | None,
        initial: Mapping[str, Any] | None,
        layers: bool | frozenset[str],
        carrier: Callable[[frozenset[str], bool | frozenset[str]], Carrier],
    ) -> None:
        self.model, self._label, self._layers = model, f"{model.label}: stream", layers
        self.states: Mapping[str, str] = MappingProxyType(
            state_pairs.pairs_of(self._label, model.inputs, model.outputs, states)
        )
        fed = frozenset(self.states.values())
        self._carrier = carrier(fed, layers)
        if states is None and self._carrier.backward:
            raise UnsupportedError(
                f"{self._label}: the states of {', '.join(self._carrier.backward)} are fed back, but they start at the "
                f"end: expected direction forward, or states={dict(self.states)} if each push is a whole sequence"
            )
        if not self.states and not self._carrier.states:
            compatible = state_pairs.candidates(model.inputs, model.outputs)
            raise ArgumentError(
                f"{self._label}: there are no states: no layer has its initial states inside the model, and no names "
                f"of outputs match inputs; expected states={{output: input}}; these are compatible: {compatible}"
            )
        outputs = [info.name for info in model.outputs]
        self._wanted = (*outputs, *sorted(self._carrier.states.keys() - outputs))
        # Copy states that are also returned, because the caller may write to them.
        pairs = [*self.states.items(), *self._carrier.states.items()]  # may repeat an output
        self._copied = [(output, name) for output, name in pairs if output in outputs]
        self._taken = [(output, name) for output, name in pairs if output not in outputs]
        self._pushed = [info for info in model.inputs if info.name not in fed]
        own = set(self._carrier.states.values())
        self._fed = [info for info in model.inputs if info.name in fed]
        infos = [*self._fed, *(info for info in self._carrier.model.inputs if info.name in own)]
        self.state_infos = tuple(replace(info, optional=True) for info in infos)
        self._push_inputs = Inputs(self._label, self._pushed)
        self._state_inputs = Inputs(self._label, self.state_infos)
        self._reserved = {name for info in self._fed for name in (info.name, *info.aliases)}
        self._initial = {} if initial is None else self._checked("initial", initial)
        self._first = self._first_states()
        self._values = dict(self._first)

    def push(self, /, *arrays: Any, **named: Any) -> dict[str, Any]:
        """Run the next call.

        Parameters
        ----------
        *arrays : array_like, or one mapping of them
            Inputs of the model, without those that are fed back.
        **named : array_like
            The same inputs by name.

        Returns
        -------
        dict
            {name: array} of all outputs of the model, including those that are fed back.

        Raises
        ------
        PyrnnxError
            An input does not fit or is fed back, the size of a state is unknown, or the sequence_lens of a layer differ
            from seq_length. The states are unchanged.
        """
        inputs = self._push_inputs.recognized(arrays, named)
        if inputs is None:
            names = arrays[0] if len(arrays) == 1 and isinstance(arrays[0], Mapping) else ()
            for name in (*names, *named):
                if name in self._reserved:
                    raise ArgumentError(
                        f"{self._label}: input {shown(name)} is fed back; expected {listed(self._pushed)}, and states "
                        "in stream.state = {...}"
                    )
            inputs = self._push_inputs.read(arrays, named)
        return self._take_states(self._call(inputs, self._wanted))

    def _run_checked(self, inputs: dict[str, Any], outputs: tuple[str, ...]) -> dict[str, Any]:
        """Run like `push` on checked inputs, and return the values with these names."""
        wanted = dict.fromkeys((*outputs, *self._wanted))
        results = self._take_states(self._call(inputs, tuple(wanted)))
        return {name: results[name] for name in outputs}

    def _take_states(self, results: dict[str, Any]) -> dict[str, Any]:
        """Store the states for the next push, and return the other results; a state without a result is reset."""
        values = {name: results[output].copy() for output, name in self._copied}
        for output, name in self._taken:
            if output in results:
                values[name] = results.pop(output)
        self._values = values
        return results

    def _call(self, inputs: dict[str, Any], outputs: tuple[str, ...]) -> dict[str, Any]:
        states = self._values
        if len(states) < len(self.state_infos):
            symbols = _symbols(self._pushed, inputs)
            states = self._zeros([info for info in self._fed if info.name not in states], symbols) | states
        checked = self._state_inputs.read((states,), {})
        results: dict[str, Any] = self._carrier.model._run({**inputs, **checked}, outputs)
        return results

    def reset(self) -> None:
        """Set the states to their initial values."""
        self._values = dict(self._first)

    @property
    def state(self) -> dict[str, AnyArray]:
        """Copies of the states by the names of inputs or, for states inside the model, "lstm.initial_h" (IR: "lstm.H").

        Before the first push, states whose sizes depend on it are missing. Assign a mapping of all states, or of the
        initial ones, to continue from there. A state with a default in the model may be missing, and is reset.
        """
        return {info.name: np.array(self._values[info.name]) for info in self.state_infos if info.name in self._values}

    @state.setter
    def state(self, state: Mapping[str, Any]) -> None:
        checked = self._checked("state", state)
        optional = {*checked, *(info.name for info in self._fed if info.optional), *self._carrier.absent}
        missing = [info for info in self.state_infos if info.name not in optional]
        are_initial = checked.keys() == self._first.keys() and (checked or not self._values)
        if missing and not are_initial:
            raise ArgumentError(
                f"{self._label}: state lacks {listed(missing)}; expected {listed(self.state_infos)} "
                "(reset() restores the initial states)"
            )
        self._values = {**self._first, **checked}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Assign `state`, and reset the states that are missing."""
        self._values = {**self._first, **self._checked("state", state)}

    def _checked(self, argument: str, values: Mapping[str, Any]) -> dict[str, AnyArray]:
        """Return copies of states, checked as inputs of a call."""
        if not isinstance(values, Mapping):
            expected = f"expected a mapping of arrays: {listed(self.state_infos)}"
            raise ArgumentError(f"{self._label}: {argument} is {shown(values)}; {expected}")
        checked = read_inputs(f"{self._label}: {argument}", self.state_infos, (values,))
        return {name: np.array(value) for name, value in checked.items()}

    def _first_states(self) -> dict[str, AnyArray]:
        """Return the states that are known before the first push."""
        states = {**self._carrier.starts, **self._initial}
        zero = [info for info in self._fed if info.name not in states and _sizes(info, {}) is not None]
        return {**states, **self._zeros(zero, {})}

    def _zeros(self, infos: Sequence[TensorInfo], symbols: Mapping[str, int]) -> dict[str, AnyArray]:
        """Return zeros for states, after checking the memory limit for all of them."""
        zeros: dict[str, AnyArray] = {}
        limit = config.get_memory_limit()
        for info in infos:
            shape = _sizes(info, symbols)
            if shape is None or info.dtype == "str":
                raise ArgumentError(
                    f"{self._label}: the state {state_pairs.described(info)} has no initial value: the inputs of the "
                    f"push do not determine its shape; pass it in stream(initial={{{shown(info.name)}: array}}) "
                    "or set stream.state = {...}"
                )
            try:
                dtype = named_dtype(str(info.dtype))
                limit -= math.prod(shape) * dtype.itemsize
                if limit < 0:
                    raise MemoryError("pyrnnx.set_memory_limit allows more")
                zeros[info.name] = np.zeros(shape, dtype)
            except (MemoryError, ValueError, TypeError) as error:  # TypeError: ml_dtypes is needed
                raise ArgumentError(
                    f"{self._label}: zeros for the state {state_pairs.described(info)} cannot be allocated ({error})"
                ) from error
        return zeros

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.model, dict(self.states), self._initial, self._layers, self._values)

    def __repr__(self) -> str:
        names = ", ".join(shortened(info.name) for info in self.state_infos)
        return f"<{type(self).__name__} of {self.model.label}: ({listed(self._pushed)}), states {names}>"


def _restored(model: Any, states: Any, initial: Any, layers: Any, values: Any) -> ModelStream:
    stream: ModelStream = model.stream(states, initial=initial, layers=layers)
    stream.restore(values)
    return stream


def _symbols(infos: Sequence[TensorInfo], arrays: Mapping[str, Any]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for info in infos:
        shape = getattr(arrays.get(info.name), "shape", ())
        for dimension, size in zip(info.shape or (), shape, strict=False):
            if isinstance(dimension, str):
                sizes.setdefault(dimension, size)
    return sizes


def _sizes(info: TensorInfo, symbols: Mapping[str, int]) -> tuple[int, ...] | None:
    if info.shape is None:
        return None
    sizes = []
    for dimension in info.shape:
        size = symbols.get(dimension) if isinstance(dimension, str) else dimension
        if isinstance(size, Interval):
            size = size.low if size.low == size.high else None
        if size is None:
            return None
        sizes.append(size)
    return tuple(sizes)
