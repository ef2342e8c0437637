"""What a run is, before it begins: which items, in which parts, and what the manifest says of it."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from pyrnnx import config
from pyrnnx._version import __version__
from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, shown
from pyrnnx.scoring.digest import digest
from pyrnnx.scoring.items import Bad, Items
from pyrnnx.scoring.manifest import FORMAT, Folder, identity
from pyrnnx.scoring.outputs import Scorer
from pyrnnx.scoring.parts import SHARES, Part, boundaries, part
from pyrnnx.scoring.probe import probe
from pyrnnx.scoring.sinks import Sink, check_outputs
from pyrnnx.scoring.sources.base import Source
from pyrnnx.scoring.sources.parquet import ParquetSource
from pyrnnx.scoring.subject import Subject
from pyrnnx.scoring.task import Conversion, Job

SAMPLES = 100  # items among which one has to fit the model


class Limits(NamedTuple):
    """Options of the same names of `score`."""

    memory: int
    batch_size: int
    skip_errors: bool


@dataclass(frozen=True)
class Run:
    """A run.

    Attributes
    ----------
    job : Job
    items : Items
    starts : ndarray
        As of `boundaries`.
    header : dict
        The manifest, as it is written first.
    """

    job: Job
    items: Items
    starts: AnyArray
    header: dict[str, Any]

    def parts(self) -> Iterator[Part]:
        """All parts, made when they are asked for."""
        return (part(self.items, self.starts, number) for number in range(len(self.starts) - 1))


def planned(
    subject: Subject, source: Source, conversion: Conversion, folder: Folder, sink: Sink, limits: Limits
) -> Run:
    """List the source, try the model, and divide the items.

    Raises
    ------
    PyrnnxError
        As of `pyrnnx.score`.
    """
    items = _fitting(_listed(source, conversion, sink), conversion, subject, limits.memory)
    sample = _sample(source, items, conversion, subject, limits.skip_errors)
    scorer = probe(subject, sample, _lengths_to_try(items, sample, limits.memory))
    check_outputs(sink, subject.label, scorer.outputs)
    items, sizes = _sized(items, scorer, sample, limits.memory)
    starts = boundaries(sizes, limits.memory)
    invariant = config.get_batch_invariant()
    job = Job(uuid.uuid4().hex, "", scorer, source, conversion, folder, sink.kind, *limits, invariant)
    header = _header(job, items, len(starts) - 1)
    return Run(replace(job, identity=identity(header)), items, starts, header)


def _listed(source: Source, conversion: Conversion, sink: Sink) -> Items:
    """The items with their lengths as the model sees them.

    Raises
    ------
    PyrnnxError
        A source that cannot be listed, is empty, or has two items of one name.
    """
    try:
        items = source.items()
    except OSError as error:
        raise ArgumentError(f"score: source {shown(source.path)} cannot be read ({error})") from error
    if not len(items):
        raise ArgumentError(f"score: source {shown(source.path)} has no items")
    if len(set(items.names)) != len(items):
        seen: set[str] = set()
        twice = next(name for name in items.names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ArgumentError(f"score: source {shown(source.path)} has two items called {shown(twice)}")
    if sink.kind == "parquet":
        broken = {
            i: f"its name is not Unicode, which {sink.kind} needs"
            for i, one in enumerate(items.names)
            if not _sound(one)
        }
        items = replace(items, bad={**items.bad, **broken})
    if conversion.frames is not None:
        return replace(items, lengths=conversion.frames.count(items.lengths))
    return items


def _sound(name: str) -> bool:
    """Whether a name is Unicode; file systems have others, too."""
    return not any("\ud800" <= one <= "\udfff" for one in name)


def _fitting(items: Items, conversion: Conversion, subject: Subject, memory: int) -> Items:
    """The items, of which those that exceed the memory by themselves are bad ones now, and are never read."""
    takes, frames, most = subject.input, conversion.frames, memory // SHARES
    step = float(math.prod(size for size in takes.step if size is not None))
    if frames is not None:
        step = float(frames.size + frames.context)
        if step * takes.dtype.itemsize > most:
            size = int(step) * takes.dtype.itemsize
            raise ArgumentError(
                f"score: frame is {frames.size}, context {frames.context}: a frame takes {size} bytes; "
                f"memory={memory} allows {most}"
            )
    # As floats: heads may say anything, and what no int64 holds is too large, too.
    counts = items.lengths * step if items.counts is None else np.maximum(items.lengths * step, items.counts)
    sizes = counts * takes.dtype.itemsize
    large = {
        index: f"it takes over {sizes[index]:.0f} bytes with its results; memory={memory} allows {most}"
        for index in np.flatnonzero(sizes > most).tolist()
    }
    if not large:
        return items
    lengths = items.lengths.copy()
    lengths[list(large)] = 0
    return replace(items, lengths=lengths, bad={**large, **items.bad})


def _lengths_to_try(items: Items, sample: AnyArray, memory: int) -> list[int]:
    """Of items that would fit the memory if their steps were as large as the sample's."""
    lengths = items.lengths[items.lengths > 0]
    fitting = lengths[lengths * float(max(1, sample[:1].nbytes)) <= memory // SHARES]
    return fitting.tolist() or [len(sample)]


def _sample(source: Source, items: Items, conversion: Conversion, subject: Subject, skip_errors: bool) -> AnyArray:
    """The first item that has time steps and fits the model.

    Raises
    ------
    ArgumentError
        A bad one before, unless those are skipped; none among the first ones.
    """
    reason = ""
    for index in np.flatnonzero((items.lengths > 0) | np.isin(np.arange(len(items)), list(items.bad)))[
        :SAMPLES
    ].tolist():
        values = Bad(items.bad[index]) if index in items.bad else next(source.read([items.places[index]]))
        if not isinstance(values, Bad):
            try:
                return conversion.item(subject.input, values, padded=subject.has_lengths)
            except ArgumentError as error:
                values = Bad(str(error))
        reason = f"item {shown(items.names[index])}: {values.reason}"
        if not skip_errors:
            raise ArgumentError(f"score: {reason} (skip_errors=True skips such)")
    raise ArgumentError(f"score: no item fits {subject.label}: {reason or 'none has time steps'}")


def _sized(items: Items, scorer: Scorer, sample: AnyArray, memory: int) -> tuple[Items, AnyArray]:
    """The items, of which those that exceed the memory are bad ones now; and the bytes of each with its results."""
    step = int(np.prod(sample.shape[1:])) * sample.dtype.itemsize
    constant = scorer.size(0, step)
    sizes = items.lengths * (scorer.size(1, step) - constant) + constant
    sizes = np.where(items.lengths > 0, sizes, constant)
    most = memory // SHARES
    large = {
        index: f"it takes {sizes[index]} bytes with its results; memory={memory} allows {most}"
        for index in np.flatnonzero(sizes > most).tolist()
    }
    if len(large) == len(items):
        raise ArgumentError(f"score: item {shown(items.names[0])}: {large[0]}")
    sizes[list(large)] = 0
    return replace(items, bad={**large, **items.bad}), sizes


def _header(job: Job, items: Items, parts: int) -> dict[str, Any]:
    subject, scorer, frames = job.scorer.subject, job.scorer, job.conversion.frames
    return {
        "format": FORMAT,
        "pyrnnx": __version__,
        "run": job.run,
        "model": {"sha256": digest(subject.what, leave_out=subject.label)},
        "source": {
            "path": job.source.path,
            "format": job.source.kind,
            "column": job.source.column if isinstance(job.source, ParquetSource) else None,
            "items": len(items),
            "fingerprint": job.source.fingerprint(),
        },
        "options": {
            "sink_format": job.sink,
            "input": subject.input.name,
            "axes": subject.input.axes,
            "lengths": subject.lengths,
            "outputs": [[one.name, one.dtype.name, list(one.shape)] for one in scorer.outputs],
            "batches": scorer.batching.value,
            "frame": frames.size if frames else None,
            "context": frames.context if frames else 0,
            "cast": job.conversion.cast,
            "memory": job.memory,
            "batch_size": job.batch_size,
            "batch_invariant": job.batch_invariant,
        },
        "parts": parts,
    }
