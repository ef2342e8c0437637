"""The command `pyrnnx compare`: two models or layers side by side."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pyrnnx import comparison
from pyrnnx.cli import tables
from pyrnnx.cli.app import command
from pyrnnx.cli.arguments import MODEL_FILE, Atol, Dims, Inputs, Json, Rtol, Seed, sizes
from pyrnnx.cli.arrays import inputs_of
from pyrnnx.cli.output import DIFFERENT, SUCCESS, Result, console
from pyrnnx.comparison.agreement import Tolerance, first_apart, tolerance_of
from pyrnnx.comparison.layers import Comparison
from pyrnnx.comparison.models import ModelComparison
from pyrnnx.comparison.views.text import layer_lines, model_lines, verdict, wrapped
from pyrnnx.errors import ArgumentError, shown

_STYLES = {"same": "bold green", "different": "bold red", "not decided": "bold yellow"}


@command(
    "compare",
    "pyrnnx compare model.onnx model.xml",
    "pyrnnx compare a.onnx b.onnx --dim batch=8 --rtol 1e-3",
    notes=(
        "Exit status: 0 if all numbers of outputs and paired layers agree; 1 if any differ, or if it is not decided "
        "whether the two are the same; 2 for errors, also if the inputs of the two are different. A layer without a "
        "counterpart in the other model is reported, but does not count.",
        "If one of --atol and --rtol is set, the other is 1e-5.",
        "Models run several times. Not decided: an output is empty, missing or constant in every call, an integer "
        "input could not be varied, or a layer has the weights of one that runs in another direction.",
    ),
)
def compare(
    a: Annotated[str, typer.Argument(metavar="MODEL", help=f"{MODEL_FILE}.")],
    b: Annotated[str, typer.Argument(metavar="OTHER", help="Another; a layer without weights takes those of MODEL.")],
    inputs: Inputs = None,
    dims: Dims = None,
    atol: Atol = None,
    rtol: Rtol = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> Result:
    """Compare two models or layers: their conventions and their numbers."""
    tolerance, open_sizes = tolerance_of(atol, rtol), sizes("compare: --dim", dims)
    arrays = inputs_of("compare: --input", inputs, a)
    try:
        result = comparison.compare(a, b, arrays, seed=seed, dims=open_sizes or None)
    except MemoryError:
        raise ArgumentError(f"compare: {shown(a)} and {shown(b)}: not enough memory") from None
    status = SUCCESS if result.equal(*tolerance) else DIFFERENT
    if as_json:
        return Result(_data(result, tolerance), status=status)
    width = console().width
    if isinstance(result, ModelComparison):
        lines = model_lines(result, tolerance=tolerance, width=width)
    else:
        lines = layer_lines(result, tolerance=tolerance, width=width)
    style, words = _STYLES[result.verdict(*tolerance)], wrapped(verdict(result, tolerance), width, "    ")
    report = [*map(tables.line, lines), *(tables.line(line, style) for line in words)]
    return Result({}, report, status)


def _data(result: Comparison | ModelComparison, tolerance: Tolerance) -> dict[str, Any]:
    verdict = {"equal": result.equal(*tolerance), "verdict": result.verdict(*tolerance)}
    data = {**result.to_dict(), **verdict, "not_decided": result.undecided(*tolerance), **tolerance._asdict()}
    if isinstance(result, ModelComparison):
        data["first_difference"] = first_apart(result.values, tolerance)
    return data
