"""`pyrnnx bench`: time beside other libraries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pyrnnx.cli import streams
from pyrnnx.cli.app import command
from pyrnnx.cli.arguments import Dims, Inputs, Json, Seed, integer, model_suffixes, sizes
from pyrnnx.cli.result import Result
from pyrnnx.errors import ArgumentError, shown

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pyrnnx.bench.measured import Measurement

CELLS = ("LSTM", "GRU", "RNN")
DTYPES = ("float32", "float64", "float16")
SHAPE = "100,8,128,128"


@command(
    "bench",
    "pyrnnx bench --op LSTM --shape 100,8,128,128",
    "pyrnnx bench model.onnx --against onnxruntime --threads 2 --plot times.png",
    notes=(
        "All run in this process, in turns, so that drift of the machine meets all alike; a ratio is the median, over "
        "the rounds, of a library's time over that of pyrnnx: above 1 pyrnnx is faster. Before, their numbers are "
        "compared; one that gives others is not timed, and that is said.",
    ),
)
def bench(
    model: Annotated[
        str | None,
        typer.Argument(metavar="MODEL", help="An .onnx or OpenVINO .xml model.", autocompletion=model_suffixes),
    ] = None,
    op: Annotated[
        str | None, typer.Option("--op", metavar="CELL", help="Instead of a model: LSTM, GRU or RNN.")
    ] = None,
    shape: Annotated[
        str | None,
        typer.Option(
            "--shape",
            metavar="T,N,I,H",
            help=f"Of --op: sequence length, batch size, input size, hidden size (default: {SHAPE}).",
        ),
    ] = None,
    dtype: Annotated[
        str | None, typer.Option("--dtype", metavar="TYPE", help="Of --op: float32 (default), float64 or float16.")
    ] = None,
    bidirectional: Annotated[bool, typer.Option("--bidirectional", help="Of --op: both directions.")] = False,
    linear_before_reset: Annotated[
        bool, typer.Option("--linear-before-reset", help="Of --op GRU: the form that PyTorch has, too.")
    ] = False,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="NAME,NAME",
            help="onnxruntime, openvino; with --op torch, too (default: those installed).",
        ),
    ] = None,
    threads: Annotated[str, typer.Option("--threads", metavar="NUMBER", help="Of each library.")] = "1",
    repeat: Annotated[str, typer.Option("--repeat", metavar="ROUNDS", help="How often each is timed.")] = "9",
    seed: Seed = "0",
    dims: Dims = None,
    inputs: Inputs = None,
    plot: Annotated[str | None, typer.Option("--plot", metavar="FILE", help="Write a picture (.png, .svg).")] = None,
    as_json: Json = False,
) -> Result:
    """Time a model or an operator side by side with what is installed: ONNX Runtime, OpenVINO, PyTorch."""
    counts = [integer("bench: --threads", threads, 1), integer("bench: --repeat", repeat, 1)]
    names = None if against is None else against.split(",")
    of_op = {
        "--shape": shape,
        "--dtype": dtype,
        "--bidirectional": bidirectional,
        "--linear-before-reset": linear_before_reset,
    }
    of_model = {"--dim": dims, "--input": inputs}
    if (model is None) == (op is None):
        given = "neither" if model is None else "both"
        raise ArgumentError(f"bench: {given} of MODEL and --op was given; expected one")
    for name, value in (of_op if op is None else of_model).items():
        if value:
            raise ArgumentError(f"bench: {name} was given with {'a model' if op is None else '--op'}; expected none")
    if plot is not None:
        from pyrnnx.comparison.views.plot import matplotlib_figures
        from pyrnnx.files import check_report

        matplotlib_figures()  # before minutes of timing
        check_report("bench: --plot", plot)
    streams.show_progress(f"bench: {op or model}")
    try:
        if op is not None:
            found = _of_operator(
                op, shape or SHAPE, dtype or "float32", (bidirectional, linear_before_reset), names, counts
            )
        else:
            open_sizes = sizes("bench: --dim", dims)
            found = _of_model(str(model), inputs, integer("bench: --seed", seed, 0), open_sizes, names, counts)
    finally:
        streams.show_progress("")
    if plot is not None:
        from pyrnnx.bench.plot import plot_measurement

        plot_measurement(found, plot)
    return Result(found.to_dict, _shown(found))


def _of_operator(
    op: str, shape: str, dtype: str, forms: Sequence[bool], against: Sequence[str] | None, counts: Sequence[int]
) -> Measurement:
    from pyrnnx.bench.measured import measure_case
    from pyrnnx.bench.workload import Case

    for name, value, allowed in (("--op", op, CELLS), ("--dtype", dtype, DTYPES)):
        if value not in allowed:
            raise ArgumentError(f"bench: {name} is {shown(value)}; expected one of {', '.join(allowed)}")
    lengths = [integer("bench: --shape", one, 1) for one in shape.split(",")]
    if len(lengths) != 4:
        raise ArgumentError(f"bench: --shape is {shown(shape)}; expected T,N,I,H: four numbers")
    both, linear = forms
    if linear and op != "GRU":
        raise ArgumentError(f"bench: --linear-before-reset was given with --op {op}; expected GRU")
    T, N, I, H = lengths
    case = Case(op, T, N, I, H, directions=2 if both else 1, dtype=dtype, linear_before_reset=int(linear))
    return measure_case(case, against, *counts)


def _of_model(
    model: str,
    inputs: list[str] | None,
    seed: int,
    dims: dict[str, int],
    against: Sequence[str] | None,
    counts: Sequence[int],
) -> Measurement:
    from pathlib import Path

    from pyrnnx.bench.measured import measure_model
    from pyrnnx.cli.arrays import given_inputs
    from pyrnnx.load import load
    from pyrnnx.model import Model
    from pyrnnx.testing.models.calls import run_call

    read = load(model)
    if not isinstance(read, Model):
        raise ArgumentError(f"bench: {read.label} is a single layer; expected a whole model, or --op")
    arrays = given_inputs("bench: --input", inputs, read.inputs) if inputs else None
    given, _ = run_call(read, arrays, seed, dims, "bench")
    return measure_model(Path(model), given, against, *counts)


def _shown(found: Measurement) -> list[RenderableType]:
    from pyrnnx.bench.timing import milliseconds
    from pyrnnx.cli import tables

    ratios, rows = found.ratios, list[tuple[Any, ...]]()
    for name, seconds in found.seconds.items():
        spread = f"{milliseconds(min(seconds))} to {milliseconds(max(seconds))}"
        cells = (milliseconds(found.medians[name]), spread, f"{ratios[name]:.2f}" if name in ratios else "")
        rows.append((name, *cells, *_difference(found, name)))
    columns = ("Library", "Median, ms", "Rounds, ms", "Ratio", *(("Difference",) if found.differences else ()))
    threads = "one thread" if found.threads == 1 else f"{found.threads} threads"
    rounds = len(next(iter(found.seconds.values())))
    shown: list[RenderableType] = [
        tables.heading(found.what, f"{threads}, {rounds} rounds"),
        tables.table(columns, rows, right=range(1, len(columns))),
    ]
    if ratios:
        words = "Ratio: a library's time over that of pyrnnx; above 1 pyrnnx is faster."
        shown += [tables.indented(tables.text(words, "dim"))]
    if found.reasons:
        shown += [tables.heading("Not timed"), tables.pairs(found.reasons.items())]
    return shown


def _difference(found: Measurement, name: str) -> tuple[str, ...]:
    """Of a model: how far its outputs are from those of pyrnnx."""
    if not found.differences:
        return ()
    return (f"{found.differences[name]:.2g}",) if name in found.differences else ("",)
