"""`pyrnnx run`: a model or one of its layers on arrays of files, or on random ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from pyrnnx.cli.app import command
from pyrnnx.cli.arguments import MODEL_FILE, Dims, Inputs, Json, integer, model_suffixes, sizes
from pyrnnx.cli.result import Result

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pyrnnx.cli.pushes import Pushes
    from pyrnnx.cli.running import Arrays, Subject


@command(
    "run",
    "pyrnnx run model.onnx --input X=x.npy --input arrays.npz --output out.npz",
    "pyrnnx run model.onnx --random 3 --dim batch=8 --repeat 20",
    "pyrnnx run model.onnx --layer lstm --input X=x.npy --stream",
    notes=(
        "With --stream, outputs are joined along time where they have that axis; of states, there are the last; all "
        "others stand one above the other, an element for each push. States begin with zeros; those whose sizes "
        "nothing tells are random with --random, or given as --input.",
    ),
)
def run(
    model: Annotated[str, typer.Argument(metavar="MODEL", help=f"{MODEL_FILE}.", autocompletion=model_suffixes)],
    inputs: Inputs = None,
    random: Annotated[
        str | None,
        typer.Option(
            "--random", "--seed", metavar="SEED", help="Make the inputs that are not given, of sizes that it runs with."
        ),
    ] = None,
    dims: Dims = None,
    layer: Annotated[
        str | None,
        typer.Option("--layer", metavar="NAME", help="Run this recurrent layer alone, or the one at this place."),
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", metavar="FILE.npz", help="Write the outputs to a file.")
    ] = None,
    stream: Annotated[
        bool,
        typer.Option(
            "--stream",
            help="Push by push, with states that are kept: inputs are cut along time, or, with an axis more than is "
            "declared, along their first axis.",
        ),
    ] = False,
    chunk: Annotated[
        str | None, typer.Option("--chunk", metavar="STEPS", help="Of --stream: time steps of a push (default: 1).")
    ] = None,
    time_axis: Annotated[
        str | None,
        typer.Option("--time-axis", metavar="K", help="Of --stream: where inputs are cut, if the model does not tell."),
    ] = None,
    pushes: Annotated[
        str | None,
        typer.Option("--pushes", metavar="N", help="Of --stream: how many, where no input is given (default: 10)."),
    ] = None,
    repeat: Annotated[
        str | None, typer.Option("--repeat", metavar="N", help="Time so many calls more; of pushes, rounds.")
    ] = None,
    as_json: Json = False,
) -> Result:
    """Run a model or a layer, and tell what comes out and how long it takes."""
    from time import perf_counter

    from pyrnnx.cli import running
    from pyrnnx.cli.arrays import check_npz, given_inputs, summary, write_npz
    from pyrnnx.cli.pushes import Cut, all_pushes
    from pyrnnx.errors import ArgumentError
    from pyrnnx.load import load

    for name, value in {"--chunk": chunk, "--time-axis": time_axis, "--pushes": pushes}.items():
        if value is not None and not stream:
            raise ArgumentError(f"run: {name} was given; it is of --stream")
    cut = Cut(
        integer("run: --chunk", "1" if chunk is None else chunk, 1),
        None if time_axis is None else integer("run: --time-axis", time_axis),
        integer("run: --pushes", "10" if pushes is None else pushes, 1),
    )
    more = 0 if repeat is None else integer("run: --repeat", repeat, 1)
    seed = None if random is None else integer("run: --random", random, 0)
    open_sizes = sizes("run: --dim", dims)
    if output is not None:
        check_npz("run: --output", output)
    started = perf_counter()
    subject = _subject(load(model), layer)
    times = {"load": perf_counter() - started}
    given = given_inputs("run: --input", inputs, subject.inputs)
    if stream:
        subject.prepare_stream()
    if seed is None:
        _check_given(subject, given, open_sizes)
    if stream:
        made, found = _streamed(subject, all_pushes(subject, given, seed, open_sizes, cut), more, times)
    else:
        started = perf_counter()
        made, found = running.first_that_runs(subject, given, seed, open_sizes)
        times["first call"] = perf_counter() - started
        times |= _repeated(lambda: subject.call(made), more, "call")
    if output is not None:
        write_npz("run: --output", output, found)
    facts: dict[str, Any] = {
        "model": model,
        "layer": layer,
        "inputs": {name: {**summary(one), "random": name not in given} for name, one in made.items()},
        "outputs": {name: summary(one) for name, one in found.items()},
        "seconds": times,
    }
    return Result(facts, _shown(subject.label, facts, output))


def _subject(read: Any, name: str | None) -> Subject:
    from pyrnnx.cli.running import OneLayer, WholeModel
    from pyrnnx.errors import ArgumentError
    from pyrnnx.model import Model

    if not isinstance(read, Model):
        if name is not None:
            raise ArgumentError(f"run: --layer: {read.label} is a layer itself; expected a model")
        return OneLayer(read)
    if name is None:
        return WholeModel(read)
    is_place = name not in read.layers and name.removeprefix("-").isdecimal() and len(name) < 10
    return OneLayer(read.layers[int(name) if is_place else name])


def _check_given(subject: Subject, given: Arrays, dims: dict[str, int]) -> None:
    """Without --random all inputs are given."""
    from pyrnnx.errors import ArgumentError, shown

    if dims:
        raise ArgumentError("run: --dim: sizes of random inputs; expected --random SEED, too")
    missing = [info.name for info in subject.needed() if info.name not in (given.keys() | subject.fed)]
    if missing:
        raise ArgumentError(
            f"run: {subject.label}: no array for {', '.join(map(shown, missing))}; expected --input NAME=FILE.npy, or "
            "--random SEED"
        )


def _streamed(subject: Subject, pushes: Pushes, repeat: int, times: dict[str, float]) -> tuple[Arrays, Arrays]:
    """All pushes, with a bar on the way; what was pushed, and what came out."""
    from time import perf_counter

    from pyrnnx.cli.pushes import joined
    from pyrnnx.cli.streams import progress_bar

    parts = pushes.parts
    took: list[float] = []
    results: list[Arrays] = []
    rounds = 1 + repeat
    with progress_bar("pushes", rounds * len(parts)) as advance:
        for k in range(rounds):
            push = subject.begin(pushes.whole)
            for part in parts:
                started = perf_counter()
                one = push(part)
                took.append(perf_counter() - started)
                if k == 0:
                    results.append(one)
                advance()
    times |= {"first push": took[0], **_statistics(took[1:], "push")} if took else {}
    return pushes.whole, joined(subject, pushes, results)


def _repeated(call: Any, repeat: int, what: str) -> dict[str, float]:
    from time import perf_counter

    from pyrnnx.cli.streams import progress_bar

    took: list[float] = []
    with progress_bar("calls", repeat) as advance:
        for _ in range(repeat):
            started = perf_counter()
            call()
            took.append(perf_counter() - started)
            advance()
    return _statistics(took, what)


def _statistics(took: list[float], what: str) -> dict[str, float]:
    from statistics import median

    if not took:
        return {}
    return {f"{what}, least of {len(took)}": min(took), f"{what}, median": median(took)}


def _shown(label: str, facts: dict[str, Any], output: str | None) -> list[RenderableType]:
    from pyrnnx.cli import tables
    from pyrnnx.cli.arrays import seconds

    shown: list[RenderableType] = [tables.heading("Run", label)]
    for side in ("inputs", "outputs"):
        rows = [_row(name, one) for name, one in facts[side].items()]
        columns = ("Name", "Type", "Shape", "Min", "Mean", "Max", "NaN")
        shown += [tables.heading(side.capitalize()), tables.table(columns, rows, right=(3, 4, 5, 6))]
    shown += [tables.heading("Time"), tables.pairs([(name, seconds(one)) for name, one in facts["seconds"].items()])]
    return shown + ([tables.heading("Written", output)] if output is not None else [])


def _row(name: str, one: dict[str, Any]) -> list[Any]:
    from pyrnnx.cli import tables

    if "dtype" not in one:
        return [name, one["kind"], "", "", "", "", ""]
    numbers = [f"{one[key]:.4g}" if key in one else "" for key in ("min", "mean", "max")]
    nan = one.get("nan", "")
    told = f"{name}{' (random)' if one.get('random') else ''}"
    return [told, one["dtype"], tables.shape(one["shape"]), *numbers, tables.text(nan, "bold red" if nan else "")]
