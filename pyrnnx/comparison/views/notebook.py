"""Comparisons as HTML, for notebooks."""

from __future__ import annotations

from collections.abc import Mapping

from pyrnnx._internal.html import folded, lines, table, whole
from pyrnnx.comparison.agreement import DEFAULT, Tolerance
from pyrnnx.comparison.distances import Deviation
from pyrnnx.comparison.layers import Comparison
from pyrnnx.comparison.models import ModelComparison
from pyrnnx.comparison.views.text import (
    apart_lines,
    first_pair,
    in_words,
    layer_notes,
    model_notes,
    part,
    title,
    value_notes,
)
from pyrnnx.comparison.weights import in_lines


def layer_html(comparison: Comparison, *, gates: bool = True, tolerance: Tolerance = DEFAULT) -> str:
    """Return a comparison of two layers as HTML; `gates` adds the gates, which must be computed."""
    rows = [(row.aspect, row.a, row.b) for row in (*comparison.conventions, *comparison.operators)]
    marked = [False] * len(comparison.conventions) + [True] * len(comparison.operators)
    notes = layer_notes(comparison, tolerance)
    notes += in_lines(comparison.weights) if comparison.weights else []
    apart = apart_lines(comparison, gates=gates, tolerance=tolerance) if part(comparison, tolerance) else []
    return whole(
        table(("", comparison.a, comparison.b), rows, marked=marked) if rows else lines([title(comparison)]),
        _deviations("output", comparison.deviations, tolerance),
        lines([*notes, *apart]),
    )


def model_html(comparison: ModelComparison, *, tolerance: Tolerance = DEFAULT) -> str:
    """Return a comparison of two models as HTML, with a section for each pair of layers that opens on a click."""
    first = first_pair(comparison, tolerance)
    parts = [
        _deviations(f"output of {comparison.a} and {comparison.b}", comparison.deviations, tolerance),
        lines([*model_notes(comparison, tolerance), *value_notes(comparison, tolerance)]),
    ]
    for name, pair in comparison.layers.items():
        words = "apart" if part(pair, tolerance) or pair.not_compared else "the same numbers"
        parts.append(folded(f"{name}: {words}", layer_html(pair, gates=pair is first, tolerance=tolerance)))
    if comparison.values:
        values = _deviations("value", comparison.values, tolerance)
        parts.append(folded(f"shared values: {len(comparison.values)}", values))
    return whole(*parts)


def _deviations(title: str, deviations: Mapping[str, Deviation], tolerance: Tolerance) -> str:
    rows = [(name, in_words(deviation)) for name, deviation in deviations.items()]
    marked = [not deviation.within(*tolerance) for deviation in deviations.values()]
    return table((title, "largest difference"), rows, marked=marked) if rows else ""
