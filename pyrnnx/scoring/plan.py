"""The plan of a run: its items, their parts, and its manifest."""

from __future__ import annotations

import hashlib
import io
import math
import os
import pickle
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from pyrnnx import config
from pyrnnx._internal.dtypes import AnyArray
from pyrnnx._version import __version__
from pyrnnx.errors import ArgumentError, PyrnnxError, reason_of, shown
from pyrnnx.scoring.conversion import Conversion
from pyrnnx.scoring.manifest import FORMAT, Folder, identity
from pyrnnx.scoring.segments import segments_of
from pyrnnx.scoring.sinks import Sink, check_outputs
from pyrnnx.scoring.sources.base import Bad, Items, completed
from pyrnnx.scoring.subjects.outputs import Scorer, check_batch, scorer_of
from pyrnnx.scoring.task import SHARES, Job, Part

SAMPLES = 100  # items of which the first that fits the model becomes the sample
MOST_ITEMS = 100_000  # items of a part at most, because names need memory, too
PARTS = 32  # parts at least, unless they would be small, so that many workers are busy
SMALL = 2**23  # bytes of items and results: the overhead of smaller parts does not pay
LEAST = 256  # bytes of an item at least, with its name and its objects


@dataclass(frozen=True)
class Run:
    """A planned run."""

    job: Job
    items: Items
    starts: AnyArray  # result of `boundaries`
    versions: dict[str, str | None]  # of the source's files when they were listed
    header: dict[str, Any]  # initial contents of the manifest

    def parts(self) -> Iterator[Part]:
        items = self.items
        for number, (start, end) in enumerate(pairwise(self.starts.tolist())):
            bad = {index - start: items.bad[index] for index in range(start, end) if index in items.bad}
            names, places, lengths = (tuple(values[start:end]) for values in (items.names, items.places, items.lengths))
            yield Part(number, start, names, places, tuple(map(int, lengths)), bad)

    def looks_finished(self) -> bool:
        """Return whether all parts have records: this process verifies them faster than it starts workers."""
        return all(self.job.folder.done(number).exists() for number in range(len(self.starts) - 1))

    def check_unchanged(self) -> None:
        """Raise a `PyrnnxError` if files have changed since they were listed; one that is gone cannot be read."""
        for file, version in self.job.conversion.source.versions().items():
            if self.versions.get(file, version) != version:
                raise PyrnnxError(
                    f"score: file {shown(file)} has changed since it was listed, so that the results are out of date; "
                    "the same call with overwrite=True (--overwrite) scores it again"
                )

    def check_first_batch(self, step: int) -> None:
        """Raise an `ArgumentError` if the items of the first batch have other results alone; `step` is in bytes."""
        subject, conversion = self.job.scorer.subject, self.job.conversion
        if self.job.scorer.rows == 1 or subject.is_trusted:
            return
        items, lengths = self.items, self.items.lengths.tolist()
        good = [i for i, length in enumerate(lengths) if length > 0 and i not in items.bad]
        unequal = list({lengths[i]: i for i in reversed(good)}.values())
        if subject.mixes_lengths and len(unequal) > 1:  # padding shows only in a batch of different lengths
            good = sorted(unequal)
        batches = self.job.batches([lengths[i] for i in good], step)
        batch = sorted(good[place] for place in next((batch for batch in batches if len(batch) > 1), []))
        values = completed(conversion.source.read([items.places[i] for i in batch]), len(batch))
        read = zip([items.names[i] for i in batch], map(conversion.item, values), strict=True)
        named = [(name, item) for name, item in read if not isinstance(item, Bad)]
        if len(named) > 1:
            named.sort(key=lambda pair: -len(pair[1]))  # stable
            check_batch(self.job.scorer, *zip(*named, strict=True))


