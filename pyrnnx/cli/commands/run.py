"""The command `pyrnnx run`: a model or one of its layers on arrays from files or on random arrays."""

from __future__ import annotations

from statistics import median
from time import perf_counter
from typing import Annotated, Any

import typer
from rich.console import RenderableType

from pyrnnx.cli import running, tables
from pyrnnx.cli.app import command
from pyrnnx.cli.arguments import MODEL_FILE, Dims, Inputs, Json, chosen_layer, integer, model_suffixes, sizes
from pyrnnx.cli.arrays import check_npz, given_inputs, seconds, summary, write_npz
from pyrnnx.cli.pushes import Cut, Pushes, all_pushes, joined
from pyrnnx.cli.result import Result
from pyrnnx.cli.running import Arrays, OneLayer, Subject, WholeModel
from pyrnnx.cli.streams import progress_bar
from pyrnnx.cli.targets import check_not_read, input_files
from pyrnnx.errors import ArgumentError, shown
from pyrnnx.load import read_model_or_layer
from pyrnnx.models.model import Model


@command(
    "run",
    "pyrnnx run model.onnx --input X=x.npy --input arrays.npz --output out.npz",
    "pyrnnx run model.onnx --seed 3 --dim batch=8 --repeat 20",
    "pyrnnx run model.onnx --layer lstm --input X=x.npy --stream",
    notes=(
        "With --stream, outputs with a time axis are concatenated along it, states have their last value, and all "
        "other outputs are stacked, with an element for each push. Initial states are zeros. If the size of a state "
        "is unknown, pass it with --input, or use --seed.",
    ),
)
def run(
    model: Annotated[str, typer.Argument(metavar="MODEL", help=f"{MODEL_FILE}.", autocompletion=model_suffixes)],
    inputs: Inputs = None,
    seed: Annotated[
        str | None,
        typer.Option("--seed", metavar="SEED", help="Use random arrays for inputs that are not given."),
    ] = None,
    dims: Dims = None,
    layer: Annotated[
        str | None,
        typer.Option("--layer", metavar="NAME", help="Run only the recurrent layer with this name or index."),
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", metavar="FILE.npz", help="Write the outputs to a file.")
    ] = None,
    stream: Annotated[
        bool,
        typer.Option(
            "--stream",
            help="Run push by push with saved states. Inputs are cut along time, or along their first axis if they "
            "have one more axis than declared.",
        ),
    ] = False,
    chunk: Annotated[
        str | None, typer.Option("--chunk", metavar="STEPS", help="For --stream: time steps of a push (default: 1).")
    ] = None,
    time_axis: Annotated[
        str | None,
        typer.Option("--time-axis", metavar="K", help="For --stream: time axis, if the model does not define it."),
    ] = None,
    pushes: Annotated[
        str | None,
        typer.Option("--pushes", metavar="N", help="For --stream: number of random pushes (default: 10)."),
    ] = None,
    repeat: Annotated[
        str | None, typer.Option("--repeat", metavar="N", help="Time N more calls, or rounds of pushes.")
    ] = None,
    as_json: Json = False,
) -> Result:
    """Run a model or a layer, and show its outputs and times."""
    for name, value in {"--chunk": chunk, "--time-axis": time_axis, "--pushes": pushes}.items():
        if value is not None and not stream:
            raise ArgumentError(f"run: {name} applies only to streams; expected --stream as well")
    cut = Cut(
        integer("run: --chunk", "1" if chunk is None else chunk, 1),
        None if time_axis is None else integer("run: --time-axis", time_axis),
        integer("run: --pushes", "10" if pushes is None else pushes, 1),
    )
    repeats = 0 if repeat is None else integer("run: --repeat", repeat, 1)
    number = None if seed is None else integer("run: --seed", seed, 0)
    open_sizes = sizes("run: --dim", dims)
    if output is not None:
        check_npz("run: --output", output)
        check_not_read("run: --output", output, [model, *input_files(inputs)])
    started = perf_counter()
    subject = _subject(read_model_or_layer(model), layer)
    times = {"load": perf_counter() - started}
    provided = given_inputs("run: --input", inputs, subject.inputs)
    if stream:
        subject.prepare_stream()
    if number is None:
        _check_given(subject, provided, open_sizes)
    if stream:
        arrays, outputs = _streamed(subject, all_pushes(subject, provided, number, open_sizes, cut), repeats, times)
    else:
        started = perf_counter()
        arrays, outputs = running.first_that_runs(subject, provided, number, open_sizes)
        times["first call"] = perf_counter() - started
        times |= _repeated(lambda: subject.call(arrays), repeats, "call")
    if output is not None:
        write_npz("run: --output", output, outputs)
    facts: dict[str, Any] = {
        "model": model,
        "layer": layer,
        "inputs": {name: {**summary(array), "random": name not in provided} for name, array in arrays.items()},
        "outputs": {name: summary(array) for name, array in outputs.items()},
        "seconds": times,
    }
    return Result(facts, _shown(subject.label, facts, output))


def _subject(read: Any, name: str | None) -> Subject:
    if not isinstance(read, Model):
        if name is not None:
            raise ArgumentError(f"run: --layer: {read.label} is a layer itself; expected a model")
        return OneLayer(read)
    if name is None:
        return WholeModel(read)
    return OneLayer(chosen_layer(read.layers, name))


def _check_given(subject: Subject, provided: Arrays, dims: dict[str, int]) -> None:
    """Raise if an input is missing, or if a size has no use without --seed."""
    if dims:
        raise ArgumentError("run: --dim sets the sizes of random inputs; expected --seed SEED as well")
    missing = [info.name for info in subject.needed() if info.name not in (provided.keys() | subject.fed)]
    if missing:
        raise ArgumentError(
            f"run: {subject.label}: no array for {', '.join(map(shown, missing))}; expected --input NAME=FILE.npy, or "
            "--seed SEED"
        )


def _streamed(subject: Subject, pushes: Pushes, repeat: int, times: dict[str, float]) -> tuple[Arrays, Arrays]:
    """Run all pushes with a progress bar; return all inputs and the joined outputs."""
    parts = pushes.parts
    durations: list[float] = []
    results: list[Arrays] = []
    rounds = 1 + repeat
    with progress_bar("pushes", rounds * len(parts)) as advance:
        for k in range(rounds):
            push = subject.begin(pushes.whole)
            for part in parts:
                started = perf_counter()
                result = push(part)
                durations.append(perf_counter() - started)
                if k == 0:
                    results.append(result)
                advance()
    times |= {"first push": durations[0], **_statistics(durations[1:], "push")} if durations else {}
    return pushes.whole, joined(subject, pushes, results)


def _repeated(call: Any, repeat: int, what: str) -> dict[str, float]:
    durations: list[float] = []
    with progress_bar("calls", repeat) as advance:
        for _ in range(repeat):
            started = perf_counter()
            call()
            durations.append(perf_counter() - started)
            advance()
    return _statistics(durations, what)


def _statistics(durations: list[float], what: str) -> dict[str, float]:
    if not durations:
        return {}
    return {f"{what}, least of {len(durations)}": min(durations), f"{what}, median": median(durations)}


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
