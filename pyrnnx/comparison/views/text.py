"""Comparisons as text."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest

from pyrnnx.comparison.agreement import DEFAULT, Tolerance, first_apart
from pyrnnx.comparison.distances import Deviation
from pyrnnx.comparison.layers import Comparison
from pyrnnx.comparison.models import ModelComparison
from pyrnnx.comparison.steps import by_step_in_words
from pyrnnx.comparison.weights import in_lines
from pyrnnx.errors import printable, shown

MOST_CALLS = 3  # whose inputs are shown


def in_words(deviation: Deviation) -> str:
    """Return a largest difference for a table, or why there is none."""
    if deviation.unlike:
        return deviation.unlike
    value, relative = deviation.largest, deviation.largest_relative
    if math.isnan(value):
        return "nothing to compare"
    return f"{value:.3g}" if value == 0 or math.isinf(relative) else f"{value:.3g} (relative {relative:.3g})"


def apart_in_words(deviation: Deviation) -> str:
    """Return "largest difference 0.25" for a sentence, or why there is none."""
    return deviation.unlike or f"largest difference {in_words(deviation)}"


def table(rows: Iterable[tuple[str, str, str]], width: int | None = None) -> list[str]:
    """Lay out three columns, with a rule below the first row; cells are wrapped if all is wider than `width`."""
    rows = [(printable(aspect), printable(a), printable(b)) for aspect, a, b in rows]
    widths = _fitted([max(len(row[column]) for row in rows) for column in range(3)], width)
    head, *others = [_row(row, widths) for row in rows]
    return [*head, "  ".join("-" * size for size in widths), *chain.from_iterable(others)]


def _fitted(widths: Sequence[int], width: int | None) -> list[int]:
    """Return widths of columns that take `width` with the gaps between them: the widest get narrower."""
    sizes = list(widths)
    if width is not None:
        room = max(width - 2 * (len(sizes) - 1), len(sizes))
        while sum(sizes) > room:
            sizes[sizes.index(max(sizes))] -= 1
    return sizes


def _row(cells: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Return the lines of one row."""
    columns = [wrapped(cell, size) or [""] for cell, size in zip(cells, widths, strict=True)]
    lines = zip_longest(*columns, fillvalue="")
    return ["  ".join(part.ljust(size) for part, size in zip(line, widths, strict=True)).rstrip() for line in lines]


def wrapped(text: str, width: int | None, indent: str = "") -> list[str]:
    """Return the lines of a text, all of it in one without a width; later lines are indented."""
    if width is None or len(text) <= width:
        return [text]
    return textwrap.wrap(text, width, subsequent_indent=indent, break_on_hyphens=False)


def layer_lines(
    comparison: Comparison, *, gates: bool = True, tolerance: Tolerance = DEFAULT, width: int | None = None
) -> list[str]:
    """Return the text on two layers, in lines of at most `width` columns if that is set.

    `gates` adds the first differences inside a step, which must be computed.
    """
    lines = [f"paired by: {comparison.paired_by}"] if comparison.paired_by else []
    if comparison.not_compared:
        lines.append(f"not compared: {printable(comparison.not_compared)}")
    elif not comparison.operators:
        lines.append("operators: the same")
    lines += _calls(comparison) + _undecided_lines(comparison, tolerance)
    if comparison.weights_source:
        lines.append(f"weights of both: {printable(comparison.weights_source)}")
    lines += in_lines(comparison.weights) if comparison.weights else []
    lines += [f"largest difference of {name}: {in_words(apart)}" for name, apart in comparison.deviations.items()]
    lines += apart_lines(comparison, gates=gates, tolerance=tolerance) if part(comparison, tolerance) else []
    return (_table(comparison, width) or _title(comparison, width)) + _all_wrapped(lines, width)


def model_lines(comparison: ModelComparison, *, tolerance: Tolerance = DEFAULT, width: int | None = None) -> list[str]:
    """Return the text on two models; only the first pair of layers that differs has gates."""
    lines = _title(comparison, width)
    first = first_pair(comparison, tolerance)
    for pair in comparison.layers.values():
        lines += ["", *layer_lines(pair, gates=pair is first, tolerance=tolerance, width=width)]
    notes = [f"layer without a counterpart: {name}" for name in comparison.unpaired]
    notes += _calls(comparison) + _undecided_lines(comparison, tolerance)
    notes += [f"{difference.aspect}: {difference.a}; {difference.b}" for difference in comparison.outputs]
    notes += [f"outputs: not compared: {comparison.not_compared}"] if comparison.not_compared else []
    outputs = comparison.deviations.items()
    notes += [f"largest difference of output {shown(name)}: {in_words(apart)}" for name, apart in outputs]
    return [*lines, "", *_all_wrapped([*notes, *value_notes(comparison, tolerance)], width)]


def settings_lines(comparison: Comparison, width: int) -> list[str]:
    """Return how conventions, operators and weights differ."""
    same = [] if comparison.operators else ["operators: the same"]
    return [*_table(comparison, width), *_all_wrapped([*same, *in_lines(comparison.weights)], width)]


def _table(comparison: Comparison, width: int | None) -> list[str]:
    """Return the conventions and operators that differ; empty if none do."""
    aspects = [(row.aspect, row.a, row.b) for row in (*comparison.conventions, *comparison.operators)]
    return table([("", comparison.a, comparison.b), *aspects], width) if aspects else []


def _all_wrapped(lines: Iterable[str], width: int | None) -> list[str]:
    return [part for line in lines for part in wrapped(line, width, "    ")]


