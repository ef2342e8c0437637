"""A plan for inputs of given shapes, in buffers that are made once: for frames, which take microseconds.

Sessions of ONNX Runtime read and write the buffers where they are, and what NumPy can do as well is done without one
(views.py); the branch of an If runs in the same buffers. So a call copies its inputs into them, runs the steps, and
copies the outputs:

    input -> [buffer] -> session -> [buffer] -> LSTM -> [buffer] -> session -> [buffer] -> output

A `Bound` is for one thread at a time; a plan has as many as there were calls at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from pyrnnx import config

from .steps import ControlStep, RuntimeSegment
from .views import Scope

LARGEST = 2**20  # bytes of all buffers: what is larger gains nothing
_KINDS = "fiub"

# What runs, on what, and where its results go; None where it writes them itself.
Action = tuple[Callable[[Any], Any], Any, Sequence[Any] | None]


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
        scope = Scope({**constants, **{name: self._buffer(given[name]) for name in names}}, constants)
        inputs = [(name, scope.values[name]) for name in names]
        self._inputs = [(name, buffer.shape, buffer.dtype, buffer) for name, buffer in inputs]
        self._actions = self._bound(steps, scope)
        self._outputs = [scope.values[name] for name in wanted]

    def _buffer(self, value: Any) -> Any:
        if type(value) is not np.ndarray or not value.size or value.dtype.kind not in _KINDS:
            raise NotBindable
        self._bytes += value.nbytes
        if self._bytes > min(LARGEST, config.get_memory_limit()):
            raise NotBindable
        return np.array(value, value.dtype.newbyteorder("="), order="C")

    def _bound(self, steps: Sequence[tuple[Any, Sequence[str]]], scope: Scope) -> list[Action]:
        """What runs the steps, whose results become values of the scope."""
        actions: list[Action] = []
        for step, outputs in steps:
            if isinstance(step, RuntimeSegment):
                actions += self._segment(step, outputs, scope)
            elif isinstance(step, ControlStep) and step.is_branch:
                actions += self._branch(step, outputs, scope)
            else:
                buffers = self._buffers(step(scope.values), outputs, scope)
                actions.append((step, scope.values, buffers))
        return actions

    def _buffers(self, results: Sequence[Any], outputs: Sequence[str], scope: Scope) -> list[Any]:
        """Buffers for results, with these in them."""
        buffers = [self._buffer(result) for result in results]
        for name, buffer in zip(outputs, buffers, strict=True):
            scope.set(name, buffer, fixed=False)
        return buffers

    def _segment(self, step: RuntimeSegment, outputs: Sequence[str], scope: Scope) -> list[Action]:
        """Views and actions of NumPy where it can do all; else the session, which reads and writes the buffers."""
        results = step(scope.values)
        views = step.views(scope)
        if not views.gives(outputs, results):
            buffers = self._buffers(results, outputs, scope)
            found = step.bind(scope.values, dict(zip(outputs, buffers, strict=True)))
            for name in views.fixed(outputs, results):
                scope.set(name, views.scope.values[name], fixed=True)
            return [(step, scope.values, buffers) if found is None else (*found, None)]
        actions: list[Action] = [(_call, action, None) for action in views.actions]
        for name in outputs:
            value, fixed = views.scope.values[name], name in views.scope.fixed
            if not value.flags.c_contiguous:
                view, value = value, self._buffer(value)
                if not fixed:
                    actions.append((_call, partial(np.copyto, value, view), None))
            scope.set(name, value, fixed=fixed)
        return actions

    def _branch(self, step: ControlStep, outputs: Sequence[str], scope: Scope) -> list[Action]:
        """The steps of the branch that is taken now; where it may change, the other one runs without these buffers."""
        condition = scope.values[step.condition]
        body = step.branch(condition)
        inner = scope.inner(body.constants)
        actions = self._bound(body.compiled, inner)
        names = step.results_of(body)
        results = [inner.values[name] for name in names]
        if step.condition not in scope.fixed:
            branch = _Branch(condition, actions, results, step, scope.values)
            return [(branch, None, self._buffers(results, outputs, scope))]
        for output, name, result in zip(outputs, names, results, strict=True):
            scope.set(output, result, fixed=name in inner.fixed)
        return actions

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
        _run(self._actions)
        return [buffer.copy() for buffer in self._outputs]


class _Branch:
    """An If whose condition may change from call to call.

    Parameters
    ----------
    condition : ndarray
        Its buffer.
    actions : list
        Of the branch that it tells now.
    results : list of ndarray
        Of that branch.
    step, values
        What runs any branch.
    """

    def __init__(
        self, condition: Any, actions: list[Action], results: list[Any], step: ControlStep, values: Mapping[str, Any]
    ) -> None:
        self._condition, self._expected = condition, bool(condition.item())
        self._actions, self._results, self._step, self._values = actions, results, step, values

    def __call__(self, _: None) -> Sequence[Any]:
        if bool(self._condition.item()) is not self._expected:
            return self._step(self._values)
        _run(self._actions)
        return self._results


def _run(actions: Sequence[Action]) -> None:
    for run, argument, buffers in actions:
        if buffers is None:
            run(argument)
            continue
        for buffer, result in zip(buffers, run(argument), strict=True):
            if result.shape != buffer.shape:
                raise NotBindable
            buffer[...] = result


def _call(action: Callable[[], Any]) -> None:
    action()
