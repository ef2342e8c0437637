"""Results that are wrong beyond a row's length, at an end of a row, or in the reverse direction.

Each function takes the outputs of the oracle with changed arguments, those of the right ones, and `Rows`; arrays are
canonical.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.comparison.oracle import Arguments

Outputs = Mapping[str, AnyArray]


@dataclass(frozen=True, eq=False)
class Rows:
    """Lengths [N] of the rows, which directions run backwards [D], and the initial states by the names of the last."""

    lengths: AnyArray
    reverse: AnyArray
    initial: Outputs

    def last_step(self) -> AnyArray:
        """Return the index of the last step of each row; 0 for a row without steps."""
        last: AnyArray = np.maximum(self.lengths - 1, 0)
        return last


Wrong = Callable[[Outputs, Outputs, Rows], Outputs]


def of_rows(wrong: Wrong, given: Arguments) -> Callable[[Outputs, Outputs], Outputs]:
    """Return a function of the outputs alone, for the rows of a call."""
    directions = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}
    states = {"initial_h": "Y_h", "initial_c": "Y_c"}
    initial = {output: given[name] for name, output in states.items() if name in given}
    rows = Rows(given["sequence_lens"], np.array(directions[given["direction"]]), initial)
    return lambda changed, right: wrong(changed, right, rows)


def y_zero_in_padding(changed: Outputs, right: Outputs, rows: Rows) -> Outputs:
    return {**changed, "Y": np.where(_padding(right["Y"], rows), 0, changed["Y"])}


def states_right(changed: Outputs, right: Outputs, rows: Rows) -> Outputs:
    return {**right, "Y": changed["Y"]}


def y_repeats_last_state(changed: Outputs, right: Outputs, rows: Rows) -> Outputs:
    return {**right, "Y": np.where(_padding(right["Y"], rows), right["Y_h"], right["Y"])}


def empty_rows_keep_states(changed: Outputs, right: Outputs, rows: Rows) -> Outputs:
    empty = (rows.lengths == 0)[:, None]
    return {**right, **{name: np.where(empty, state, right[name]) for name, state in rows.initial.items()}}


def y_h_at_the_last_step(changed: Outputs, right: Outputs, rows: Rows) -> Outputs:
    return {**right, "Y_h": right["Y"][-1]}


def y_h_at_the_first_step(changed: Outputs, right: Outputs, rows: Rows) -> Outputs:
    return {**right, "Y_h": right["Y"][0]}


def y_h_where_rows_end(changed: Outputs, right: Outputs, rows: Rows) -> Outputs:
    Y = right["Y"]  # [T, D, N, H]
    return {**right, "Y_h": Y[rows.last_step(), :, np.arange(Y.shape[2])].swapaxes(0, 1)}


def y_as_it_runs(changed: Outputs, right: Outputs, rows: Rows) -> Outputs:
    Y = right["Y"]
    return {**right, "Y": _by_direction(backwards(Y, rows.lengths, 2), Y, rows, axis=1)}


def reverse_runs_forward(changed: Outputs, right: Outputs, rows: Rows) -> Outputs:
    """Return what a reverse direction computes that runs forward; `changed` is of X `backwards`."""
    return _reverse_from({**changed, "Y": backwards(changed["Y"], rows.lengths, 2)}, right, rows)


def backwards(array: AnyArray, lengths: AnyArray, rows: int) -> AnyArray:
    """Return an array [T, ...] with the valid steps of each row in the other order; `rows` is the axis of the rows."""
    times = np.arange(len(array))[:, None]
    return _taken(array, np.where(times < lengths, lengths - 1 - times, times), rows)


def late(X: AnyArray, lengths: AnyArray) -> AnyArray:
    """Return X [T, N, I] with each row moved, so that its last time step is the last of its length."""
    return _taken(X, (np.arange(len(X))[:, None] + len(X) - lengths) % max(len(X), 1), 1)


def reverse_begins_late(changed: Outputs, right: Outputs, rows: Rows) -> Outputs:
    """Return what a reverse direction computes that begins at the last time step; `changed` is of `late` X."""
    Y = changed["Y"]
    times = (np.arange(len(Y))[:, None] - len(Y) + rows.lengths) % max(len(Y), 1)
    return _reverse_from({**changed, "Y": _taken(Y, times, 2)}, right, rows)


def _taken(array: AnyArray, times: AnyArray, rows: int) -> AnyArray:
    """Return the time steps [T, N] of each row of an array whose axis of the rows is `rows`."""
    shape = [size if axis in (0, rows) else 1 for axis, size in enumerate(array.shape)]
    return np.take_along_axis(array, times.reshape(shape), axis=0)


def _reverse_from(changed: Outputs, right: Outputs, rows: Rows) -> Outputs:
    """Return the outputs of directions that run backwards from one mapping, the others from another."""
    return {name: _by_direction(changed[name], right[name], rows, int(name == "Y")) for name in right}


def _by_direction(reverse: AnyArray, forward: AnyArray, rows: Rows, axis: int) -> AnyArray:
    """Return one array in directions that run backwards, and the other elsewhere."""
    shape = [-1 if place == axis else 1 for place in range(reverse.ndim)]
    return np.where(rows.reverse.reshape(shape), reverse, forward)


def _padding(Y: AnyArray, rows: Rows) -> AnyArray:
    """Return a mask [T, 1, N, 1] of the steps beyond the lengths of Y [T, D, N, H]."""
    return (np.arange(len(Y))[:, None] >= rows.lengths)[:, None, :, None]
