"""Comparisons as HTML, for notebooks: without scripts, and with no colours but the page's own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from pyrnnx.comparison.numbers import TOLERANCE, Deviation, in_words
from pyrnnx.comparison.views.text import layer_notes, model_notes, places, value_notes
from pyrnnx.comparison.weights import differing, in_lines
from pyrnnx.errors import printable

if TYPE_CHECKING:
    from pyrnnx.comparison.layers import Comparison
    from pyrnnx.comparison.models import ModelComparison

_CELL = "padding:2px 8px;text-align:left;border-bottom:1px solid rgba(128,128,128,.35)"


def layer_html(one: Comparison, *, gates: bool = True) -> str:
    """Of two layers; `gates`: with what parts first inside a step, which has to be computed."""
    aspects = [(each.aspect, each.a, each.b) for each in (*one.conventions, *one.operators)]
    parts = [_table(("", one.a, one.b), aspects, marked=[False] * len(one.conventions) + [True] * len(one.operators))]
    blocks = differing(one.weights)
    rows = [
        (
            f"{each.name} {each.direction}{f' (absent in {each.absent})' if each.absent else ''}",
            *(each.gate, f"{each.largest:.3g}", f"{each.largest_relative:.3g}"),
        )
        for each in blocks
    ]
    if rows:
        parts.append(_table(("weights", "gate", "largest difference", "relative"), rows))
    parts.append(_deviations("output", one.deviations.items()))
    same = [] if rows or not one.weights else in_lines(one.weights)
    return _whole([*parts, *_lines([*layer_notes(one), *same, *places(one, gates=gates)])])


def model_html(one: ModelComparison) -> str:
    """Of two models: their layers fold open."""
    first = next((pair for pair in one.layers.values() if pair.first_difference is not None), None)
    parts = [
        _deviations(f"output of {one.a} and {one.b}", one.deviations.items()),
        *_lines([*model_notes(one), *value_notes(one)]),
    ]
    for name, pair in one.layers.items():
        words = "apart" if pair.first_difference is not None or pair.not_compared else "the same numbers"
        parts.append(
            f"<details><summary>{_text(name)}: {words}</summary>{layer_html(pair, gates=pair is first)}</details>"
        )
    if one.values:
        table = _deviations("value", one.values.items())
        parts.append(f"<details><summary>values that both have: {len(one.values)}</summary>{table}</details>")
    return _whole(parts)


def _whole(parts: Iterable[str]) -> str:
    return f'<div style="font-size:90%">{"".join(parts)}</div>'


def _lines(lines: Iterable[str]) -> list[str]:
    return [f'<div style="padding:2px 8px">{_text(line)}</div>' for line in lines]


def _deviations(title: str, given: Iterable[tuple[str, Deviation]]) -> str:
    items = list(given)
    rows = [(name, in_words(one)) for name, one in items]
    marked = [not one.within(TOLERANCE, TOLERANCE) for _, one in items]
    return _table((title, "largest difference"), rows, marked=marked) if rows else ""


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], *, marked: Sequence[bool] = ()) -> str:
    """`marked` rows are bold."""
    cells = "".join(f'<th style="{_CELL}">{_text(cell)}</th>' for cell in head)
    lines = [f"<tr>{cells}</tr>"]
    for place, row in enumerate(rows):
        weight = ";font-weight:bold" if place < len(marked) and marked[place] else ""
        lines.append("<tr>" + "".join(f'<td style="{_CELL}{weight}">{_text(cell)}</td>' for cell in row) + "</tr>")
    return f'<table style="border-collapse:collapse;margin:4px 0">{"".join(lines)}</table>'


def _text(text: str) -> str:
    return escape(printable(text))