def _title(comparison: Comparison | ModelComparison, width: int | None) -> list[str]:
    return wrapped(printable(f"{comparison.a} and {comparison.b}"), width, "    ")


def part(comparison: Comparison, tolerance: Tolerance = DEFAULT) -> bool:
    """Return whether the first difference is known and exceeds this tolerance."""
    return comparison.first_difference is not None and first_apart(comparison.deviations, tolerance) is not None


def first_pair(comparison: ModelComparison, tolerance: Tolerance = DEFAULT) -> Comparison | None:
    """Return the first pair of layers that differs."""
    return next((pair for pair in comparison.layers.values() if part(pair, tolerance)), None)


def apart_lines(comparison: Comparison, *, gates: bool, tolerance: Tolerance = DEFAULT) -> list[str]:
    """Return where two layers differ first, by step and, with `gates`, inside of a step."""
    by = "" if tolerance == DEFAULT else f" ({DEFAULT})"
    profiles = {name: profile for name, profile in comparison.profiles.items() if profile.first is not None}
    lines = [f"first apart{by}: {profile.first}" for profile in profiles.values()]
    lines += [
        f"largest difference of {name} by step: {by_step_in_words(profile.by_step)}"
        for name, profile in profiles.items()
        if profile.over_time and len(profile.by_step) > 1
    ]
    return lines + (gate_lines(comparison) if gates else [])


def gate_lines(comparison: Comparison) -> list[str]:
    """Return the differences of gates, and the first gate that differs."""
    gates, first = comparison.gates, comparison.first_gate
    lines = []
    if gates:
        lines = ["by gate: " + ", ".join(f"{name} {profile.largest:.3g}" for name, profile in gates.items())]
        lines.append("no gate is apart in exact arithmetic" if first is None else f"first gate apart: {first}")
    return lines + ([f"by gate: {comparison.gates_note}"] if comparison.gates_note else [])


def _undecided_lines(comparison: Comparison | ModelComparison, tolerance: Tolerance) -> list[str]:
    if comparison.verdict(*tolerance) != "not decided":
        return []
    return [f"not decided: {printable(reason)}" for reason in comparison.undecided(*tolerance)]


def _calls(comparison: Comparison | ModelComparison) -> list[str]:
    """Return the inputs of the first calls."""
    lines = [f"run on {call}" for call in comparison.calls[:MOST_CALLS]]
    more = len(comparison.calls) - len(lines)
    return [*lines, f"and on {_count(more, 'other call')} of that kind"] if more else lines


def _compared(comparison: Comparison | ModelComparison) -> str:
    """Return how much was compared, and on what."""
    calls = len(comparison.calls)
    more = f" and {_count(calls - 1, 'other call')}" if calls > 1 else ""
    on = f" on {comparison.calls[0]}{more}" if calls else ""
    return f"{_count(len(comparison.deviations), 'output')}{on}"


def verdict(comparison: Comparison | ModelComparison, tolerance: Tolerance = DEFAULT) -> str:
    """Return whether two layers or models compute the same within this tolerance, why, and which parts do not."""
    result = comparison.verdict(*tolerance)
    words = f"{'the same' if result == 'same' else result} ({tolerance})"
    if result == "not decided":
        words += f": {'; '.join(undecided(comparison, tolerance))}"
    elif result == "same":
        words += f": {_compared(comparison)}"
    if isinstance(comparison, Comparison):
        return words
    if result == "different":
        matched = [not deviation.within(*tolerance) for deviation in comparison.deviations.values()]
        outputs = matched + [True] * len(comparison.outputs)
        pairs = [
            bool(pair.not_compared) or not all(deviation.within(*tolerance) for deviation in pair.deviations.values())
            for pair in comparison.layers.values()
        ]
        parts = [f"{sum(outputs)} of {_count(len(outputs), 'output')}"] if outputs else ["outputs not compared"]
        parts += [f"{sum(pairs)} of {_count(len(pairs), 'pair')} of layers"] if pairs else []
        words += f": {', '.join(parts)}"
    if comparison.unpaired:
        words += f"; {_count(len(comparison.unpaired), 'layer')} without a counterpart"
    return words


def undecided(comparison: Comparison | ModelComparison, tolerance: Tolerance = DEFAULT) -> list[str]:
    """Return why it is not decided whether two layers or models are the same."""
    reasons = comparison.undecided(*tolerance)
    if comparison.not_compared:
        reasons.append(f"not compared: {comparison.not_compared}")
    if isinstance(comparison, ModelComparison):
        reasons += [f"layers {name} were not compared" for name, pair in comparison.layers.items() if pair.not_compared]
    return [printable(reason) for reason in reasons] or ["nothing was compared"]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def value_notes(comparison: ModelComparison, tolerance: Tolerance = DEFAULT) -> list[str]:
    """Return the first intermediate value that differs."""
    if not comparison.values and not comparison.values_skipped:
        return []
    first, count = first_apart(comparison.values, tolerance), len(comparison.values)
    skipped = f"; {comparison.values_skipped} could not be computed" if comparison.values_skipped else ""
    if first is None:
        return [f"shared values: {count}, all agree{skipped}"]
    before = list(comparison.values).index(first)
    place = f"the {before} before it agree, of" if before else "the first of"
    words = f"{shown(first)}, {apart_in_words(comparison.values[first])}"
    return [f"first value apart: {words}; {place} {count} shared values{skipped}"]
