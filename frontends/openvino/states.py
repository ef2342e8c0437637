"""Variables of a model between its calls."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray, named_dtype
from pyrnnx.errors import ArgumentError, shortened, shown
from pyrnnx.models.stream import Carrier, ModelStream
from pyrnnx.operator.tensor_info import TensorInfo

LARGEST_FIRST = 2**24  # bytes of a first value that is allocated before a call needs it


class WithVariables:
    """A model whose variables are inputs and outputs, for streams.

    By the names of inputs, `starts` are the first values that are known before a call, and `computed` the ids of
    variables whose first value depends on inputs.
    """

    def __init__(self, model: Any, fed: frozenset[str], layers: bool | frozenset[str]) -> None:
        self._model, self._fed, self._layers = model, fed, layers
        self.label, self.outputs = model.label, model.outputs
        self.starts: dict[str, AnyArray] = {}
        self.computed: dict[str, str] = {}
        self._own: dict[str, TensorInfo] = {}
        for identifier, variable in model._variables.items():
            name, _ = model._states[identifier]
            info = self._own[name] = TensorInfo(name, variable.dtype, variable.shape, optional=True)
            start = first_value(info) if variable.initial is None else model.constant(variable.initial)
            if start is not None:
                self.starts[name] = start
            elif variable.initial is not None:
                self.computed[name] = identifier
        self.inputs = (*model.inputs, *self._own.values())
        if layers:
            states = set(self._carrier(frozenset()).states.values()) - self._own.keys()
            self.inputs += tuple(info for info in self._carrier(frozenset()).model.inputs if info.name in states)

    @property
    def states(self) -> Mapping[str, str]:
        """Inputs of layers' states, by the outputs that provide them for the next call."""
        return self._carrier(frozenset()).states if self._layers else {}

    def _carrier(self, missing: frozenset[str]) -> Carrier:
        carrier: Carrier = self._model._carrier_of(self._fed, self._layers, missing)
        return carrier

    def _run(self, inputs: dict[str, Any], outputs: tuple[str, ...]) -> dict[str, Any]:
        absent = self._own.keys() - inputs.keys()
        for name in absent - self.computed.keys():
            identifier = next(key for key, names in self._model._states.items() if names[0] == name)
            raise ArgumentError(
                f"{self.label}: variable {shown(identifier)} has no first value: its ReadValue has no input, and "
                "its shape is unknown or too large; set it in `state`, or in stream(initial={...})"
            )
        missing = frozenset(self.computed[name] for name in absent)
        if self._layers:
            results: dict[str, Any] = self._carrier(missing).model._run(inputs, outputs)
        else:
            results = self._model._evaluate(inputs, outputs, missing)
        return results


def first_value(info: TensorInfo) -> AnyArray | None:
    """Return zeros, with size 0 for dynamic dimensions, as OpenVINO does; None if the shape is unknown or too large."""
    if info.shape is None or info.dtype in (None, "str"):
        return None
    sizes, dtype = [size if isinstance(size, int) else 0 for size in info.shape], named_dtype(str(info.dtype))
    if math.prod(sizes) * dtype.itemsize > LARGEST_FIRST:
        return None
    try:
        return np.zeros(sizes, dtype)
    except ValueError:  # no elements, but other sizes exceed NumPy's limit
        return None


class Session:
    """Variables of a model from call to call; a lock runs one call at a time.

    `names` are the variables' names in the stream, by id; `label` is the name of the model in errors.
    """

    def __init__(self, make_stream: Callable[[], ModelStream], names: Mapping[str, str], label: str) -> None:
        self._make_stream, self._names, self._label = make_stream, names, label
        self._lock = threading.RLock()

    @cached_property
    def _stream(self) -> ModelStream:
        return self._make_stream()

    def run(self, inputs: dict[str, Any], outputs: tuple[str, ...]) -> dict[str, Any]:
        """Run the model on checked inputs."""
        with self._lock:
            return self._stream._run_checked(inputs, outputs)

    def reset(self) -> None:
        with self._lock:
            if self._names:
                self._stream.reset()

    def values(self) -> dict[str, AnyArray]:
        """Return copies of the values by id."""
        with self._lock:
            state = self._stream.state if self._names else {}
        return {identifier: state[name] for identifier, name in self._names.items() if name in state}

    def restore(self, values: Mapping[str, Any]) -> None:
        """Set the variables; those without a value are reset."""
        if not isinstance(values, Mapping):
            raise ArgumentError(f"{self._label}: state is {shown(values)}; expected a mapping of arrays")
        for key in values:
            if key not in self._names:
                known = shortened(", ".join(self._names)) or "none"
                raise ArgumentError(
                    f"{self._label}: state: variable {shown(key)} is unknown; the variables are {known}"
                )
        if self._names:
            with self._lock:
                self._stream.restore({self._names[key]: value for key, value in values.items()})
