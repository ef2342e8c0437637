"""How far arrays are from each other: the numbers of every comparison, kept so that any tolerance can be asked for."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from pyrnnx import scalars
from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, shown

TOLERANCE = 1e-5  # about a hundred roundings of float32 around 1: one computation in another order of its sums
_EXACT_INTEGERS = 2.0**53  # up to here float64 holds every integer
_TEXT = "OSU"  # kinds of the dtypes of strings


class Tolerance(NamedTuple):
    """What counts as the same: abs(a - b) <= atol + rtol * abs(b)."""

    atol: float = TOLERANCE
    rtol: float = TOLERANCE

    def __str__(self) -> str:
        return f"atol={self.atol:g}, rtol={self.rtol:g}"


DEFAULT = Tolerance()


@dataclass(frozen=True, eq=False)
class Deviation:
    """How far two values are from each other.

    Attributes
    ----------
    largest : float
        The largest absolute difference. Infinity where the two are not of one kind: a number beside a NaN or another
        infinity, or another string. NaN where there is nothing to compare: arrays without elements, or None.
    deciding : ndarray
        [2, n]: abs(b) and abs(a - b) of the elements on which the answer for any tolerance depends, few of all. For
        every other element there is one among them that differs as much, where b is no larger.
    unlike : str
        Why there is no difference of numbers, as "shapes () and (2,)"; `largest` is then infinity. Else empty.
    """

    largest: float
    deciding: AnyArray = field(default_factory=lambda: np.zeros((2, 0)), repr=False)
    unlike: str = ""

    @property
    def largest_relative(self) -> float:
        """The largest abs(a - b) / abs(b), 0 where the two agree: the least rtol with which ``within(0, rtol)`` holds.

        Infinity where b is zero and a is not, and where `largest` is; NaN where there is nothing to compare.
        """
        if not math.isfinite(self.largest):
            return self.largest
        return float(Distances(*self.deciding).relative().max(initial=0))

    def within(self, atol: float, rtol: float) -> bool:
        """Whether abs(a - b) <= atol + rtol * abs(b) for all elements."""
        size, distance = self.deciding
        return not math.isinf(self.largest) and bool((distance <= atol + rtol * size).all())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Deviation):
            return NotImplemented
        same = (self._key(), self.unlike) == (other._key(), other.unlike)
        return same and np.array_equal(self.deciding, other.deciding)

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> float | None:
        """NaN is not equal to itself, but to have compared nothing is."""
        return None if math.isnan(self.largest) else self.largest


class Distances(NamedTuple):
    """Of each element abs(b), and abs(a - b): 0 for NaN twice, infinity for a NaN beside a number."""

    size: AnyArray
    distance: AnyArray

    def relative(self) -> AnyArray:
        """abs(a - b) / abs(b); 0 where the two agree, infinity where b is zero or an infinity and they do not."""
        relative = np.zeros_like(self.distance)
        apart = self.distance > 0
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            relative[apart] = self.distance[apart] / self.size[apart]
        relative[np.isinf(self.distance)] = math.inf
        return relative

    def beyond(self, atol: float, rtol: float) -> AnyArray:
        """Where abs(a - b) > atol + rtol * abs(b), or one is a NaN or an infinity and the other is not that."""
        with np.errstate(invalid="ignore", over="ignore"):
            return np.isinf(self.distance) | (self.distance > atol + rtol * self.size)


class Verdict(ABC):
    """What the results of all comparisons have in common.

    A comparison is neither true nor false: `bool(comparison)` is an error, for "there is one" and "they are equal"
    could both be meant.
    """

    deviations: Mapping[str, Deviation]

    @property
    def numbers(self) -> dict[str, float]:
        """For each output that was compared, by its name: the largest absolute difference (see `Deviation.largest`)."""
        return {name: one.largest for name, one in self.deviations.items()}

    @property
    def relative_numbers(self) -> dict[str, float]:
        """The same as `numbers` for relative differences (see `Deviation.largest_relative`)."""
        return {name: one.largest_relative for name, one in self.deviations.items()}

    @property
    @abstractmethod
    def largest_difference(self) -> float:
        """The largest absolute difference; NaN where nothing was compared."""

    @abstractmethod
    def _complete(self) -> bool:
        """Whether there is nothing that could not be compared."""

    @abstractmethod
    def _deviations(self) -> Iterable[Deviation]:
        """All that was compared."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """All of it as dicts, lists, strings and numbers, such as ``json.dumps(..., allow_nan=False)`` takes.

        NaN and the infinities are the strings "nan", "inf" and "-inf". "equal" is what `equal` says by default. Of
        models, only the first pair of layers that part has "gates".
        """

    def equal(self, atol: float = TOLERANCE, rtol: float = TOLERANCE) -> bool:
        """Whether everything was compared, and all numbers agree: abs(a - b) <= atol + rtol * abs(b) for each element.

        This is about numbers: conventions always differ between formats, and operators may, if it does not show.
        NaN agrees with NaN, and an infinity with the same one.

        Parameters
        ----------
        atol, rtol : float
            Tolerances, finite, 0 or above. The default suits two float32 computations of the same; float16 and bfloat16
            need about 1e-3 and 1e-2.

        Raises
        ------
        ArgumentError
            A tolerance that is no such number.
        """
        tolerances = {"atol": atol, "rtol": rtol}
        for name, value in tolerances.items():
            tolerances[name] = number = scalars.number("equal", name, value)
            if not (math.isfinite(number) and number >= 0):
                raise ArgumentError(f"equal: {name} is {shown(value)}; expected a finite number, 0 or above")
        if not self._complete() or math.isnan(self.largest_difference):
            return False
        return all(one.within(**tolerances) for one in self._deviations())

    def _repr(self, what: str) -> str:
        """In one line; all of it is the text that `print` shows."""
        largest = (
            "nothing was compared"
            if math.isnan(self.largest_difference)
            else (f"largest difference {self.largest_difference:.3g}")
        )
        return f"<{type(self).__name__} of {what}, {largest}>"

    def __bool__(self) -> bool:
        raise ArgumentError(f"{type(self).__name__}: bool() was asked for; use equal(atol, rtol)")


def largest(values: Iterable[float]) -> float:
    """The largest, apart from NaN; NaN where there is no other."""
    return max((value for value in values if not math.isnan(value)), default=math.nan)


def in_words(one: Deviation) -> str:
    """A largest difference for a table; of what is no number beside a number, why there is none."""
    if one.unlike:
        return one.unlike
    return "nothing to compare" if math.isnan(one.largest) else with_relative(one.largest, one.largest_relative)


def apart_in_words(one: Deviation) -> str:
    """For a sentence: "largest difference 0.25", or why there is none."""
    return one.unlike or f"largest difference {in_words(one)}"


def first_apart(values: Mapping[str, Deviation], tolerance: Tolerance = DEFAULT) -> str | None:
    """The name of the first that is beyond the tolerance; None: there is none."""
    return next((name for name, one in values.items() if not one.within(*tolerance)), None)


def with_relative(value: float, relative: float) -> str:
    """ "0.25 (relative 0.5)"; the difference alone where the relative one tells nothing more."""
    return f"{value:.3g}" if value == 0 or math.isinf(relative) else f"{value:.3g} (relative {relative:.3g})"


def distances(a: AnyArray, b: AnyArray) -> Distances | None:
    """How far arrays of one shape are from each other, element by element; None of what is no number."""
    wide_a, wide_b = _widened(a), _widened(b)
    if wide_a is None or wide_b is None:
        return None
    return Distances(np.abs(wide_b), _distances(a, b, wide_a, wide_b))


def deviation(a: Any, b: Any) -> Deviation | None:
    """How far two values of any kind are from each other, by element; None where their kinds or shapes differ.

    Arrays of numbers (of any dtypes: bool counts as 0 and 1, integers of any size are exact, complex numbers have the
    absolute value of their difference), arrays of strings, sequences of arrays, or None twice.
    """
    if a is None and b is None:
        return Deviation(math.nan)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return _of_sequences([deviation(one, other) for one, other in zip(a, b, strict=False)], len(a) == len(b))
    arrays = isinstance(a, (np.ndarray, np.generic)) and isinstance(b, (np.ndarray, np.generic))
    return _of_arrays(a, b) if arrays and a.shape == b.shape else None


def _of_arrays(a: AnyArray, b: AnyArray) -> Deviation | None:
    flat_a, flat_b = a.ravel(), b.ravel()
    if a.dtype.kind in _TEXT and b.dtype.kind in _TEXT:
        same = flat_a.tolist() == flat_b.tolist()
        return Deviation(math.nan if not flat_a.size else 0.0 if same else math.inf)
    found = distances(flat_a, flat_b)
    return None if found is None else _summary(*found)


def _of_sequences(parts: list[Deviation | None], same_length: bool) -> Deviation | None:
    known = [part for part in parts if part is not None]
    if not same_length or len(known) < len(parts):
        return None
    size, distance = np.concatenate([np.zeros((2, 0)), *(part.deciding for part in known)], axis=1)
    return Deviation(largest(part.largest for part in known), _deciding(size, distance))


def _widened(array: AnyArray) -> AnyArray | None:
    """The numbers in float64 or complex128; None of what is no number."""
    if array.dtype.kind not in "biufcV":  # V: the types of ml_dtypes, and records
        return None
    try:
        with np.errstate(invalid="ignore"):  # NaNs that signal
            wide: AnyArray = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
    except (TypeError, ValueError):
        return None
    return wide


def _distances(a: AnyArray, b: AnyArray, wide_a: AnyArray, wide_b: AnyArray) -> AnyArray:
    with np.errstate(invalid="ignore", over="ignore"):  # inf - inf; a distance beyond float64
        distance: AnyArray = np.abs(wide_a - wide_b)
    same = (wide_a == wide_b) | (np.isnan(wide_a) & np.isnan(wide_b))
    distance[same] = 0
    distance[np.isnan(distance)] = math.inf  # a NaN in one of them only
    if {a.dtype.kind, b.dtype.kind} <= set("biuf"):
        _correct_integers(a, b, wide_a, wide_b, distance)
    return distance


def _correct_integers(a: AnyArray, b: AnyArray, wide_a: AnyArray, wide_b: AnyArray, distance: AnyArray) -> None:
    """Give elements that float64 had to round their exact distance."""
    if not any(one.dtype.kind in "iu" and one.dtype.itemsize == 8 for one in (a, b)):
        return
    finite = np.isfinite(wide_a) & np.isfinite(wide_b)
    rounded = finite & (np.maximum(np.abs(wide_a), np.abs(wide_b)) >= _EXACT_INTEGERS)
    exact_a, exact_b = (one if one.dtype.kind in "iu" else wide for one, wide in ((a, wide_a), (b, wide_b)))
    pairs = zip(exact_a[rounded].tolist(), exact_b[rounded].tolist(), strict=True)
    distance[rounded] = [float(abs(Fraction(one) - Fraction(other))) for one, other in pairs]


def _summary(size: AnyArray, distance: AnyArray) -> Deviation:
    if not distance.size:
        return Deviation(math.nan)
    most = float(distance.max())
    return Deviation(most) if math.isinf(most) else Deviation(most, _deciding(size, distance))


def _deciding(size: AnyArray, distance: AnyArray) -> AnyArray:
    """Of elements by size, those with a larger distance than all before them."""
    there = distance > 0
    size, distance = size[there], distance[there]
    order = np.lexsort((-distance, size))
    size, distance = size[order], distance[order]
    above = np.ones(distance.shape, bool)
    above[1:] = distance[1:] > np.maximum.accumulate(distance)[:-1]
    return np.stack([size[above], distance[above]])
