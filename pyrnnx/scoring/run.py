"""The function `score`: from its arguments to results in a folder."""

from __future__ import annotations

import multiprocessing
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx._internal import scalars
from pyrnnx._internal.extras import import_package
from pyrnnx._internal.files import is_path
from pyrnnx.errors import ArgumentError, reason_of, shown
from pyrnnx.scoring.conversion import Conversion, frames_of
from pyrnnx.scoring.manifest import LOCK, Folder
from pyrnnx.scoring.plan import Run, planned
from pyrnnx.scoring.report import Progress, ScoreReport, progress_of
from pyrnnx.scoring.sinks import choose_sink
from pyrnnx.scoring.sources import open_source
from pyrnnx.scoring.sources.base import Source
from pyrnnx.scoring.sources.storage import is_url, shown_path
from pyrnnx.scoring.subjects import subject_of
from pyrnnx.scoring.subjects.interface import Options
from pyrnnx.scoring.task import score_part

if TYPE_CHECKING:
    from onnx import ModelProto

    from pyrnnx.layers.layer import Layer
    from pyrnnx.models.model import Model
    from pyrnnx.stacks.stack import Stack

_ADDRESS = re.compile(r"([a-z][a-z0-9]*://)?[^\s@/]+:[0-9]+")


def score(
    model: str | os.PathLike[str] | bytes | ModelProto | Model | Layer | Stack,
    source: str | os.PathLike[str],
    sink: str | os.PathLike[str],
    *,
    source_format: str | None = None,
    sink_format: str | None = None,
    column: str | None = None,
    input: str | None = None,
    axes: str | None = None,
    lengths: str | None = None,
    inputs: Mapping[str, Any] | None = None,
    outputs: Sequence[str] | None = None,
    channels: int | str | None = None,
    rate: int | None = None,
    frame: int | None = None,
    context: int = 0,
    tail: str = "pad",
    stream: bool | Mapping[str, str] = False,
    cast: bool = False,
    workers: int | None = None,
    scheduler: str | None = None,
    memory: int | str = "256MiB",
    batch: int | None = None,
    segments: float | None = None,
    skip_errors: bool = False,
    overwrite: bool = False,
    progress: bool | Callable[[int, int], None] | None = None,
) -> ScoreReport:
    """Run a model on every item of a source that may exceed memory, in several processes or machines.

    The items are scored in parts of consecutive items, and within a part in batches of items of similar length. Each
    part is written atomically: repeat a call that was killed, and it scores only the unfinished parts. Parts and
    batches depend on the source, `memory` and `batch`, not on the number of workers. So results are bit for bit the
    same for any number of workers, on processors with the same instruction set.

    Parameters
    ----------
    model : path, bytes, ModelProto, Model, Layer or Stack
        Every item is an independent sequence with initial states of zero.
    source : path or URL
        A folder or a file, under the same path for every worker, or a URL that fsspec reads, such as
        "s3://bucket/folder", without "@", "?" and "::". zarr: an array [N, T, ...], a group of arrays, or a group with
        "values" and "offsets". .npy files. .npz files: each array is an item. Recordings (.wav, .flac, .ogg or .mp3):
        float32, integers from -1 to 1. .parquet files: a column of lists. Items have the shape [T, ...]. Files and
        folders whose names begin with "." are left out; the report has their number.
    sink : path
        A folder, under the same path for every worker. It gets manifest.json, and the results in parts/. "name" and
        "index" identify the items. An output "Y" without time steps is [n, ...]. With time steps, it is the
        concatenation of all items along the first axis, and item i is ``Y[offsets[i]:offsets[i + 1]]`` with
        "Y.offsets". In Parquet each row has the lists of an item.
    source_format, sink_format : str, optional
        Source: "zarr", "npy", "npz", "parquet" or "audio". Default: the format of its files. Sink: "zarr", "parquet" or
        "npz". Default: the suffix of its name (OUT.parquet), "npz" without suffix.
    column : str, optional
        Column of a Parquet source. Default: the only column of lists.
    input : str, optional
        Input of the model that takes the sequences. Default: the only input without a value.
    axes : str, optional
        A letter for each axis of that input: T for time steps, N for rows of a batch, others for the axes of a step,
        such as "NTI", or "TI" for a model that takes one sequence at a time. Default: the axes of the recurrent layer
        that reads the input; with `stream`, also "NI" and "I" for inputs with two axes and one.
    lengths : str, optional
        Input that takes the lengths of rows, such as "sequence_lens", so that padding is harmless: items of different
        lengths may then share a batch. Default: only items of equal length share one.
    inputs : mapping, optional
        Arrays for other inputs, the same in every call. Default: zeros for initial states of recurrent layers; the
        model's own defaults.
    outputs : sequence of str, optional
        Names of outputs to write. Default: all; with `stream`, all but the states.
    channels : int or str, optional
        Channel of recordings: an index from 0, or "mean" for the mean of all. Default: items [T, channels].
    rate : int, optional
        Samples per second that the model needs: other recordings are resampled (by soxr). Default: the rate of the
        recordings, which must be the same for all.
    frame, context : int, optional
        Cut items [T], such as samples, into frames [frames, context + frame]. Each frame begins with the `context`
        preceding values; zeros precede the first frame. Default: no frames.
    tail : str
        Values at the end that do not fill a frame: "pad" completes them with zeros, "drop" leaves them out. Default:
        "pad".
    stream : bool or mapping
        Whether each time step of an item (a frame, with `frame`) is a call of its own, in which the model gets its
        states back: see `Model.stream`. A mapping has the states, {output: input}. Each item begins with the states in
        `inputs`, else zeros or the model's defaults; results are those of all calls, [T, ...]. Default: False.
    cast : bool
        Convert items to the input's dtype. Default: another dtype is a bad item.
    workers : int, optional
        Processes to start on this machine; each gets an equal share of `pyrnnx.get_num_threads()`. 0 scores in this
        process, without Dask. With `scheduler`: workers to wait for. Default: one for each of
        `pyrnnx.get_num_threads()`; with `scheduler`, 1.
    scheduler : str, optional
        Address of a Dask scheduler, such as "tcp://host:8786"; its workers have this version of pyrnnx. A scheduler
        that is silent or without workers for longer than 60 seconds is an error.
    memory : int or str
        Memory limit in bytes of a part in a worker: its items, results and their copies, not the memory of the model's
        calls (see `pyrnnx.set_memory_limit`). A larger item is a bad item. Default: "256MiB".
    batch : int, optional
        Maximum number of items that share a call, one in each row, if the rows of the model are independent. The first
        batch is also run item by item, and another result is an error. Default: 1 for a model; 32 for a layer or a
        stack, whose rows are independent and which ignore padding.
    segments : float, optional
        Threshold of an output of one number a frame, such as the probability of speech, from 0 to 1: the sink also
        gets segments.csv, where each recording rises above it: name, start and end in seconds. A segment ends where
        the output is below the threshold by 0.15 and stays below the threshold for 0.1 s, and lasts over 0.25 s; it is
        extended by 0.03 s on both sides. Default: none.
    skip_errors : bool
        Skip items that cannot be read or scored; the same call tries them again. Default: the first one is an error.
    overwrite : bool
        Remove the results of another run. Default: they are an error unless model, source and options are the same.
    progress : bool or callable, optional
        Whether to show progress on standard error, or a function of the number of finished items and of all items.
        Default: only on a terminal.

    Returns
    -------
    ScoreReport

    Raises
    ------
    PyrnnxError
        A model, source or options that do not fit; an item that cannot be scored, or with other results in a batch
        than alone; results of another run in the sink; a lost scheduler. Finished parts stay valid.
    KeyboardInterrupt
        Ctrl-C; the message has the number of finished parts.
    """
    show = progress_of(progress)
    count = None if workers is None else scalars.integer("score", "workers", workers, 0)
    if scheduler is not None and not (isinstance(scheduler, str) and _ADDRESS.fullmatch(scheduler)):
        raise ArgumentError(
            f'score: scheduler is {shown_path(scheduler)}; expected an address, such as "tcp://host:8786"'
        )
    if scheduler is not None and count == 0:
        raise ArgumentError(f"score: scheduler is {shown(scheduler)}, workers 0; expected workers above 0")
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise SystemExit(1)  # a worker that imports the main script of its parent, which raises an error
    if count != 0:
        import_package("distributed", "score: several processes (workers=0 does without)", "score")
    for name, value in (("cast", cast), ("skip_errors", skip_errors), ("overwrite", overwrite)):
        if not isinstance(value, (bool, np.bool_)):
            raise ArgumentError(f"score: {name} is {shown(value)}; expected True or False")
    size = scalars.byte_count("score", "memory", memory, 1)
    rows = None if batch is None else scalars.integer("score", "batch", batch, 1)
    frames = frames_of(frame, context, tail)
    opened = open_source(source, source_format, column=column, channels=channels, rate=rate)
    arguments = Options(input, axes, lengths, inputs, outputs)
    subject = subject_of(model, arguments, stream, None if frames is None else frames.size + frames.context)
    path = _sink_path(sink, opened)
    kind = choose_sink(path, sink_format)
    folder = Folder(path, kind.suffix)
    run = planned(
        Conversion(opened, subject, frames, bool(cast)), folder, kind, size, rows, bool(skip_errors), segments
    )
    try:
        folder.check(run.header, overwrite=overwrite)
        Path(path).mkdir(parents=True, exist_ok=True)
        with _locked(path):
            try:
                folder.begin(run.header, overwrite=overwrite)
                kind.begin(folder.parts)
                return _run(run, scheduler, count, show)
            finally:
                folder.end(run.job.run)
    except OSError as error:
        raise ArgumentError(f"score: sink {shown(path)} cannot be written to ({reason_of(error)})") from error


