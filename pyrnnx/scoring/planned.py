"""The plan of a run: its items, their parts, and its manifest."""

from __future__ import annotations

import contextlib
import math
import uuid
from collections.abc import Container, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from pyrnnx import config
from pyrnnx._internal.dtypes import AnyArray
from pyrnnx._version import __version__
from pyrnnx.errors import ArgumentError, PyrnnxError, reason_of, shown
from pyrnnx.scoring.digest import digest
from pyrnnx.scoring.interface import Subject
from pyrnnx.scoring.items import Bad, Items
from pyrnnx.scoring.manifest import FORMAT, Folder, identity
from pyrnnx.scoring.outputs import Batching, Scorer
from pyrnnx.scoring.parts import SHARES, Part, boundaries
from pyrnnx.scoring.parts import part as build_part
from pyrnnx.scoring.probe import probe
from pyrnnx.scoring.sinks import Sink, check_outputs
from pyrnnx.scoring.sources.base import Source
from pyrnnx.scoring.sources.parquet import ParquetSource
from pyrnnx.scoring.sources.wav import WavSource
from pyrnnx.scoring.task import Conversion, Job

SAMPLES = 100  # items of which the first that fits the model becomes the sample
READ_HERE = 2**32  # bytes whose checksums take no longer than starting workers, a few seconds
MORE = 3  # items that are tried in a batch with the sample


class Limits(NamedTuple):
    """Limits of a run: the arguments of `score` with the same names."""

    memory: int
    batch_size: int
    skip_errors: bool
    batching: Batching = Batching.PADDED


@dataclass(frozen=True)
class Run:
    """A planned run.

    Attributes
    ----------
    job : Job
    items : Items
    starts : ndarray
        Result of `boundaries`.
    header : dict
        Initial contents of the manifest.
    """

    job: Job
    items: Items
    starts: AnyArray
    header: dict[str, Any]

    def parts(self) -> Iterator[Part]:
        """Return an iterator that builds the parts one by one."""
        return (build_part(self.items, self.starts, number) for number in range(len(self.starts) - 1))

    def looks_finished(self) -> bool:
        """Return whether all parts seem finished, and are small enough for this process to verify their checksums."""
        total = 0
        for part in self.parts():
            size = self.job.folder.looks_finished(part, self.job.identity)
            if size is None or total + size > READ_HERE:
                return False
            total += size
        return True

    def check_unchanged(self, skipped: Container[str]) -> None:
        """Raise a `PyrnnxError` if scored items have changed since they were listed."""
        source, items = self.job.source, self.items
        assert items.stamps is not None
        now_listed = source.stamps(items.places, listed=True)
        for name, before, now in zip(items.names, items.stamps.tolist(), now_listed, strict=True):
            if before != now and name not in skipped:
                raise PyrnnxError(
                    f"score: item {shown(name)}: its file has changed since it was listed, so that the results are out "
                    "of date; the same call with overwrite=True scores it again"
                )
        if not any(items.stamps) and source.fingerprint() != self.header["source"]["fingerprint"]:
            raise PyrnnxError(
                f"score: source {shown(source.path)} has changed since it was listed; the same call with "
                "overwrite=True scores it again"
            )


def planned(
    subject: Subject, source: Source, conversion: Conversion, folder: Folder, sink: Sink, limits: Limits
) -> Run:
    """List the source, try the model, and divide the items into parts.

    Raises
    ------
    PyrnnxError
        As `pyrnnx.score` raises.
    """
    items = _fitting(_listed(source, conversion, sink), conversion, subject, limits.memory)
    sample, index = _sample(source, items, conversion, subject, limits.skip_errors)
    samples = [sample, *_more_samples(source, items, conversion, subject, index, sample)]
    scorer = probe(subject, samples, _lengths_to_try(items, sample, limits.memory), limits.batching)
    check_outputs(sink, subject.label, scorer.outputs)
    items, sizes = _sized(items, scorer, sample, limits.memory)
    starts = boundaries(sizes, limits.memory, limits.batch_size if subject.pushes else 1)
    invariant = config.get_batch_invariant()
    job = Job(uuid.uuid4().hex, "", scorer, source, conversion, folder, sink.kind, *limits[:3], invariant)
    header = _header(job, items, len(starts) - 1)
    return Run(replace(job, identity=identity(header)), items, starts, header)


