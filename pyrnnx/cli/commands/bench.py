"""The command `pyrnnx bench`: speed compared with other libraries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer
from rich.console import RenderableType

from pyrnnx.bench.measured import Measurement, measure_case, measure_model
from pyrnnx.bench.timing import milliseconds
from pyrnnx.bench.workload import Case
from pyrnnx.cli import tables
from pyrnnx.cli.app import command
from pyrnnx.cli.arguments import Dims, Inputs, Json, Seed, integer, sizes
from pyrnnx.cli.arrays import given_inputs
from pyrnnx.cli.output import Result, progress
from pyrnnx.cli.verdict import guessed_sizes
from pyrnnx.errors import ArgumentError, shown
from pyrnnx.load import read_model_or_layer
from pyrnnx.models.model import Model
from pyrnnx.testing.models.calls import timed_call
from pyrnnx.testing.models.quantized import is_quantized

SHAPE = "100,8,128,128"


@command(
    "bench",
    "pyrnnx bench --op LSTM --shape 100,8,128,128",
    "pyrnnx bench model.onnx --against onnxruntime --threads 2",
    notes=(
        "All libraries run in this process in turns, so that changes in the speed of the machine affect all equally. A "
        "ratio is the median over the rounds of a library's time divided by pyrnnx's: above 1 pyrnnx is faster. A "
        "library whose results differ is reported and not timed, unless the layers of the model round to 8 bits.",
        "An ONNX model runs in InferenceSession of pyrnnx.onnxruntime and of onnxruntime, an IR in pyrnnx.load. Random "
        "inputs have 1 row and 50 steps where their sizes are open; --dim sets other sizes.",
    ),
)
def bench(
    model: Annotated[str | None, typer.Argument(metavar="MODEL", help="An .onnx or OpenVINO .xml model.")] = None,
    op: Annotated[
        Literal["LSTM", "GRU", "RNN"] | None,
        typer.Option("--op", metavar="CELL", help="Operator to time instead of a model: LSTM, GRU or RNN."),
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
        Literal["float32", "float64", "float16"] | None,
        typer.Option("--dtype", metavar="TYPE", help="For --op: float32 (default), float64 or float16."),
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
        ),
    ] = None,
    threads: Annotated[
        int, typer.Option("--threads", metavar="NUMBER", parser=integer(1), help="Threads of each library.")
    ] = 1,
    repeat: Annotated[
        int, typer.Option("--repeat", metavar="ROUNDS", parser=integer(1), help="Timings of each library.")
    ] = 9,
    seed: Seed = 0,
    dims: Dims = None,
    inputs: Inputs = None,
    as_json: Json = False,
) -> Result:
    """Time a model or an operator in pyrnnx and in the installed peers: ONNX Runtime, OpenVINO, PyTorch."""
    if (model is None) == (op is None):
        given = "neither MODEL nor --op was given" if model is None else "MODEL and --op were both given"
        raise ArgumentError(f"bench: {given}; expected one")
    foreign: dict[str, Any] = {"--dim": dims, "--input": inputs}
    if op is None:
        foreign = {"--shape": shape, "--dtype": dtype, "--bidirectional": bidirectional}
        foreign["--linear-before-reset"] = linear_before_reset
    for name, value in foreign.items():
        if value:
            subject = "a model" if op is None else "--op"
            raise ArgumentError(f"bench: {name} does not apply to {subject}; expected it left out")
    names = None if against is None else against.split(",")
    with progress() as show:
        show(f"bench: {op or model}")

        def tell(text: str) -> None:
            show(f"bench: {op or model}: {text}")

        if op is not None:
            case = _case(op, shape or SHAPE, dtype or "float32", bidirectional, linear_before_reset)
            measured = measure_case(case, names, threads, repeat, progress=tell)
            return Result(measured.to_dict(), _shown(measured))
        path, read = Path(str(model)), read_model_or_layer(str(model))
        if not isinstance(read, Model):
            raise ArgumentError(f"bench: {read.label} is a single layer; expected a whole model, or --op")
        arrays = given_inputs("bench: --input", inputs, read.inputs)
        feeds, guessed = timed_call(read, arrays, seed, sizes("bench: --dim", dims), "bench")
        same = not is_quantized(read)  # a last bit makes a difference of a code of 8 bits
        measured = measure_model(path, feeds, names, threads, repeat, same=same, progress=tell)
    shapes = {name: list(np.shape(array)) for name, array in feeds.items()}
    inputs_shown = tables.pairs([("inputs", ", ".join(f"{name} {tables.shape(shapes[name])}" for name in shapes))])
    warning = guessed_sizes(guessed)
    heading, *rest = _shown(measured)
    report = [heading, inputs_shown, *rest, *([tables.line(warning, "yellow")] if warning else [])]
    return Result({**measured.to_dict(), "input_shapes": shapes, "guessed": guessed}, report)


def _case(op: Any, shape: str, dtype: str, bidirectional: bool, linear_before_reset: bool) -> Case:
    if linear_before_reset and op != "GRU":
        raise ArgumentError(f"bench: --linear-before-reset was given with --op {op}; expected GRU")
    texts = shape.split(",")
    if len(texts) != 4 or not all(text.isdecimal() and int(text) > 0 for text in texts):
        raise ArgumentError(
            f"bench: --shape is {shown(shape)}; expected four numbers T,N,I,H, 1 or above, such as {SHAPE}"
        )
    T, N, I, H = map(int, texts)
    directions = 2 if bidirectional else 1
    return Case(op, T, N, I, H, directions=directions, dtype=dtype, linear_before_reset=int(linear_before_reset))


def _shown(measurement: Measurement) -> list[RenderableType]:
    ratios, rows = measurement.ratios, list[tuple[str, ...]]()
    columns = ("Library", "Median, ms", "Rounds, ms", "Ratio", "Difference")[: 5 if measurement.differences else 4]
    for name, seconds in measurement.seconds.items():
        spread = f"{milliseconds(min(seconds))} to {milliseconds(max(seconds))}"
        ratio = f"{ratios[name]:.2f}" if name in ratios else ""
        difference = f"{measurement.differences[name]:.2g}" if name in measurement.differences else ""
        rows.append((name, milliseconds(measurement.medians[name]), spread, ratio, difference)[: len(columns)])
    threads = "one thread" if measurement.threads == 1 else f"{measurement.threads} threads"
    rounds = len(next(iter(measurement.seconds.values())))
    shown: list[RenderableType] = [
        tables.heading(measurement.what, f"{threads}, {rounds} rounds"),
        tables.table(columns, rows, right=range(1, len(columns))),
    ]
    if ratios:
        words = "Ratio: the median over the rounds of a library's time divided by pyrnnx's; above 1 pyrnnx is faster."
        shown += [tables.indented(words, "dim")]
    if measurement.reasons:
        shown += [tables.heading("Not timed"), tables.pairs(measurement.reasons.items())]
    return shown
