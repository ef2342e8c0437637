"""`pyrnnx check`: a model in pyrnnx and in other runtimes, and which of them to believe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from pyrnnx.cli import streams
from pyrnnx.cli.app import command
from pyrnnx.cli.arguments import MODEL_FILE, Dims, Inputs, Json, integer, model_suffixes, number, sizes
from pyrnnx.cli.result import Result
from pyrnnx.cli.status import Status

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pyrnnx.testing.models import Judged, ModelCheck

_STYLES = {"agrees": "green", "differs": "red", "crashed": "red", "timed out": "red", "refuses": "yellow"}


@command(
    "check",
    "pyrnnx check model.onnx",
    "pyrnnx check model.xml --against openvino --dim batch=8 --seed 1",
    notes=(
        "Every runtime has a process of its own, which may crash. Each recurrent layer is judged by the float64 "
        "oracle: as it ran in the model in pyrnnx, and alone, on the same inputs, in the others.",
        "Exit status: 0 if all that ran agree; 1 if one differs, crashes or takes too long, or if pyrnnx is away from "
        "the oracle; 2 for errors. A runtime that refuses the model has not run.",
    ),
)
def check(
    model: Annotated[str, typer.Argument(metavar="MODEL", help=f"{MODEL_FILE}.", autocompletion=model_suffixes)],
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="NAME,NAME", help="onnxruntime, openvino (default: those installed)."),
    ] = None,
    seed: Annotated[str, typer.Option("--seed", "--random", metavar="INTEGER", help="Of the random inputs.")] = "0",
    dims: Dims = None,
    inputs: Inputs = None,
    atol: Annotated[str | None, typer.Option("--atol", metavar="NUMBER", help="Absolute tolerance.")] = None,
    rtol: Annotated[str | None, typer.Option("--rtol", metavar="NUMBER", help="Relative tolerance.")] = None,
    timeout: Annotated[str, typer.Option("--timeout", metavar="SECONDS", help="For each run of a model.")] = "300",
    as_json: Json = False,
) -> Result:
    """Compare a model's numbers with those of other runtimes, and say which of them to believe.

    Without tolerances, outputs may be as far apart as two right computations in their type can be.
    """
    from pyrnnx.cli.arrays import inputs_of
    from pyrnnx.testing.models import check_model

    limits = {"atol": atol, "rtol": rtol}
    try:
        found = check_model(
            model,
            None if against is None else against.split(","),
            inputs_of("check: --input", inputs, model),
            seed=integer("check: --seed", seed, 0),
            dims=sizes("check: --dim", dims),
            **{name: None if one is None else number(f"check: --{name}", one) for name, one in limits.items()},
            timeout=number("check: --timeout", timeout, "number of seconds above 0", above=True),
            progress=streams.show_progress,
        )
    finally:
        streams.show_progress("")
    return Result(found.to_dict, _shown(found), status=Status.DIFFERENT if found.failed else Status.SUCCESS)


def _shown(found: ModelCheck) -> list[RenderableType]:
    from pyrnnx.cli import tables

    shapes = ((name, tables.shape(shape)) for name, shape in found.input_shapes.items())
    shown: list[RenderableType] = [tables.heading("Model", found.model), tables.pairs(shapes)]
    rows: list[tuple[Any, ...]] = [
        (f"{one.name} {one.version}", _number(one.outputs), tables.text(one.verdict, _STYLES[one.outputs.status]))
        for one in found.runtimes
    ]
    shown += [tables.heading("Whole model", "largest difference from pyrnnx, of all outputs")]
    shown += [tables.table(("Runtime", "Difference", "Verdict"), rows)] if rows else [_none("no runtime is installed")]
    apart = [one for one in found.runtimes if one.outputs.status == "differs"]
    if apart:
        names = list(apart[0].outputs.differences)
        lines = [(name, *(_short(one.outputs.differences[name]) for one in apart)) for name in names]
        columns = ("Output", *(one.name for one in apart))
        shown += [tables.heading("Outputs", "difference from pyrnnx")]
        shown += [tables.table(columns, lines, right=range(1, len(columns)))]
    shown += [tables.heading("Recurrent layers", "largest difference from the float64 oracle"), *_layers(found)]
    return shown


def _layers(found: ModelCheck) -> list[RenderableType]:
    from pyrnnx.cli import tables

    if not found.layers:
        return [_none("the model has none")]
    names = ["pyrnnx", *(one.name for one in found.runtimes)]
    rows = [
        (one.name, *(_number(one.judged[name]) if name in one.judged else "" for name in names))
        for one in found.layers
        if one.judged
    ]
    shown: list[RenderableType] = []
    if rows:
        shown += [tables.table(("Layer", *names), rows, right=range(1, len(names) + 1))]
    untold = [(one.name, one.problem) for one in found.layers if not one.judged]
    return [*shown, tables.pairs((name, f"not judged: {why}") for name, why in untold)] if untold else shown


def _number(judged: Judged) -> RenderableType:
    """A largest difference, or why there is none."""
    from pyrnnx.cli import tables

    style = _STYLES[judged.status]
    if judged.status in ("agrees", "differs"):
        return tables.text(_short(judged.largest), style)
    return tables.text(judged.status, style)


def _short(value: float) -> str:
    return f"{value:.2g}"


def _none(words: str) -> RenderableType:
    from pyrnnx.cli import tables

    return tables.indented(tables.text(words, "dim"))
