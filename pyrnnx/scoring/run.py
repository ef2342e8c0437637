"""`score`: from its arguments to results in a folder."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyrnnx import scalars
from pyrnnx.errors import ArgumentError, shown
from pyrnnx.scoring import cluster, options
from pyrnnx.scoring.lock import Lock
from pyrnnx.scoring.manifest import Folder
from pyrnnx.scoring.planned import Limits, Run, planned
from pyrnnx.scoring.progress import Progress, progress_of
from pyrnnx.scoring.report import ScoreReport
from pyrnnx.scoring.sinks import choose_sink
from pyrnnx.scoring.sources import open_source
from pyrnnx.scoring.sources.base import Source
from pyrnnx.scoring.subject import subject_of
from pyrnnx.scoring.task import Conversion, score_part

if TYPE_CHECKING:
    from onnx import ModelProto

    from pyrnnx.layer import Layer
    from pyrnnx.model import Model
    from pyrnnx.stack import Stack


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
    frame: int | None = None,
    context: int = 0,
    cast: bool = False,
    workers: int | None = None,
    scheduler: str | None = None,
    memory: int | str = "256MiB",
    batch_size: int = 32,
    skip_errors: bool = False,
    overwrite: bool = False,
    progress: bool | Callable[[int, int], None] | None = None,
) -> ScoreReport:
    """Run a model over all sequences of a source that may be larger than memory, in several processes or machines.

    The items are scored in parts, which follow each other in the source, and within a part in batches of like length.
    Each part is written beside, brought to the disk and renamed; a call that was killed goes on, when it is made again,
    with the parts that are not finished. Parts and batches depend on the source, `memory` and `batch_size`, not on the
    number of workers: the results are the same bits for any, on processors of one instruction set.

    Parameters
    ----------
    model : path, bytes, ModelProto, Model, Layer or Stack
        What `pyrnnx.load` takes or gives, or layers. Each item is a sequence of its own, and begins with states of
        zeros.
    source : path
        A folder that every worker sees under the same path: zarr (an array [N, T, ...]; a group of arrays; a group with
        "values" and "offsets"), .npy files, .npz files (each array is an item), .wav files (PCM of one rate; float32
        from -1 to 1), or .parquet files (a column of lists; or one such file). Items have the shape [T, ...].
    sink : path
        A folder, likewise: manifest.json, and in parts/ the results. "name" and "index" are the items', "Y" an output's
        values: [n, ...] of outputs without time steps; of others, time steps first, all one after the other, and item
        i's are from "Y.offsets"[i] to [i + 1]. In Parquet each row has the lists of an item.
    source_format, sink_format : str, optional
        "zarr", "npy", "npz", "parquet", "wav"; "zarr", "parquet", "npz". Default: by the files; by the name of the sink
        (OUT.parquet), else "npz".
    column : str, optional
        Of a Parquet source. Default: the only column of lists.
    input : str, optional
        Of the model, which takes the sequences. Default: the only one that is open.
    axes : str, optional
        What the axes of that input are: T the time steps, N the rows of a batch, other letters what a step holds, as in
        "NTI"; "TI" of a model that takes one sequence at a time. Default: of what a recurrent layer reads, what it has
        there.
    lengths : str, optional
        The input that takes the lengths of rows. Default: what the recurrent layers read as such. With it, a batch has
        items of different lengths, if results do not depend on the padding; else items of equal length.
    inputs : mapping, optional
        Arrays for other inputs, the same in every call. Default: zeros for states that recurrent layers begin with; the
        model's own defaults.
    outputs : sequence of str, optional
        Default: all.
    frame, context : int, optional
        Cut items [T], such as samples, into frames [frames, context + frame], the last one filled up with zeros; each
        begins with the `context` values before, zeros before the first. Default: no frames.
    cast : bool
        Convert items to the input's dtype. Default: another dtype is a bad item.
    workers : int, optional
        Processes to start on this machine, with one thread pool each, sized to its share of `pyrnnx.get_num_threads()`;
        0: this process alone, without Dask. With `scheduler`: workers to wait for. Default: one for each thread; with
        `scheduler`, 1.
    scheduler : str, optional
        Address of a Dask scheduler, "tcp://host:8786", whose workers have this version of pyrnnx. Default: a cluster of
        processes on this machine, for this call.
    memory : int or str
        Bytes that a part takes in a worker at most: its items, results, and their copies; not what the model needs
        within a call (see `pyrnnx.set_memory_limit`). A larger item is a bad one. Default: "256MiB".
    batch_size : int
        Rows of a batch at most. Default: 32.
    skip_errors : bool
        Go on without items that cannot be read or scored; the same call tries them again. Default: the first one stops
        the run.
    overwrite : bool
        Remove the results of another run. Default: they are an error, but for those of the same model, source and
        options.
    progress : bool or callable, optional
        Whether to show progress on standard error, or a function of the number of items that are done, and of all.
        Default: on a terminal.

    Returns
    -------
    ScoreReport

    Raises
    ------
    PyrnnxError
        A model, source or options that do not fit; an item that cannot be scored, by its name; results of another run
        in the sink; a scheduler that is lost. What is finished stays.
    KeyboardInterrupt
        Ctrl-C; it says how many parts are finished.
    """
    show = progress_of(progress)
    count = None if workers is None else scalars.integer("score", "workers", workers, 0)
    if scheduler is not None and (not isinstance(scheduler, str) or count == 0):
        raise ArgumentError(
            f"score: scheduler is {shown(scheduler)}, workers {count}; expected an address, workers above 0"
        )
    if scheduler is not None:
        cluster.check_address(scheduler)
    elif count != 0:
        cluster.check_main()
    replace = options.switch("overwrite", overwrite)
    limits = Limits(
        options.byte_count("memory", memory),
        scalars.integer("score", "batch_size", batch_size, 1),
        options.switch("skip_errors", skip_errors),
    )
    conversion = Conversion(options.frames_of(frame, context), options.switch("cast", cast))
    subject = subject_of(model, input=input, axes=axes, lengths=lengths, inputs=inputs, outputs=outputs)
    opened = open_source(source, source_format, column)
    path = _sink_path(sink, opened)
    kind = choose_sink(path, sink_format)
    run = planned(subject, opened, conversion, Folder(path, kind.suffix), kind, limits)
    try:
        run.job.folder.check(run.header, overwrite=replace)
        Path(path).mkdir(parents=True, exist_ok=True)
        lock = Lock(path)
        try:
            run.job.folder.begin(run.header, overwrite=replace)
            kind.begin(run.job.folder.parts)
            return _run(run, scheduler, count, show)
        finally:
            lock.release()
    except OSError as error:
        raise ArgumentError(f"score: sink {shown(path)} cannot be written to ({error})") from error


def _sink_path(sink: Any, source: Source) -> str:
    """Absolute.

    Raises
    ------
    ArgumentError
        No path of a folder; one within the source, or around it.
    """
    if not isinstance(sink, (str, os.PathLike)) or not isinstance(os.fspath(sink), str) or "\0" in os.fspath(sink):
        raise ArgumentError(f"score: sink is {shown(sink)}; expected a path")
    path = os.path.abspath(sink)
    if os.path.exists(path) and not os.path.isdir(path):
        raise ArgumentError(f"score: sink {shown(os.fspath(sink))} is no folder; expected one, or a new path")
    one, other = os.path.realpath(path), os.path.realpath(source.path)
    if os.path.commonpath([one, other]) in (one, other):
        raise ArgumentError(f"score: sink {shown(path)} and source {shown(source.path)} are one within the other")
    return path


def _run(run: Run, scheduler: str | None, workers: int | None, show: Progress) -> ScoreReport:
    records: dict[int, dict[str, Any]] = {}
    resumed = computed = done = 0
    show(0, len(run.items))
    try:
        with _outcomes(run, scheduler, workers) as (outcomes, processes):
            started = time.perf_counter()
            for record, kept in outcomes:
                records[record["part"]] = record
                resumed += kept
                computed += 0 if kept else record["items"]
                done += record["items"] + len(record["skipped"])
                show(done, len(run.items))
            seconds = time.perf_counter() - started
    except KeyboardInterrupt:
        parts = run.header["parts"]
        raise KeyboardInterrupt(f"{len(records)} of {parts} parts are finished; the same call goes on") from None
    ordered = [records[number] for number in sorted(records)]
    run.job.folder.complete(run.header, ordered)
    skipped = {name: reason for record in ordered for name, reason in record["skipped"].items()}
    items = sum(record["items"] for record in ordered)
    batching = run.job.scorer.batching.value
    return ScoreReport(
        run.job.folder.path, items, skipped, len(ordered), resumed, computed, seconds, processes, batching
    )


@contextmanager
def _outcomes(
    run: Run, scheduler: str | None, workers: int | None
) -> Iterator[tuple[Iterator[tuple[dict[str, Any], bool]], int]]:
    """What `score_part` gives for all parts, and the number of processes that do it."""
    if workers == 0:
        yield (score_part(run.job, one) for one in run.parts()), 0
        return
    with cluster.connected(scheduler, workers) as (client, threads):
        yield cluster.scored(client, run.job, threads, run.parts()), len(client.nthreads())
