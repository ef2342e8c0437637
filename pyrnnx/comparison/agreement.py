"""Tolerances as data, agreement of outputs by name, and results that differ from the oracle."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from pyrnnx._internal import scalars
from pyrnnx._internal.dtypes import AnyArray, named_dtype
from pyrnnx.comparison.distances import (
    LONG_TOLERANCES,
    TOLERANCES,
    UNLIKE,
    Deviation,
    deviation,
    element_distances,
    largest,
    magnitude,
)
from pyrnnx.errors import ArgumentError, shown

TOLERANCE = 1e-5  # about a hundred roundings of float32 around 1: one computation in another order of its sums


class Tolerance(NamedTuple):
    """Two numbers agree if abs(a - b) <= atol + rtol * abs(b); NaN with NaN, and an infinity with the same one.

    Without numbers, it is the default tolerance of each output (see `Deviation.apart`).
    """

    atol: float | None = None
    rtol: float | None = None

    def __str__(self) -> str:
        if self.atol is None or self.rtol is None:
            return "default tolerance"
        return f"atol={self.atol:g}, rtol={self.rtol:g}"


DEFAULT = Tolerance()


def tolerance_of(atol: float | None, rtol: float | None) -> Tolerance:
    """Return the default tolerance, or that of one or two numbers; the other one is then 1e-5."""
    if atol is None and rtol is None:
        return DEFAULT
    return Tolerance(TOLERANCE if atol is None else atol, TOLERANCE if rtol is None else rtol)


def read_tolerance(caller: str, name: str, value: Any) -> float:
    """Return a tolerance that a caller passes as an argument."""
    number = scalars.number(caller, name, value)
    if not (math.isfinite(number) and number >= 0):
        raise ArgumentError(f"{caller}: {name} is {shown(value)}; expected a finite number, 0 or above")
    return number


@dataclass(frozen=True)
class Rule:
    """Rule for the tolerance of two arrays: without `atol`, a number by dtype, absolute and relative, else 0."""

    atol: float | None = None
    rtol: float = 0.0
    by_dtype: Mapping[str, float] = field(default_factory=lambda: TOLERANCES)

    def limits(self, *dtypes: str) -> tuple[float, float]:
        """Return atol and rtol of each element, by the coarsest of the dtypes."""
        if self.atol is not None:
            return self.atol, self.rtol
        number = max((self.by_dtype.get(name, 0.0) for name in dtypes), default=0.0)
        return number, max(number, self.rtol)

    def of_all(self, b: AnyArray, dtype: str) -> float:
        """Return one atol of all elements: by dtype, times the largest finite magnitude of b if that is above 1.

        Errors carry over from step to step, so small numbers have errors as large.
        """
        return self.limits(dtype)[0] * magnitude(b)

    def between(self, a: AnyArray, b: AnyArray) -> tuple[float, float]:
        """Return the tolerance of each element of two arrays, by the coarser of their dtypes, as `compare` has it."""
        return self.limits(a.dtype.name, b.dtype.name)

    def beyond(self, a: AnyArray, b: AnyArray) -> AnyArray:
        """Return a mask of the elements in which two arrays of numbers, of one shape, do not agree."""
        return element_distances(a, b).beyond(*self.between(a, b))


LONG = Rule(by_dtype=LONG_TOLERANCES)


def in_range(array: AnyArray, dtype: str | np.dtype[Any]) -> AnyArray:
    """Return numbers in float64, with infinities for those beyond the range of a dtype."""
    dtype = named_dtype(dtype) if isinstance(dtype, str) else dtype
    with np.errstate(over="ignore"):
        narrow = array.astype(dtype).astype(np.float64)
    return np.where(np.isinf(narrow), narrow, array.astype(np.float64))


@dataclass(frozen=True)
class Agreement:
    """Agreement of computed outputs with expected ones."""

    differences: Mapping[Any, float]  # largest of each output; infinity if it is missing, or of another shape or kind
    apart: Any = None  # name of the first output that is beyond the tolerance

    @property
    def largest(self) -> float:
        """The largest difference of all outputs; NaN if nothing was compared."""
        return largest(self.differences.values())


def agreement(outputs: Mapping[Any, Any], expected: Mapping[Any, Any], rule: Rule, *dtypes: str) -> Agreement:
    """Compare outputs by name with those that are expected; `dtypes` are for `Rule.limits`."""
    deviations = {
        name: deviation(outputs[name], right) or UNLIKE if name in outputs else UNLIKE
        for name, right in expected.items()
    }
    apart = (
        name
        for name, deviation in deviations.items()
        if not deviation.within(*rule.limits(*(dtypes or _dtypes(expected[name]))))
    )
    return Agreement({name: deviation.largest for name, deviation in deviations.items()}, next(apart, None))


def _dtypes(value: Any) -> list[str]:
    return [np.asarray(array).dtype.name for array in (value if isinstance(value, (list, tuple)) else (value,))]


def is_away(outputs: Mapping[str, AnyArray], right: Mapping[str, AnyArray], rule: Rule) -> bool:
    """Return whether an output is away from the right one, the oracle's."""
    return any(rule.beyond(array, right[name]).any() for name, array in outputs.items())


def first_apart(values: Mapping[str, Deviation], tolerance: Tolerance = DEFAULT) -> str | None:
    """Return the name of the first value that is beyond the tolerance, None if all agree."""
    return next((name for name, deviation in values.items() if not deviation.within(*tolerance)), None)
