"""Differences of outputs and gates by time step, and the first element beyond a tolerance."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.comparison import oracle
from pyrnnx.comparison.agreement import TOLERANCE
from pyrnnx.comparison.distances import element_distances
from pyrnnx.comparison.weights import directions
from pyrnnx.errors import PyrnnxError
from pyrnnx.layers.layer import Layer

MOST_COST = 2**29  # of the oracle, as `oracle.cost` counts it: about half a second
# The order in which a step computes them: what parts first in it is the cause of the rest.
EQUATIONS: Mapping[str, tuple[str, ...]] = {
    "RNN": ("i_in", "i", "H"),
    "GRU": ("z_in", "z", "r_in", "r", "h_in", "h", "H"),
    "LSTM": ("i_in", "i", "f_in", "f", "c_in", "c", "C", "o_in", "o", "H"),
}


@dataclass(frozen=True)
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
class Profile:
    """Differences of two arrays over time.

    Attributes
    ----------
    first : Place or None
        The first number that is beyond the tolerance of `equal`, in the order in which the direction runs: in reverse,
        the last time step of a row comes first. None: there is none.
    by_step : ndarray
        [T, D], or [1, D] for a last state: the largest absolute difference over rows and units; NaN if no row ran.
    over_time : bool
        Whether the array is Y or a gate, not a last state.
    apart : int
        How many numbers are beyond the tolerance.
    """

    first: Place | None
    by_step: AnyArray
    over_time: bool
    apart: int

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
    """Compare an output or a gate in canonical arrangement: [T, D, N, H], or a last state [D, N, H]."""
    over_time = a.ndim == 4
    if not over_time:
        a, b = a[np.newaxis], b[np.newaxis]
    T, D, N, _ = a.shape
    distances = element_distances(a, b)
    beyond = distances.beyond(atol, rtol)
    first = None
    if beyond.any():
        order = running_order(T, directions, lengths) if over_time else np.zeros((1, D, N), int)
        when = np.where(beyond.any(axis=-1), order, np.iinfo(np.int64).max).transpose(1, 2, 0)
        d, n, t = map(int, np.unravel_index(when.argmin(), when.shape))  # of one time, the first row
        unit = int(beyond[t, d, n].argmax())
        numbers = float(a[t, d, n, unit]), float(b[t, d, n, unit])
        first = Place(name, t if over_time else None, directions[d], n, unit, *numbers)
    by_step = distances.distance.max(axis=(2, 3)) if N else np.full((T, D), math.nan)
    if over_time and N:
        padding = by_step[lengths.max() :]
        padding[padding == 0] = math.nan
    return Profile(first, by_step, over_time, int(beyond.sum()))


def running_order(T: int, directions: Sequence[str], lengths: AnyArray) -> AnyArray:
    """Return [T, D, N]: the place at which a direction runs each time step of a row; padding comes last."""
    times = np.arange(T)[:, None]
    backward = np.where(times < lengths, lengths - 1 - times, times)
    forward = np.broadcast_to(times, backward.shape)
    return np.stack([backward if name == "reverse" else forward for name in directions], axis=1)


def first_index(mask: AnyArray) -> tuple[int, ...]:
    """Return the index of the first element that is set."""
    return tuple(map(int, np.unravel_index(mask.argmax(), mask.shape)))


def by_step_in_words(by_step: AnyArray, most: int = 8) -> str:
    """Return the largest difference of each step, "0: 0.1, 1: 0.2"; of many steps the first and the largest."""
    values = np.fmax.reduce(by_step, axis=1, initial=math.nan)
    steps = np.flatnonzero(~np.isnan(values))
    shown = steps if len(steps) <= most else sorted({*steps[: most - 1].tolist(), int(np.nanargmax(values))})
    words = [f"{t}: {values[t]:.3g}" for t in shown]
    return ", ".join(words) + ("" if len(words) == len(steps) else f"; of {len(steps)} steps")


@dataclass(frozen=True)
class Gates:
    """The gates of two layers by name, in the order in which a step computes them."""

    profiles: Mapping[str, Profile] = field(default_factory=dict)
    first: Place | None = None  # in the earliest step, and there in the first gate by the equations
    note: str = ""  # why there are none


def gates(a: Layer, b: Layer, arrays: Mapping[str, AnyArray]) -> Gates:
    """Compare the gates of both layers by the oracle."""
    if not arrays["sequence_lens"].any():
        return Gates(note="there is no step")
    if oracle.cost(a, arrays) > MOST_COST:
        T, N, _ = arrays["X"].shape
        return Gates(note=f"{T} steps of {N} rows take too long")
    try:
        first, second = oracle.steps(a, arrays), oracle.steps(b, arrays)
    except PyrnnxError as error:
        return Gates(note=str(error))
    names, lengths = directions(a.op), arrays["sequence_lens"]
    profiles = {
        gate: output_profile(gate, first[gate], second[gate], names, lengths)
        for gate in EQUATIONS[a.op.cell]
        if np.isnan(first[gate]).all() == np.isnan(second[gate]).all()  # else one of them couples it to another
    }
    places = [profile.first for profile in profiles.values() if profile.first is not None]
    order = running_order(len(arrays["X"]), names, lengths)
    earliest = min(places, key=lambda place: order[place.step, names.index(place.direction), place.row], default=None)
    return Gates(profiles, earliest)
