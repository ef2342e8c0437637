"""How a model takes and gives items: found out by calling it, for its file does not say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, PyrnnxError, shown
from pyrnnx.scoring.outputs import Batching, Output, Scorer, call
from pyrnnx.scoring.subject import Subject

# What the same row may differ by in another batch: sums in another order, as products of another shape have them. What
# this is to find, padding or other rows that a result depends on, is as large as the results.
TOLERANCES = {2: (3e-2, 3e-2), 4: (1e-3, 1e-3), 8: (1e-6, 1e-6)}  # by the size of a number: rtol, atol


def probe(subject: Subject, sample: AnyArray, lengths: Sequence[int]) -> Scorer:
    """Call a model with a few batches made of an item, and see which axes of the outputs are rows and time steps.

    Parameters
    ----------
    subject : Subject
    sample : ndarray
        An item [T, ...], T above 0.
    lengths : sequence of int
        Of the items that will be scored.

    Raises
    ------
    ArgumentError
        A model that fails with these; rows that depend on each other; outputs that have no rows.
    """
    positive = np.array([one for one in lengths if one > 0])
    fixed = subject.input.size("T")
    # The median first: where time steps become fewer, as with strides, short ones may become none.
    tried = [fixed] if fixed else sorted({int(positive.min()), int(np.median(positive))}, reverse=True)
    failure: PyrnnxError | None = None
    for steps in tried:
        found = _attempted(subject, sample, steps)
        if isinstance(found, Scorer):
            return found
        failure = found
    raise ArgumentError(
        f"score: {subject.label} cannot be called with sequences of {tried[-1]} steps made of the first item: {failure}"
    )


def _attempted(subject: Subject, sample: AnyArray, steps: int) -> Scorer | PyrnnxError:
    try:
        return _probed(subject, sample, steps)
    except _DependsError:
        raise
    except PyrnnxError as error:
        return error


class _DependsError(ArgumentError):
    """Rows that depend on each other."""


def _probed(subject: Subject, sample: AnyArray, steps: int) -> Scorer:
    takes = subject.input
    longer = steps if takes.size("T") else 2 * steps
    one, other = _made(sample, steps, 0), _made(sample, steps, 1)
    alone = call(subject, [one])
    at_length = alone if longer == steps else call(subject, [_made(sample, longer, 0)])
    if "N" not in takes.axes:
        outputs = tuple(_output(subject, name, alone, alone, at_length, steps, longer) for name in alone)
        return Scorer(subject, outputs, Batching.ALONE)
    rows = takes.size("N")
    pair = call(subject, [one, other]) if rows != 1 else alone
    outputs = tuple(_output(subject, name, alone, pair, at_length, steps, longer) for name in alone)
    if rows == 1:
        return Scorer(subject, outputs, Batching.ALONE)
    scorer = Scorer(subject, outputs, Batching.EQUAL)
    expected = [scorer.run([item])[0] for item in (one, other)]
    if not _same(expected, scorer.run([one, other])):
        raise _DependsError(
            f"score: {subject.label}: what a row of a batch gives depends on the other rows; expected rows of their "
            "own, or axes without N, so that items are scored one at a time"
        )
    if not subject.has_lengths or not all(output.time is None or output.follows for output in outputs):
        return scorer
    short = [item[: max(1, steps // 2)] for item in (one, other)] if takes.size("T") else [one, other]
    try:
        padded = scorer.run([_made(sample, longer, 0), *short[: 1 if rows == 2 else 2]])[1:]
    except PyrnnxError:
        return scorer
    whole = [scorer.run([item])[0] for item in short[: len(padded)]]
    return Scorer(subject, outputs, Batching.PADDED) if _same(whole, padded) else scorer


def _made(sample: AnyArray, steps: int, turned: int) -> AnyArray:
    """A sequence of that many steps of the sample, beginning at another one."""
    return np.take(sample, (np.arange(steps) + turned) % len(sample), axis=0)


def _output(
    subject: Subject,
    name: str,
    alone: Mapping[str, AnyArray],
    pair: Mapping[str, AnyArray],
    longer: Mapping[str, AnyArray],
    steps: int,
    more_steps: int,
) -> Output:
    found = np.asarray(alone[name])
    axes = subject.axes.get(name)
    rows: int | None
    if axes is not None and len(axes) == found.ndim:
        rows, time = axes.index("N"), axes.index("T") if "T" in axes else None
    else:
        time = _changed(subject, name, found, np.asarray(longer[name]))
        rows = _rows_axis(subject, name, alone, pair, time)
    kept = [axis for axis in range(found.ndim) if axis not in (rows, time)]
    follows = time is not None and found.shape[time] == steps and longer[name].shape[time] == more_steps
    return Output(name, found.dtype, rows, time, tuple(found.shape[axis] for axis in kept), follows)


def _rows_axis(
    subject: Subject, name: str, alone: Mapping[str, AnyArray], pair: Mapping[str, AnyArray], time: int | None
) -> int | None:
    takes = subject.input
    if "N" not in takes.axes:
        return None
    shape = np.shape(alone[name])
    fixed = takes.size("N")
    if fixed is None:
        axis = _changed(subject, name, np.asarray(alone[name]), np.asarray(pair[name]))
    else:
        axis = next((axis for axis, size in enumerate(shape) if size == fixed and axis != time), None)
    if axis is None or axis == time:
        raise ArgumentError(
            f"output {shown(name)} has shape {shape} for any number of rows; leave it out of outputs, a list of names"
        )
    return axis


def _changed(subject: Subject, name: str, one: AnyArray, other: AnyArray) -> int | None:
    if one.ndim != other.ndim:
        raise ArgumentError(f"output {shown(name)} has shape {one.shape} and then {other.shape}; expected one rank")
    found = [axis for axis, sizes in enumerate(zip(one.shape, other.shape, strict=True)) if sizes[0] != sizes[1]]
    if len(found) > 1:
        raise ArgumentError(
            f"output {shown(name)} has shape {one.shape} and then {other.shape}; expected one axis to change"
        )
    return found[0] if found else None


def _same(expected: Sequence[Mapping[str, AnyArray]], given: Sequence[Mapping[str, AnyArray]]) -> bool:
    return all(_close(one[name], other[name]) for one, other in zip(expected, given, strict=True) for name in one)


def _close(one: AnyArray, other: AnyArray) -> bool:
    if one.shape != other.shape:
        return False
    if one.dtype.kind in "biuOUS":
        return bool((one == other).all())
    rtol, atol = TOLERANCES.get(one.dtype.itemsize, TOLERANCES[8])
    wide = np.complex128 if one.dtype.kind == "c" else np.float64
    return np.allclose(one.astype(wide), other.astype(wide), rtol, atol, equal_nan=True)
