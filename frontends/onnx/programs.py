"""Sessions of a model: one for each choice of returned values, made when a call first needs it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pyrnnx import config
from pyrnnx.operator.tensor_info import TensorInfo

from .session import NotRunnable, failure

# Maker of a session: whether the defaults of inputs are constants, and values that it returns besides the outputs.
Make = Callable[[bool, frozenset[str]], Any]


class Programs:
    """Thread-safe cache of the sessions of a model, which are made again if settings of pyrnnx change.

    `label` is the model's name in errors, `outputs` are its outputs, and `defaults` its inputs with a default.
    """

    def __init__(self, label: str, outputs: Sequence[TensorInfo], defaults: Iterable[str], make: Make) -> None:
        self._label, self._make, self._lock = label, make, threading.Lock()
        self._outputs, self._defaults = [info.name for info in outputs], frozenset(defaults)
        # The settings of each session, and itself.
        self._sessions: dict[tuple[bool, frozenset[str]], tuple[object, Any]] = {}
        # Those, and the values that the session returns, by what a call passes and wants.
        self._calls: dict[tuple[bool, tuple[str, ...]], tuple[object, Any, list[str]]] = {}

    def run(self, inputs: Mapping[str, Any], outputs: tuple[str, ...], *, once: bool = False) -> dict[str, Any]:
        """Return the values with these names, computed from checked inputs; `once` keeps no session."""
        is_plain = self._defaults.isdisjoint(inputs)
        key, settings = (is_plain, outputs), config.settings()
        before, session, wanted = self._calls.get(key, (None, None, []))
        if before is not settings:
            more = frozenset(outputs).difference(self._outputs)
            session, wanted = self._session(is_plain, more, once), [*self._outputs, *sorted(more)]
            if not once:
                self._calls[key] = settings, session, wanted
        try:
            results = session.run(wanted, inputs)
        except Exception as error:  # of several types
            raise failure(self._label, error) from error
        values = dict(zip(wanted, results, strict=True))
        return {name: values[name] for name in outputs}

    def session(self) -> Any:
        """Return the session of calls without further inputs and outputs.

        Raises
        ------
        PyrnnxError
            ONNX Runtime is not installed, or rejects the model.
        """
        return self._session(True, frozenset(), False)

    def _session(self, defaults: bool, more: frozenset[str], once: bool) -> Any:
        settings, key = config.settings(), (defaults, more)
        with self._lock:
            before, session = self._sessions.get(key, (None, None))
            if before is not settings:
                try:
                    session = self._make(defaults, more)
                except NotRunnable as error:
                    raise failure(self._label, error) from error
                if not once:
                    self._sessions[key] = settings, session
            return session
