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
from pyrnnx.scoring.parts import BATCH, SHARES, Part, batches
from pyrnnx.scoring.sinks import SINKS, arrays_of, durable
from pyrnnx.scoring.sources.base import Source
from pyrnnx.scoring.sources.items import Bad
from pyrnnx.scoring.subjects.interface import Subject
from pyrnnx.scoring.subjects.outputs import Scorer

_COMPUTES = threading.Lock()  # all parts of a process share one thread pool; they read and write without the lock


@dataclass(frozen=True)
class Job:
    """Everything that the parts of a run have in common; sent once to each worker."""

    run: str  # unique name of the run, as in the manifest
    identity: str  # checksum that runs share if they can reuse each other's parts
    scorer: Scorer
    source: Source
    conversion: Conversion
    folder: Folder
    sink: str
    memory: int
    skip_errors: bool
    batch_invariant: bool

    def item(self, values: AnyArray | Bad) -> AnyArray | Bad:
        """Return the values of an item as the input takes them, or why it does not."""
        subject = self.scorer.subject
        return converted(self.conversion, subject, self.source, values)

    def batches(self, lengths: Sequence[int], step: int) -> Iterator[list[int]]:
        """Yield the batches of items of these lengths, with steps of `step` bytes, as indices."""
        scorer, most = self.scorer, self.memory // SHARES
        return batches(
            lengths,
            rows=scorer.rows,
            most=most if scorer.subject.pushes else min(most, BATCH),
            mixes_lengths=scorer.subject.mixes_lengths,
            row_size=lambda length: scorer.size(length, step),
        )


def converted(conversion: Conversion, subject: Subject, source: Source, values: AnyArray | Bad) -> AnyArray | Bad:
    """Return the values of an item as a subject takes them; a `Bad` if it cannot."""
    if isinstance(values, Bad):
        return values
    try:
        return conversion.item(subject.input, values, padded=subject.mixes_lengths)
    except ArgumentError as error:
        return Bad(f"{error}{source.advice(values)}")


def score_part(job: Job, part: Part) -> tuple[dict[str, Any], bool]:
    """Score a part, and return its record and whether an earlier run had finished it."""
    job.folder.check_run(job.run)
    record = job.folder.finished(part, job.identity)
    if record is not None:
        if record["run"] == job.run:  # written by a worker that died before it reported
            return record, False
        bad = {part.names[i] for i in part.bad} if job.skip_errors else set()
        if record["skipped"].keys() <= bad:  # items skipped for other reasons may be readable now
            return record, True
    started = time.perf_counter()
    items = _read(job, part)
    read = time.perf_counter()
    with _COMPUTES:
        waited = time.perf_counter()
        results = _computed(job, part, items)
    computed = time.perf_counter()
    skipped = {part.names[i]: result.reason for i, result in enumerate(results) if isinstance(result, Bad)}
    scored = [(i, result) for i, result in enumerate(results) if not isinstance(result, Bad)]
    del items, results
    names, indices = [part.names[i] for i, _ in scored], [part.first + i for i, _ in scored]
    arrays = arrays_of(names, indices, [result for _, result in scored], job.scorer.outputs)
    path = job.folder.part(part.number)
    try:
        record = job.folder.finished(part, job.identity)
        if record is not None and record["run"] == job.run:  # this process was cut off or stopped meanwhile
            return record, False
        sink = SINKS[job.sink]
        checksum = job.folder.write_part(part.number, job.run, lambda temporary: sink.write(temporary, arrays))
        record = {
            "part": part.number,
            "first": part.first,
            "run": job.run,
            "identity": part_identity(job.identity, part),
            "items": len(scored),
            "skipped": skipped,
            "sha256": checksum,
            "bytes": durable.size(path),
            "seconds": {
                "read": read - started,
                "compute": computed - waited,
                "write": time.perf_counter() - computed,
            },
            "engine": config.ISA,
        }
        job.folder.finish(record)
    except OSError as error:
        raise ArgumentError(
            f"score: part {part.number} cannot be written to {shown(os.fspath(path))} ({reason_of(error)}); "
            "finished parts stay valid, and the same call scores the others"
        ) from error
    return record, False


def _read(job: Job, part: Part) -> list[AnyArray | Bad]:
    """Read and check the items of a part."""
    items: list[AnyArray | Bad] = [Bad(part.bad.get(i, "")) for i in range(len(part.names))]
    readable = [i for i in range(len(part.names)) if i not in part.bad]
    values = job.source.read([part.places[i] for i in readable])
    position = 0
    try:
        for position, i in enumerate(readable):  # noqa: B007  # of use after the loop
            item = items[i] = job.item(next(values, Bad("it is not there any more")))
            if not isinstance(item, Bad) and len(item) != part.lengths[i]:
                items[i] = Bad(f"it has {len(item)} time steps; expected {part.lengths[i]}, as when it was listed")
    except Exception as error:  # the source itself failed: the rest cannot be read
        for i in readable[position:]:
            items[i] = Bad(reason_of(error))
    for i, item in enumerate(items):
        if isinstance(item, Bad):
            _reject(job, part, i, item)
    return items


def _reject(job: Job, part: Part, i: int, bad: Bad) -> None:
    if not job.skip_errors:
        raise ArgumentError(f"score: item {shown(part.names[i])}: {printable(bad.reason)} (skip_errors=True skips it)")


def _computed(job: Job, part: Part, items: list[AnyArray | Bad]) -> list[dict[str, AnyArray] | Bad]:
    """Return the results of all items; remove items from the list when they are done, to free their memory."""
    scorer = job.scorer
    results: list[dict[str, AnyArray] | Bad] = [item if isinstance(item, Bad) else Bad("") for item in items]
    good = [i for i, item in enumerate(items) if not isinstance(item, Bad)]
    step = max((item[:1].nbytes for item in items if not isinstance(item, Bad)), default=0)
    for batch in job.batches([part.lengths[i] for i in good], step):
        chosen = [good[place] for place in batch]
        for i, result in zip(chosen, _scored(scorer, [items[i] for i in chosen]), strict=True):
            results[i] = result
            items[i] = Bad("")
            if isinstance(result, Bad):
                _reject(job, part, i, result)
    return results


def _scored(scorer: Scorer, items: Sequence[Any]) -> list[dict[str, AnyArray] | Bad]:
    """Return the results of a batch; if the model rejects it, run its items alone to find the bad ones."""
    try:
        return list(scorer.run(items))
    except PyrnnxError as error:
        if len(items) == 1:
            return [Bad(str(error))]
    return [result for item in items for result in _scored(scorer, [item])]
