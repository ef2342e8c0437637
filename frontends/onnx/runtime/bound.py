"""A plan for inputs of given shapes, in buffers that are made once: for frames, which take microseconds.

Sessions of ONNX Runtime read and write the buffers where they are. So a call copies its inputs into them, runs the
steps, and copies the outputs:

    input -> [buffer] -> session -> [buffer] -> LSTM -> [buffer] -> session -> [buffer] -> output

A `Bound` is for one thread at a time; a plan has as many as there were calls at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pyrnnx import config

LARGEST = 2**20  # bytes of all buffers: what is larger gains nothing
_KINDS = "fiub"


class NotBindable(Exception):  # noqa: N818  # no error of a caller's
    """A value that is no small array, or whose shape is not the same in every call."""


class Bound:
    """A plan and its buffers.

    Parameters
    ----------
    steps : sequence of (step, names of its outputs)
    constants : mapping
        Of the plan.
    given : mapping
        Inputs whose shapes all calls will have; the steps run on them, to know the shapes of the others.
    names : sequence of str
        Those of the inputs that are needed, or checked.
    wanted : sequence of str
        Names of the values to return.

    Raises
    ------
    NotBindable
    """

    def __init__(
        self,
        steps: Sequence[tuple[Any, Sequence[str]]],
        constants: Mapping[str, Any],
        given: Mapping[str, Any],
        names: Sequence[str],
        wanted: Sequence[str],
    ) -> None:
        self.key, self._bytes = config.settings(), 0
        self._values: dict[str, Any] = {**constants, **{name: self._buffer(given[name]) for name in names}}
        self._inputs = [
            (name, self._values[name].shape, self._values[name].dtype, self._values[name]) for name in names
        ]
        self._actions = [self._action(step, outputs) for step, outputs in steps]
        self._outputs = [self._values[name] for name in wanted]

    def _buffer(self, value: Any) -> Any:
        if type(value) is not np.ndarray or not value.size or value.dtype.kind not in _KINDS:
            raise NotBindable
        self._bytes += value.nbytes
        if self._bytes > min(LARGEST, config.get_memory_limit()):
            raise NotBindable
        return np.array(value, value.dtype.newbyteorder("="), order="C")

    def _action(self, step: Any, outputs: Sequence[str]) -> tuple[Callable[[Any], Any], Any, Any]:
        """What runs the step, on what, and where its results go; None where it writes them itself."""
        buffers = [self._buffer(result) for result in step(self._values)]
        self._values.update(zip(outputs, buffers, strict=True))
        bind = getattr(step, "bind", None)
        if bind is None:
            return step, self._values, buffers
        return (*bind(self._values, dict(zip(outputs, buffers, strict=True))), None)

    def run(self, given: Mapping[str, Any]) -> list[Any] | None:
        """The wanted values; None where an input has another dtype or shape.

        Raises
        ------
        Exception
            Whatever a step raises, or a result of another shape: a run without buffers says what is wrong.
        """
        for name, shape, dtype, buffer in self._inputs:
            value = given.get(name)
            if type(value) is not np.ndarray or value.shape != shape or value.dtype != dtype:
                return None
            buffer[...] = value
        for run, argument, buffers in self._actions:
            if buffers is None:
                run(argument)
                continue
            for buffer, result in zip(buffers, run(argument), strict=True):
                if result.shape != buffer.shape:
                    raise NotBindable
                buffer[...] = result
        return [buffer.copy() for buffer in self._outputs]