def _listed(source: Source, conversion: Conversion, sink: Sink) -> Items:
    """List the items, with their lengths in frames if there are frames.

    Raises
    ------
    PyrnnxError
        A source that cannot be listed, is empty, or has two items of the same name.
    """
    try:
        items = source.items()
    except OSError as error:
        raise ArgumentError(f"score: source {shown(source.path)} cannot be read ({reason_of(error)})") from error
    if not len(items):
        raise ArgumentError(f"score: source {shown(source.path)} has no items")
    items = replace(items, stamps=np.fromiter(source.stamps(items.places, listed=True), np.int64, len(items)))
    if len(set(items.names)) != len(items):
        seen: set[str] = set()
        twice = next(name for name in items.names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ArgumentError(f"score: source {shown(source.path)} has two items {shown(twice)}; expected unique names")
    if sink.kind == "parquet":
        broken = {
            i: f"its name is not Unicode, which {sink.kind} needs"
            for i, name in enumerate(items.names)
            if not _is_unicode(name)
        }
        items = replace(items, bad={**items.bad, **broken})
    if conversion.frames is not None:
        return replace(items, lengths=conversion.frames.count(items.lengths))
    return items


def _is_unicode(name: str) -> bool:
    """Return whether a name is valid Unicode; file names need not be."""
    return not any("\ud800" <= character <= "\udfff" for character in name)


def _fitting(items: Items, conversion: Conversion, subject: Subject, memory: int) -> Items:
    """Return the items, with those that alone exceed the memory marked as bad, so that they are never read."""
    takes, frames, most = subject.input, conversion.frames, memory // SHARES
    step = float(math.prod(size for size in takes.step if size is not None))
    if frames is not None:
        step = float(frames.size + frames.context)
        if step * takes.dtype.itemsize > most:
            size = int(step) * takes.dtype.itemsize
            raise ArgumentError(
                f"score: frame is {frames.size}, context {frames.context}: a frame takes {size} bytes, "
                f"{_too_much(size, memory)}"
            )
    # Floats, because headers may declare sizes beyond int64.
    counts = items.lengths * step if items.counts is None else np.maximum(items.lengths * step, items.counts)
    sizes = counts * takes.dtype.itemsize
    large = {
        index: f"it takes over {sizes[index]:.0f} bytes with its results, {_too_much(sizes[index], memory)}"
        for index in np.flatnonzero(sizes > most).tolist()
    }
    if not large:
        return items
    lengths = items.lengths.copy()
    lengths[list(large)] = 0
    return replace(items, lengths=lengths, bad={**large, **items.bad})


def _too_much(size: float, memory: int) -> str:
    """Return why an item of this size does not fit, and the memory with which it does."""
    return f"more than 1/{SHARES} of memory={memory}; expected memory={SHARES * size:.0f} or above"


def _lengths_to_try(items: Items, sample: AnyArray, memory: int) -> list[int]:
    """Return the lengths of the items that fit the memory, as far as the sample's steps show."""
    lengths = items.lengths[items.lengths > 0]
    fitting = lengths[lengths * float(max(1, sample[:1].nbytes)) <= memory // SHARES]
    return fitting.tolist() or [len(sample)]


def _sample(
    source: Source, items: Items, conversion: Conversion, subject: Subject, skip_errors: bool
) -> tuple[AnyArray, int]:
    """Return the first item that has time steps and fits the model, and its index.

    Raises
    ------
    ArgumentError
        A bad item before it, unless `skip_errors`; no such item among the first `SAMPLES`.
    """
    reason = ""
    candidates = np.flatnonzero((items.lengths > 0) | np.isin(np.arange(len(items)), list(items.bad)))
    for index in candidates[:SAMPLES].tolist():
        values = Bad(items.bad[index]) if index in items.bad else next(source.read([items.places[index]]))
        if not isinstance(values, Bad):
            try:
                return conversion.item(subject.input, values, padded=subject.has_lengths), index
            except ArgumentError as error:
                values = Bad(f"{error}{source.advice(values)}")
        reason = f"item {shown(items.names[index])}: {values.reason}"
        if not skip_errors:
            raise ArgumentError(f"score: {reason} (skip_errors=True skips it)")
    raise ArgumentError(f"score: no item fits {subject.label}: {reason or 'none has time steps'}")


def _more_samples(
    source: Source, items: Items, conversion: Conversion, subject: Subject, first: int, sample: AnyArray
) -> Iterator[AnyArray]:
    """Yield a few good items from the whole source whose steps have the sample's shape."""
    sound = np.flatnonzero(
        (items.lengths > 0) & (np.arange(len(items)) > first) & ~np.isin(np.arange(len(items)), list(items.bad))
    )
    for index in dict.fromkeys(sound[np.linspace(0, len(sound) - 1, MORE).astype(int)].tolist() if len(sound) else ()):
        values = next(source.read([items.places[index]]))
        if not isinstance(values, Bad):
            with contextlib.suppress(ArgumentError):
                item = conversion.item(subject.input, values, padded=subject.has_lengths)
                if item.shape[1:] == sample.shape[1:]:
                    yield item


def _sized(items: Items, scorer: Scorer, sample: AnyArray, memory: int) -> tuple[Items, AnyArray]:
    """Return the items, with those that exceed the memory marked as bad, and the bytes of each with its results."""
    step = int(np.prod(sample.shape[1:])) * sample.dtype.itemsize
    constant = scorer.size(0, step)
    sizes = items.lengths * (scorer.size(1, step) - constant) + constant
    sizes = np.where(items.lengths > 0, sizes, constant)
    most = memory // SHARES
    large = {
        index: f"it takes {sizes[index]} bytes with its results, {_too_much(sizes[index], memory)}"
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
            "stream": subject.pushes,
            "outputs": [[output.name, output.dtype.name, list(output.shape)] for output in scorer.outputs],
            "batches": scorer.batching.value,
            "channels": job.source.channels if isinstance(job.source, WavSource) else None,
            "rate": job.source.rate if isinstance(job.source, WavSource) else None,
            "frame": frames.size if frames else None,
            "context": frames.context if frames else 0,
            "tail": frames.tail if frames else None,
            "cast": job.conversion.cast,
            "memory": job.memory,
            "batch_size": job.batch_size,
            "batch_invariant": job.batch_invariant,
        },
        "batching": scorer.reason,
        "parts": parts,
    }
