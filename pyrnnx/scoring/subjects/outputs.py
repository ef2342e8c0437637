"""Outputs of a batch: their axes, the results of single items, and the check that batches do not change them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, PyrnnxError, shown
from pyrnnx.scoring.subjects.interface import Subject, changed_axis

# Differences of a row between batches, by itemsize (rtol, atol): products of another shape sum in another order.
TOLERANCES = {2: (3e-2, 3e-2), 4: (1e-3, 1e-3), 8: (1e-6, 1e-6)}
PUSHES = 64  # of a trial: all pushes have the same shapes


@dataclass(frozen=True)
class Output:
    """An output of the model: the part of its shape that is the same for all items."""

    name: str
    dtype: np.dtype[Any]
    rows: int | None  # axis of the batch's rows, and axis of the time steps; None if there is none
    time: int | None
    shape: tuple[int, ...]  # shape of an item's result without the time steps
    # whether it has as many time steps as the item, so that the steps of the padding can be cut off
    follows: bool = False

    def of_item(self, array: AnyArray, row: int, length: int) -> AnyArray:
        """Return a copy of one row, [T, ...] if it has time steps, so that the batch can be freed."""
        axes = [axis for axis in (self.rows, self.time) if axis is not None]
        sizes = tuple(size for axis, size in enumerate(array.shape) if axis not in axes)
        has_rows = array.ndim == len(axes) + len(sizes) and (self.rows is None or array.shape[self.rows] > row)
        if not has_rows or sizes != self.shape or array.dtype != self.dtype:
            raise ArgumentError(
                f"output {shown(self.name)} has shape {array.shape} and dtype {array.dtype}; expected {self.in_words} "
                f"of {self.dtype} for each item, as for the first"
            )
        # np.moveaxis took half of the time of a run over a million short items.
        result = array.transpose(*axes, *(axis for axis in range(array.ndim) if axis not in axes))
        if self.rows is not None:
            result = result[row]
        return np.array(result[:length] if self.follows else result)  # C-contiguous whatever the order of axes

    @property
    def in_words(self) -> str:
        return f"[{', '.join([*('T' for _ in [self.time] if self.time is not None), *map(str, self.shape)])}]"

    def size(self, length: int) -> int:
        """Return an upper bound in bytes of the result of an item of this length."""
        return math.prod(self.shape) * self.dtype.itemsize * (1 if self.time is None else length)


@dataclass(frozen=True)
class Scorer:
    """A subject with its outputs."""

    subject: Subject
    outputs: tuple[Output, ...]
    rows: int  # maximum number of items of a call

    def run(self, items: Sequence[AnyArray]) -> list[dict[str, AnyArray]]:
        results = _call(self.subject, items)
        if missing := [output.name for output in self.outputs if output.name not in results]:
            raise ArgumentError(f"output {shown(missing[0])} is missing")
        return [
            {output.name: output.of_item(results[output.name], row, len(item)) for output in self.outputs}
            for row, item in enumerate(items)
        ]

    def size(self, length: int, step: int) -> int:
        """Return the bytes of an item of `length` time steps of `step` bytes, with its results."""
        return length * step + sum(output.size(length) for output in self.outputs)


def _call(subject: Subject, items: Sequence[AnyArray]) -> Mapping[str, AnyArray]:
    """Return the outputs of a batch of items, padded to the rows and time steps that the model declares, if any."""
    takes = subject.input
    steps = takes.size("T") or max(map(len, items))
    rows = takes.size("N") or len(items)
    lengths = np.full(rows, steps, np.int64)
    lengths[: len(items)] = [len(item) for item in items]
    return subject.call(takes.batch(items, rows, steps), lengths)


def scorer_of(subject: Subject, rows: int, sample: AnyArray, length: int) -> Scorer:
    """Call a model with the sample, one of the items [T, ...], at this length, to find the axes of outputs."""
    steps = subject.input.size("T") or (min(length, PUSHES) if subject.pushes else length)
    try:
        return Scorer(subject, _outputs(subject, rows, sample, steps), rows)
    except PyrnnxError as error:
        raise ArgumentError(
            f"score: {subject.label} fails with sequences of {steps} steps of the first item: {error}"
        ) from error


def _outputs(subject: Subject, rows: int, sample: AnyArray, steps: int) -> tuple[Output, ...]:
    takes = subject.input
    other = steps if takes.size("T") else steps // 2 or 2  # not longer: a model may limit the number of time steps
    sequence = _sequence(sample, steps)
    alone = _call(subject, [sequence])
    at_other = alone if other == steps else _call(subject, [_sequence(sample, other)])
    pair = _call(subject, [sequence] * 2) if rows > 1 and takes.size("N") is None else None
    described = []
    for name, value in alone.items():
        array, axes = np.asarray(value), subject.axes.get(name)
        row: int | None
        if axes is not None and len(axes) == array.ndim:
            row, time = axes.index("N"), axes.index("T") if "T" in axes else None
        else:
            time = changed_axis(name, array.shape, np.shape(at_other[name]))
            axes_of_rows = [axis for axis, size in enumerate(array.shape) if size == rows and axis != time]
            row = axes_of_rows[0] if axes_of_rows else None
            if pair is not None:
                row = changed_axis(name, array.shape, np.shape(pair[name]))
            # Any axis of one element has the same values, and an output of one row may have none.
            if rows > 1 and (row in (None, time) or (pair is None and len(axes_of_rows) > 1)):
                raise ArgumentError(
                    f"output {shown(name)} has shape {array.shape}, and its axis of rows is unknown; expected one: "
                    "leave the output out of outputs, a list of names"
                )
        shape = tuple(size for axis, size in enumerate(array.shape) if axis not in (row, time))
        follows = time is not None and array.shape[time] == steps and at_other[name].shape[time] == other
        described.append(Output(name, array.dtype, row, time, shape, follows))
    return tuple(described)


def _sequence(sample: AnyArray, steps: int) -> AnyArray:
    return np.take(sample, np.arange(steps) % len(sample), axis=0)


def check_batch(scorer: Scorer, names: Sequence[str], items: Sequence[AnyArray]) -> None:
    """Compare the results of a batch, the longest item first, with those of its items alone."""
    subject = scorer.subject
    if subject.pushes:
        items = [item[:PUSHES] for item in items]
    is_open = subject.input.size("N") is None
    option = f"leave out batch={scorer.rows}" if is_open else f"a model whose {scorer.rows} rows are independent"
    trials = [(option, items)]
    if subject.lengths is not None and len(set(map(len, items))) > 1:
        equal = [_sequence(item, len(items[0])) for item in items]
        lengths = f"leave out lengths={subject.lengths!r}, so that only items of equal length share a call"
        trials = [(option, equal), (lengths, items)]
    for option, trial in trials:
        if problem := _problem(scorer, names, trial):
            raise ArgumentError(
                f"score: {subject.label}: {problem}; expected the same results in a batch as alone: {option}"
            )


def _problem(scorer: Scorer, names: Sequence[str], items: Sequence[AnyArray]) -> str:
    """Return what differs in a batch in words; "" if nothing does."""
    try:
        alone = [scorer.run([item])[0] for item in items]
    except PyrnnxError:  # a bad item, which the run reports
        return ""
    try:
        batch = scorer.run(items)
    except PyrnnxError as error:
        return f"a batch of {len(items)} items fails, and each item alone does not ({error})"
    for item, a, b in zip(names, alone, batch, strict=True):
        for output in a:
            if difference := _difference(a[output], b[output]):
                return f"output {shown(output)} of item {shown(item)} {difference} in a batch of {len(items)} items"
    return ""


def _difference(alone: AnyArray, batch: AnyArray) -> str:
    """Return how an array differs from another in words; "" if it does not, apart from rounding."""
    if alone.shape != batch.shape:
        return f"has shape {alone.shape} alone and {batch.shape}"
    if alone.dtype.kind != "f":
        return "" if (alone == batch).all() else "has other values"
    rtol, atol = TOLERANCES.get(alone.dtype.itemsize, TOLERANCES[8])
    a, b = alone.astype(np.float64), batch.astype(np.float64)
    size = np.abs(a).max(initial=0, where=np.isfinite(a))
    if np.allclose(a, b, rtol, atol * min(1, size), equal_nan=True):
        return ""
    with np.errstate(invalid="ignore"):
        return f"differs by up to {np.nanmax(np.abs(a - b), initial=0):.3g}"
