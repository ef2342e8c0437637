"""The command `pyrnnx run`: a model or one of its layers on arrays from files or on random arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import RenderableType

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx._internal.writing import check_writable
from pyrnnx.bench.timing import milliseconds
from pyrnnx.cli import tables
from pyrnnx.cli.app import command
from pyrnnx.cli.arguments import Dims, Inputs, Json, ModelFile, chosen_layer, integer, sizes
from pyrnnx.cli.arrays import given_inputs, write_npz
from pyrnnx.cli.output import Result
from pyrnnx.comparison.calls import arranged, prepared_call
from pyrnnx.comparison.inputs import named_after
from pyrnnx.comparison.models.runs import Call
from pyrnnx.errors import ArgumentError, shown
from pyrnnx.load import read_model_or_layer
from pyrnnx.models.model import Model
from pyrnnx.operator.conventions import CALL_ARGUMENTS, CANONICAL, rearrange
from pyrnnx.operator.tensor_info import TensorInfo
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
    layer: Annotated[
        str | None,
        typer.Option("--layer", metavar="NAME", help="Run only the recurrent layer with this name or index."),
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", metavar="FILE.npz", help="Write the outputs to a file.")
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
    started = perf_counter()
    subject: Any = read_model_or_layer(model)
    if layer is not None:
        if not isinstance(subject, Model):
            raise ArgumentError(f"run: --layer: {subject.label} is a layer itself; expected a model")
        subject = chosen_layer(subject.layers, layer)
    loaded = perf_counter()
    infos = subject.inputs if isinstance(subject, Model) else _inputs_of(subject)
    given = given_inputs("run: --input", inputs, infos)
    missing = [shown(info.name) for info in infos if not info.optional and info.name not in given]
    if missing and seed is None:
        raise ArgumentError(
            f"run: {subject.label}: no array for {', '.join(missing)}; expected --input NAME=FILE.npy, or --seed SEED"
        )
    if isinstance(subject, Model):
        call = next(iter(try_calls(subject, given, seed or 0, open_sizes, "run")))
    else:
        call = _run_layer(subject, given, seed, open_sizes)
    if output is not None:
        write_npz("run: --output", output, call.outputs)
    facts: dict[str, Any] = {
        "model": model,
        "layer": layer,
        "inputs": {name: {**summary(array), "random": name not in given} for name, array in call.inputs.items()},
        "outputs": {name: summary(array) for name, array in call.outputs.items()},
        "seconds": {"load": loaded - started, "first call": perf_counter() - loaded},
    }
    return Result(facts, _shown(subject.label, facts, output))


def _inputs_of(layer: Any) -> Sequence[TensorInfo]:
    """Return the inputs of a layer by the names of its convention."""
    if layer.op is None:
        raise ArgumentError(f"run: {layer.label} does not declare its hidden_size; expected a layer with weights")
    optional = {*CALL_ARGUMENTS} - {"X", *layer.convention.required} | {*getattr(layer, "constants", ())}
    return [
        TensorInfo(name, aliases=() if name == argument else (argument,), optional=argument in optional)
        for name, argument in _arguments(layer).items()
    ]


def _arguments(layer: Any) -> dict[str, str]:
    """Return the arguments of a layer by the names of its convention."""
    arguments = [name for name in CALL_ARGUMENTS if name != "initial_c" or layer.op.has_cell_state]
    convention = layer.convention
    return {convention.name_of(name): name for name in arguments if name == "X" or convention.axes_of(name)}


def _run_layer(layer: Any, given: Mapping[str, AnyArray], seed: int | None, dims: Mapping[str, int]) -> Call:
    """Run a layer on the given arrays, and with a seed on random ones for the others; missing weights are random."""
    convention, arguments = layer.convention, _arguments(layer)
    canonical = {}
    for name, array in given.items():
        axes = convention.axes_of(arguments[name])
        if array.ndim != len(axes):
            raise ArgumentError(f"run: input {shown(name)} has shape {array.shape}; expected {len(axes)} axes")
        canonical[arguments[name]] = rearrange(array, axes, CANONICAL.axes_of(arguments[name]))
    with named_after("run"):
        (bound, _), arrays = prepared_call(layer, layer, canonical, seed or 0, dims)
        lengths = () if "sequence_lens" in convention.required else ("sequence_lens",)
        left_out = {*arrays} if seed is None else {*getattr(layer, "constants", ()), *lengths}
        random = arranged(bound, {name: arrays[name] for name in arrays if name not in {*left_out, *canonical}})
    inputs = {name: random[key] for name, key in arguments.items() if key in random} | dict(given)
    inputs = {name: inputs[name] for name in arguments if name in inputs}
    results = bound.run(**{arguments[name]: array for name, array in inputs.items()})
    return Call(inputs, dict(zip(map(convention.name_of, bound.output_names), results, strict=True)))


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
