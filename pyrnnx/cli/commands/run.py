"""The command `pyrnnx run`: a model on arrays from files or on random arrays."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import RenderableType

from pyrnnx._internal.writing import check_writable
from pyrnnx.bench.timing import milliseconds
from pyrnnx.cli import tables
from pyrnnx.cli.app import command
from pyrnnx.cli.arguments import Dims, Inputs, Json, ModelFile, integer, sizes
from pyrnnx.cli.arrays import given_inputs, write_npz
from pyrnnx.cli.output import Result
from pyrnnx.errors import ArgumentError, shown
from pyrnnx.load import load
from pyrnnx.models.model import Model
from pyrnnx.testing.models.calls import try_calls


@command(
    "run",
    "pyrnnx run model.onnx --input X=x.npy --input arrays.npz --output out.npz",
    "pyrnnx run model.onnx --seed 3 --dim batch=8",
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
    output: Annotated[
        str | None, typer.Option("--output", metavar="FILE.npz", help="Write the outputs to a file.")
    ] = None,
    as_json: Json = False,
) -> Result:
    """Run a model, and show its outputs and times."""
    open_sizes = sizes("run: --dim", dims)
    if open_sizes and seed is None:
        raise ArgumentError("run: --dim sets the sizes of random inputs; expected --seed SEED as well")
    if output is not None:
        if Path(output).suffix.lower() != ".npz":
            raise ArgumentError(f"run: --output: {shown(output)}; expected the name of an .npz file")
        check_writable("run: --output", output)
    started = perf_counter()
    read: Any = load(model)
    if not isinstance(read, Model):
        raise ArgumentError(f"run: {read.label} is a single layer; expected a whole model")
    loaded = perf_counter()
    given = given_inputs("run: --input", inputs, read.inputs)
    missing = [shown(info.name) for info in read.inputs if not info.optional and info.name not in given]
    if missing and seed is None:
        raise ArgumentError(
            f"run: {read.label}: no array for {', '.join(missing)}; expected --input NAME=FILE.npy, or --seed SEED"
        )
    call = next(iter(try_calls(read, given, seed or 0, open_sizes, "run")))
    if output is not None:
        write_npz("run: --output", output, call.outputs)
    facts: dict[str, Any] = {
        "model": model,
        "inputs": {name: {**summary(array), "random": name not in given} for name, array in call.inputs.items()},
        "outputs": {name: summary(array) for name, array in call.outputs.items()},
        "seconds": {"load": loaded - started, "first call": perf_counter() - loaded},
    }
    return Result(facts, _shown(read.label, facts, output))


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


def _shown(label: str, facts: dict[str, Any], output: str | None) -> list[RenderableType]:
    shown: list[RenderableType] = [tables.heading("Run", label)]
    for side in ("inputs", "outputs"):
        rows = [_row(name, array) for name, array in facts[side].items()]
        columns = ("Name", "Type", "Shape", "Min", "Mean", "Max", "NaN")
        shown += [tables.heading(side.capitalize()), tables.table(columns, rows, right=(3, 4, 5, 6))]
    times = [(name, f"{milliseconds(time)} ms") for name, time in facts["seconds"].items()]
    shown += [tables.heading("Time"), tables.pairs(times)]
    return shown + ([tables.heading("Written", output)] if output is not None else [])


def _row(name: str, facts: dict[str, Any]) -> list[Any]:
    if "dtype" not in facts:
        return [name, facts["kind"], "", "", "", "", ""]
    numbers = [f"{facts[key]:.4g}" if key in facts else "" for key in ("min", "mean", "max")]
    nan = facts.get("nan", "")
    words = f"{name}{' (random)' if facts.get('random') else ''}"
    return [words, facts["dtype"], tables.shape(facts["shape"]), *numbers, tables.text(nan, "bold red" if nan else "")]
