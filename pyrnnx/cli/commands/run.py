"""The command `pyrnnx run`: a model or one of its layers on arrays from files or on random arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import RenderableType

from pyrnnx._internal.writing import check_writable
from pyrnnx.cli import tables
from pyrnnx.cli.app import command
from pyrnnx.cli.arguments import Dims, Inputs, Json, ModelFile, chosen_layer, integer, sizes
from pyrnnx.cli.arrays import check_not_read, given_inputs, write_npz
from pyrnnx.cli.output import Result, console
from pyrnnx.cli.running import inputs_of, run_layer, run_model
from pyrnnx.errors import ArgumentError, shown
from pyrnnx.load import read_model_or_layer
from pyrnnx.models.model import Model


@command(
    "run",
    "pyrnnx run model.onnx --input X=x.npy --input arrays.npz --output out.npz",
    "pyrnnx run model.onnx --seed 3 --dim batch=8 --repeat 20",
)
def run(
    model: ModelFile,
    inputs: Inputs = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed", metavar="SEED", parser=integer(0), help="Use random arrays for inputs that are not given."
        ),
    ] = None,
    dims: Dims = None,
    layer: Annotated[
        str | None,
        typer.Option("--layer", metavar="NAME", help="Run only the recurrent layer with this name or index."),
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", metavar="FILE.npz", help="Write the outputs to a file.")
    ] = None,
    repeat: Annotated[
        int | None, typer.Option("--repeat", metavar="N", parser=integer(1), help="Time N more calls.")
    ] = None,
    as_json: Json = False,
) -> Result:
    """Run a model or a layer, and show its outputs and times."""
    open_sizes = sizes("run: --dim", dims)
    if open_sizes and seed is None:
        raise ArgumentError("run: --dim sets the sizes of random inputs; expected --seed SEED as well")
    if output is not None:
        if Path(output).suffix.lower() != ".npz":
            raise ArgumentError(f"run: --output: {shown(output)}; expected the name of an .npz file")
        check_writable("run: --output", output)
        check_not_read("run: --output", output, [model, *(inputs or ())])
    started = perf_counter()
    subject: Any = read_model_or_layer(model)
    if layer is not None:
        if not isinstance(subject, Model):
            raise ArgumentError(f"run: --layer: {subject.label} is a layer itself; expected a model")
        subject = chosen_layer(subject.layers, layer)
    times = {"load": perf_counter() - started}
    infos = inputs_of(subject)
    given = given_inputs("run: --input", inputs, infos)
    missing = [shown(info.name) for info in infos if not info.optional and info.name not in given]
    if missing and seed is None:
        raise ArgumentError(
            f"run: {subject.label}: no array for {', '.join(missing)}; expected --input NAME=FILE.npy, or --seed SEED"
        )
    started = perf_counter()
    ran = (run_model if isinstance(subject, Model) else run_layer)(subject, given, seed, open_sizes)
    times["first call"] = perf_counter() - started
    if repeat is not None:
        durations = _durations(ran.call, repeat)
        times |= {f"call, least of {repeat}": min(durations), "call, median": median(durations)}
    if output is not None:
        write_npz("run: --output", output, ran.outputs)
    facts: dict[str, Any] = {
        "model": model,
        "layer": layer,
        "inputs": {name: {**summary(array), "random": name not in given} for name, array in ran.inputs.items()},
        "outputs": {name: summary(array) for name, array in ran.outputs.items()},
        "seconds": times,
    }
    return Result(facts, _shown(subject.label, facts, output))


def _durations(call: Callable[[], Any], repeat: int) -> list[float]:
    from rich.progress import track

    durations: list[float] = []
    errors = console(stderr=True)
    for _ in track(range(repeat), "calls", transient=True, console=errors, disable=not errors.is_terminal):
        started = perf_counter()
        call()
        durations.append(perf_counter() - started)
    return durations


def summary(value: Any) -> dict[str, Any]:
    """Return "dtype" and "shape" of an array, and of numbers "min", "mean", "max" without NaN, and the count "nan"."""
    if not isinstance(value, (np.ndarray, np.generic)):
        return {"kind": type(value).__name__, "length": len(value) if hasattr(value, "__len__") else None}
    array = np.asarray(value)
    facts: dict[str, Any] = {"dtype": array.dtype.name, "shape": list(array.shape)}
    if array.dtype.kind not in "biufV" or array.dtype.names:
        return facts
    wide = array.astype(np.float64)
    numbers = wide[~np.isnan(wide)]
    with np.errstate(invalid="ignore", over="ignore"):  # infinities of both signs
        statistics = {"min": numbers.min(), "mean": numbers.mean(), "max": numbers.max()} if numbers.size else {}
    floats = {name: float(value) for name, value in statistics.items()}
    return {**facts, **floats, "nan": int(wide.size - numbers.size)}


def seconds(value: float) -> str:
    """Return a duration with a suitable unit: "1.23 ms"."""
    if value <= 0 or not math.isfinite(value):
        return f"{value:g} s"
    for factor, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "us")):
        if value >= factor:
            return f"{value / factor:.3g} {unit}"
    return f"{value * 1e9:.3g} ns"


def _shown(label: str, facts: dict[str, Any], output: str | None) -> list[RenderableType]:
    shown: list[RenderableType] = [tables.heading("Run", label)]
    for side in ("inputs", "outputs"):
        rows = [_row(name, array) for name, array in facts[side].items()]
        columns = ("Name", "Type", "Shape", "Min", "Mean", "Max", "NaN")
        shown += [tables.heading(side.capitalize()), tables.table(columns, rows, right=(3, 4, 5, 6))]
    times = [(name, seconds(time)) for name, time in facts["seconds"].items()]
    shown += [tables.heading("Time"), tables.pairs(times)]
    return shown + ([tables.heading("Written", output)] if output is not None else [])


def _row(name: str, facts: dict[str, Any]) -> list[Any]:
    if "dtype" not in facts:
        return [name, facts["kind"], "", "", "", "", ""]
    numbers = [f"{facts[key]:.4g}" if key in facts else "" for key in ("min", "mean", "max")]
    nan = facts.get("nan", "")
    words = f"{name}{' (random)' if facts.get('random') else ''}"
    return [words, facts["dtype"], tables.shape(facts["shape"]), *numbers, tables.text(nan, "bold red" if nan else "")]
