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
    from pyrnnx.comparison.numbers import Deviation, Tolerance

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
    from pyrnnx.comparison.numbers import Tolerance
    from pyrnnx.errors import ArgumentError, shown
    from pyrnnx.files import check_report

    tolerance = Tolerance(number("compare: --atol", atol), number("compare: --rtol", rtol))
    seed_number, open_sizes = integer("compare: --seed", seed), sizes("compare: --dim", dims)
    arrays = None if inputs is None else read_npz("compare: --inputs", inputs)
    for option, path in (("--plot", plot), ("--html", html)):
        if path is not None:
            check_report(f"compare: {option}", path)
    try:
        found = comparison.compare(a, b, arrays, seed=seed_number, dims=open_sizes or None)
    except MemoryError:
        raise ArgumentError(f"compare: {shown(a)} and {shown(b)} need more memory than there is") from None
    if plot is not None:
        found.plot(plot)
    if html is not None:
        _write_page(html, found, tolerance)
    return Result(
        lambda: _data(found, tolerance),
        _shown(found, tolerance),
        plain=_plain(found, tolerance) if not as_json else "",
        status=Status.SUCCESS if found.equal(*tolerance) else Status.DIFFERENT,
    )


def _data(found: Comparison | ModelComparison, tolerance: Tolerance) -> dict[str, Any]:
    from pyrnnx.comparison.models import ModelComparison
    from pyrnnx.comparison.numbers import first_apart

    data = {**found.to_dict(), "equal": found.equal(*tolerance), **tolerance._asdict()}
    if isinstance(found, ModelComparison):
        data["first_difference"] = first_apart(found.values, tolerance)
    return data


def _plain(found: Comparison | ModelComparison, tolerance: Tolerance) -> str:
    """As the comparison is printed, by this tolerance; and the verdict."""
    from pyrnnx.comparison.models import ModelComparison
    from pyrnnx.comparison.views.text import layer_lines, model_lines

    if isinstance(found, ModelComparison):
        lines = model_lines(found, tolerance=tolerance)
    else:
        lines = layer_lines(found, tolerance=tolerance)
    return "\n".join([*lines, _verdict(found, tolerance)])


def _verdict(found: Comparison | ModelComparison, tolerance: Tolerance) -> str:
    return f"{'the same' if found.equal(*tolerance) else 'different'} ({tolerance})"


_STYLE = """\
:root { color-scheme: light dark }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.3rem }
td { overflow-wrap: anywhere }
summary { cursor: pointer; padding: 4px 8px }"""


def _write_page(path: str, found: Comparison | ModelComparison, tolerance: Tolerance) -> None:
    from html import escape
    from pathlib import Path

    from pyrnnx.comparison.models import ModelComparison
    from pyrnnx.comparison.views.notebook import layer_html, model_html
    from pyrnnx.errors import printable
    from pyrnnx.files import write_files

    if isinstance(found, ModelComparison):
        body = model_html(found, tolerance=tolerance)
    else:
        body = layer_html(found, tolerance=tolerance)
    title = escape(printable(f"{found.a} and {found.b}"))
    page = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>pyrnnx compare: {title}</title>\n<style>\n{_STYLE}\n</style></head>\n<body>\n"
        f"<h1>{title}</h1>\n<p><strong>{_verdict(found, tolerance)}</strong></p>\n{body}\n</body></html>\n"
    )
    write_files("compare: --html", {Path(path): [page.encode("utf-8", "backslashreplace")]})


def _shown(found: Comparison | ModelComparison, tolerance: Tolerance) -> Iterable[RenderableType]:
    """For a terminal; laid out only there."""
    from pyrnnx.cli import tables
    from pyrnnx.comparison.models import ModelComparison

    yield from _models(found, tolerance) if isinstance(found, ModelComparison) else _layers(found, tolerance)
    yield tables.text(_verdict(found, tolerance), "bold green" if found.equal(*tolerance) else "bold red")


def _models(found: ModelComparison, tolerance: Tolerance) -> Iterable[RenderableType]:
    from pyrnnx.cli import tables
    from pyrnnx.comparison.views.text import first_pair, model_notes, value_notes

    first = first_pair(found, tolerance)
    for pair in found.layers.values():
        yield from _layers(pair, tolerance, gates=pair is first)
    yield tables.heading("Models", f"{found.a} and {found.b}")
    yield from (tables.indented(tables.text(line)) for line in model_notes(found))
    if found.deviations:
        yield _deviations("Output", found.deviations, tolerance)
    yield from _paragraph(value_notes(found, tolerance))


def _layers(found: Comparison, tolerance: Tolerance, *, gates: bool = True) -> Iterable[RenderableType]:
    from pyrnnx.cli import tables
    from pyrnnx.comparison.views.text import layer_notes, places
    from pyrnnx.comparison.weights import in_lines

    rows = [(one.aspect, one.a, one.b) for one in found.conventions]
    rows_apart = [tuple(tables.text(cell, "yellow") for cell in (one.aspect, one.a, one.b)) for one in found.operators]
    yield tables.heading("Layers", "" if rows or rows_apart else f"{found.a} and {found.b}")
    if rows or rows_apart:
        yield tables.table(("", found.a, found.b), [*rows, *rows_apart])
    lines = [*layer_notes(found), *(in_lines(found.weights) if found.weights else [])]
    if found.deviations:
        yield from (tables.indented(tables.text(line)) for line in lines)
        yield _deviations("Output", found.deviations, tolerance)
        lines = []
    yield from _paragraph([*lines, *places(found, gates=gates, tolerance=tolerance)])


def _paragraph(lines: list[str]) -> Iterable[RenderableType]:
    """With an empty line after it, as tables have one."""
    from pyrnnx.cli import tables

    yield from (tables.indented(tables.text(line)) for line in lines)
    if lines:
        yield tables.text("")


def _deviations(title: str, found: Mapping[str, Deviation], tolerance: Tolerance) -> RenderableType:
    from pyrnnx.cli import tables
    from pyrnnx.comparison.numbers import in_words

    def row(name: str, one: Deviation) -> list[Any]:
        agrees = one.within(*tolerance)
        return [name, in_words(one), tables.text("the same" if agrees else "apart", "green" if agrees else "red")]

    return tables.table((title, "Largest difference", ""), [row(name, one) for name, one in found.items()])
