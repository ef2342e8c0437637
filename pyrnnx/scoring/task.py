"""The scoring of one part, in this process or in a worker: read, compute, write."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyrnnx import config
from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, PyrnnxError, printable, reason_of, shown
from pyrnnx.scoring.conversion import Conversion
from pyrnnx.scoring.manifest import Folder, part_identity
from pyrnnx.scoring.segments import Segments
from pyrnnx.scoring.sinks import SINKS, arrays_of
from pyrnnx.scoring.sources.base import Bad, completed
from pyrnnx.scoring.subjects.outputs import Scorer

Results = dict[str, AnyArray]
SHARES = 3  # shares of the memory: items and results; copies of results while they are written; a padded batch
BATCH = 2**23  # bytes of a padded batch and its results; items of a 39 MB batch took 1.6 times as long as of 5 to 10 MB
_COMPUTES = threading.Lock()  # all parts of a process share one thread pool; they read and write without the lock


@dataclass(frozen=True)
class Part:
    """Consecutive items of a source, which are scored and written as a whole."""

    number: int
    first: int  # index of the first item
    names: tuple[str, ...]  # as in `Items`
    places: tuple[Any, ...]
    lengths: tuple[int, ...]
    bad: dict[int, str]  # as in `Items`, but by the index within the part


@dataclass(frozen=True)
class Job:
    """Everything that the parts of a run have in common; sent once to each worker."""

    run: str  # unique name of the run, as in the manifest
    identity: str  # checksum that runs share if they can reuse each other's parts
    scorer: Scorer
    conversion: Conversion
    folder: Folder
    sink: str
    memory: int
    skip_errors: bool
    batch_invariant: bool
    segments: Segments | None

    def batches(self, lengths: Sequence[int], step: int) -> Iterator[list[int]]:
        """Yield batches of items of similar length as indices, the longest first; a time step has `step` bytes."""
        scorer, subject = self.scorer, self.scorer.subject
        most = self.memory // SHARES if subject.pushes else min(self.memory // SHARES, BATCH)
        batch: list[int] = []
        for index in sorted(range(len(lengths)), key=lambda index: (-lengths[index], index)):
            if batch:
                longest = lengths[batch[0]]
                full = len(batch) == scorer.rows or (len(batch) + 1) * scorer.size(longest, step) > most
                if full or (not subject.mixes_lengths and lengths[index] != longest):
                    yield batch
                    batch = []
            batch.append(index)
        if batch:
            yield batch

    def check(self, name: str, item: Any) -> None:
        if isinstance(item, Bad) and not self.skip_errors:
            raise ArgumentError(f"score: item {shown(name)}: {printable(item.reason)} (skip_errors=True skips it)")


def score_part(job: Job, part: Part) -> dict[str, Any]:
    """Score a part, and return its record, perhaps of an earlier run that had finished it."""
    job.folder.check_run(job.run)
    record = job.folder.finished(part, job.identity)
    if record is not None:
        bad = {part.names[i] for i in part.bad} if job.skip_errors else set()
        # Its own record: a worker died before it reported. Items skipped for other reasons may be readable now.
        if record["run"] == job.run or record["skipped"].keys() <= bad:
            return record
    started = time.perf_counter()
    items, counts = _read(job, part)
    read = time.perf_counter()
    with _COMPUTES:
        waited = time.perf_counter()
        results = _computed(job, part, items)
    computed = time.perf_counter()
    del items
    try:
        record = job.folder.finished(part, job.identity)
        if record is not None and record["run"] == job.run:  # this process was cut off or stopped meanwhile
            return record
        record = _written(job, part, results, counts)
        times = {"read": read - started, "compute": computed - waited, "write": time.perf_counter() - computed}
        job.folder.finish({**record, "seconds": times, "engine": config.ISA})
    except OSError as error:
        path = os.fspath(job.folder.part(part.number))
        raise ArgumentError(
            f"score: part {part.number} cannot be written to {shown(path)} ({reason_of(error)}); "
            "finished parts stay valid, and the same call scores the others"
        ) from error
    return record


def _read(job: Job, part: Part) -> tuple[list[AnyArray | Bad], list[int]]:
    """Return the checked items of a part, and the lengths that they had before they were cut into frames."""
    items, counts = [], []
    places = [place for i, place in enumerate(part.places) if i not in part.bad]
    values = completed(job.conversion.source.read(places), len(places))
    for i, (name, length) in enumerate(zip(part.names, part.lengths, strict=True)):
        value = Bad(part.bad[i]) if i in part.bad else next(values)
        item = job.conversion.item(value)
        if not isinstance(item, Bad) and len(item) != length:
            item = Bad(f"it has {len(item)} time steps; expected {length}, as when it was listed")
        job.check(name, item)
        items.append(item)
        counts.append(0 if isinstance(item, Bad) or isinstance(value, Bad) else len(value))
    return items, counts


def _computed(job: Job, part: Part, items: list[AnyArray | Bad]) -> list[Results | Bad]:
    """Return the results of all items; remove items from the list when they are done, to free their memory."""
    results: list[Results | Bad] = [item if isinstance(item, Bad) else Bad("") for item in items]
    good = [i for i, item in enumerate(items) if not isinstance(item, Bad)]
    step = max((item[:1].nbytes for item in items if not isinstance(item, Bad)), default=0)
    for batch in job.batches([part.lengths[i] for i in good], step):
        chosen = [good[place] for place in batch]
        for i, result in zip(chosen, _scored(job.scorer, [items[i] for i in chosen]), strict=True):
            results[i], items[i] = result, Bad("")
            job.check(part.names[i], result)
    return results


def _scored(scorer: Scorer, items: Sequence[Any]) -> list[Results | Bad]:
    """Return the results of a batch; if the model rejects it, run its items alone to find the bad ones."""
    try:
        return list(scorer.run(items))
    except PyrnnxError as error:
        if len(items) == 1:
            return [Bad(str(error))]
    return [result for item in items for result in _scored(scorer, [item])]


def _written(job: Job, part: Part, results: Sequence[Results | Bad], counts: Sequence[int]) -> dict[str, Any]:
    """Write the results, and return the record of the part."""
    good = {i: result for i, result in enumerate(results) if not isinstance(result, Bad)}
    names = [part.names[i] for i in good]
    lines = ""
    if rule := job.segments:
        lines = "".join(rule.lines(part.names[i], result[rule.output], counts[i]) for i, result in good.items())
    arrays = arrays_of(names, [part.first + i for i in good], list(good.values()), job.scorer.outputs)
    return {
        "part": part.number,
        "first": part.first,
        "run": job.run,
        "identity": part_identity(job.identity, part),
        "items": len(good),
        "skipped": {part.names[i]: result.reason for i, result in enumerate(results) if isinstance(result, Bad)},
        **job.folder.write_part(part.number, job.run, lambda temporary: SINKS[job.sink].write(temporary, arrays)),
        "segments": lines,
    }
