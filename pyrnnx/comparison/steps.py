"""Where two arrays over time part: the first element beyond a tolerance, and the largest difference of each step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pyrnnx.comparison.numbers import TOLERANCE, Distances, distances
from pyrnnx.dtypes import AnyArray

MOST_PIXELS = 1024  # of either axis of an image: beyond, an element of it stands for several steps or units


@dataclass(frozen=True, eq=False)
class Place:
    """One number of an output of a layer, or of one of its gates, in both layers.

    Attributes
    ----------
    name : str
        "Y", "Y_h", "Y_c"; or a gate such as "i" (after its activation) or "i_in" (before), or "H", "C" after the step.
    step : int or None
        The time step, as in X and Y; None in a last state.
    direction : str
        "forward" or "reverse".
    row, unit : int
        Of the batch; of the hidden ones.
    a, b : float
        The two numbers.
    """

    name: str
    step: int | None
    direction: str
    row: int
    unit: int
    a: float
    b: float

    def __str__(self) -> str:
        step = "" if self.step is None else f"step {self.step}, "
        return (
            f"{self.name} at {step}{self.direction}, row {self.row}, unit {self.unit}: "
            f"{self.a:.9g} in a, {self.b:.9g} in b"
        )

    def _key(self) -> tuple[Any, ...]:
        numbers = (None if math.isnan(one) else one for one in (self.a, self.b))
        return (self.name, self.step, self.direction, self.row, self.unit, *numbers)

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Place) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())


@dataclass(frozen=True, eq=False)
class Profile:
    """How two arrays over time differ.

    Attributes
    ----------
    first : Place or None
        The first number that is beyond the tolerance of `equal`, in the order in which the direction runs: in reverse,
        the last time step of a row comes first. None: there is none.
    by_step : ndarray
        [T, D], of a last state [1, D]: the largest absolute difference over all rows and units; NaN where no row ran.
    image : ndarray
        [D, T, H], of a last state [D, 1, H]: the largest absolute difference over all rows. Of more than 1024 steps
        or units, each element stands for several. Of gates it has no elements.
    units : int
        H.
    over_time : bool
        Whether it is one of Y or of a gate, and not of a last state.
    """

    first: Place | None
    by_step: AnyArray
    image: AnyArray = field(default_factory=lambda: np.zeros((0, 0, 0)), repr=False)
    units: int = 0
    over_time: bool = True

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Profile):
            return NotImplemented
        arrays = ((self.by_step, other.by_step), (self.image, other.image))
        return self.first == other.first and all(np.array_equal(*pair, equal_nan=True) for pair in arrays)

    def __hash__(self) -> int:
        return hash((self.first, self.by_step.shape))

    @property
    def largest(self) -> float:
        """The largest absolute difference; NaN where nothing was compared."""
        return float(np.fmax.reduce(self.by_step, axis=None, initial=math.nan))


def output_profile(
    name: str,
    a: AnyArray,
    b: AnyArray,
    directions: Sequence[str],
    lengths: AnyArray,
    *,
    atol: float = TOLERANCE,
    rtol: float = TOLERANCE,
) -> Profile:
    """Of an output in canonical arrangement: Y [T, D, N, H], or a last state [D, N, H]."""
    over_time = a.ndim == 4
    if not over_time:
        a, b = a[np.newaxis], b[np.newaxis]
    T, D, N, _ = a.shape
    times = np.broadcast_to(np.arange(T)[:, None, None], (T, D, N))
    order = times.copy()
    for d, direction in enumerate(directions if over_time else ()):
        if direction == "reverse":  # what lies beyond a row's length comes last
            order[:, d] = np.where(times[:, d] < lengths, lengths - 1 - times[:, d], times[:, d])
    found = _distances(a, b)
    first = first_place(name, a, b, found.beyond(atol, rtol), times if over_time else None, order, directions)
    by_step = found.distance.max(axis=(2, 3)) if N else np.full((T, D), math.nan)
    if over_time and N:
        padding = by_step[lengths.max() :]
        padding[padding == 0] = math.nan
    return Profile(first, by_step, _image(found.distance), a.shape[-1], over_time)


def first_place(
    name: str,
    a: AnyArray,
    b: AnyArray,
    beyond: AnyArray,
    times: AnyArray | None,
    order: AnyArray,
    directions: Sequence[str],
    rows: Sequence[int] | None = None,
) -> Place | None:
    """The first of the elements [S, D, N, H] that are `beyond`; `times` and `order` are [S, D, N].

    `rows`: which rows of the batch these are, if not all of them.
    """
    apart = beyond.any(axis=-1)
    if not apart.any():
        return None
    when = np.where(apart, order, np.iinfo(np.int64).max).transpose(1, 2, 0)  # of one time, the first row
    d, n, s = map(int, np.unravel_index(when.argmin(), when.shape))
    unit = int(beyond[s, d, n].argmax())
    return Place(
        name,
        None if times is None else int(times[s, d, n]),
        directions[d],
        n if rows is None else rows[n],
        unit,
        float(a[s, d, n, unit]),
        float(b[s, d, n, unit]),
    )


def _distances(a: AnyArray, b: AnyArray) -> Distances:
    found = distances(a, b)
    assert found is not None  # numbers
    return found


def _image(distance: AnyArray) -> AnyArray:
    """[T, D, N, H] -> [D, T, H], of bounded size."""
    image = distance.max(axis=2, initial=0).transpose(1, 0, 2)
    for axis in (1, 2):
        size = image.shape[axis]
        if size > MOST_PIXELS:
            image = np.maximum.reduceat(image, np.arange(MOST_PIXELS) * size // MOST_PIXELS, axis=axis)
    return np.ascontiguousarray(image)


def by_step_in_words(by_step: AnyArray, most: int = 8) -> str:
    """The largest difference of each step, over all directions: "0: 0.1, 1: 0.2"; of many, the first and largest."""
    values = np.fmax.reduce(by_step, axis=1, initial=math.nan)
    steps = np.flatnonzero(~np.isnan(values))
    shown = steps if len(steps) <= most else sorted({*steps[: most - 1].tolist(), int(np.nanargmax(values))})
    words = [f"{t}: {values[t]:.3g}" for t in shown]
    return ", ".join(words) + ("" if len(words) == len(steps) else f"; of {len(steps)} steps")
