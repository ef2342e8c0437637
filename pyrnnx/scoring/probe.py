"""Trial calls of a model: they show the axes of its outputs and check which items may share a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, PyrnnxError, shown
from pyrnnx.scoring.interface import Subject
from pyrnnx.scoring.outputs import Batching, Output, Scorer, call
from pyrnnx.scoring.parts import BATCH
from pyrnnx.scoring.proof import Proof

# Differences of a row between batches: products of another shape sum in another order. Tolerances can be generous,
# because a result that depends on padding or other rows differs by as much as its own size.
TOLERANCES = {2: (3e-2, 3e-2), 4: (1e-3, 1e-3), 8: (1e-6, 1e-6)}  # by itemsize: rtol, atol
NOISE = 1e-3  # of a change of other rows that is none
PUSHES = 16  # of a trial sequence: later pushes have the same shapes
SCALE = 30  # factor of trial items that are larger than real ones


def probe(subject: Subject, samples: Sequence[AnyArray], lengths: Sequence[int], most: Batching) -> Scorer:
    """Call a model with a few batches of real items to find its outputs' axes, and to check what its graph proves.

    Parameters
    ----------
    subject : Subject
    samples : sequence of ndarray
        Items [T, ...], T above 0, of which the first fits the model.
    lengths : sequence of int
        Lengths of the items that will be scored.
    most : Batching
        Most permissive batching that the caller allows.

    Raises
    ------
    ArgumentError
        A model that fails with these items; rows that depend on each other in a model with a fixed number of rows;
        outputs without an axis of rows.
    """
    positive = np.array([length for length in lengths if length > 0])
    if subject.pushes:
        positive = np.minimum(positive, PUSHES)
    fixed = subject.input.size("T")
    # The median first: a model with strides may leave no time steps of a short sequence.
    tried = [fixed] if fixed else sorted({int(positive.min()), int(np.median(positive))}, reverse=True)
    proof = subject.proof() if "N" in subject.input.axes and subject.input.size("N") != 1 else Proof()
    failure: PyrnnxError | None = None
    for steps in tried:
        try:
            outputs = _outputs(subject, samples[0], steps, proof)
        except PyrnnxError as error:
            failure = error
            continue
        return _chosen(subject, outputs, proof, samples, steps, most)
    raise ArgumentError(
        f"score: {subject.label} fails with sequences of {tried[-1]} steps of the first item: {failure}"
    )


def _outputs(subject: Subject, sample: AnyArray, steps: int, proof: Proof) -> tuple[Output, ...]:
    takes = subject.input
    longer = steps if takes.size("T") else 2 * steps
    sequence, shifted = _sequence(sample, steps, 0), _sequence(sample, steps, 1)
    alone = call(subject, [sequence])
    at_length = alone if longer == steps else call(subject, [_sequence(sample, longer, 0)])
    if "N" not in takes.axes or takes.size("N") == 1:
        others = []
    elif takes.size("N") is None:
        others = [call(subject, [sequence, shifted])]
    else:
        a, b, c = _different(sample, steps)
        others = [call(subject, rows) for rows in ([a, b], [c, b], [a, c])]
    return tuple(_output(subject, name, alone, others, at_length, steps, longer, proof) for name in alone)


def _different(sample: AnyArray, steps: int) -> list[AnyArray]:
    """Return three sequences that differ everywhere, or are as different as integers of the sample can be."""
    if sample.dtype.kind != "f":
        return [_sequence(sample, steps, start) for start in range(3)]
    shape = 3, steps, *sample.shape[1:]
    return list(np.random.default_rng(0).normal(size=shape).astype(sample.dtype))


def _sequences(samples: Sequence[AnyArray], lengths: Sequence[int]) -> list[AnyArray]:
    """Return trial sequences, from real, negated and scaled items, of these lengths in turn.

    They are fewer if they are long, but three at least: items that fit the memory once need not fit it many times.
    """
    items = [samples[0], samples[-1]]
    if items[0].dtype.kind == "f":
        large = [sample * sample.dtype.type(SCALE) for sample in samples[:2]]
        items = [samples[0], -samples[-1], *large, *(-sample for sample in samples[:-1])]
    items += [*samples[1:], samples[0]]
    size = max(lengths) * max(1, samples[0][:1].nbytes)
    items = items[: max(3, BATCH // size)]
    return [_sequence(item, lengths[i % len(lengths)], i) for i, item in enumerate(items)]


def _chosen(
    subject: Subject,
    outputs: tuple[Output, ...],
    proof: Proof,
    samples: Sequence[AnyArray],
    steps: int,
    most: Batching,
) -> Scorer:
    """Return the most permissive batching that the graph proves, the caller allows and trial calls confirm."""
    alone = Scorer(subject, outputs, Batching.ALONE)
    why = _why_alone(alone, proof, _sequences(samples, [steps]), most)
    if why:
        return replace(alone, reason=why)
    equal = replace(alone, batching=Batching.EQUAL)
    fewer = [steps, max(1, steps // 2), 1] if subject.input.size("T") else [2 * steps, steps, max(1, steps // 2)]
    why = _why_equal(equal, proof, _sequences(samples, fewer), most)
    if why:
        return replace(equal, reason=f"rows are independent; {why}")
    return replace(alone, batching=Batching.PADDED, reason="rows are independent, and padding does not change results")


def _why_alone(scorer: Scorer, proof: Proof, sequences: Sequence[AnyArray], most: Batching) -> str:
    """Return why items cannot share a call; "" if they can.

    Raises
    ------
    ArgumentError
        The model has a fixed number of rows, and they depend on each other.
    """
    takes, label = scorer.subject.input, scorer.subject.label
    rows = takes.size("N")
    if "N" not in takes.axes or rows == 1:
        one_row = scorer.subject.why_one_row or "the model has one row"
        return one_row if rows == 1 else "the model has no axis of rows"
    agrees = (rows is None and most is Batching.ALONE) or _agrees(scorer, sequences)
    if rows is not None and not agrees:
        raise ArgumentError(
            f"score: {label}: in trial calls the results of a row depend on other rows, and each call has {rows} "
            "rows; expected independent rows, any number of rows, or axes without N"
        )
    if most is Batching.ALONE:
        return "batching is 'none'"
    if proof.rows:
        return f"rows may depend on each other: {proof.rows}"
    return "" if agrees else "a probe found that rows depend on each other"


def _why_equal(scorer: Scorer, proof: Proof, sequences: Sequence[AnyArray], most: Batching) -> str:
    """Return why items of different lengths cannot share a call; "" if they can."""
    if most is Batching.EQUAL:
        return "batching is 'equal'"
    if not scorer.subject.has_lengths:
        return "the model takes no lengths"
    if proof.padding:
        return f"padding may change results: {proof.padding}"
    for output in scorer.outputs:
        proven = proof.axes.get(output.name, (output.rows, output.time))
        if output.time is not None and (not output.follows or proven != (output.rows, output.time)):
            return f"padding may change results: output {shown(output.name)} has other time steps than the items"
    return "" if _agrees(scorer, sequences) else "a probe found that padding changes results"


def _agrees(scorer: Scorer, sequences: Sequence[AnyArray]) -> bool:
    """Return whether a batch of the sequences succeeds and has the results of each sequence alone."""
    rows = scorer.subject.input.size("N") or len(sequences)
    try:
        for start in range(0, len(sequences), rows):
            batch = sequences[start : start + rows]
            if not _same([scorer.run([sequence])[0] for sequence in batch], scorer.run(batch)):
                return False
    except PyrnnxError:
        return False
    return True


def _sequence(sample: AnyArray, steps: int, start: int) -> AnyArray:
    """Return a sequence of `steps` steps of the sample, from step `start` on, repeated if necessary."""
    return np.take(sample, (np.arange(steps) + start) % len(sample), axis=0)


def _output(
    subject: Subject,
    name: str,
    alone: Mapping[str, AnyArray],
    others: Sequence[Mapping[str, AnyArray]],
    longer: Mapping[str, AnyArray],
    steps: int,
    more_steps: int,
    proof: Proof,
) -> Output:
    array = np.asarray(alone[name])
    axes = subject.axes.get(name)
    rows, time = proof.axes.get(name, (None, None))
    if rows is None and axes is not None and len(axes) == array.ndim:
        rows, time = axes.index("N"), axes.index("T") if "T" in axes else None
    else:
        time = time if time is not None else _changed_axis(name, array, np.asarray(longer[name]))
        rows = rows if rows is not None else _rows_axis(subject, name, alone, others, time)
    shape = tuple(size for axis, size in enumerate(array.shape) if axis not in (rows, time))
    follows = time is not None and array.shape[time] == steps and longer[name].shape[time] == more_steps
    return Output(name, array.dtype, rows, time, shape, follows)


def _rows_axis(
    subject: Subject,
    name: str,
    alone: Mapping[str, AnyArray],
    others: Sequence[Mapping[str, AnyArray]],
    time: int | None,
) -> int | None:
    takes = subject.input
    if "N" not in takes.axes:
        return None
    shape = np.shape(alone[name])
    fixed = takes.size("N")
    if fixed is None:
        axis = _changed_axis(name, np.asarray(alone[name]), np.asarray(others[0][name]))
    else:
        axes = [axis for axis, size in enumerate(shape) if size == fixed and axis != time]
        if len(axes) > 1 and fixed > 1:  # such as two directions
            axis = _axis_of_changes(name, axes, *(np.asarray(trial[name]) for trial in others))
        else:
            axis = axes[0] if axes else None
    if axis is None or axis == time:
        raise ArgumentError(
            f"output {shown(name)} has shape {shape} for any number of rows; expected an axis of rows: leave it out of "
            "outputs, a list of names"
        )
    return axis


def _axis_of_changes(name: str, axes: Sequence[int], a: AnyArray, b: AnyArray, c: AnyArray) -> int:
    """Return the axis along which b differs from a at index 0 alone, and c at other indices alone.

    Raises
    ------
    ArgumentError
        There is none, or several.
    """
    first, others = _change(a, b), _change(a, c)
    rows = [
        axis
        for axis in axes
        if np.delete(first, 0, axis).max(initial=0) <= NOISE * first.max(initial=0) > 0
        and others.take(0, axis).max(initial=0) <= NOISE * others.max(initial=0) > 0
    ]
    if len(rows) != 1:
        raise ArgumentError(
            f"the rows of output {shown(name)} cannot be told from other axes of {a.shape[axes[0]]} elements; expected "
            "rows that do not depend on each other, or leave it out of outputs, a list of names"
        )
    return rows[0]


def _change(a: AnyArray, b: AnyArray) -> AnyArray:
    """Return the absolute differences; 0 and 1 for text."""
    if a.dtype.kind in "OUS":
        return np.asarray(a != b, np.float64)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.abs(b.astype(np.complex128) - a))


def _changed_axis(name: str, a: AnyArray, b: AnyArray) -> int | None:
    """Return the axis along which the shapes of two results of an output differ, or None if they are the same."""
    if a.ndim != b.ndim:
        raise ArgumentError(f"output {shown(name)} has shape {a.shape} and then {b.shape}; expected one rank")
    axes = [axis for axis, sizes in enumerate(zip(a.shape, b.shape, strict=True)) if sizes[0] != sizes[1]]
    if len(axes) > 1:
        raise ArgumentError(f"output {shown(name)} has shape {a.shape} and then {b.shape}; expected one axis to change")
    return axes[0] if axes else None


def _same(expected: Sequence[Mapping[str, AnyArray]], results: Sequence[Mapping[str, AnyArray]]) -> bool:
    return all(_close(a[name], b[name]) for a, b in zip(expected, results, strict=True) for name in a)


def _close(a: AnyArray, b: AnyArray) -> bool:
    if a.shape != b.shape:
        return False
    if a.dtype.kind in "biuOUS":
        return bool((a == b).all())
    rtol, atol = TOLERANCES.get(a.dtype.itemsize, TOLERANCES[8])
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    a, b = a.astype(wide), b.astype(wide)
    size = np.abs(a).max(initial=0, where=np.isfinite(a))
    return np.allclose(a, b, rtol, atol * min(1, size), equal_nan=True)
