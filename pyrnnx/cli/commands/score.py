"""`pyrnnx score`: a model over data that is larger than memory."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pyrnnx.cli import streams
from pyrnnx.cli.app import command
from pyrnnx.cli.arguments import MODEL_FILE, Json, integer, model_suffixes
from pyrnnx.cli.result import Result
from pyrnnx.errors import PyrnnxError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pyrnnx.scoring import ScoreReport

# As messages have arguments: "cast=True converts", "axes is 'NT'", "expected input, the name of", "in inputs".
_SWITCHES = ("skip_errors", "overwrite", "cast")
_NAMED = {
    "input": "--sequences",
    "inputs": "--input",
    **{
        name: f"--{name.replace('_', '-')}"
        for name in (
            *("axes", "lengths", "outputs", "column", "source_format", "sink_format", "scheduler", "memory"),
            *("batch_size", "frame", "context", "workers", *_SWITCHES),
        )
    },
}
_OPTIONS = (
    *((re.compile(rf"\b{name}=True\b"), _NAMED[name]) for name in _SWITCHES),
    (re.compile(r"\bthe same call\b"), "the same command"),
    *(
        (
            re.compile(rf"(?<![\w'-])(?:{name}(?= (?:is|has|lacks|was) )|(?<=expected ){name}(?=,)|{name}(?==\S))"),
            option,
        )
        for name, option in _NAMED.items()
    ),
    (re.compile(r"(?<=the others in )inputs\b"), "--input"),
    (re.compile(r"(?<=leave it out of )outputs\b"), "--outputs"),
)
SHOWN_SKIPPED = 20  # items; --json has all


@command(
    "score",
    "pyrnnx score model.onnx recordings/ out/ --frame 512 --workers 4",
    "pyrnnx score model.xml in.parquet out.parquet --scheduler tcp://host:8786 --skip-errors",
    notes=(
        "IN: a folder of zarr, .npy, .npz, .wav or .parquet files; each array, recording or list is a sequence. OUT: a "
        "folder of zarr, Parquet or .npz. A run that was stopped goes on when it is started again.",
    ),
)
def score(
    model: Annotated[str, typer.Argument(metavar="MODEL", help=f"{MODEL_FILE}.", autocompletion=model_suffixes)],
    source: Annotated[str, typer.Argument(metavar="IN", help="Sequences, of any lengths.")],
    sink: Annotated[str, typer.Argument(metavar="OUT", help="Where results are written to.")],
    workers: Annotated[
        str | None,
        typer.Option(
            "--workers", metavar="N", help="Processes (default: one for each core); 0: this one, without Dask."
        ),
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option("--scheduler", metavar="ADDRESS", help="Of Dask, such as tcp://host:8786.")
    ] = None,
    memory: Annotated[
        str, typer.Option("--memory", metavar="SIZE", help="Of what a worker holds at once, such as 2GiB.")
    ] = "256MiB",
    batch_size: Annotated[str, typer.Option("--batch-size", metavar="N", help="Rows of a batch at most.")] = "32",
    skip_errors: Annotated[
        bool, typer.Option("--skip-errors", help="Report items that cannot be scored, and go on without them.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Remove the results of another model, source or options.")
    ] = False,
    source_format: Annotated[
        str | None,
        typer.Option("--source-format", metavar="FORMAT", help="zarr, npy, npz, parquet or wav, if IN does not tell."),
    ] = None,
    sink_format: Annotated[
        str | None,
        typer.Option("--sink-format", metavar="FORMAT", help="zarr, parquet or npz (default: as OUT ends, else npz)."),
    ] = None,
    column: Annotated[
        str | None, typer.Option("--column", metavar="NAME", help="Of lists, of a Parquet source that has several.")
    ] = None,
    sequences: Annotated[
        str | None, typer.Option("--sequences", metavar="NAME", help="The input that takes the sequences.")
    ] = None,
    axes: Annotated[
        str | None,
        typer.Option("--axes", metavar="LETTERS", help="Of that input: T time steps, N rows, such as NTI; or TI."),
    ] = None,
    lengths: Annotated[
        str | None, typer.Option("--lengths", metavar="NAME", help="The input that takes the lengths of rows.")
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            metavar="NAME=FILE.npy",
            help="Another input, the same in every call: NAME=FILE.npy, NAME=NUMBER, or FILE.npz; may be given again.",
        ),
    ] = None,
    outputs: Annotated[
        list[str] | None,
        typer.Option("--outputs", metavar="NAME", help="An output to keep (default: all); may be given again."),
    ] = None,
    frame: Annotated[
        str | None, typer.Option("--frame", metavar="N", help="Cut samples into frames of so many.")
    ] = None,
    context: Annotated[
        str, typer.Option("--context", metavar="N", help="Samples before, that each frame begins with.")
    ] = "0",
    cast: Annotated[bool, typer.Option("--cast", help="Convert items to the dtype that the model takes.")] = False,
    as_json: Json = False,
) -> Result:
    """Run a model over all sequences of a source, larger than memory, in several processes or on a Dask cluster."""
    import pyrnnx
    from pyrnnx.cli.arrays import given_inputs

    numbers = {
        name: integer(f"score: --{name.replace('_', '-')}", text)
        for name, text in {"workers": workers, "batch_size": batch_size, "frame": frame, "context": context}.items()
        if text is not None
    }
    read = pyrnnx.load(model)
    others = given_inputs("score: --input", inputs, read.inputs) if inputs else None
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
            inputs=others,
            outputs=outputs,
            cast=cast,
            scheduler=scheduler,
            memory=memory,
            skip_errors=skip_errors,
            overwrite=overwrite,
            **numbers,  # type: ignore[arg-type]  # a mapping of the integers among the options
        )
    except PyrnnxError as error:
        raise type(error)(_with_options(str(error))) from error
    except KeyboardInterrupt as error:
        if str(error):
            streams.complain(f"interrupted: {_with_options(str(error))}")
        raise
    return Result(report.to_dict, _shown(report))


def _with_options(message: str) -> str:
    """A message of `pyrnnx.score`, with its arguments called as the options that give them."""
    for pattern, option in _OPTIONS:
        message = pattern.sub(option, message)
    return message


def _shown(report: ScoreReport) -> list[RenderableType]:
    from pyrnnx.cli.tables import count, heading, pairs, table

    facts: list[tuple[str, Any]] = [
        ("items", count(report.items)),
        ("skipped", count(len(report.skipped))),
        ("parts", f"{count(report.parts)}, {count(report.resumed)} of an earlier run"),
        ("batches", report.batching),
        ("workers", count(report.workers) if report.workers else "this process"),
        ("speed", f"{report.rate:,.1f} items/s" if report.computed else "nothing to do"),
    ]
    shown: list[RenderableType] = [heading("Results", report.sink), pairs(facts)]
    if report.skipped:
        some = list(report.skipped.items())[:SHOWN_SKIPPED]
        more = len(report.skipped) - len(some)
        shown += [heading("Skipped", f"and {more} more" if more else ""), table(("item", "why"), some)]
    return shown
