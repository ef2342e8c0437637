"""Where two layers part inside a step: their gates, by the float64 oracle."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pyrnnx.comparison.numbers import TOLERANCE, distances
from pyrnnx.comparison.steps import Place, Profile, first_place
from pyrnnx.comparison.weights import canonical_weights, directions
from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import PyrnnxError
from pyrnnx.layer import Layer

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
    """What the gates of two layers are computed from: the layers, and what they were run on."""

    a: Layer
    b: Layer
    arrays: Mapping[str, AnyArray]


@dataclass(frozen=True)
class Gates:
    """The gates of two layers.

    Attributes
    ----------
    profiles : mapping
        By name, in the order in which a step computes them.
    first : Place or None
        Where they part first: in the earliest step, and there in the first by the equations.
    note : str
        What was left out, or why there are none.
    """

    profiles: Mapping[str, Profile] = field(default_factory=dict)
    first: Place | None = None
    note: str = ""


def gates(source: Source, start: int) -> Gates:
    """Both layers' gates, by the oracle; of as many steps as `MOST_STEPS` and `MOST_PRODUCTS` allow.

    Parameters
    ----------
    start : int
        The row to take where not all can be.
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
        first, second = (_steps(layer, source.arrays, chosen, steps) for layer in (source.a, source.b))
    except PyrnnxError as error:
        return Gates(note=str(error))
    places = _Places(directions(op), lengths[chosen], chosen, T, steps)
    cut = int(lengths.sum()) > int(np.minimum(lengths[chosen], steps).sum())
    note = f"{steps} steps of {len(chosen)} of {N} rows were computed" if cut else ""
    return _compared(EQUATIONS[op.cell], first, second, places, note)


class _Places:
    """Which time steps the arrays of `_steps` are of, [S, D, R] as they are: those of a row in the order they run."""

    def __init__(
        self, names: Sequence[str], lengths: AnyArray, rows: Sequence[int], seq_length: int, steps: int
    ) -> None:
        self.directions, self.rows, self.seq_length = names, rows, seq_length
        shape = (steps, len(names), len(rows))
        self.order = np.broadcast_to(np.arange(steps)[:, None, None], shape)
        self.there = np.broadcast_to(self.order[:, :1] < lengths, shape)
        self.times = self.order.copy()
        for d, name in enumerate(names):
            if name == "reverse":
                self.times[:, d] = np.maximum(lengths - 1 - self.order[:, d], 0)


def _steps(layer: Layer, arrays: Mapping[str, AnyArray], rows: Sequence[int], steps: int) -> dict[str, AnyArray]:
    """The values of each step by name, [S, D, R, H]: each direction on its own, on rows in the order in which it runs.

    Raises
    ------
    UnsupportedError
        Coupled gates that ONNX's equations cannot say.
    """
    from pyrnnx.testing import reference

    weights = canonical_weights(layer)
    lengths = arrays["sequence_lens"][list(rows)]
    parts: list[dict[str, AnyArray]] = []
    for d, direction in enumerate(directions(layer.op)):
        given: dict[str, Any] = {name: array[d : d + 1] for name, array in weights.items()}
        for name in ("initial_h", "initial_c"):
            if name in arrays:
                given[name] = arrays[name][d : d + 1, list(rows)].astype(layer.dtype)
        given["X"] = _in_order(arrays["X"], rows, lengths, steps, direction).astype(layer.dtype)
        given["sequence_lens"] = np.minimum(lengths, steps)
        *_, values = reference.run(layer.op.cell, **given, **_attributes(layer, d), steps=True)
        parts.append(values)
    return {name: np.concatenate([part[name] for part in parts], axis=1) for name in EQUATIONS[layer.op.cell]}


def _in_order(X: AnyArray, rows: Sequence[int], lengths: AnyArray, steps: int, direction: str) -> AnyArray:
    """[S, R, I]: the first steps of each row, in the order in which a direction runs them."""
    result = np.zeros((steps, len(rows), X.shape[2]), X.dtype)
    for place, (row, length) in enumerate(zip(rows, lengths.tolist(), strict=True)):
        taken = min(steps, length)
        run = slice(0, taken) if direction == "forward" else slice(length - taken, length)
        result[:taken, place] = X[run, row] if direction == "forward" else X[run, row][::-1]
    return result


def _attributes(layer: Layer, d: int) -> dict[str, Any]:
    """Of one direction, run forward."""
    op, functions = layer.op, layer.op.activations[d]
    attributes: dict[str, Any] = {
        "activations": [one.name for one in functions],
        "activation_alpha": [one.alpha for one in functions if one.alpha is not None],
        "activation_beta": [one.beta for one in functions if one.beta is not None],
        "clip": op.clip,
    }
    if op.cell == "GRU":
        attributes["linear_before_reset"] = int(op.linear_before_reset)
    if op.cell == "LSTM":
        attributes["input_forget"] = int(op.input_forget)
    return attributes


def _compared(
    names: Sequence[str], a: Mapping[str, AnyArray], b: Mapping[str, AnyArray], places: _Places, note: str
) -> Gates:
    profiles: dict[str, Profile] = {}
    firsts: list[tuple[int, Place]] = []
    for name in names:
        if np.isnan(a[name]).all() != np.isnan(b[name]).all():  # a gate that one of them couples to another
            continue
        found = distances(a[name], b[name])
        assert found is not None  # numbers
        beyond = found.beyond(TOLERANCE, TOLERANCE)
        first = first_place(name, a[name], b[name], beyond, places.times, places.order, places.directions, places.rows)
        if first is not None:
            firsts.append((int(places.order[beyond.any(axis=-1)].min()), first))
        by_step = np.full((places.seq_length, len(places.directions)), math.nan)
        which = np.broadcast_to(np.arange(len(places.directions))[:, None], places.times.shape)
        there = places.there
        np.fmax.at(by_step, (places.times[there], which[there]), found.distance.max(axis=-1)[there])
        profiles[name] = Profile(first, by_step, units=a[name].shape[-1])
    return Gates(profiles, min(firsts, key=lambda pair: pair[0])[1] if firsts else None, note)
