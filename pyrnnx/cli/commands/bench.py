"""The command `pyrnnx bench`: speed compared with other libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import RenderableType

from pyrnnx._internal.writing import check_report
from pyrnnx.cli import streams, tables
from pyrnnx.cli.app import command
from pyrnnx.cli.arguments import Dims, Inputs, Json, Seed, complete_names, integer, model_suffixes, sizes
from pyrnnx.cli.arrays import given_inputs
from pyrnnx.cli.result import Result
from pyrnnx.cli.targets import check_not_read, input_files
from pyrnnx.comparison.views.plot import matplotlib_figures, picture_path
from pyrnnx.errors import ArgumentError, shown
from pyrnnx.load import read_model_or_layer
from pyrnnx.models.model import Model
from pyrnnx.operator.op import CELLS

if TYPE_CHECKING:
    from pyrnnx.bench.breakdown import Breakdown
    from pyrnnx.bench.measured import Measurement

OPERATORS = ("LSTM", "GRU", "RNN")
DTYPES = ("float32", "float64", "float16")
SHAPE = "100,8,128,128"


def _peers() -> Iterable[str]:
    """Return the names that ``--against`` accepts."""
    from pyrnnx.bench.measured import LIBRARIES

    return [name for name in LIBRARIES if name != "pyrnnx"]


@command(
    "bench",
    "pyrnnx bench --op LSTM --shape 100,8,128,128",
    "pyrnnx bench model.onnx --against onnxruntime --threads 2 --plot times.png",
    "pyrnnx bench model.onnx --layers",
    notes=(
        "All libraries run in this process in turns, so that changes in the speed of the machine affect all equally. A "
        "ratio is the median over the rounds of a library's time divided by pyrnnx's: above 1 pyrnnx is faster. A "
        "library whose results differ is reported and not timed.",
        "--layers times pyrnnx alone. ONNX Runtime's profile has the time of each node, in whole microseconds, with "
        "what it takes to write down the node's arrays: small nodes look slower than they are. So the table has shares "
        "of the nodes' time, and the time of a call is measured without a profile.",
    ),
)
def bench(
    model: Annotated[
        str | None,
        typer.Argument(metavar="MODEL", help="An .onnx or OpenVINO .xml model.", autocompletion=model_suffixes),
    ] = None,
    op: Annotated[
        str | None,
        typer.Option(
            "--op",
            metavar="CELL",
            help="Operator to time instead of a model: LSTM, GRU or RNN.",
            autocompletion=complete_names(lambda: OPERATORS),
        ),
    ] = None,
    shape: Annotated[
        str | None,
        typer.Option(
            "--shape",
            metavar="T,N,I,H",
            help=f"For --op: sequence length, batch size, input size, hidden size (default: {SHAPE}).",
        ),
    ] = None,
    dtype: Annotated[
        str | None,
        typer.Option(
            "--dtype",
            metavar="TYPE",
            help="For --op: float32 (default), float64 or float16.",
            autocompletion=complete_names(lambda: DTYPES),
        ),
    ] = None,
    bidirectional: Annotated[bool, typer.Option("--bidirectional", help="For --op: both directions.")] = False,
    linear_before_reset: Annotated[
        bool, typer.Option("--linear-before-reset", help="For --op GRU: the variant that PyTorch has.")
    ] = False,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="NAME,NAME",
            help="onnxruntime, openvino, and torch with --op (default: those installed).",
            autocompletion=complete_names(_peers, several=True),
        ),
    ] = None,
    layers: Annotated[
        bool, typer.Option("--layers", help="Time of a call by recurrent layer and by operator, in pyrnnx alone.")
    ] = False,
    threads: Annotated[str, typer.Option("--threads", metavar="NUMBER", help="Threads of each library.")] = "1",
    repeat: Annotated[str, typer.Option("--repeat", metavar="ROUNDS", help="Timings of each library.")] = "9",
    seed: Seed = "0",
    dims: Dims = None,
    inputs: Inputs = None,
    plot: Annotated[str | None, typer.Option("--plot", metavar="FILE", help="Write a picture (.png, .svg).")] = None,
    as_json: Json = False,
) -> Result:
    """Time a model or an operator in pyrnnx and in the installed peers: ONNX Runtime, OpenVINO, PyTorch."""
    counts = [integer("bench: --threads", threads, 1), integer("bench: --repeat", repeat, 1)]
    names = None if against is None else against.split(",")
    of_op = {
        "--shape": shape,
        "--dtype": dtype,
        "--bidirectional": bidirectional,
        "--linear-before-reset": linear_before_reset,
    }
    of_model = {"--dim": dims, "--input": inputs, "--layers": layers}
    if (model is None) == (op is None):
        given = "neither MODEL nor --op was given" if model is None else "MODEL and --op were both given"
        raise ArgumentError(f"bench: {given}; expected one")
    for name, value in (of_op if op is None else of_model).items():
        if value:
            subject = "a model" if op is None else "--op"
            raise ArgumentError(f"bench: {name} does not apply to {subject}; expected it left out")
    for name, value in {"--against": against, "--plot": plot}.items() if layers else ():
        if value is not None:
            raise ArgumentError(f"bench: {name} does not apply to --layers; expected it left out")
    if plot is not None:
        matplotlib_figures()  # fails before minutes of timing
        check_report("bench: --plot", picture_path(plot))
        check_not_read("bench: --plot", picture_path(plot), [model, *input_files(inputs)])

    def progress(text: str) -> None:
        streams.show_progress(f"bench: {op or model}{text and ': '}{text}")

    progress("")
    try:
        if op is not None:
            measurement = _of_operator(
                op, shape or SHAPE, dtype or "float32", (bidirectional, linear_before_reset), names, counts, progress
            )
        else:
            open_sizes = sizes("bench: --dim", dims)
            feeds = _inputs(str(model), inputs, integer("bench: --seed", seed, 0), open_sizes)
            if layers:
                from pyrnnx.bench.breakdown import measure_parts

                parts = measure_parts(Path(str(model)), feeds, *counts, progress=progress)
                return Result(parts.to_dict, _shown_parts(parts))
            from pyrnnx.bench.measured import measure_model

            measurement = measure_model(Path(str(model)), feeds, names, *counts, progress=progress)
    finally:
        streams.show_progress("")
    if plot is not None:
        from pyrnnx.bench.plot import plot_measurement

        plot_measurement(measurement, plot)
    return Result(measurement.to_dict, _shown(measurement))


def _of_operator(
    op: str,
    shape: str,
    dtype: str,
    forms: Sequence[bool],
    against: Sequence[str] | None,
    counts: Sequence[int],
    progress: Callable[[str], object],
) -> Measurement:
    from pyrnnx.bench.measured import measure_case
    from pyrnnx.bench.workload import Case

    for name, value, allowed in (("--op", op, OPERATORS), ("--dtype", dtype, DTYPES)):
        if value not in allowed:
            raise ArgumentError(f"bench: {name} is {shown(value)}; expected one of {', '.join(allowed)}")
    texts = shape.split(",")
    if len(texts) != 4:
        raise ArgumentError(f"bench: --shape is {shown(shape)}; expected four numbers T,N,I,H, such as {SHAPE}")
    both, linear = forms
    if linear and op != "GRU":
        raise ArgumentError(f"bench: --linear-before-reset was given with --op {op}; expected GRU")
    T, N, I, H = (integer("bench: --shape", size, 1) for size in texts)
    case = Case(CELLS[op].name, T, N, I, H, directions=2 if both else 1, dtype=dtype, linear_before_reset=int(linear))
    return measure_case(case, against, *counts, progress=progress)


def _inputs(model: str, inputs: list[str] | None, seed: int, dims: dict[str, int]) -> dict[str, Any]:
    """Return the inputs of a call of a model: those of files, or random ones with which it runs."""
    from pyrnnx.testing.models.calls import try_calls

    read = read_model_or_layer(model)
    if not isinstance(read, Model):
        raise ArgumentError(f"bench: {read.label} is a single layer; expected a whole model, or --op")
    arrays = given_inputs("bench: --input", inputs, read.inputs) if inputs else None
    return next(iter(try_calls(read, arrays, seed, dims, "bench"))).inputs


def _shown(measurement: Measurement) -> list[RenderableType]:
    from pyrnnx.bench.timing import milliseconds

    ratios, rows = measurement.ratios, list[tuple[Any, ...]]()
    for name, seconds in measurement.seconds.items():
        spread = f"{milliseconds(min(seconds))} to {milliseconds(max(seconds))}"
        cells = (milliseconds(measurement.medians[name]), spread, f"{ratios[name]:.2f}" if name in ratios else "")
        rows.append((name, *cells, *_difference(measurement, name)))
    columns = ("Library", "Median, ms", "Rounds, ms", "Ratio", *(("Difference",) if measurement.differences else ()))
    threads = "one thread" if measurement.threads == 1 else f"{measurement.threads} threads"
    rounds = len(next(iter(measurement.seconds.values())))
    shown: list[RenderableType] = [
        tables.heading(measurement.what, f"{threads}, {rounds} rounds"),
        tables.table(columns, rows, right=range(1, len(columns))),
    ]
    if ratios:
        words = "Ratio: the median over the rounds of a library's time divided by pyrnnx's; above 1 pyrnnx is faster."
        shown += [tables.indented(tables.text(words, "dim"))]
    if measurement.reasons:
        shown += [tables.heading("Not timed"), tables.pairs(measurement.reasons.items())]
    return shown


def _shown_parts(measured: Breakdown) -> list[RenderableType]:
    from pyrnnx.bench.timing import milliseconds

    rows = [
        (part.name, part.kind, f"{part.nodes:g}", f"{part.seconds * 1e3:.4f}", f"{measured.share(part):.1%}")
        for part in measured.parts
    ]
    rows.append(
        ("All nodes", "", f"{sum(part.nodes for part in measured.parts):g}", f"{measured.nodes * 1e3:.4f}", "100.0%")
    )
    covered = measured.nodes / measured.call
    words = (
        f"The nodes are {covered:.0%} of it; the rest is between them, around the session, or of other programs."
        if covered < 1
        else "The nodes take longer in the profile: it slows each by some microseconds."
    )
    return [
        tables.heading(measured.what, "one thread" if measured.threads == 1 else f"{measured.threads} threads"),
        tables.table(("Part", "Kind", "Runs", "ms", "Share"), rows, right=(2, 3, 4)),
        tables.indented(tables.text(f"A call without a profile takes {milliseconds(measured.call)} ms.", "bold")),
        tables.indented(tables.text(words, "dim")),
    ]


def _difference(measurement: Measurement, name: str) -> tuple[str, ...]:
    """Return the cell with the difference of a library's outputs from those of pyrnnx, if there is such a column."""
    if not measurement.differences:
        return ()
    return (f"{measurement.differences[name]:.2g}",) if name in measurement.differences else ("",)
