"""Comparisons as HTML, for notebooks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pyrnnx.comparison.numbers import DEFAULT, Deviation, Tolerance, in_words
from pyrnnx.comparison.views.text import first_pair, layer_notes, model_notes, part, places, value_notes
from pyrnnx.comparison.weights import differing, in_lines
from pyrnnx.notebook import folded, lines, table, whole

if TYPE_CHECKING:
    from pyrnnx.comparison.layers import Comparison
    from pyrnnx.comparison.models import ModelComparison


def layer_html(one: Comparison, *, gates: bool = True, tolerance: Tolerance = DEFAULT) -> str:
    """Of two layers; `gates`: with what parts first inside a step, which has to be computed."""
    aspects = [(each.aspect, each.a, each.b) for each in (*one.conventions, *one.operators)]
    parts = [table(("", one.a, one.b), aspects, marked=[False] * len(one.conventions) + [True] * len(one.operators))]
    blocks = differing(one.weights)
    rows = [
        (
            f"{each.name} {each.direction}{f' (absent in {each.absent})' if each.absent else ''}",
            *(each.gate, f"{each.largest:.3g}", f"{each.largest_relative:.3g}"),
        )
        for each in blocks
    ]
    if rows:
        parts.append(table(("weights", "gate", "largest difference", "relative"), rows))
    parts.append(_deviations("output", one.deviations.items(), tolerance))
    same = [] if rows or not one.weights else in_lines(one.weights)
    return whole(*parts, lines([*layer_notes(one), *same, *places(one, gates=gates, tolerance=tolerance)]))


def model_html(one: ModelComparison, *, tolerance: Tolerance = DEFAULT) -> str:
    """Of two models: their layers fold open."""
    first = first_pair(one, tolerance)
    parts = [
        _deviations(f"output of {one.a} and {one.b}", one.deviations.items(), tolerance),
        lines([*model_notes(one), *value_notes(one, tolerance)]),
    ]
    for name, pair in one.layers.items():
        words = "apart" if part(pair, tolerance) or pair.not_compared else "the same numbers"
        parts.append(folded(f"{name}: {words}", layer_html(pair, gates=pair is first, tolerance=tolerance)))
    if one.values:
        values = _deviations("value", one.values.items(), tolerance)
        parts.append(folded(f"values that both have: {len(one.values)}", values))
    return whole(*parts)


def _deviations(title: str, given: Iterable[tuple[str, Deviation]], tolerance: Tolerance) -> str:
    items = list(given)
    rows = [(name, in_words(one)) for name, one in items]
    marked = [not one.within(*tolerance) for _, one in items]
    return table((title, "largest difference"), rows, marked=marked) if rows else ""
