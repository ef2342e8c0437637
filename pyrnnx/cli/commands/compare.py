"""The command `pyrnnx compare`: two models or layers side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import RenderableType

from pyrnnx import comparison
from pyrnnx._internal.writing import check_report, write_files
from pyrnnx.cli import streams, tables
from pyrnnx.cli.app import command
from pyrnnx.cli.arguments import MODEL_FILE, Dims, Inputs, Json, Seed, integer, model_suffixes, number, sizes
from pyrnnx.cli.arrays import inputs_of
from pyrnnx.cli.result import Result
from pyrnnx.cli.status import Status
from pyrnnx.cli.targets import check_not_read, input_files
from pyrnnx.comparison.agreement import Tolerance, first_apart, tolerance_of
from pyrnnx.comparison.distances import Deviation
from pyrnnx.comparison.layers import Comparison
from pyrnnx.comparison.models import ModelComparison
from pyrnnx.comparison.views.notebook import layer_html, model_html
from pyrnnx.comparison.views.plot import picture_path
from pyrnnx.comparison.views.text import (
    first_pair,
    in_words,
    layer_lines,
    layer_notes,
    model_lines,
    model_notes,
    places,
    value_notes,
    verdict,
    wrapped,
)
from pyrnnx.comparison.weights import in_lines
from pyrnnx.errors import ArgumentError, printable, shown

_STYLES = {"same": "bold green", "different": "bold red", "not decided": "bold yellow"}
_TOLERANCE_HELP = (
    "Numbers are the same if abs(a - b) <= atol + rtol * abs(b); if only one is set, the other is 1e-5. Default: by "
    "the type of the output."
)


@command(
    "compare",
    "pyrnnx compare model.onnx model.xml",
    "pyrnnx compare a.onnx b.onnx --dim batch=8 --rtol 1e-3 --html apart.html",
    notes=(
        "Exit status: 0 if all numbers of outputs and paired layers agree; 1 if any differ, or if it is not decided "
        "whether the two are the same; 2 for errors, also if the inputs of the two are different. A layer without a "
        "counterpart in the other model is reported, but does not count.",
        "Models run several times. Not decided: an output is empty, missing or constant in every call, an integer "
        "input could not be varied, or a layer has the weights of one that runs in another direction.",
    ),
)
def compare(
    a: Annotated[str, typer.Argument(metavar="A", help=f"{MODEL_FILE}.", autocompletion=model_suffixes)],
    b: Annotated[
        str,
        typer.Argument(
            metavar="B", help="Another one; a layer without weights takes those of A.", autocompletion=model_suffixes
        ),
    ],
    inputs: Inputs = None,
    dims: Dims = None,
    atol: Annotated[str | None, typer.Option("--atol", metavar="NUMBER", help=_TOLERANCE_HELP)] = None,
    rtol: Annotated[str | None, typer.Option("--rtol", metavar="NUMBER", help=_TOLERANCE_HELP)] = None,
    seed: Seed = "0",
    plot: Annotated[
        str | None, typer.Option("--plot", metavar="FILE.png", help="Write a picture of the differences.")
    ] = None,
    html: Annotated[str | None, typer.Option("--html", metavar="FILE", help="Write the comparison as HTML.")] = None,
    as_json: Json = False,
) -> Result:
    """Compare two models or layers: their conventions and their numbers."""
    limits = {"atol": atol, "rtol": rtol}
    tolerance = tolerance_of(
        **{name: None if text is None else number(f"compare: --{name}", text) for name, text in limits.items()}
    )
    seed_number, open_sizes = integer("compare: --seed", seed), sizes("compare: --dim", dims)
    arrays = inputs_of("compare: --input", inputs, a)
    for option, path in (("--plot", plot and picture_path(plot)), ("--html", html)):
        if path is not None:
            check_report(f"compare: {option}", path)
            check_not_read(f"compare: {option}", path, [a, b, *input_files(inputs)])
    try:
        result = comparison.compare(a, b, arrays, seed=seed_number, dims=open_sizes or None)
    except MemoryError:
        raise ArgumentError(f"compare: {shown(a)} and {shown(b)}: not enough memory") from None
    if plot is not None:
        result.plot(plot)
    if html is not None:
        _write_page(html, result, tolerance)
    return Result(
        lambda: _data(result, tolerance),
        _shown(result, tolerance),
        plain=_plain(result, tolerance) if not as_json else "",
        status=Status.SUCCESS if result.equal(*tolerance) else Status.DIFFERENT,
    )


def _data(result: Comparison | ModelComparison, tolerance: Tolerance) -> dict[str, Any]:
    verdict = {"equal": result.equal(*tolerance), "verdict": result.verdict(*tolerance)}
    data = {**result.to_dict(), **verdict, "not_decided": result.undecided(*tolerance), **tolerance._asdict()}
    if isinstance(result, ModelComparison):
        data["first_difference"] = first_apart(result.values, tolerance)
    return data


def _plain(result: Comparison | ModelComparison, tolerance: Tolerance) -> str:
    """Return the comparison and the verdict as text, at the width of the output."""
    if isinstance(result, ModelComparison):
        lines = model_lines(result, tolerance=tolerance, width=streams.width())
    else:
        lines = layer_lines(result, tolerance=tolerance, width=streams.width())
    return "\n".join([*lines, *wrapped(verdict(result, tolerance), streams.width(), "    ")])


_STYLE = """\
:root { color-scheme: light dark }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.3rem }
td { overflow-wrap: anywhere }
summary { cursor: pointer; padding: 4px 8px }"""


def _write_page(path: str, result: Comparison | ModelComparison, tolerance: Tolerance) -> None:
    if isinstance(result, ModelComparison):
        body = model_html(result, tolerance=tolerance)
    else:
        body = layer_html(result, tolerance=tolerance)
    title = escape(printable(f"{result.a} and {result.b}"))
    page = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>pyrnnx compare: {title}</title>\n<style>\n{_STYLE}\n</style></head>\n<body>\n"
        f"<h1>{title}</h1>\n<p><strong>{verdict(result, tolerance)}</strong></p>\n{body}\n</body></html>\n"
    )
    write_files("compare: --html", {Path(path): [page.encode("utf-8", "backslashreplace")]})


def _shown(result: Comparison | ModelComparison, tolerance: Tolerance) -> Iterable[RenderableType]:
    """Yield the comparison for a terminal; a generator, because the layout takes time."""
    yield from _models(result, tolerance) if isinstance(result, ModelComparison) else _layers(result, tolerance)
    yield tables.text(verdict(result, tolerance), _STYLES[result.verdict(*tolerance)])


def _models(result: ModelComparison, tolerance: Tolerance) -> Iterable[RenderableType]:
    first = first_pair(result, tolerance)
    for pair in result.layers.values():
        yield from _layers(pair, tolerance, gates=pair is first)
    yield tables.heading("Models", f"{result.a} and {result.b}")
    yield from (tables.indented(tables.text(line)) for line in model_notes(result, tolerance))
    if result.deviations:
        yield _deviations(result.deviations, tolerance)
    yield from _paragraph(value_notes(result, tolerance))


def _layers(result: Comparison, tolerance: Tolerance, *, gates: bool = True) -> Iterable[RenderableType]:
    rows = [(row.aspect, row.a, row.b) for row in result.conventions]
    marked = [tuple(tables.text(cell, "yellow") for cell in (row.aspect, row.a, row.b)) for row in result.operators]
    yield tables.heading("Layers", "" if rows or marked else f"{result.a} and {result.b}")
    if rows or marked:
        yield tables.table(("", result.a, result.b), [*rows, *marked])
    lines = [*layer_notes(result, tolerance), *(in_lines(result.weights) if result.weights else [])]
    if result.deviations:
        yield from (tables.indented(tables.text(line)) for line in lines)
        yield _deviations(result.deviations, tolerance)
        lines = []
    yield from _paragraph([*lines, *places(result, gates=gates, tolerance=tolerance)])


def _paragraph(lines: list[str]) -> Iterable[RenderableType]:
    """Yield lines and an empty line, which tables also end with."""
    yield from (tables.indented(tables.text(line)) for line in lines)
    if lines:
        yield tables.text("")


def _deviations(deviations: Mapping[str, Deviation], tolerance: Tolerance) -> RenderableType:
    def row(name: str, deviation: Deviation) -> list[Any]:
        agrees = deviation.within(*tolerance)
        verdict = tables.text("the same" if agrees else "apart", "green" if agrees else "red")
        return [name, in_words(deviation), verdict]

    return tables.table(("Output", "Largest difference", ""), [row(*item) for item in deviations.items()])
