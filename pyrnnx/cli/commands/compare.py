"""`pyrnnx compare`: two models or layers side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pyrnnx.cli.app import command
from pyrnnx.cli.arguments import MODEL_FILE, Dims, Json, Seed, integer, model_suffixes, number, sizes
from pyrnnx.cli.result import Result
from pyrnnx.cli.status import Status

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pyrnnx.comparison.layers import Comparison
    from pyrnnx.comparison.models import ModelComparison
    from pyrnnx.comparison.numbers import Deviation

_TOLERANCE = "1e-5"  # as of `pyrnnx.Comparison.equal`, which is imported late
_TOLERANCE_HELP = "The same is abs(a - b) <= atol + rtol * abs(b)."


@command(
    "compare",
    "pyrnnx compare model.onnx model.xml",
    "pyrnnx compare a.onnx b.onnx --dim batch=8 --rtol 1e-3 --html apart.html",
    notes=("Exit status: 0 if all numbers agree; 1 if some differ, or cannot be compared; 2 for what is rejected.",),
)
def compare(
    a: Annotated[str, typer.Argument(metavar="A", help=f"{MODEL_FILE}.", autocompletion=model_suffixes)],
    b: Annotated[
        str,
        typer.Argument(
            metavar="B", help="The same; a layer without weights takes the other's.", autocompletion=model_suffixes
        ),
    ],
    inputs: Annotated[
        str | None,
        typer.Option("--inputs", metavar="FILE.npz", help="Arrays by the names of A's inputs (default: random ones)."),
    ] = None,
    dims: Dims = None,
    atol: Annotated[str, typer.Option("--atol", metavar="NUMBER", help=_TOLERANCE_HELP)] = _TOLERANCE,
    rtol: Annotated[str, typer.Option("--rtol", metavar="NUMBER", help=_TOLERANCE_HELP)] = _TOLERANCE,
    seed: Seed = "0",
    plot: Annotated[
        str | None, typer.Option("--plot", metavar="FILE.png", help="Write a picture of the differences.")
    ] = None,
    html: Annotated[str | None, typer.Option("--html", metavar="FILE", help="Write the comparison as HTML.")] = None,
    as_json: Json = False,
) -> Result:
    """Compare two models or layers: their conventions and their numbers."""
    from pyrnnx import comparison
    from pyrnnx.cli.arrays import read_npz
    from pyrnnx.errors import ArgumentError, shown

    tolerances = {"atol": number("compare: --atol", atol), "rtol": number("compare: --rtol", rtol)}
    seed_number, open_sizes = integer("compare: --seed", seed), sizes("compare: --dim", dims)
    arrays = None if inputs is None else read_npz("compare: --inputs", inputs)
    try:
        found = comparison.compare(a, b, arrays, seed=seed_number, dims=open_sizes or None)
    except MemoryError:
        raise ArgumentError(f"compare: {shown(a)} and {shown(b)} need more memory than there is") from None
    if plot is not None:
        found.plot(plot)
    if html is not None:
        _write_page(html, found._repr_html_())
    same = found.equal(**tolerances)
    return Result(
        lambda: {**found.to_dict(), "equal": same, **tolerances},
        _shown(found, same, tolerances),
        plain=str(found) if not as_json else "",
        status=Status.SUCCESS if same else Status.DIFFERENT,
    )


def _write_page(path: str, body: str) -> None:
    from pathlib import Path

    from pyrnnx.errors import ArgumentError, shown

    page = f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>pyrnnx compare</title>\n{body}\n</html>\n'
    try:
        Path(path).write_text(page, encoding="utf-8", errors="backslashreplace")
    except (OSError, ValueError) as error:
        raise ArgumentError(f"compare: --html: {shown(path)} cannot be written ({error})") from None


def _shown(
    found: Comparison | ModelComparison, same: bool, tolerances: Mapping[str, float]
) -> Iterable[RenderableType]:
    """For a terminal; laid out only there."""
    from pyrnnx.cli import tables
    from pyrnnx.comparison.models import ModelComparison

    if isinstance(found, ModelComparison):
        yield from _models(found, tolerances)
    else:
        yield from _layers(found, tolerances)
    within = ", ".join(f"{name}={value:g}" for name, value in tolerances.items())
    yield tables.text(f"{'the same' if same else 'different'} ({within})", "bold green" if same else "bold red")


def _models(found: ModelComparison, tolerances: Mapping[str, float]) -> Iterable[RenderableType]:
    from pyrnnx.cli import tables
    from pyrnnx.comparison.views.text import model_notes, value_notes

    first = next((pair for pair in found.layers.values() if pair.first_difference is not None), None)
    for pair in found.layers.values():
        yield from _layers(pair, tolerances, gates=pair is first)
    yield tables.heading("Models", f"{found.a} and {found.b}")
    yield from (tables.indented(tables.text(line)) for line in model_notes(found))
    if found.deviations:
        yield _deviations("Output", found.deviations, tolerances)
    yield from (tables.indented(tables.text(line)) for line in value_notes(found))


def _layers(found: Comparison, tolerances: Mapping[str, float], *, gates: bool = True) -> Iterable[RenderableType]:
    from pyrnnx.cli import tables
    from pyrnnx.comparison.views.text import layer_notes, places
    from pyrnnx.comparison.weights import in_lines

    rows = [(one.aspect, one.a, one.b) for one in found.conventions]
    rows_apart = [tuple(tables.text(cell, "yellow") for cell in (one.aspect, one.a, one.b)) for one in found.operators]
    yield tables.heading("Layers", "" if rows or rows_apart else f"{found.a} and {found.b}")
    if rows or rows_apart:
        yield tables.table(("", found.a, found.b), [*rows, *rows_apart])
    lines = [*layer_notes(found), *(in_lines(found.weights) if found.weights else [])]
    yield from (tables.indented(tables.text(line)) for line in lines)
    if found.deviations:
        yield _deviations("Output", found.deviations, tolerances)
    yield from (tables.indented(tables.text(line)) for line in places(found, gates=gates))


def _deviations(title: str, found: Mapping[str, Deviation], tolerances: Mapping[str, float]) -> RenderableType:
    from pyrnnx.cli import tables
    from pyrnnx.comparison.numbers import in_words

    def row(name: str, one: Deviation) -> list[Any]:
        agrees = one.within(**tolerances)
        return [name, in_words(one), tables.text("the same" if agrees else "apart", "green" if agrees else "red")]

    return tables.table((title, "Largest difference", ""), [row(name, one) for name, one in found.items()])
