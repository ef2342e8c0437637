"""The variables of a model between its calls."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any, Protocol

import numpy as np

from pyrnnx.dtypes import AnyArray, named_dtype
from pyrnnx.errors import ArgumentError, shortened, shown
from pyrnnx.model_stream import Carrier, ModelStream
from pyrnnx.tensor_info import TensorInfo

LARGEST_FIRST = 2**24  # bytes of zeros that are made before a call asks for them


class Evaluated(Protocol):
    """What a session needs of a model."""

    label: str
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]

    def _evaluate(
        self, inputs: dict[str, Any], outputs: tuple[str, ...], missing: frozenset[str]
    ) -> dict[str, Any]: ...
    def _evaluate_again(self, arrays: tuple[Any, ...], missing: frozenset[str]) -> dict[str, Any] | None: ...
    def _doubtful(self, missing: frozenset[str]) -> dict[str, str]: ...
    def _carrier_of(self, fed: frozenset[str], layers: bool | frozenset[str], missing: frozenset[str]) -> Carrier: ...


class WithVariables:
    """A model whose variables are inputs and outputs: what a stream runs.

    Parameters
    ----------
    model : Evaluated
    infos : mapping of TensorInfo
        Of the variables as inputs, by their ids.
    computed : frozenset of str
        The ids of those that begin with what the model computes.
    fed, layers
        As of `Model._carrier`.
    """

    def __init__(
        self,
        model: Evaluated,
        infos: Mapping[str, TensorInfo],
        computed: frozenset[str],
        fed: frozenset[str],
        layers: bool | frozenset[str],
    ) -> None:
        self._model, self.label, self.outputs = model, model.label, model.outputs
        self._computed = {identifier: infos[identifier].name for identifier in computed}
        self._needed = {info.name: one for one, info in infos.items() if one not in computed}
        self._fed, self._layers = fed, layers
        known = [info.name for info in infos.values()]
        self.inputs = (*model.inputs, *infos.values())
        if layers:
            carried = self._carrier(frozenset())
            self.inputs += tuple(
                one for one in carried.model.inputs if one.name in set(carried.states.values()) - {*known}
            )

    @property
    def states(self) -> Mapping[str, str]:
        """Of layers, the inputs by the outputs that they are in the next call."""
        return self._carrier(frozenset()).states if self._layers else {}

    def _carrier(self, missing: frozenset[str]) -> Carrier:
        return self._model._carrier_of(self._fed, self._layers, missing)

    def _missing(self, inputs: Mapping[str, Any]) -> frozenset[str]:
        return frozenset(one for one, name in self._computed.items() if name not in inputs)

    def _run(self, inputs: dict[str, Any], outputs: tuple[str, ...]) -> dict[str, Any]:
        missing = self._missing(inputs)
        for name, identifier in self._needed.items():
            if name not in inputs:
                raise ArgumentError(
                    f"{self.label}: variable {shown(identifier)} has no first value: neither an input of its ReadValue "
                    "nor its shape tells one; expected it in `state`, or in stream(initial={...})"
                )
        doubtful = self._model._doubtful(missing)
        wanted = (*outputs, *doubtful)
        results: dict[str, Any]
        if self._layers:
            results = self._carrier(missing).model._run(inputs, wanted)
        else:
            results = self._model._evaluate(inputs, wanted, missing)
        return _certain(results, doubtful)

    def _again(self, arrays: tuple[Any, ...]) -> dict[str, Any] | None:
        (inputs,) = arrays
        missing = self._missing(inputs)
        results: dict[str, Any] | None
        if self._layers:
            results = self._carrier(missing).model._again(arrays)
        else:
            results = self._model._evaluate_again(arrays, missing)
        return None if results is None else _certain(results, self._model._doubtful(missing))


def _certain(results: dict[str, Any], doubtful: Mapping[str, str]) -> dict[str, Any]:
    """The results without variables that have no value yet."""
    for known, after in doubtful.items():
        if not results.pop(known):
            del results[after]
    return results


def first_value(info: TensorInfo) -> AnyArray | None:
    """Zeros, in which a dimension that is open has no elements, as in OpenVINO; None where they cannot be made."""
    sizes = [size if isinstance(size, int) else 0 for size in info.shape or ()]
    if info.shape is None or info.dtype in (None, "str"):
        return None
    dtype = named_dtype(str(info.dtype))
    if math.prod(sizes) * dtype.itemsize > LARGEST_FIRST:
        return None
    try:
        return np.zeros(sizes, dtype)
    except ValueError:  # no elements, and other sizes beyond what NumPy counts
        return None


class State(MutableMapping[str, AnyArray]):
    """The variables of a model, by their ids, as they were when it was asked for them: what the next call begins with.

    Assigned to, a variable of the model changes; deleted, it begins anew. One that begins with what the model computes
    is absent before the first call, and after `reset_state`. Later calls change the model and not this: kept, it can be
    assigned to `model.state` to go back. From any number of threads.
    """

    def __init__(self, session: Session) -> None:
        self._session, self._values = session, session.values()

    def __getitem__(self, key: str) -> AnyArray:
        return self._values[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._session.change(lambda values: {**values, key: value})
        self._take(key)

    def __delitem__(self, key: str) -> None:
        if key not in self._values:
            raise KeyError(key)
        self._session.change(lambda values: {name: one for name, one in values.items() if name != key})
        self._take(key)

    def _take(self, key: str) -> None:
        """A variable as the model has it now."""
        self._values.pop(key, None)
        self._values |= {name: one for name, one in self._session.values().items() if name == key}

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copied and pickled as what it holds: the model has copies of its own."""
        return dict, (dict(self._values),)

    def __repr__(self) -> str:
        found = ", ".join(f"{shown(key)}: {one.dtype} {one.shape}" for key, one in self._values.items())
        return f"<state {shortened(found)}>" if found else "<state, nothing yet>"


