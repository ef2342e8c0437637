"""Calls of models on random inputs, until they show whether outputs are the same, and what they do not show."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import numpy as np

from pyrnnx.comparison.distances import UNLIKE, Deviation, deviation, element_distances, joined
from pyrnnx.comparison.inputs import in_words
from pyrnnx.comparison.models.random_inputs import WITHOUT_ZERO, Maker, Sizes
from pyrnnx.errors import PyrnnxError, shown

MOST_CALLS = 64
MOST_STEPS = 6144  # to which open dimensions are doubled while an output is empty
_CONSTANT_CALLS = 5  # before an output counts as constant
_MOST_ELEMENTS = 4096  # of an integer input that selects from many rows, in one call
_MOST_IDLE = 4
_MORE_STEPS = 9  # of the second call, on every axis that may be time: some mistakes show only after several steps
_NOTHING = Deviation(0.0)  # spread of an output of one call
R = TypeVar("R")


class Tries(Generic[R]):
    """Calls of one model or two, on inputs that are given and those of a maker; iterate over their results once.

    There are more calls until no output is empty or constant, and every integer input varied.
    """

    def __init__(
        self,
        run: Callable[[dict[str, Any]], R],
        outputs: Callable[[R], Mapping[str, Sequence[Any]]],
        maker: Maker,
        words: Callable[[PyrnnxError], str],
        given: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self._run, self._outputs, self._maker, self._words = run, outputs, maker, words
        self._given, self._is_random = given, bool(maker.wanted)
        self._seen = Outputs()
        self._kind = 0
        self.calls: list[str] = []  # shapes, lengths and other small integers of each call, in words
        # Complete after the last call: why equal outputs would not show that two models are the same, and how far each
        # output varied between calls on random inputs.
        self.reasons: list[str] = []
        self.spreads: dict[str, Deviation] = {}

    def __iter__(self) -> Iterator[R]:
        """Yield the result of each call."""
        sizes, result = self._first()
        yield result
        for larger in self._larger(sizes):
            for result in self._called(larger):
                sizes = larger
                yield result
        idle = 0  # calls, one after the other, that no model accepts or that show nothing new
        while self._maker.wanted and len(self.calls) < MOST_CALLS and self._is_more_needed(idle):
            self._maker.attempt += 1
            before = self._maker.progress(), self._seen.constant()
            first, others = self._next_sizes(sizes)
            choices = (first, others), (sizes[0], others), (first, sizes[1]), sizes  # if it refuses more of both
            yield from next(filter(None, map(self._called, choices)), [])
            is_idle = (self._maker.progress(), self._seen.constant()) == before and not self._maker.has_untried()
            idle = idle + 1 if is_idle else 0
        self.reasons = [*self._seen.reasons(self._maker.is_open, constant=self._is_random), *self._maker.left()]
        self.spreads = self._seen.spreads if self._is_random else {}
        for name in self._maker.fixed():
            self.calls[0] += f" (other numbers of {shown(name)} were refused)"
        if self._kind == WITHOUT_ZERO and self.calls:
            self.calls[-1] += " (numbers of 0 were refused)"

    def _first(self) -> tuple[Sizes, R]:
        first: PyrnnxError | None = None
        for sizes, kind, arrays in self._maker.first_calls():
            try:
                result = self._run(arrays)
            except PyrnnxError as error:  # noqa: PERF203  # only a run shows whether sizes and integers fit
                if isinstance(error.__cause__, ImportError):  # no inputs help without the package
                    raise
                first = first or error
            else:
                self._kind = kind
                self._record(arrays, result)
                return sizes, result
        assert first is not None  # there are calls
        raise type(first)(self._words(first)) from first

    def _called(self, sizes: Sizes) -> list[R]:
        """Return the result of a call, with optional inputs unless that is refused; none if both are refused."""
        for optional in (True, False):
            with suppress(PyrnnxError):
                arrays = self._maker.arrays(sizes, self._kind, optional=optional)
                result = self._run(arrays)
                self._record(arrays, result)
                return [result]
            if not self._maker.has_optional:
                break
        return []

    def _record(self, arrays: Mapping[str, Any], result: R) -> None:
        self._maker.accepted(arrays)
        self._seen.add(self._outputs(result))
        self.calls.append(in_words({**self._given, **arrays}))

    def _larger(self, sizes: Sizes) -> Iterator[Sizes]:
        """Yield larger sizes while an output is empty."""
        factor = 2
        while self._maker.is_open and self._seen.empty() and max(sizes) * factor <= MOST_STEPS:
            yield sizes[0], sizes[1] * factor
            if self._seen.empty():
                yield sizes[0] * factor, sizes[1]
            factor *= 2

    def _is_more_needed(self, idle: int) -> bool:
        if self._maker.has_untried():
            return True
        if idle >= _MOST_IDLE:
            return False
        if len(self.calls) < 2:
            return True
        if self._maker.left():
            return self._maker.rows_left() < (MOST_CALLS - len(self.calls)) * _MOST_ELEMENTS
        return self._is_random and len(self.calls) < _CONSTANT_CALLS and bool(self._seen.constant())

    def _next_sizes(self, sizes: Sizes) -> Sizes:
        """Return larger sizes, except of axes of one element; even larger if there are many rows to select from."""
        rows = self._maker.rows_left()
        first, others = sizes
        while rows > first * others and 2 * first * others <= _MOST_ELEMENTS:
            first, others = others, 2 * first
        return first + _MORE_STEPS * (first > 1), others + _MORE_STEPS * (others > 1)


class Outputs:
    """Outputs of several calls: which are empty, missing or constant so far."""

    def __init__(self) -> None:
        self._calls = 0
        self._first: dict[str, Sequence[Any]] = {}  # of the first call that has elements, if there is one
        self._filled: set[str] = set()
        self.spreads: dict[str, Deviation] = {}

    def add(self, outputs: Mapping[str, Sequence[Any]]) -> None:
        """Add the values of a call by name, one of each model."""
        self._calls += 1
        for name, values in outputs.items():
            present = [value for value in values if value is not None]
            if not present or not all(map(_has_elements, present)):
                self._first.setdefault(name, values)
            elif name in self._filled:
                spreads = [self.spreads.get(name), *map(_spread, self._first[name], values)]
                self.spreads[name] = joined([spread for spread in spreads if spread is not None])
            else:
                self._first[name] = values
                self._filled.add(name)

    def empty(self) -> list[str]:
        """Return the outputs that have no elements in all calls."""
        left = {name: values for name, values in self._first.items() if name not in self._filled}
        return [name for name, values in left.items() if any(value is not None for value in values)]

    def constant(self) -> list[str]:
        """Return the outputs that vary by no more than the default tolerance."""
        return [name for name in self._first if name in self._filled and self.spreads.get(name, _NOTHING).within()]

    def reasons(self, is_open: bool, *, constant: bool) -> list[str]:
        """Return what these outputs do not show, in words."""
        bound = f", with sizes of up to {MOST_STEPS}" if is_open else ""
        words = [f"output {shown(name)} is empty in every call{bound}" for name in self.empty()]
        missing = [name for name, values in self._first.items() if all(value is None for value in values)]
        words += [f"output {shown(name)} is missing" for name in missing]
        if constant:
            still = [name for name in self.constant() if not self.spreads.get(name, _NOTHING).largest]
            calls = f"{self._calls} call{'s' if self._calls > 1 else ''}"
            words += [f"output {shown(name)} is constant in {calls}" for name in still]
        return words if self._first else ["there is no output"]


def _has_elements(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_has_elements, value))
    return bool(np.size(value))


def unvaried(spreads: Mapping[str, Deviation], atol: float | None = None, rtol: float | None = None) -> list[str]:
    """Return which outputs vary by no more than the tolerance, by default that of `Deviation.apart`, in words."""
    return [
        f"output {shown(name)} varied by no more than {spread.largest:.3g} in all calls, which the tolerance allows"
        for name, spread in spreads.items()
        if spread.largest and spread.within(atol, rtol)
    ]


def _spread(a: Any, b: Any) -> Deviation:
    """Return how far two values are from each other in the part that both have; NaN and infinity show no difference."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.ndim == b.ndim:
        corner = tuple(slice(min(sizes)) for sizes in zip(a.shape, b.shape, strict=True))
        a, b = a[corner], b[corner]
        if a.dtype.kind in "iufcV" and b.dtype.kind == a.dtype.kind:
            is_finite = np.isfinite(element_distances(a, b).distance)
            a, b = a[is_finite], b[is_finite]
            return (deviation(a, b) or UNLIKE) if a.size else _NOTHING
    return deviation(a, b) or UNLIKE
