"""Gates of two layers, computed by the float64 oracle, and the first that differs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.comparison import oracle
from pyrnnx.comparison.agreement import TOLERANCE
from pyrnnx.comparison.distances import element_distances
from pyrnnx.comparison.steps import Place, Profile, Steps
from pyrnnx.comparison.weights import directions
from pyrnnx.errors import PyrnnxError
from pyrnnx.layers.layer import Layer

MOST_STEPS = 1024  # of all rows of a direction together: the oracle takes some 50 microseconds for each
MOST_PRODUCTS = 2**27  # of numbers, in these steps: about 0.1 seconds
LEAST_STEPS = 8
# The order in which a step computes them: what parts first in it is the cause of the rest.
EQUATIONS: Mapping[str, tuple[str, ...]] = {
    "RNN": ("i_in", "i", "H"),
    "GRU": ("z_in", "z", "r_in", "r", "h_in", "h", "H"),
    "LSTM": ("i_in", "i", "f_in", "f", "c_in", "c", "C", "o_in", "o", "H"),
}


@dataclass(frozen=True, eq=False)
class Source:
    """The layers and call arrays from which the gates of two layers are computed."""

    a: Layer
    b: Layer
    arrays: Mapping[str, AnyArray]


@dataclass(frozen=True)
class Gates:
    """The gates of two layers by name, in the order in which a step computes them."""

    profiles: Mapping[str, Profile] = field(default_factory=dict)
    first: Place | None = None  # in the earliest step, and there in the first gate by the equations
    note: str = ""  # what was left out, or why there are none


def gates(source: Source, start: int) -> Gates:
    """Compare the gates of both layers, by the oracle, in as many steps as `MOST_STEPS` and `MOST_PRODUCTS` allow.

    `start` is the row to take if not all can be.
    """
    T, N, I = source.arrays["X"].shape
    op, lengths = source.a.op, source.arrays["sequence_lens"]
    if not lengths.any():
        return Gates(note="there is no step")
    products = len(op.gates) * op.hidden_size * (I + op.hidden_size)
    most = max(LEAST_STEPS, min(MOST_STEPS, MOST_PRODUCTS // products))
    count = most // max(int(lengths.max()), 1)
    chosen = sorted([start, *(row for row in range(N) if row != start)][: max(count, 1)])
    steps = min(most // len(chosen), int(lengths[chosen].max(initial=0)))
    try:
        first, second = (
            oracle.steps(layer, _runs(layer, source.arrays, chosen, steps)) for layer in (source.a, source.b)
        )
    except PyrnnxError as error:
        return Gates(note=str(error))
    names = directions(op)
    order = np.broadcast_to(np.arange(steps)[:, None, None], (steps, len(names), len(chosen)))
    times = order.copy()
    for d in (d for d, name in enumerate(names) if name == "reverse"):
        times[:, d] = np.maximum(lengths[chosen] - 1 - order[:, d], 0)
    places = Steps(names, times, order, chosen)
    cut = int(lengths.sum()) > int(np.minimum(lengths[chosen], steps).sum())
    note = f"{steps} steps of {len(chosen)} of {N} rows were computed" if cut else ""
    by_time = T, len(names)
    return Gates(*_compared(EQUATIONS[op.cell], first, second, places, lengths[chosen], by_time), note)


def _runs(
    layer: Layer, arrays: Mapping[str, AnyArray], rows: Sequence[int], steps: int
) -> list[Mapping[str, AnyArray]]:
    """Return for each direction the first steps of some rows, in the order in which it runs them."""
    lengths = arrays["sequence_lens"][list(rows)]
    return [
        {
            "X": _in_order(arrays["X"], rows, lengths, steps, direction),
            "sequence_lens": np.minimum(lengths, steps),
            **{name: arrays[name][d : d + 1, list(rows)] for name in ("initial_h", "initial_c") if name in arrays},
        }
        for d, direction in enumerate(directions(layer.op))
    ]


def _in_order(X: AnyArray, rows: Sequence[int], lengths: AnyArray, steps: int, direction: str) -> AnyArray:
    """Return [S, R, I]: the first steps of each row, in the order in which a direction runs them."""
    result = np.zeros((steps, len(rows), X.shape[2]), X.dtype)
    for place, (row, length) in enumerate(zip(rows, lengths.tolist(), strict=True)):
        taken = min(steps, length)
        run = slice(0, taken) if direction == "forward" else slice(length - taken, length)
        result[:taken, place] = X[run, row] if direction == "forward" else X[run, row][::-1]
    return result


def _compared(
    names: Sequence[str],
    a: Mapping[str, AnyArray],
    b: Mapping[str, AnyArray],
    steps: Steps,
    lengths: AnyArray,
    by_time: tuple[int, int],
) -> tuple[dict[str, Profile], Place | None]:
    """Return the profile of each gate, over [T, D] time steps, and where they part first."""
    ran = np.broadcast_to(steps.order[:, :1] < lengths, steps.order.shape)
    which = np.broadcast_to(np.arange(len(steps.directions))[:, None], ran.shape)
    profiles: dict[str, Profile] = {}
    firsts: list[tuple[int, Place]] = []
    for name in names:
        if np.isnan(a[name]).all() != np.isnan(b[name]).all():  # a gate that one of them couples to another
            continue
        distances = element_distances(a[name], b[name])
        beyond = distances.beyond(TOLERANCE, TOLERANCE)
        first = steps.first(name, a[name], b[name], beyond)
        if first is not None:
            firsts.append((int(steps.order[beyond.any(axis=-1)].min()), first))
        by_step = np.full(by_time, math.nan)
        np.fmax.at(by_step, (steps.times[ran], which[ran]), distances.distance.max(axis=-1)[ran])
        profiles[name] = Profile(first, by_step, units=a[name].shape[-1])
    return profiles, min(firsts, key=lambda pair: pair[0])[1] if firsts else None
