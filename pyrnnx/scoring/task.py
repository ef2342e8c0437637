"""The scoring of one part, in this process or in a worker: read, compute, write."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyrnnx import config
from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, PyrnnxError, printable, reason_of, shown
from pyrnnx.scoring import durable
from pyrnnx.scoring.interface import Input
from pyrnnx.scoring.items import Bad, Frames
from pyrnnx.scoring.manifest import Folder, names_digest
from pyrnnx.scoring.outputs import Batching, Scorer
from pyrnnx.scoring.parts import BATCH, SHARES, Part, batches
from pyrnnx.scoring.sinks import SINKS, columns_of
from pyrnnx.scoring.sources.base import Source

_COMPUTES = threading.Lock()  # all parts of a process share one thread pool; they read and write without the lock


@dataclass(frozen=True)
class Conversion:
    """The conversion of an item's values for the model's input.

    Attributes
    ----------
    frames : Frames or None
    cast : bool
        Whether to convert values to the model's dtype.
    """

    frames: Frames | None
    cast: bool

    def item(self, takes: Input, values: AnyArray, *, padded: bool) -> AnyArray:
        """Return values [T, ...] as the input takes them.

        Raises
        ------
        ArgumentError
            Values of another dtype or shape.
        """
        if values.dtype != takes.dtype:
            if not self.cast or values.dtype.kind not in "biuf" or takes.dtype.kind not in "iuf":
                hint = "" if self.cast else " (cast=True converts)"
                raise ArgumentError(f"it has dtype {values.dtype}; expected {takes.dtype}{hint}")
            values = values.astype(takes.dtype)
        if self.frames is not None:
            values = self.frames.cut(values)
        step = takes.step
        if values.ndim == 1 + len([size for size in step if size != 1]):  # without the axes of size 1
            sizes = iter(values.shape[1:])
            values = values.reshape(len(values), *(1 if size == 1 else next(sizes) for size in step))
        fits = values.ndim == 1 + len(step) and all(
            declared in (None, size) for declared, size in zip(step, values.shape[1:], strict=True)
        )
        if not fits:
            expected = ", ".join("?" if size is None else str(size) for size in ("T", *step))
            frames = self.frames
            cut = "" if frames is None else f" after frame={frames.size} and context={frames.context} cut it"
            raise ArgumentError(f"it has shape {values.shape}{cut}; expected [{expected}]{self._advice(values, step)}")
        steps = takes.size("T")
        if steps is not None and (len(values) > steps if padded else len(values) != steps):
            raise ArgumentError(f"it has {len(values)} time steps; expected {'at most ' if padded else ''}{steps}")
        return values

    def _advice(self, values: AnyArray, step: Sequence[int | None]) -> str:
        """Return how frames could make single values fit the steps of an input; "" if they could not."""
        sizes = [size for size in step if size != 1]
        if self.frames is not None or values.ndim != 1 or len(sizes) != 1:
            return ""
        return f", or frame={'N' if sizes[0] is None else sizes[0]}, which cuts samples into steps of this size"


@dataclass(frozen=True)
class Job:
    """Everything that the parts of a run have in common; sent once to each worker.

    Attributes
    ----------
    run : str
        Unique name of the run, as in the manifest.
    identity : str
        Checksum that runs share if they can reuse each other's parts.
    """

    run: str
    identity: str
    scorer: Scorer
    source: Source
    conversion: Conversion
    folder: Folder
    sink: str
    memory: int
    batch_size: int
    skip_errors: bool
    batch_invariant: bool

    def item(self, values: AnyArray) -> AnyArray:
        """Return the values of an item as the input takes them: see `Conversion.item`."""
        padded = self.scorer.batching is Batching.PADDED
        return self.conversion.item(self.scorer.subject.input, values, padded=padded)


def score_part(job: Job, part: Part) -> tuple[dict[str, Any], bool]:
    """Score a part, and return its record and whether an earlier run had finished it.

    Raises
    ------
    PyrnnxError
        An item that cannot be read or scored, unless `skip_errors`; a part that cannot be written.
    """
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
    columns = columns_of(names, indices, [result for _, result in scored], job.scorer.outputs)
    path = job.folder.part(part.number)
    try:
        record = job.folder.finished(part, job.identity)
        if record is not None and record["run"] == job.run:  # this process was cut off or stopped meanwhile
            return record, False
        sink = SINKS[job.sink]
        checksum = job.folder.write_part(part.number, job.run, lambda temporary: sink.write(temporary, columns))
        record = {
            "part": part.number,
            "first": part.first,
            "names": names_digest(part),
            "run": job.run,
            "identity": job.identity,
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
            items[i] = _checked(job, part, i, next(values, Bad("it is not there any more")))
    except Exception as error:  # the source itself failed: the rest cannot be read
        for i in readable[position:]:
            items[i] = Bad(reason_of(error))
    # Once for all items, because thousands may share a file, and for an object this is a request.
    stamps = job.source.stamps([part.places[i] for i in readable]) if part.stamps else ()
    for i, stamp in zip(readable, stamps, strict=False):
        if isinstance(stamp, Bad):
            items[i] = stamp if not isinstance(items[i], Bad) else items[i]
        elif stamp != part.stamps[i]:
            items[i] = Bad(_changed(items[i]))
    for i, item in enumerate(items):
        if isinstance(item, Bad):
            _reject(job, part, i, item)
    return items


def _changed(values: AnyArray | Bad) -> str:
    reason = f" ({values.reason})" if isinstance(values, Bad) else ""
    return f"its file has changed since it was listed{reason}"


def _checked(job: Job, part: Part, i: int, values: AnyArray | Bad) -> AnyArray | Bad:
    if isinstance(values, Bad):
        return values
    try:
        item = job.item(values)
        if len(item) != part.lengths[i]:
            return Bad(f"it has {len(item)} time steps; expected {part.lengths[i]}, as when it was listed")
    except ArgumentError as error:
        return Bad(f"{error}{job.source.advice(values)}")
    return item


def _reject(job: Job, part: Part, i: int, bad: Bad) -> None:
    if not job.skip_errors:
        raise ArgumentError(f"score: item {shown(part.names[i])}: {printable(bad.reason)} (skip_errors=True skips it)")


def _computed(job: Job, part: Part, items: list[AnyArray | Bad]) -> list[dict[str, AnyArray] | Bad]:
    """Return the results of all items; remove items from the list when they are done, to free their memory."""
    scorer = job.scorer
    results: list[dict[str, AnyArray] | Bad] = [item if isinstance(item, Bad) else Bad("") for item in items]
    good = [i for i, item in enumerate(items) if not isinstance(item, Bad)]
    step = max((math.prod(shape) * size for shape, size in {_step(items[i]) for i in good}), default=0)
    for batch in batches(
        [part.lengths[i] for i in good],
        scorer.batching,
        rows=_rows(job),
        most=job.memory // SHARES if scorer.subject.pushes else min(job.memory // SHARES, BATCH),
        row_size=lambda length: scorer.size(length, step),
    ):
        chosen = [good[place] for place in batch]
        for i, result in zip(chosen, _scored(scorer, [items[i] for i in chosen]), strict=True):
            results[i] = result
            items[i] = Bad("")
            if isinstance(result, Bad):
                _reject(job, part, i, result)
    return results


def _rows(job: Job) -> int:
    return job.scorer.subject.input.size("N") or job.batch_size


def _step(item: Any) -> tuple[tuple[int, ...], int]:
    """Return the shape of a step, and the bytes of an element."""
    return item.shape[1:], item.dtype.itemsize


def _scored(scorer: Scorer, items: Sequence[Any]) -> list[dict[str, AnyArray] | Bad]:
    """Return the results of a batch; if the model rejects it, run its items alone to find the bad ones."""
    try:
        return list(scorer.run(items))
    except PyrnnxError as error:
        if len(items) == 1:
            return [Bad(str(error))]
    return [result for item in items for result in _scored(scorer, [item])]