@contextmanager
def _locked(path: str) -> Iterator[None]:
    filelock = import_package("filelock", "score: the lock of the sink", "score")
    try:
        with filelock.FileLock(os.path.join(path, LOCK), timeout=0):
            yield
    except filelock.Timeout:
        raise ArgumentError(f"score: another process is writing to sink {shown(path)}") from None


def _sink_path(sink: Any, source: Source) -> str:
    if not is_path(sink) or "\0" in os.fspath(sink):
        raise ArgumentError(f"score: sink is {shown_path(sink)}; expected a path")
    if is_url(os.fspath(sink)):
        raise ArgumentError(
            f"score: sink is {shown_path(sink)}; expected a path: results need atomic renames, which object stores lack"
        )
    path = os.path.abspath(sink)
    if os.path.exists(path) and not os.path.isdir(path):
        raise ArgumentError(f"score: sink {shown(os.fspath(sink))} is no folder; expected one, or a new path")
    if is_url(source.path):
        return path
    paths = [os.path.realpath(path), os.path.realpath(source.path)]
    if os.path.commonpath(paths) in paths:
        raise ArgumentError(
            f"score: sink {shown(path)} and source {shown(source.path)} overlap; expected folders outside each other"
        )
    return path


def _run(run: Run, scheduler: str | None, workers: int | None, show: Progress) -> ScoreReport:
    job, processes, done = run.job, 0, 0
    records: list[dict[str, Any]] = []
    show(0, len(run.items))
    try:
        with ExitStack() as stack:
            results: Iterator[dict[str, Any]] = (score_part(job, part) for part in run.parts())
            if workers != 0 and not run.looks_finished():
                from pyrnnx.scoring import cluster

                connection = stack.enter_context(cluster.connected(scheduler, workers))
                processes, results = connection.count(), connection.scored(job, run.parts())
            started = time.perf_counter()
            for record in results:
                records.append(record)
                done += record["items"] + len(record["skipped"])
                show(done, len(run.items))
            seconds = time.perf_counter() - started
    except KeyboardInterrupt:
        parts = run.header["parts"]
        message = f"{len(records)} of {parts} parts are finished; the same call scores the others"
        raise KeyboardInterrupt(message) from None
    records.sort(key=itemgetter("part"))
    skipped = {name: reason for record in records for name, reason in record["skipped"].items()}
    run.check_unchanged()
    job.folder.complete(run.header, records)
    new = [record for record in records if record["run"] == job.run]
    return ScoreReport(
        sink=job.folder.path,
        items=sum(record["items"] for record in records),
        skipped=skipped,
        hidden=job.conversion.source.hidden,
        parts=len(records),
        resumed=len(records) - len(new),
        computed=sum(record["items"] for record in new),
        seconds=seconds,
        workers=processes,
        batch=job.scorer.rows,
    )
