"""The command `pyrnnx check`: a model in pyrnnx and in other runtimes, judged by the oracle and by a clock."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import RenderableType

from pyrnnx import config
from pyrnnx.cli import tables
from pyrnnx.cli.app import command
from pyrnnx.cli.arguments import Atol, Dims, Inputs, Json, ModelFile, Rtol, Seed, number, sizes
from pyrnnx.cli.arrays import inputs_of
from pyrnnx.cli.output import DIFFERENT, SUCCESS, Result, progress
from pyrnnx.cli.verdict import guessed_sizes, verdict
from pyrnnx.load import read_model_or_layer
from pyrnnx.models.model import Model

if TYPE_CHECKING:
    from pyrnnx.testing.models import Judged, ModelCheck

ROUNDS, SECONDS = 9, 1.5  # of the times with one number of threads
_STYLES = {
    "agrees": "green",
    **dict.fromkeys(("differs", "crashed", "timed out"), "red"),
    **dict.fromkeys(("refuses", "not decided"), "yellow"),
}


@command(
    "check",
    "pyrnnx check model.onnx",
    "pyrnnx check model.xml --against openvino --dim batch=8 --seed 1",
    notes=(
        "Every runtime has its own process, which may crash. The float64 oracle judges each recurrent layer: in "
        "pyrnnx as part of the model, in other runtimes alone on the same inputs; in bodies of If, Loop and Scan "
        "everywhere alone, on random inputs.",
        "The model runs several times, with lengths and other integers that vary. Not decided: an output is empty or "
        "constant in every call, or an integer input could not be varied.",
        "The last lines say what is right, how fast a call of pyrnnx.onnxruntime.InferenceSession is beside ONNX "
        "Runtime's with one thread and with all (of an IR, pyrnnx.load), and whether the change is worth it.",
        "Exit status: 0 if all runtimes that ran the model agree; 1 if one differs, crashes or times out, if it is not "
        "decided whether it agrees, or if pyrnnx differs from the oracle; 2 for errors. A runtime that refuses the "
        "model does not count.",
    ),
)
def check(
    model: ModelFile,
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="NAME,NAME", help="onnxruntime, openvino (default: those installed)."),
    ] = None,
    seed: Seed = 0,
    dims: Dims = None,
    inputs: Inputs = None,
    atol: Atol = None,
    rtol: Rtol = None,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", parser=number, help="Limit for each run of a model.")
    ] = 300.0,
    no_speed: Annotated[bool, typer.Option("--no-speed", help="Measure no times.")] = False,
    as_json: Json = False,
) -> Result:
    """Show whether a model's outputs are right, how fast it is beside other runtimes, and whether to change.

    The default tolerances are the largest differences between two correct computations in the type of the output.
    """
    from pyrnnx.testing.models import check_model

    open_sizes, arrays = sizes("check: --dim", dims), inputs_of("check: --input", inputs, model)
    with progress() as show:
        result = check_model(
            model,
            None if against is None else against.split(","),
            arrays,
            seed=seed,
            dims=open_sizes,
            atol=atol,
            rtol=rtol,
            timeout=timeout,
            progress=show,
        )
        measured = ([], result.guessed) if no_speed else _speeds(model, result, arrays, seed, open_sizes, show)
    speeds, guessed = measured
    is_ir = Path(model).suffix.lower() == ".xml"
    door = "pyrnnx.load" if is_ir else "pyrnnx.onnxruntime.InferenceSession"
    peer = "OpenVINO" if is_ir and any(runtime.name == "OpenVINO" for runtime in result.runtimes) else "ONNX Runtime"
    lines = verdict(result, speeds, door, peer)
    warning = guessed_sizes(guessed)
    data = {**result.to_dict(), "speed": [speed.to_dict() for speed in speeds], "timed_sizes": guessed}
    report = [*_shown(result), *([tables.line(warning, "yellow")] if warning else [])]
    report += [tables.line(words, "bold") for words in lines.values()]
    return Result({**data, "verdict": lines}, report, DIFFERENT if result.failed else SUCCESS)


def _speeds(
    path: str, result: ModelCheck, arrays: Any, seed: int, dims: dict[str, int], show: Any
) -> tuple[list[Any], Mapping[str, int]]:
    """Return the times of a model with one thread and with all, and the sizes that were guessed for them."""
    from pyrnnx.bench.measured import measure_model
    from pyrnnx.testing.models.calls import timed_call
    from pyrnnx.testing.runtimes.models import MODEL_RUNTIMES

    model = read_model_or_layer(path)
    if not isinstance(model, Model):
        return [], {}
    feeds, guessed = timed_call(model, arrays, seed, dims, "check")
    ran = {runtime.name for runtime in result.runtimes if runtime.outputs.status not in ("crashed", "timed out")}
    names = [name for name, runtime in MODEL_RUNTIMES.items() if runtime.name in ran]
    speeds: list[Any] = []
    for threads in sorted({1, len(config.processors())}):
        show(f"times with {threads} threads")
        options: dict[str, Any] = {"same": False, "trial": not speeds, "max_time": SECONDS}
        speeds.append(measure_model(Path(path), feeds, names, threads, ROUNDS, **options))
    return speeds, guessed


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
    shown.append(tables.heading("Whole model", "largest difference from pyrnnx, of all outputs"))
    shown.append(tables.table(("Runtime", "Difference", "Verdict"), rows or [("none is installed", "", "")]))
    different = [runtime for runtime in check.runtimes if runtime.outputs.status == "differs"]
    if different:
        names = list(different[0].outputs.differences)
        lines = [(name, *(f"{runtime.outputs.differences[name]:.2g}" for runtime in different)) for name in names]
        columns = ("Output", *(runtime.name for runtime in different))
        shown += [tables.heading("Outputs", "difference from pyrnnx")]
        shown += [tables.table(columns, lines, right=range(1, len(columns)))]
    shown += [tables.heading("Recurrent layers", "largest difference from the float64 oracle"), *_layers(check)]
    return shown


def _layers(check: ModelCheck) -> list[RenderableType]:
    if not check.layers:
        return [tables.indented("the model has none", "dim")]
    names = ["pyrnnx", *(runtime.name for runtime in check.runtimes)]
    rows = [
        (
            f"{layer.name}{' (alone)' if layer.alone else ''}",
            *(_number(layer.judged[name]) if name in layer.judged else "" for name in names),
        )
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
        return tables.text(f"{judged.largest:.2g}", style)
    return tables.text(judged.status, style)
