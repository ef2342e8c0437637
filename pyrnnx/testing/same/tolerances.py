"""How far two numbers may be apart: as a test says, else by the dtypes of the two arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyrnnx import scalars
from pyrnnx.comparison.numbers import distances
from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, shown
from pyrnnx.testing.numbers import TOLERANCES


@dataclass(frozen=True)
class Tolerances:
    """abs(a - b) <= atol + rtol * abs(b); None: by the dtypes."""

    atol: float | None
    rtol: float | None

    @classmethod
    def read(cls, atol: Any, rtol: Any) -> Tolerances:
        """As a test gives them.

        Raises
        ------
        ArgumentError
            What is no finite number, 0 or above.
        """
        return cls(_read("atol", atol), _read("rtol", rtol))

    def of(self, a: AnyArray, b: AnyArray) -> tuple[float, float]:
        """atol and rtol for two arrays.

        By default rtol is 0, and atol that of the coarser dtype times the largest finite magnitude of b, if above 1:
        an error is carried from step to step, and so is as large where a number happens to be small.
        """
        atol = self.atol
        if atol is None:
            tolerance = max(TOLERANCES.get(one.dtype.name, 0.0) for one in (a, b))
            wide = b.astype(np.float64)
            atol = tolerance * max(1.0, float(np.abs(wide[np.isfinite(wide)]).max(initial=0)))
        return atol, 0.0 if self.rtol is None else self.rtol

    def beyond(self, a: AnyArray, b: AnyArray) -> AnyArray:
        """Where two arrays of numbers, of one shape, are apart; NaN agrees with NaN, and an infinity with the same."""
        found = distances(a, b)
        assert found is not None
        return found.beyond(*self.of(a, b))

    def in_words(self, a: AnyArray, b: AnyArray) -> str:
        atol, rtol = self.of(a, b)
        return f"atol {atol:.3g}, rtol {rtol:.3g}" if rtol else f"atol {atol:.3g}"


def _read(name: str, value: Any) -> float | None:
    if value is None:
        return None
    number = scalars.number("assert_same", name, value)
    if not (math.isfinite(number) and number >= 0):
        raise ArgumentError(f"assert_same: {name} is {shown(value)}; expected a finite number, 0 or above")
    return number
