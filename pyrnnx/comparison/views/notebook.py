"""Comparisons as HTML, for notebooks and files."""

from __future__ import annotations

from collections.abc import Mapping

from pyrnnx._internal.html import folded, lines, table, whole
from pyrnnx.comparison.agreement import DEFAULT, Tolerance
from pyrnnx.comparison.distances import Deviation
from pyrnnx.comparison.layers import Comparison
from pyrnnx.comparison.models import ModelComparison
from pyrnnx.comparison.views.text import Section, first_pair, in_words, layer_section, model_section, part


def to_html(comparison: Comparison | ModelComparison, *, gates: bool = True, tolerance: Tolerance = DEFAULT) -> str:
    """Return a comparison as HTML, with a section for each pair of layers that opens on a click."""
    if isinstance(comparison, Comparison):
        return _section(comparison, layer_section(comparison, gates, tolerance), tolerance)
    first = first_pair(comparison, tolerance)
    parts = [_section(comparison, model_section(comparison, tolerance), tolerance)]
    for name, pair in comparison.layers.items():
        words = "apart" if part(pair, tolerance) or pair.not_compared else "the same numbers"
        parts.append(folded(f"{name}: {words}", to_html(pair, gates=pair is first, tolerance=tolerance)))
    if comparison.values:
        values = _deviations("value", comparison.values, tolerance)
        parts.append(folded(f"shared values: {len(comparison.values)}", values))
    return whole(*parts)


def _section(comparison: Comparison | ModelComparison, section: Section, tolerance: Tolerance) -> str:
    rows = [(row.aspect, row.a, row.b) for row in section.aspects]
    return whole(
        table(("", comparison.a, comparison.b), rows) if rows else lines([section.title]),
        _deviations("output", section.deviations, tolerance),
        lines([*section.notes, *section.places]),
    )


def _deviations(title: str, deviations: Mapping[str, Deviation], tolerance: Tolerance) -> str:
    rows = [(name, in_words(deviation)) for name, deviation in deviations.items()]
    marked = [not deviation.within(*tolerance) for deviation in deviations.values()]
    return table((title, "largest difference"), rows, marked=marked) if rows else ""
