"""What is done with one part, in this process or in a worker: read, scored, written."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyrnnx import config
from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, PyrnnxError, printable, shown
from pyrnnx.scoring import durable
from pyrnnx.scoring.items import Bad, Frames
from pyrnnx.scoring.manifest import Folder
from pyrnnx.scoring.outputs import Batching, Scorer
from pyrnnx.scoring.parts import BATCH, SHARES, Part, batches
from pyrnnx.scoring.sinks import SINKS, columns_of
from pyrnnx.scoring.sources.base import Source
from pyrnnx.scoring.subject import Input

_COMPUTES = threading.Lock()  # one thread pool in a process: parts take turns at it, and read and write meanwhile


@dataclass(frozen=True)
class Conversion:
    """What is made of the values of an item before the model takes them.

    Attributes
    ----------
    frames : Frames or None
    cast : bool
        Whether to convert them to the model's dtype.
    """

    frames: Frames | None
    cast: bool

    def item(self, takes: Input, values: AnyArray, *, padded: bool) -> AnyArray:
        """Values [T, ...] as the input takes them.

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
        if values.ndim == 1 and takes.step == (1,):
            values = values[:, np.newaxis]
        step = takes.step
        fits = values.ndim == 1 + len(step) and all(
            one in (None, size) for one, size in zip(step, values.shape[1:], strict=True)
        )
        if not fits:
            expected = ", ".join("?" if size is None else str(size) for size in step)
            raise ArgumentError(f"it has shape {values.shape}; expected [T{', ' if step else ''}{expected}]")
        steps = takes.size("T")
        if steps is not None and (len(values) > steps if padded else len(values) != steps):
            raise ArgumentError(f"it has {len(values)} time steps; expected {'at most ' if padded else ''}{steps}")
        return values


@dataclass(frozen=True)
class Job:
    """What all parts of a run have in common; travels to each worker once.

    Attributes
    ----------
    run : str
        Which run it is, as the manifest says.
    identity : str
        What it has in common with those whose parts it goes on with.
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
        """As `Conversion.item`."""
        padded = self.scorer.batching is Batching.PADDED
        return self.conversion.item(self.scorer.subject.input, values, padded=padded)


def score_part(job: Job, part: Part) -> tuple[dict[str, Any], bool]:
    """The record of a part, and whether an earlier run had finished it.

    Raises
    ------
    PyrnnxError
        An item that cannot be read or scored, unless these are skipped; a part that cannot be written.
    """
    job.folder.check_run(job.run)
    record = job.folder.finished(part.number, part.names, job.identity)
    if record is not None:
        if record["run"] == job.run:  # a worker wrote it, and died before it told
            return record, False
        bad = {part.names[i] for i in part.bad} if job.skip_errors else set()
        if record["skipped"].keys() <= bad:  # other items may be readable by now
            return record, True
    started = time.perf_counter()
    items = _read(job, part)
    read = time.perf_counter()
    with _COMPUTES:
        waited = time.perf_counter()
        results = _computed(job, part, items)
    computed = time.perf_counter()
    skipped = {part.names[i]: one.reason for i, one in enumerate(results) if isinstance(one, Bad)}
    kept = [(i, one) for i, one in enumerate(results) if not isinstance(one, Bad)]
    del items, results
    names = [part.names[i] for i, _ in kept]
    columns = columns_of(names, [part.first + i for i, _ in kept], [one for _, one in kept], job.scorer.outputs)
    path = job.folder.part(part.number)
    try:
        checksum = durable.write_whole(path, job.folder.tmp, lambda made: SINKS[job.sink].write(made, columns))
        record = {
            "part": part.number,
            "run": job.run,
            "identity": job.identity,
            "items": len(kept),
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
        job.folder.finish(part.number, record)
    except OSError as error:
        raise ArgumentError(
            f"score: part {part.number} cannot be written to {shown(os.fspath(path))} ({error.strerror or error}); "
            "what is finished stays, and the same call goes on from there"
        ) from error
    return record, False


def _read(job: Job, part: Part) -> list[AnyArray | Bad]:
    """The items of a part, checked."""
    found: list[AnyArray | Bad] = [Bad(part.bad.get(i, "")) for i in range(len(part.names))]
    wanted = [i for i in range(len(part.names)) if i not in part.bad]
    values = job.source.read([part.places[i] for i in wanted])
    position = 0
    try:
        for position, i in enumerate(wanted):  # noqa: B007  # of use after the loop
            found[i] = _checked(job, part, i, next(values, Bad("it is not there any more")))
    except Exception as error:  # of the source itself, of any kind: nothing more can be read
        for i in wanted[position:]:
            found[i] = Bad(printable(str(error)) or type(error).__name__)
    for i, one in enumerate(found):
        if isinstance(one, Bad):
            _reject(job, part, i, one)
    return found


def _checked(job: Job, part: Part, i: int, values: AnyArray | Bad) -> AnyArray | Bad:
    if isinstance(values, Bad):
        return values
    try:
        item = job.item(values)
        if len(item) != part.lengths[i]:
            return Bad(f"it has {len(item)} time steps; expected {part.lengths[i]}, as when it was listed")
    except ArgumentError as error:
        return Bad(str(error))
    return item


def _reject(job: Job, part: Part, i: int, bad: Bad) -> None:
    if not job.skip_errors:
        raise ArgumentError(
            f"score: item {shown(part.names[i])}: {printable(bad.reason)} (skip_errors=True skips such)"
        )


def _computed(job: Job, part: Part, items: list[AnyArray | Bad]) -> list[dict[str, AnyArray] | Bad]:
    """What each item gives; takes the items out of their list, so that they are freed."""
    scorer = job.scorer
    found: list[dict[str, AnyArray] | Bad] = [one if isinstance(one, Bad) else Bad("") for one in items]
    good = [i for i, one in enumerate(items) if not isinstance(one, Bad)]
    step = max((_step_size(items[i]) for i in good), default=0)
    for batch in batches(
        [part.lengths[i] for i in good],
        scorer.batching,
        rows=_rows(job),
        most=min(job.memory // SHARES, BATCH),
        row_size=lambda length: scorer.size(length, step),
    ):
        chosen = [good[place] for place in batch]
        for i, result in zip(chosen, _scored(scorer, [items[i] for i in chosen]), strict=True):
            found[i] = result
            items[i] = Bad("")
            if isinstance(result, Bad):
                _reject(job, part, i, result)
    return found


def _rows(job: Job) -> int:
    return job.scorer.subject.input.size("N") or job.batch_size


def _step_size(item: Any) -> int:
    return int(np.prod(item.shape[1:])) * int(item.dtype.itemsize)


def _scored(scorer: Scorer, items: Sequence[Any]) -> list[dict[str, AnyArray] | Bad]:
    """A batch; if the model rejects it, its items alone, which tells whose fault it is."""
    try:
        return list(scorer.run(items))
    except PyrnnxError as error:
        if len(items) == 1:
            return [Bad(str(error))]
    return [one for item in items for one in _scored(scorer, [item])]
