"""Differences between values, stored so that any tolerance can be checked later."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from pyrnnx._internal.dtypes import AnyArray

# Allowed absolute and relative difference; other dtypes have 0.
TOLERANCES: Mapping[str, float] = {
    "float64": 1e-10,  # the oracle's own arithmetic: only the order of sums differs
    "float32": 1e-5,  # 2^-24 a rounding, sums of up to some hundred terms, carried over some steps
    "float16": 2e-3,  # computed in float32 and rounded once: 2^-11 = 4.9e-4 of the value
    "bfloat16": 2e-2,  # the same with 2^-8 = 3.9e-3
}

# The same of longer sequences, and of whole models: errors carried over some hundred steps and some layers, and
# approximate activations. Another computation is apart by more than 1e-2.
LONG_TOLERANCES: Mapping[str, float] = {"float64": 1e-10, "float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}
_EXACT_INTEGERS = 2.0**53  # up to here float64 holds every integer
_TEXT = "OSU"  # kinds of the dtypes of strings


@dataclass(frozen=True, eq=False)
class Deviation:
    """Difference between two values.

    Attributes
    ----------
    largest : float
        The largest absolute difference. Infinity if only one is NaN or infinite, if infinities have different signs,
        or if strings differ. NaN if there is nothing to compare: arrays without elements, or None.
    deciding : ndarray
        [2, n]: abs(b) and abs(a - b) of the few elements that decide for any tolerance. For every other element, one of
        them has at least its difference and at most its abs(b).
    unlike : str
        Why there is no difference of numbers, such as "shapes () and (2,)"; `largest` is then infinity. Else empty.
    apart : bool
        Whether abs(a - b) exceeds the default tolerance, that of the coarser of the two dtypes, plus as much of abs(b).
    """

    largest: float
    deciding: AnyArray = field(default_factory=lambda: np.zeros((2, 0)), repr=False)
    unlike: str = ""
    apart: bool = False

    @property
    def largest_relative(self) -> float:
        """The largest abs(a - b) / abs(b), 0 if the two agree: the least rtol that `within` accepts with atol 0.

        Infinity if b is zero and a is not, if integers differ, or if `largest` is infinite; NaN if there is nothing to
        compare.
        """
        if not math.isfinite(self.largest):
            return self.largest
        return float(Distances(*self.deciding).relative().max(initial=0))

    def within(self, atol: float | None = None, rtol: float | None = None) -> bool:
        """Return whether abs(a - b) <= atol + rtol * abs(b) for all elements; without numbers, not `apart`.

        No rtol applies to integers.
        """
        if math.isinf(self.largest) or atol is None or rtol is None:
            return not (math.isinf(self.largest) or self.apart)
        size, distance = self.deciding
        return bool((distance <= atol + rtol * size).all())


UNLIKE = Deviation(math.inf)  # of a value that is missing, or of another shape or kind


class Distances(NamedTuple):
    """abs(b) and abs(a - b) of each element: 0 for two NaNs, infinity for a NaN and a number.

    The size of integers is 0, so that no relative tolerance applies to them.
    """

    size: AnyArray
    distance: AnyArray

    def relative(self) -> AnyArray:
        """Return abs(a - b) / abs(b): 0 if the two agree, infinity if they do not and b is zero or an infinity."""
        relative = np.zeros_like(self.distance)
        apart = self.distance > 0
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            relative[apart] = self.distance[apart] / self.size[apart]
        relative[np.isinf(self.distance)] = math.inf
        return relative

    def beyond(self, atol: float, rtol: float) -> AnyArray:
        """Return a mask of abs(a - b) > atol + rtol * abs(b), and of NaNs and infinities in only one of the two."""
        with np.errstate(invalid="ignore", over="ignore"):
            return np.isinf(self.distance) | (self.distance > atol + rtol * self.size)


def largest(values: Iterable[float]) -> float:
    """Return the largest value, apart from NaN; NaN if there is no other."""
    return max((value for value in values if not math.isnan(value)), default=math.nan)


def element_distances(a: AnyArray, b: AnyArray) -> Distances:
    """Return how far two arrays of numbers, of one shape, are from each other, element by element."""
    distances = _numeric_distances(a, b)
    assert distances is not None  # numbers
    return distances


def deviation(a: Any, b: Any, tolerances: Mapping[str, float] = LONG_TOLERANCES) -> Deviation | None:
    """Return how far two values of any kind are from each other; None if their kinds or shapes differ.

    Values are arrays of numbers (of any dtypes: bool counts as 0 and 1, integers of any size are exact, complex numbers
    have the absolute value of their difference), arrays of strings, sequences of arrays, or two times None.
    `tolerances` decide whether they are `apart`.
    """
    if a is None and b is None:
        return Deviation(math.nan)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        parts = [deviation(*pair, tolerances) for pair in zip(a, b, strict=False)]
        known = [part for part in parts if part is not None]
        return joined(known) if len(known) == len(a) == len(b) else None
    arrays = isinstance(a, (np.ndarray, np.generic)) and isinstance(b, (np.ndarray, np.generic))
    return _of_arrays(a, b, tolerances) if arrays and a.shape == b.shape else None


def joined(parts: Sequence[Deviation]) -> Deviation:
    """Return the deviation of all elements of several deviations."""
    size, distance = np.concatenate([np.zeros((2, 0)), *(part.deciding for part in parts)], axis=1)
    unlike = next((part.unlike for part in parts if part.unlike), "")
    apart = any(part.apart for part in parts)
    return Deviation(largest(part.largest for part in parts), _deciding(size, distance), unlike, apart)


def _of_arrays(a: AnyArray, b: AnyArray, tolerances: Mapping[str, float]) -> Deviation | None:
    flat_a, flat_b = a.ravel(), b.ravel()
    if a.dtype.kind in _TEXT and b.dtype.kind in _TEXT:
        same = flat_a.tolist() == flat_b.tolist()
        return Deviation(math.nan if not flat_a.size else 0.0 if same else math.inf)
    distances = _numeric_distances(flat_a, flat_b)
    if distances is None:
        return None
    most = float(distances.distance.max(initial=-1))
    if most < 0:
        return Deviation(math.nan)
    allowed = max(tolerances.get(array.dtype.name, 0.0) for array in (a, b))
    deciding = np.zeros((2, 0)) if math.isinf(most) else _deciding(*distances)
    return Deviation(most, deciding, apart=bool(distances.beyond(allowed, allowed).any()))


def magnitude(array: AnyArray) -> float:
    """Return the largest finite magnitude of an array, at least 1."""
    wide = np.abs(array.astype(np.float64))
    return float(wide[np.isfinite(wide)].max(initial=1.0))


def _widened(array: AnyArray) -> AnyArray | None:
    """Return the numbers in float64 or complex128; None if they are no numbers."""
    if array.dtype.kind not in "biufcV":  # V: the types of ml_dtypes, and records
        return None
    try:
        with np.errstate(invalid="ignore"):  # NaNs that signal
            wide: AnyArray = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
    except (TypeError, ValueError):
        return None
    return wide


def _numeric_distances(a: AnyArray, b: AnyArray) -> Distances | None:
    """Return None for arrays that are not of numbers."""
    wide_a, wide_b = _widened(a), _widened(b)
    if wide_a is None or wide_b is None:
        return None
    with np.errstate(invalid="ignore", over="ignore"):  # inf - inf; a distance beyond float64
        distance: AnyArray = np.asarray(np.abs(wide_a - wide_b))  # a scalar of arrays without axes
    distance[(wide_a == wide_b) | (np.isnan(wide_a) & np.isnan(wide_b))] = 0
    distance[np.isnan(distance)] = math.inf  # a NaN in one of them only
    kinds = {array.dtype.kind + str(array.dtype.itemsize) for array in (a, b)}
    if kinds & {"i8", "u8"} and wide_a.dtype == wide_b.dtype:  # none is complex
        _correct_integers(a, b, wide_a, wide_b, distance)
    is_exact = a.dtype.kind in "biu" and b.dtype.kind in "biu"
    return Distances(np.abs(wide_b) * (not is_exact), distance)


def _correct_integers(a: AnyArray, b: AnyArray, wide_a: AnyArray, wide_b: AnyArray, distance: AnyArray) -> None:
    """Set the exact distance of elements that float64 had to round."""
    rounded = np.isfinite(wide_a) & np.isfinite(wide_b) & (np.maximum(abs(wide_a), abs(wide_b)) >= _EXACT_INTEGERS)
    exact_a, exact_b = (array if array.dtype.kind in "iu" else wide for array, wide in ((a, wide_a), (b, wide_b)))
    pairs = zip(exact_a[rounded].tolist(), exact_b[rounded].tolist(), strict=True)
    distance[rounded] = [float(abs(Fraction(x) - Fraction(y))) for x, y in pairs]


def _deciding(size: AnyArray, distance: AnyArray) -> AnyArray:
    """Return the elements, sorted by size, whose distance is larger than that of all before them."""
    nonzero = distance > 0
    size, distance = size[nonzero], distance[nonzero]
    order = np.lexsort((-distance, size))
    size, distance = size[order], distance[order]
    above = np.ones(distance.shape, bool)
    above[1:] = distance[1:] > np.maximum.accumulate(distance)[:-1]
    return np.stack([size[above], distance[above]])
