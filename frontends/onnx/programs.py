"""Programs of a model: one session for each choice of returned values, made when a call first needs it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pyrnnx import config
from pyrnnx.operator.tensor_info import TensorInfo

from .session import NotRunnable, failure

# Maker of a session: whether the defaults of inputs are constants, and values that it returns besides the outputs.
Make = Callable[[bool, frozenset[str]], Any]


class Program:
    """Thread-safe runner of a session, which is made again if settings of pyrnnx change.

    Parameters
    ----------
    label : str
        Name of the model in errors.
    make : callable
        Function that returns a session.
    wanted : sequence of str
        Names of the values that a call returns.
    """

    def __init__(self, label: str, make: Callable[[], Any], wanted: Iterable[str]) -> None:
        self._label, self._make, self.wanted = label, make, list(wanted)
        self._lock = threading.Lock()
        self._current: tuple[object, Any] = (None, None)

    def session(self) -> Any:
        """Return the session for the current settings.

        Raises
        ------
        PyrnnxError
            ONNX Runtime is not installed, or rejects the model.
        """
        settings = config.settings()
        with self._lock:
            if self._current[0] is not settings:
                try:
                    self._current = settings, self._make()
                except NotRunnable as error:
                    raise failure(self._label, error) from error
            return self._current[1]

    def call(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the wanted values by name."""
        settings, session = self._current
        if settings is not config.settings():
            session = self.session()
        try:
            results = session.run(self.wanted, inputs)
        except Exception as error:  # of several types
            raise failure(self._label, error) from error
        return dict(zip(self.wanted, results, strict=True))


class Programs:
    """Thread-safe cache of the programs of a model.

    Parameters
    ----------
    label : str
        Name of the model in errors.
    outputs : sequence of TensorInfo
        The model's outputs.
    defaults : iterable of str
        Inputs with a default.
    make : callable
        Function that makes a session.
    """

    def __init__(self, label: str, outputs: Sequence[TensorInfo], defaults: Iterable[str], make: Make) -> None:
        self._label, self._make, self._lock = label, make, threading.Lock()
        self._outputs, self._defaults = [info.name for info in outputs], frozenset(defaults)
        self._programs: dict[tuple[bool, frozenset[str]], Program] = {}
        # Programs with constant defaults, by the values that they return in their order.
        self._by_outputs: dict[tuple[str, ...], Program] = {}

    def run(self, inputs: dict[str, Any], outputs: tuple[str, ...], *, once: bool = False) -> dict[str, Any]:
        """Return the values with these names, computed from checked inputs; `once` keeps no session."""
        is_plain = self._defaults.isdisjoint(inputs)
        if is_plain and (program := self._by_outputs.get(outputs)) is not None:
            return program.call(inputs)
        more = frozenset(outputs).difference(self._outputs)
        values = (self._new(is_plain, more) if once else self.program(is_plain, more)).call(inputs)
        return {name: values[name] for name in outputs}

    def program(self, defaults: bool = True, more: frozenset[str] = frozenset()) -> Program:
        """Return the program whose session the maker returns for these arguments."""
        key = defaults, more
        with self._lock:
            if key not in self._programs:
                program = self._programs[key] = self._new(defaults, more)
                if defaults:
                    self._by_outputs[tuple(program.wanted)] = program
            return self._programs[key]

    def _new(self, defaults: bool, more: frozenset[str]) -> Program:
        wanted = dict.fromkeys([*self._outputs, *sorted(more)])
        return Program(self._label, lambda: self._make(defaults, more), wanted)
