"""Calls of models on random inputs, until they show whether outputs are the same, and what they do not show."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import numpy as np

from pyrnnx._internal.dtypes import INTEGERS
from pyrnnx.comparison.distances import deviation
from pyrnnx.comparison.random_inputs import WITHOUT_ZERO, Maker, Sizes
from pyrnnx.errors import PyrnnxError, shown

MOST_CALLS = 64
MOST_STEPS = 6144  # to which open dimensions are doubled while an output is empty
_CONSTANT_CALLS = 5  # before an output counts as constant
_MOST_ELEMENTS = 4096  # of an integer input that selects from many rows, in one call
_SHOWN_VALUES = 8
_MORE_STEPS = 5  # of the second call: some mistakes show only after several steps
R = TypeVar("R")


class Tries(Generic[R]):
    """Calls of one model or two, on inputs that are given and those of a maker; iterate over their results once.

    There are more calls until no output is empty or constant, and every integer input varied.

    Attributes
    ----------
    calls : list of str
        Shapes, lengths and other small integers of each call, in words.
    reasons : list of str
        Why equal outputs would not show that two models are the same; complete after the last call.
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
        self._given, self._is_random = given, bool(maker.wanted) and not given
        self._seen = Outputs()
        self._kind = 0
        self.calls: list[str] = []
        self.reasons: list[str] = []

    def __iter__(self) -> Iterator[R]:
        """Yield the result of each call.

        Raises
        ------
        PyrnnxError
            The first error, in the caller's words, if no call is accepted.
        """
        sizes, result = self._first()
        yield result
        for larger in self._larger(sizes):
            for result in self._called(larger):
                sizes = larger
                yield result
        idle = 0  # calls, one after the other, that no model accepts or that show nothing new
        while self._maker.wanted and len(self.calls) < MOST_CALLS and idle < 4 and self._is_more_needed():
            before = self._maker.progress(), self._seen.constant()
            results = self._called(self._next_sizes(sizes)) or self._called(sizes)
            yield from results
            idle = 0 if (self._maker.progress(), self._seen.constant()) != before else idle + 1
        self.reasons = self._seen.reasons(self._maker.is_open, constant=self._is_random)
        self.reasons += self.left()
        if self._kind == WITHOUT_ZERO and self.calls:
            self.calls[-1] += " (numbers of 0 were refused)"

    def left(self) -> list[str]:
        """Return, in words, which integer inputs did not vary enough."""
        return self._maker.left()

    def _first(self) -> tuple[Sizes, R]:
        first: PyrnnxError | None = None
        for sizes, kind, arrays in self._maker.first_calls():
            try:
                result = self._run(arrays)
            except PyrnnxError as error:  # noqa: PERF203  # only a run shows whether sizes and integers fit
                first = first or error
            else:
                self._kind = kind
                self._record(arrays, result)
                return sizes, result
        assert first is not None  # there are calls
        raise type(first)(self._words(first)) from first

    def _called(self, sizes: Sizes) -> list[R]:
        """Return the result of a call; none if it is refused."""
        try:
            arrays = self._maker.arrays(sizes, self._kind)
            result = self._run(arrays)
        except PyrnnxError:
            return []
        self._record(arrays, result)
        return [result]

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

    def _is_more_needed(self) -> bool:
        if len(self.calls) < 2:
            return True
        if self._maker.left():
            return self._maker.rows_left() < (MOST_CALLS - len(self.calls)) * _MOST_ELEMENTS
        return self._is_random and len(self.calls) < _CONSTANT_CALLS and bool(self._seen.constant())

    def _next_sizes(self, sizes: Sizes) -> Sizes:
        """Return sizes with more steps or rows; more of both if there are many rows to select from."""
        rows = self._maker.rows_left()
        first, others = sizes
        while rows > first * others and 2 * first * others <= _MOST_ELEMENTS:
            first, others = others, 2 * first
        return first + (first > 2), others + _MORE_STEPS


class Outputs:
    """Outputs of several calls: which are empty, missing or constant so far."""

    def __init__(self) -> None:
        self._first: dict[str, Sequence[Any]] = {}
        self._filled: set[str] = set()
        self._varied: set[str] = set()
        self._calls = 0

    def add(self, outputs: Mapping[str, Sequence[Any]]) -> None:
        """Add the values of a call by name, one of each model."""
        self._calls += 1
        for name, values in outputs.items():
            if all(value is None for value in values):
                self._first.setdefault(name, values)
            elif all(value is None or _has_elements(value) for value in values):
                if name not in self._filled:
                    self._first[name] = values
                elif any(map(_differ, self._first[name], values)):
                    self._varied.add(name)
                self._filled.add(name)
            else:
                self._first.setdefault(name, values)

    def empty(self) -> list[str]:
        """Return the outputs that have no elements in all calls."""
        return [
            name
            for name, values in self._first.items()
            if name not in self._filled and any(value is not None for value in values)
        ]

    def constant(self) -> list[str]:
        """Return the outputs that are the same in all calls."""
        return [name for name in self._first if name in self._filled - self._varied]

    def reasons(self, is_open: bool, *, constant: bool) -> list[str]:
        """Return what these outputs do not show, in words."""
        bound = f", with sizes of up to {MOST_STEPS}" if is_open else ""
        words = [f"output {shown(name)} is empty in every call{bound}" for name in self.empty()]
        missing = [name for name, values in self._first.items() if all(value is None for value in values)]
        words += [f"output {shown(name)} is missing" for name in missing]
        if constant:
            words += [f"output {shown(name)} is constant in {self._calls} calls" for name in self.constant()]
        return words if self._first else ["there is no output"]


def _has_elements(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_has_elements, value))
    return bool(np.size(value))


def _differ(a: Any, b: Any) -> bool:
    """Return whether two values differ in the part that both have."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.ndim == b.ndim:
        corner = tuple(slice(min(sizes)) for sizes in zip(a.shape, b.shape, strict=True))
        a, b = a[corner], b[corner]
    difference = deviation(a, b)
    return difference is None or not difference.within(0, 0)


def in_words(arrays: Mapping[str, Any]) -> str:
    """Return the shapes of inputs, and the numbers of small integer ones."""
    words = []
    for name, array in arrays.items():
        shape, numbers = np.shape(array), np.asarray(array)
        is_small = numbers.dtype.name in (*INTEGERS, "bool") and 0 < numbers.size <= _SHOWN_VALUES
        words.append(f"{shown(name)} {numbers.tolist() if is_small else shape}")
    return ", ".join(words) or "no inputs"