class Session:
    """What the calls of a model leave for the next: one call at a time, whatever thread it comes from.

    Parameters
    ----------
    make : callable
        The stream.
    names : mapping
        By the ids of variables, what the stream calls them.
    label : str
        How errors name the model.
    """

    def __init__(self, make: Callable[[], ModelStream], names: Mapping[str, str], label: str) -> None:
        self._make, self._names, self._label = make, names, label
        self._lock = threading.RLock()
        self._made: ModelStream | None = None

    @property
    def _stream(self) -> ModelStream:
        if self._made is None:
            self._made = self._make()
        return self._made

    def run(self, inputs: dict[str, Any], outputs: tuple[str, ...]) -> dict[str, Any]:
        """A call with inputs that are checked."""
        with self._lock:
            return self._stream.run_checked(inputs, outputs)

    def again(self, arrays: tuple[Any, ...]) -> dict[str, Any] | None:
        """A call like one before; None where it is not."""
        with self._lock:
            return self._stream.again(arrays)

    def reset(self) -> None:
        with self._lock:
            if self._names:
                self._stream.reset()

    def values(self) -> dict[str, AnyArray]:
        """By id, as copies."""
        with self._lock:
            state = self._stream.state if self._names else {}
        return {one: state[name] for one, name in self._names.items() if name in state}

    def change(self, change: Callable[[Mapping[str, Any]], Any]) -> None:
        """Give the variables the values that `change` makes of theirs.

        Raises
        ------
        ArgumentError
            An unknown id, or a value that does not fit the variable.
        """
        with self._lock:
            values = change(self.values())
            if not isinstance(values, Mapping):
                raise ArgumentError(f"{self._label}: state is {shown(values)}; expected a mapping of arrays")
            for one in values:
                if one not in self._names:
                    known = shortened(", ".join(self._names)) or "none"
                    raise ArgumentError(f"{self._label}: state: variable {shown(one)} is unknown; expected of {known}")
            if self._names:
                self._stream.restore({self._names[one]: value for one, value in values.items()})
