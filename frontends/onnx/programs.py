"""Programs of a model: one for each choice of returned values, built when a call first needs it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from threading import RLock
from typing import Any

from pyrnnx.operator.tensor_info import TensorInfo

from .runtime.program import Program

# Builder of a program: whether the defaults of inputs are constants, and values that it returns besides the outputs.
Build = Callable[[bool, frozenset[str]], Program]


class Programs:
    """Thread-safe cache of the programs of a model.

    Parameters
    ----------
    outputs : sequence of TensorInfo
        The model's outputs.
    defaults : iterable of str
        Inputs with a default.
    build : callable
        Function that builds a program.
    lock : RLock
        Lock of the model.
    """

    def __init__(self, outputs: Sequence[TensorInfo], defaults: Iterable[str], build: Build, lock: RLock) -> None:
        self._outputs, self._defaults = frozenset(info.name for info in outputs), frozenset(defaults)
        self._build, self._lock = build, lock
        self._programs: dict[tuple[bool, frozenset[str]], Program] = {}
        # Programs with constant defaults, by the values that they return in their order.
        self._by_outputs: dict[tuple[str, ...], Program] = {}

    def run(self, inputs: dict[str, Any], outputs: tuple[str, ...]) -> dict[str, Any]:
        """Return the values with these names, computed from checked inputs."""
        if self._defaults.isdisjoint(inputs):
            program = self._by_outputs.get(outputs)
            if program is not None:
                return program.call(inputs)
        values = self.program(*self.key(inputs, outputs)).call(inputs)
        return {name: values[name] for name in outputs}

    def key(self, inputs: Iterable[str], outputs: Iterable[str]) -> tuple[bool, frozenset[str]]:
        """Return the arguments of the builder for calls with these inputs and outputs."""
        return self._defaults.isdisjoint(inputs), frozenset(outputs) - self._outputs

    def program(self, defaults: bool = True, more: frozenset[str] = frozenset()) -> Program:
        """Return the program that the builder returns for these arguments."""
        key = defaults, more
        with self._lock:
            if key not in self._programs:
                program = self._programs[key] = self._build(defaults, more)
                if defaults:
                    self._by_outputs[program.wanted] = program
            return self._programs[key]

    def __bool__(self) -> bool:
        """Return whether the program of the outputs is built."""
        return (True, frozenset()) in self._programs
