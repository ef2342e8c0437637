"""The command `pyrnnx score`: a model run over data that is larger than memory."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from pyrnnx.cli.app import command
from pyrnnx.cli.arguments import Json, ModelFile, integer
from pyrnnx.cli.output import Result, complain

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pyrnnx.scoring import ScoreReport

SHOWN_SKIPPED = 20  # items; --json has all


class _Option(NamedTuple):
    name: str  # of the argument of `pyrnnx.score`
    metavar: str  # "" for a switch
    help: str
    flag: str = ""  # the default is the name
    type: Any = str


# An option that is not set leaves the default to `pyrnnx.score`.
_TABLE = (
    _Option("workers", "N", "Processes (default: one for each core); 0: this process, without Dask.", type=int),
    _Option("scheduler", "ADDRESS", "Dask scheduler, such as tcp://host:8786."),
    _Option("memory", "SIZE", "Memory of a part in a worker, such as 2GiB (default: 256MiB)."),
    _Option("batch", "N", "Most items that share a call, if rows are independent (default: 1; layers: 32).", type=int),
    _Option("lengths", "NAME", "The input that takes the lengths of rows: lengths in a batch may differ."),
    _Option(
        *("segments", "THRESHOLD"),
        "Write segments.csv: where an output of one number a frame, such as speech, is above 0.5, for example.",
        type=float,
    ),
    _Option("skip_errors", "", "Skip and report items that cannot be scored."),
    _Option("overwrite", "", "Remove the results of another model, source or options."),
    _Option("source_format", "FORMAT", "zarr, npy, npz, parquet or audio (default: by the files)."),
    _Option("sink_format", "FORMAT", "zarr, parquet or npz (default: by the suffix of OUT, else npz)."),
    _Option("column", "NAME", "Column of lists of a Parquet source with several."),
    _Option("input", "NAME", "The input that takes the sequences.", "sequences"),
    _Option("axes", "LETTERS", "Axes of that input: T time steps, N rows, such as NTI or TI."),
    _Option(
        *("inputs", "NAME=FILE.npy"),
        "Another input, the same in every call: NAME=FILE.npy, NAME=NUMBER, or FILE.npz; repeatable.",
        *("input", list[str]),
    ),
    _Option("outputs", "NAME", "An output to write (default: all); repeatable.", type=list[str]),
    _Option("channels", "WHICH", "Channel of a recording: mean, or an index from 0."),
    _Option("rate", "HZ", "Samples per second of the model: other recordings are resampled.", type=int),
    _Option("frame", "N", "Cut samples into frames of this size.", type=int),
    _Option("context", "N", "Preceding samples at the start of each frame (default: 0).", type=int),
    _Option("tail", "WHICH", "Samples that do not fill the last frame: pad (with zeros, the default) or drop."),
    _Option("stream", "", "Call the model for each frame, with the states that it returned before."),
    _Option("cast", "", "Convert items to the dtype of the input."),
)


def score(model: str, source: str, sink: str, as_json: bool, **options: Any) -> Result:
    """Run a model on every item of a large source, in several processes or on a Dask cluster."""
    import pyrnnx
    from pyrnnx.cli.arrays import given_inputs
    from pyrnnx.scoring.sources.storage import absolute

    absolute(source)  # an error before the model, and before anything about its inputs
    given = {name: value for name, value in options.items() if value not in (None, []) and value is not False}
    read = pyrnnx.load(model)
    if isinstance(read, pyrnnx.Model) and "inputs" in given:
        given["inputs"] = given_inputs("score: --input", given["inputs"], read.inputs)
    try:
        report = pyrnnx.score(read, source, sink, **given)
    except KeyboardInterrupt as error:
        if str(error):
            complain(f"interrupted: {error}")
        raise
    return Result(report.to_dict(), _shown(report))


def _shown(report: ScoreReport) -> list[RenderableType]:
    from pyrnnx.cli.tables import heading, pairs, table

    facts: list[tuple[str, Any]] = [
        ("items", f"{report.items:,}"),
        ("skipped", f"{len(report.skipped):,}"),
        ("hidden", f'{report.hidden:,}, names that begin with "."'),
        ("parts", f"{report.parts:,}, {report.resumed:,} of an earlier run"),
        ("batch", f"{report.batch:,} at most"),
        ("workers", f"{report.workers:,}" if report.workers else "this process"),
        ("speed", f"{report.rate:,.1f} items/s" if report.computed else "nothing to do"),
    ]
    shown: list[RenderableType] = [heading("Results", report.sink), pairs(facts)]
    if report.skipped:
        rows = list(report.skipped.items())[:SHOWN_SKIPPED]
        hidden = len(report.skipped) - len(rows)
        shown += [heading("Skipped", f"and {hidden} more" if hidden else ""), table(("item", "why"), rows)]
    return shown


def _parameters() -> Iterator[inspect.Parameter]:

    def parameter(name: str, kind: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
        return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)

    yield parameter("model", ModelFile)
    yield parameter("source", Annotated[str, typer.Argument(metavar="IN", help="Sequences of any lengths.")])
    yield parameter("sink", Annotated[str, typer.Argument(metavar="OUT", help="Folder of the results.")])
    for option in _TABLE:
        flag = f"--{(option.flag or option.name).replace('_', '-')}"
        parser = integer(0) if option.type is int else None
        declared = typer.Option(flag, metavar=option.metavar or None, parser=parser, help=option.help)
        kind, default = (option.type | None, None) if option.metavar else (bool, False)
        yield parameter(option.name, Annotated[kind, declared], default)
    yield parameter("as_json", Json, False)


score.__signature__ = inspect.Signature(list(_parameters()))  # type: ignore[attr-defined]
score.__annotations__ = {parameter.name: parameter.annotation for parameter in _parameters()}
command(
    "score",
    "pyrnnx score model.onnx recordings/ out/ --frame 512 --workers 4",
    "pyrnnx score silero_vad.onnx recordings/ out/ --stream --batch 32 --frame 512 --context 64 --rate 16000 "
    "--input sr=16000",
    "pyrnnx score model.xml in.parquet out.parquet --scheduler tcp://host:8786 --skip-errors",
    notes=(
        "IN: a folder of zarr, .npy, .npz, .parquet or audio files (.wav, .flac, .ogg, .mp3), or one file; each array, "
        "recording or list is a sequence. OUT: a folder of zarr, Parquet or .npz. Repeat a stopped command to score "
        "the unfinished parts.",
    ),
)(score)
