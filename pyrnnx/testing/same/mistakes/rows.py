"""Mistakes in states, directions and lengths; arrays are canonical."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.comparison.oracle import Arguments
from pyrnnx.layers.layer import Layer
from pyrnnx.testing.same.mistakes.mistake import Mistake, Outputs


def mistakes_of_rows(layer: Layer, given: Arguments) -> Iterator[Mistake]:
    """Yield states that are left out, directions that run elsewhere, and rows of other lengths."""
    yield from _states(given)
    yield from _directions(given)
    yield from _lengths(given)
    if "T" in layer.convention.axes_of("X"):
        yield from _last_states(given)


def _states(given: Arguments) -> Iterator[Mistake]:
    states: list[str] = [name for name in ("initial_h", "initial_c") if name in given]
    zeros: Arguments = {name: np.zeros_like(given[name]) for name in states}
    for name in states:
        yield Mistake(f"{name} were zero", {name: zeros[name]})
    if len(states) == 2:
        yield Mistake("initial_h and initial_c were zero", zeros)
        exchanged = {"initial_h": given["initial_c"], "initial_c": given["initial_h"]}
        yield Mistake("initial_h and initial_c were exchanged", exchanged)
    if given["direction"] == "bidirectional":
        exchanged = {name: given[name][::-1] for name in states}
        yield Mistake("the initial states of the two directions were exchanged", exchanged)
        first = {name: given[name][[0, 0]] for name in states}
        yield Mistake("both directions began with the initial states of the first", first)


def _directions(given: Arguments) -> Iterator[Mistake]:
    if given["direction"] != "bidirectional":
        other = "reverse" if given["direction"] == "forward" else "forward"
        yield Mistake(f"the direction were {other}", {"direction": other})
        return
    weights: Arguments = {name: given[name][::-1] for name in ("W", "R", "B", "P") if name in given}
    yield Mistake("the weights of the two directions were exchanged", weights)
    yield Mistake("both directions had the weights of the first", {name: given[name][[0, 0]] for name in weights})
    lengths = given["sequence_lens"]

    def forward(changed: Outputs, right: Outputs) -> Outputs:
        return _reverse_from({**changed, "Y": _backwards(changed["Y"], lengths, 2)}, right, given)

    yield Mistake("the reverse direction ran forward", {"X": _backwards(given["X"], lengths, 1)}, forward)


def _lengths(given: Arguments) -> Iterator[Mistake]:
    X, lengths = given["X"], given["sequence_lens"]
    T, N, _ = X.shape
    every = {"sequence_lens": np.full(N, T)}
    times = np.arange(T)[:, None]
    padding = (times >= lengths)[:, None, :, None]  # of Y [T, D, N, H]
    yield Mistake("every row had all time steps, whatever sequence_lens says", every)
    yield Mistake(
        "the states were not frozen beyond a row's length, with Y zero there",
        every,
        lambda changed, right: {**changed, "Y": np.where(padding, 0, changed["Y"])},
    )
    yield Mistake(
        "Y were not zero beyond a row's length, with the states frozen",
        every,
        lambda changed, right: {**right, "Y": changed["Y"]},
    )
    yield Mistake(
        "Y beyond a row's length were its last state",
        {},
        lambda changed, right: {**right, "Y": np.where(padding, right["Y_h"], right["Y"])},
    )
    if not (lengths > 0).all():
        yield from _empty_rows(given)
    if given["direction"] != "forward":
        late = _taken(X, (times + T - lengths) % max(T, 1), 1)  # the last time step of each row is that of X

        def begins_late(changed: Outputs, right: Outputs) -> Outputs:
            Y = _taken(changed["Y"], (times - T + lengths) % max(T, 1), 2)
            return _reverse_from({**changed, "Y": Y}, right, given)

        words = "the reverse direction began at the last time step of X, whatever sequence_lens says"
        yield Mistake(words, {"X": late}, begins_late)


def _empty_rows(given: Arguments) -> Iterator[Mistake]:
    T, lengths = len(given["X"]), given["sequence_lens"]
    empty = (lengths == 0)[:, None]
    initial = {f"Y_{name[-1]}": given[name] for name in ("initial_h", "initial_c") if name in given}
    yield Mistake(
        "the last states of a row of length 0 were its initial ones",
        {},
        lambda changed, right: {
            **right,
            **{name: np.where(empty, state, right[name]) for name, state in initial.items()},
        },
    )
    yield Mistake("a row of length 0 had one step", {"sequence_lens": np.maximum(lengths, min(1, T))})


def _last_states(given: Arguments) -> Iterator[Mistake]:
    lengths = given["sequence_lens"]
    last, rows = np.maximum(lengths - 1, 0), np.arange(len(lengths))
    yield Mistake("Y_h were Y at the last time step", {}, lambda changed, right: {**right, "Y_h": right["Y"][-1]})
    yield Mistake("Y_h were Y at the first time step", {}, lambda changed, right: {**right, "Y_h": right["Y"][0]})
    if given["direction"] != "forward":
        yield Mistake(
            "Y_h of the reverse direction were Y where a row ends in time",
            {},
            lambda changed, right: {**right, "Y_h": right["Y"][last, :, rows].swapaxes(0, 1)},
        )
        yield Mistake(
            "Y of the reverse direction were in the order in which it runs",
            {},
            lambda changed, right: {
                **right,
                "Y": _by_direction(_backwards(right["Y"], lengths, 2), right["Y"], given, axis=1),
            },
        )


def _backwards(array: AnyArray, lengths: AnyArray, rows: int) -> AnyArray:
    """Return an array [T, ...] with the valid steps of each row in the other order; `rows` is the axis of the rows."""
    times = np.arange(len(array))[:, None]
    return _taken(array, np.where(times < lengths, lengths - 1 - times, times), rows)


def _taken(array: AnyArray, times: AnyArray, rows: int) -> AnyArray:
    """Return the time steps [T, N] of each row of an array whose axis of the rows is `rows`."""
    shape = [size if axis in (0, rows) else 1 for axis, size in enumerate(array.shape)]
    return np.take_along_axis(array, times.reshape(shape), axis=0)


def _reverse_from(changed: Outputs, right: Outputs, given: Arguments) -> Outputs:
    """Return the outputs of directions that run backwards from one mapping, the others from another."""
    return {name: _by_direction(changed[name], right[name], given, int(name == "Y")) for name in right}


def _by_direction(reverse: AnyArray, forward: AnyArray, given: Arguments, axis: int) -> AnyArray:
    """Return one array in directions that run backwards, and the other elsewhere."""
    is_reverse = [True] if given["direction"] == "reverse" else [False, True]
    return np.where(np.reshape(is_reverse, [-1 if k == axis else 1 for k in range(reverse.ndim)]), reverse, forward)
