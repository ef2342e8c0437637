"""The command `pyrnnx score`: a model run over data that is larger than memory."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pyrnnx.cli import streams
from pyrnnx.cli.app import command
from pyrnnx.cli.arguments import MODEL_FILE, Json, integer, model_suffixes
from pyrnnx.cli.options import with_options
from pyrnnx.cli.result import Result

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pyrnnx.scoring import ScoreReport

_OPTIONS = {
    "input": "--sequences",
    "inputs": "--input",
    **{
        name: f"--{name.replace('_', '-')}"
        for name in (
            *("axes", "lengths", "outputs", "column", "source_format", "sink_format", "scheduler", "memory"),
            *("batch_size", "batching", "channels", "rate", "frame", "context", "tail", "workers"),
            *("skip_errors", "overwrite", "cast", "stream"),
        )
    },
    "the same call": "the same command",
    "the others in inputs": "the others in --input",
    "leave it out of outputs": "leave it out of --outputs",
}
SHOWN_SKIPPED = 20  # items; --json has all


@command(
    "score",
    "pyrnnx score model.onnx recordings/ out/ --frame 512 --workers 4",
    "pyrnnx score silero_vad.onnx recordings/ out/ --stream --frame 512 --context 64 --rate 16000 --input sr=16000",
    "pyrnnx score model.xml in.parquet out.parquet --scheduler tcp://host:8786 --skip-errors",
    notes=(
        "IN: a folder of zarr, .npy, .npz, .wav or .parquet files, or one file; each array, recording or list is a "
        "sequence. OUT: a folder of zarr, Parquet or .npz. Repeat a stopped command to score the unfinished parts.",
    ),
    options=_OPTIONS,
)
def score(
    model: Annotated[str, typer.Argument(metavar="MODEL", help=f"{MODEL_FILE}.", autocompletion=model_suffixes)],
    source: Annotated[str, typer.Argument(metavar="IN", help="Sequences of any lengths.")],
    sink: Annotated[str, typer.Argument(metavar="OUT", help="Folder of the results.")],
    workers: Annotated[
        str | None,
        typer.Option(
            "--workers", metavar="N", help="Processes (default: one for each core); 0: this process, without Dask."
        ),
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option("--scheduler", metavar="ADDRESS", help="Dask scheduler, such as tcp://host:8786.")
    ] = None,
    memory: Annotated[
        str, typer.Option("--memory", metavar="SIZE", help="Memory of a part in a worker, such as 2GiB.")
    ] = "256MiB",
    batch_size: Annotated[str, typer.Option("--batch-size", metavar="N", help="Maximum rows of a batch.")] = "32",
    batching: Annotated[
        str,
        typer.Option(
            "--batching",
            metavar="WHICH",
            help="Items that share a call: auto (proven by the graph), equal (only of equal length) or none.",
            autocompletion=lambda: ["auto", "equal", "none"],
        ),
    ] = "auto",
    skip_errors: Annotated[
        bool, typer.Option("--skip-errors", help="Skip and report items that cannot be scored.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Remove the results of another model, source or options.")
    ] = False,
    source_format: Annotated[
        str | None,
        typer.Option(
            "--source-format", metavar="FORMAT", help="zarr, npy, npz, parquet or wav (default: by the files)."
        ),
    ] = None,
    sink_format: Annotated[
        str | None,
        typer.Option(
            "--sink-format", metavar="FORMAT", help="zarr, parquet or npz (default: by the suffix of OUT, else npz)."
        ),
    ] = None,
    column: Annotated[
        str | None, typer.Option("--column", metavar="NAME", help="Column of lists of a Parquet source with several.")
    ] = None,
    sequences: Annotated[
        str | None, typer.Option("--sequences", metavar="NAME", help="The input that takes the sequences.")
    ] = None,
    axes: Annotated[
        str | None,
        typer.Option("--axes", metavar="LETTERS", help="Axes of that input: T time steps, N rows, such as NTI or TI."),
    ] = None,
    lengths: Annotated[
        str | None, typer.Option("--lengths", metavar="NAME", help="The input that takes the lengths of rows.")
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            metavar="NAME=FILE.npy",
            help="Another input, the same in every call: NAME=FILE.npy, NAME=NUMBER, or FILE.npz; repeatable.",
        ),
    ] = None,
    outputs: Annotated[
        list[str] | None,
        typer.Option("--outputs", metavar="NAME", help="An output to write (default: all); repeatable."),
    ] = None,
    channels: Annotated[
        str | None,
        typer.Option("--channels", metavar="WHICH", help="Channel of a recording: mean, first, or an index from 0."),
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option("--rate", metavar="HZ", help="Required samples per second of recordings; others are rejected."),
    ] = None,
    frame: Annotated[
        str | None, typer.Option("--frame", metavar="N", help="Cut samples into frames of this size.")
    ] = None,
    context: Annotated[
        str, typer.Option("--context", metavar="N", help="Preceding samples at the start of each frame.")
    ] = "0",
    tail: Annotated[
        str,
        typer.Option(
            "--tail",
            metavar="WHICH",
            help="Samples that do not fill the last frame: pad (complete it with zeros) or drop.",
            autocompletion=lambda: ["pad", "drop"],
        ),
    ] = "pad",
    stream: Annotated[
        bool,
        typer.Option("--stream", help="Call the model for each frame, with the states that it returned before."),
    ] = False,
    cast: Annotated[bool, typer.Option("--cast", help="Convert items to the dtype of the input.")] = False,
    as_json: Json = False,
) -> Result:
    """Run a model over all sequences of a source larger than memory, in several processes or on a Dask cluster."""
    import pyrnnx
    from pyrnnx.cli.arrays import given_inputs

    numbers = {
        name: integer(f"score: --{name.replace('_', '-')}", text)
        for name, text in {
            "workers": workers,
            "batch_size": batch_size,
            "rate": rate,
            "frame": frame,
            "context": context,
        }.items()
        if text is not None
    }
    read = pyrnnx.load(model)
    others = given_inputs("score: --input", inputs, read.inputs) if inputs and isinstance(read, pyrnnx.Model) else None
    try:
        report = pyrnnx.score(
            read,
            source,
            sink,
            source_format=source_format,
            sink_format=sink_format,
            column=column,
            input=sequences,
            axes=axes,
            lengths=lengths,
            batching=batching,
            channels=channels,
            inputs=others,
            outputs=outputs,
            tail=tail,
            stream=stream,
            cast=cast,
            scheduler=scheduler,
            memory=memory,
            skip_errors=skip_errors,
            overwrite=overwrite,
            progress=None if streams.is_terminal(sys.stderr) else _in_lines,
            **numbers,
        )
    except KeyboardInterrupt as error:
        if str(error):
            streams.complain(f"interrupted: {with_options(str(error), _OPTIONS)}")
        raise
    finally:
        if not streams.is_terminal(sys.stderr):
            streams.show_progress("")
    return Result(report.to_dict, _shown(report))


def _in_lines(done: int, total: int) -> None:
    streams.show_progress(f"score: {done} of {total} items")


def _shown(report: ScoreReport) -> list[RenderableType]:
    from pyrnnx.cli.tables import count, heading, pairs, table

    facts: list[tuple[str, Any]] = [
        ("items", count(report.items)),
        ("skipped", count(len(report.skipped))),
        ("parts", f"{count(report.parts)}, {count(report.resumed)} of an earlier run"),
        ("batches", report.batching),
        ("because", report.batching_reason),
        ("workers", count(report.workers) if report.workers else "this process"),
        ("speed", f"{report.rate:,.1f} items/s" if report.computed else "nothing to do"),
    ]
    shown: list[RenderableType] = [heading("Results", report.sink), pairs(facts)]
    if report.skipped:
        rows = [(name, with_options(why, _OPTIONS)) for name, why in list(report.skipped.items())[:SHOWN_SKIPPED]]
        hidden = len(report.skipped) - len(rows)
        shown += [heading("Skipped", f"and {hidden} more" if hidden else ""), table(("item", "why"), rows)]
    return shown
