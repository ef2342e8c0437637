"""First element beyond a tolerance (step, row, unit), and the differences of each step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.comparison.agreement import TOLERANCE
from pyrnnx.comparison.distances import WithNumbers, element_distances

MOST_PIXELS = 1024  # per image axis; beyond, a pixel shows the largest of several steps or units


@dataclass(frozen=True, eq=False)
class Place(WithNumbers):
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
        Index in the batch; index of the hidden unit.
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


@dataclass(frozen=True, eq=False)
class Profile(WithNumbers):
    """Differences of two arrays over time.

    Attributes
    ----------
    first : Place or None
        The first number that is beyond the tolerance of `equal`, in the order in which the direction runs: in reverse,
        the last time step of a row comes first. None: there is none.
    by_step : ndarray
        [T, D], or [1, D] for a last state: the largest absolute difference over rows and units; NaN if no row ran.
    image : ndarray
        [D, T, H], or [D, 1, H] for a last state: the largest absolute difference over rows. Beyond 1024 steps or units,
        each element is the largest of several. Empty for gates.
    units : int
        H.
    over_time : bool
        Whether the array is Y or a gate, not a last state.
    """

    first: Place | None
    by_step: AnyArray
    image: AnyArray = field(default_factory=lambda: np.zeros((0, 0, 0)), repr=False)
    units: int = 0
    over_time: bool = True

    @property
    def largest(self) -> float:
        """The largest absolute difference; NaN where nothing was compared."""
        return float(np.fmax.reduce(self.by_step, axis=None, initial=math.nan))


class Steps(NamedTuple):
    """The time steps of arrays [S, D, N, H] of an output or a gate."""

    directions: Sequence[str]
    times: AnyArray  # [S, D, N]
    order: AnyArray  # [S, D, N]: the place at which a direction runs each of them
    rows: Sequence[int] | None = None  # of the batch, unless all of it
    over_time: bool = True  # else of a last state, which has no time step

    def first(self, name: str, a: AnyArray, b: AnyArray, beyond: AnyArray) -> Place | None:
        """Return the first of the elements that are `beyond`, in the order in which they run."""
        apart = beyond.any(axis=-1)
        if not apart.any():
            return None
        when = np.where(apart, self.order, np.iinfo(np.int64).max).transpose(1, 2, 0)  # of one time, the first row
        d, n, s = map(int, np.unravel_index(when.argmin(), when.shape))
        unit = int(beyond[s, d, n].argmax())
        return Place(
            name,
            int(self.times[s, d, n]) if self.over_time else None,
            self.directions[d],
            n if self.rows is None else self.rows[n],
            unit,
            float(a[s, d, n, unit]),
            float(b[s, d, n, unit]),
        )


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
    """Compare an output in canonical arrangement: Y [T, D, N, H], or a last state [D, N, H]."""
    over_time = a.ndim == 4
    if not over_time:
        a, b = a[np.newaxis], b[np.newaxis]
    T, D, N, _ = a.shape
    times = np.broadcast_to(np.arange(T)[:, None, None], (T, D, N))
    order = times.copy()
    for d, direction in enumerate(directions if over_time else ()):
        if direction == "reverse":  # padding comes last
            order[:, d] = np.where(times[:, d] < lengths, lengths - 1 - times[:, d], times[:, d])
    distances = element_distances(a, b)
    first = Steps(directions, times, order, over_time=over_time).first(name, a, b, distances.beyond(atol, rtol))
    by_step = distances.distance.max(axis=(2, 3)) if N else np.full((T, D), math.nan)
    if over_time and N:
        padding = by_step[lengths.max() :]
        padding[padding == 0] = math.nan
    return Profile(first, by_step, _image(distances.distance), a.shape[-1], over_time)


def first_index(mask: AnyArray) -> tuple[int, ...]:
    """Return the index of the first element that is set."""
    return tuple(map(int, np.unravel_index(mask.argmax(), mask.shape)))


def _image(distance: AnyArray) -> AnyArray:
    """Return [D, T, H], of bounded size, of [T, D, N, H]."""
    image = distance.max(axis=2, initial=0).transpose(1, 0, 2)
    for axis in (1, 2):
        size = image.shape[axis]
        if size > MOST_PIXELS:
            image = np.maximum.reduceat(image, np.arange(MOST_PIXELS) * size // MOST_PIXELS, axis=axis)
    return np.ascontiguousarray(image)


def by_step_in_words(by_step: AnyArray, most: int = 8) -> str:
    """Return the largest difference of each step, "0: 0.1, 1: 0.2"; of many steps the first and the largest."""
    values = np.fmax.reduce(by_step, axis=1, initial=math.nan)
    steps = np.flatnonzero(~np.isnan(values))
    shown = steps if len(steps) <= most else sorted({*steps[: most - 1].tolist(), int(np.nanargmax(values))})
    words = [f"{t}: {values[t]:.3g}" for t in shown]
    return ", ".join(words) + ("" if len(words) == len(steps) else f"; of {len(steps)} steps")