def planned(
    conversion: Conversion,
    folder: Folder,
    sink: Sink,
    memory: int,
    batch: int | None,
    skip_errors: bool,
    segments: Any,
) -> Run:
    subject = conversion.subject
    rows = subject.rows(batch)
    items = _listed(conversion)
    versions = conversion.source.versions()
    sizes = _input_sizes(items, conversion)
    sample = _sample(items, sizes, conversion, memory, skip_errors)
    step = sample[:1].nbytes
    lengths = [length for length in items.lengths.tolist() if 0 < length * step <= memory // SHARES] or [len(sample)]
    scorer = scorer_of(subject, rows, sample, int(np.median(lengths)))
    check_outputs(sink, subject.label, scorer.outputs)
    rule = segments_of(segments, conversion.source, conversion.frames, subject.label, scorer.outputs)
    items, sizes = _fitting(items, sizes, scorer, step, memory)
    starts = boundaries(sizes, memory, rows if subject.pushes else 1)
    invariant = config.get_batch_invariant()
    job = Job(uuid.uuid4().hex, "", scorer, conversion, folder, sink.kind, memory, skip_errors, invariant, rule)
    header = _header(job, items, versions, len(starts) - 1)
    run = Run(replace(job, identity=identity(header)), items, starts, versions, header)
    run.check_first_batch(step)
    return run


def _listed(conversion: Conversion) -> Items:
    source = conversion.source
    try:
        items = source.items()
    except OSError as error:
        raise ArgumentError(f"score: source {shown(source.path)} cannot be read ({reason_of(error)})") from error
    if not len(items):
        raise ArgumentError(f"score: source {shown(source.path)} has no items")
    if len(set(items.names)) != len(items):
        twice = Counter(items.names).most_common(1)[0][0]
        raise ArgumentError(f"score: source {shown(source.path)} has two items {shown(twice)}; expected unique names")
    if conversion.frames is not None:
        return replace(items, lengths=conversion.frames.count(items.lengths))
    return items


def _input_sizes(items: Items, conversion: Conversion) -> AnyArray:
    """Return the bytes of each item without its results, as floats: headers may declare sizes beyond int64."""
    takes, frames = conversion.subject.input, conversion.frames
    step = float(math.prod(size for size in takes.step if size is not None))
    if frames is not None:
        step = float(frames.size + frames.context)
    return np.maximum(items.lengths * step, items.counts) * takes.dtype.itemsize


def _too_much(size: float, memory: int) -> str:
    return f"more than 1/{SHARES} of memory={memory}; expected memory={SHARES * size:.0f} or above"


def _sample(items: Items, sizes: AnyArray, conversion: Conversion, memory: int, skip_errors: bool) -> AnyArray:
    """Return the first item that has time steps and fits the model."""
    reason = ""
    candidates = [index for index, length in enumerate(items.lengths.tolist()) if length > 0 or index in items.bad]
    for index in candidates[:SAMPLES]:
        if index in items.bad:
            values: AnyArray | Bad = Bad(items.bad[index])
        elif sizes[index] > memory // SHARES:
            values = Bad(f"it takes over {sizes[index]:.0f} bytes with its results, {_too_much(sizes[index], memory)}")
        else:
            values = next(completed(conversion.source.read([items.places[index]]), 1))
        item = conversion.item(values)
        if not isinstance(item, Bad):
            return item
        reason = f"item {shown(items.names[index])}: {item.reason}"
        if not skip_errors:
            raise ArgumentError(f"score: {reason} (skip_errors=True skips it)")
    raise ArgumentError(f"score: no item fits {conversion.subject.label}: {reason or 'none has time steps'}")


def _fitting(items: Items, sizes: AnyArray, scorer: Scorer, step: int, memory: int) -> tuple[Items, AnyArray]:
    """Return the items, with those that exceed the memory marked as bad, and the bytes of each with its results."""
    constant = scorer.size(0, step)
    sizes = np.maximum(sizes, items.lengths * float(scorer.size(1, step) - constant) + constant)
    large = np.flatnonzero(sizes > memory // SHARES).tolist()
    over = {
        index: f"it takes {sizes[index]:.0f} bytes with its results, {_too_much(sizes[index], memory)}"
        for index in large
    }
    items = replace(items, lengths=items.lengths.copy(), bad={**over, **items.bad})
    items.lengths[large] = sizes[large] = 0
    if len(items.bad) == len(items):
        raise ArgumentError(f"score: item {shown(items.names[0])}: {items.bad[0]}")
    return items, sizes.astype(np.int64)


def boundaries(sizes: AnyArray, memory: int, least: int = 1) -> AnyArray:
    """Return the indices at which parts begin, and the end.

    `sizes` are the bytes of each item and its results. A part has at least `least` items as far as the memory allows,
    and at least one in any case.
    """
    ends = np.cumsum(np.maximum(sizes, LEAST), dtype=np.int64)
    most = min(memory // SHARES, max(SMALL, int(ends[-1]) // PARTS)) if len(ends) else 0
    starts = [0]
    while starts[-1] < len(ends):
        start = starts[-1]
        before = int(ends[start - 1]) if start else 0
        end = int(np.searchsorted(ends, before + most, side="right"))
        if end < start + least:
            end = min(start + least, int(np.searchsorted(ends, before + memory // SHARES, side="right")))
        starts.append(min(max(end, start + 1), start + MOST_ITEMS))
    return np.array(starts, np.int64)


def _header(job: Job, items: Items, versions: Mapping[str, str | None], parts: int) -> dict[str, Any]:
    scorer, conversion = job.scorer, job.conversion
    subject, source, frames = conversion.subject, conversion.source, conversion.frames
    files = [(os.path.relpath(path, source.path), version) for path, version in versions.items()]
    return {
        "format": FORMAT,
        "pyrnnx": __version__,
        "run": job.run,
        "model": {"sha256": digest(subject.what, leave_out=subject.label)},
        "source": {
            "path": source.path,
            "format": source.kind,
            "items": len(items),
            "hidden": source.hidden,
            "fingerprint": digest(files),
        },
        "options": {
            "sink_format": job.sink,
            "input": subject.input.name,
            "axes": subject.input.axes,
            "lengths": subject.lengths,
            "stream": subject.pushes,
            "outputs": [[output.name, output.dtype.name, list(output.shape)] for output in scorer.outputs],
            **source.options,
            "frame": frames.size if frames else None,
            "context": frames.context if frames else 0,
            "tail": frames.tail if frames else None,
            "cast": conversion.cast,
            "memory": job.memory,
            "batch": scorer.rows,
            "batch_invariant": job.batch_invariant,
            "segments": job.segments and job.segments.threshold,
        },
        "parts": parts,
    }


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, leave_out: str) -> None:
        super().__init__(file, protocol=4)
        self.fast = True  # no memo: bytes do not depend on which equal parts are the same object
        self._leave_out = leave_out

    def persistent_id(self, value: Any) -> Any:
        if isinstance(value, str) and value == self._leave_out:
            return ""
        if isinstance(value, (set, frozenset)):  # their order depends on the process
            return sorted(digest(item, self._leave_out) for item in value)
        return None


def digest(value: Any, leave_out: str = "") -> str:
    """Return the SHA-256 of a value's pickle without texts equal to `leave_out`."""
    file = io.BytesIO()
    _Pickler(file, leave_out).dump(value)
    return hashlib.sha256(file.getbuffer()).hexdigest()
