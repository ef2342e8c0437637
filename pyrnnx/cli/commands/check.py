"""The command `pyrnnx check`: a model in pyrnnx and in other runtimes, judged by the oracle."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import RenderableType

from pyrnnx.cli import streams, tables
from pyrnnx.cli.app import command
from pyrnnx.cli.arguments import (
    MODEL_FILE,
    Dims,
    Inputs,
    Json,
    Seed,
    complete_names,
    integer,
    model_suffixes,
    number,
    sizes,
)
from pyrnnx.cli.arrays import inputs_of
from pyrnnx.cli.result import Result
from pyrnnx.cli.status import Status

if TYPE_CHECKING:
    from pyrnnx.testing.models import Judged, ModelCheck

_STYLES = {
    "agrees": "green",
    **dict.fromkeys(("differs", "crashed", "timed out"), "red"),
    **dict.fromkeys(("refuses", "not decided"), "yellow"),
}


def _model_runtimes() -> Iterable[str]:
    """Return the names that ``--against`` accepts."""
    from pyrnnx.testing.runtimes.models import MODEL_RUNTIMES

    return MODEL_RUNTIMES


@command(
    "check",
    "pyrnnx check model.onnx",
    "pyrnnx check model.xml --against openvino --dim batch=8 --seed 1",
    notes=(
        "Every runtime has its own process, which may crash. The float64 oracle judges each recurrent layer: in "
        "pyrnnx as part of the model, in other runtimes alone on the same inputs.",
        "The model runs several times, with lengths and other integers that vary. Not decided: an output is empty or "
        "constant in every call, or an integer input could not be varied.",
        "Exit status: 0 if all runtimes that ran the model agree; 1 if one differs, crashes or times out, if it is not "
        "decided whether it agrees, or if pyrnnx differs from the oracle; 2 for errors. A runtime that refuses the "
        "model does not count.",
    ),
)
def check(
    model: Annotated[str, typer.Argument(metavar="MODEL", help=f"{MODEL_FILE}.", autocompletion=model_suffixes)],
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="NAME,NAME",
            help="onnxruntime, openvino (default: those installed).",
            autocompletion=complete_names(_model_runtimes, several=True),
        ),
    ] = None,
    seed: Seed = "0",
    dims: Dims = None,
    inputs: Inputs = None,
    atol: Annotated[str | None, typer.Option("--atol", metavar="NUMBER", help="Absolute tolerance.")] = None,
    rtol: Annotated[str | None, typer.Option("--rtol", metavar="NUMBER", help="Relative tolerance.")] = None,
    timeout: Annotated[
        str, typer.Option("--timeout", metavar="SECONDS", help="Limit for each run of a model.")
    ] = "300",
    as_json: Json = False,
) -> Result:
    """Compare a model's outputs with those of other runtimes, and show which of them are right.

    The default tolerances are the largest differences between two correct computations in the type of the output.
    """
    from pyrnnx.testing.models import check_model

    limits = {"atol": atol, "rtol": rtol}
    try:
        result = check_model(
            model,
            None if against is None else against.split(","),
            inputs_of("check: --input", inputs, model),
            seed=integer("check: --seed", seed, 0),
            dims=sizes("check: --dim", dims),
            **{name: None if text is None else number(f"check: --{name}", text) for name, text in limits.items()},
            timeout=number("check: --timeout", timeout, "number of seconds above 0", above=True),
            progress=streams.show_progress,
        )
    finally:
        streams.show_progress("")
    return Result(result.to_dict, _shown(result), status=Status.DIFFERENT if result.failed else Status.SUCCESS)


def _shown(check: ModelCheck) -> list[RenderableType]:
    shown: list[RenderableType] = [tables.heading("Model", check.model), tables.pairs(tables.calls(check.calls))]
    rows: list[tuple[Any, ...]] = [
        (
            f"{runtime.name} {runtime.version}",
            _number(runtime.outputs),
            tables.text(runtime.verdict, _STYLES[runtime.outputs.status]),
        )
        for runtime in check.runtimes
    ]
    shown += [tables.heading("Whole model", "largest difference from pyrnnx, of all outputs")]
    shown += [tables.table(("Runtime", "Difference", "Verdict"), rows)] if rows else [_none("no runtime is installed")]
    different = [runtime for runtime in check.runtimes if runtime.outputs.status == "differs"]
    if different:
        names = list(different[0].outputs.differences)
        lines = [(name, *(_short(runtime.outputs.differences[name]) for runtime in different)) for name in names]
        columns = ("Output", *(runtime.name for runtime in different))
        shown += [tables.heading("Outputs", "difference from pyrnnx")]
        shown += [tables.table(columns, lines, right=range(1, len(columns)))]
    shown += [tables.heading("Recurrent layers", "largest difference from the float64 oracle"), *_layers(check)]
    return shown


def _layers(check: ModelCheck) -> list[RenderableType]:
    if not check.layers:
        return [_none("the model has none")]
    names = ["pyrnnx", *(runtime.name for runtime in check.runtimes)]
    rows = [
        (layer.name, *(_number(layer.judged[name]) if name in layer.judged else "" for name in names))
        for layer in check.layers
        if layer.judged
    ]
    shown: list[RenderableType] = []
    if rows:
        shown += [tables.table(("Layer", *names), rows, right=range(1, len(names) + 1))]
    problems = [(layer.name, f"not judged: {layer.problem}") for layer in check.layers if not layer.judged]
    return [*shown, tables.pairs(problems)] if problems else shown


def _number(judged: Judged) -> RenderableType:
    """Return the largest difference, or the status if there is none."""
    style = _STYLES[judged.status]
    if judged.status in ("agrees", "differs", "not decided"):
        return tables.text(_short(judged.largest), style)
    return tables.text(judged.status, style)


def _short(value: float) -> str:
    return f"{value:.2g}"


def _none(words: str) -> RenderableType:
    return tables.indented(tables.text(words, "dim"))
