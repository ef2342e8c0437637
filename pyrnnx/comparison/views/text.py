"""Comparisons as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from pyrnnx.comparison.numbers import DEFAULT, Tolerance, apart_in_words, first_apart, in_words
from pyrnnx.comparison.steps import Profile, by_step_in_words
from pyrnnx.comparison.weights import in_lines
from pyrnnx.errors import printable, shown

if TYPE_CHECKING:
    from pyrnnx.comparison.layers import Comparison
    from pyrnnx.comparison.models import ModelComparison


def table(rows: Iterable[tuple[str, str, str]]) -> list[str]:
    """Columns, with a rule below the first row."""
    rows = [(printable(aspect), printable(a), printable(b)) for aspect, a, b in rows]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return [lines[0], "  ".join("-" * width for width in widths), *lines[1:]]


def layer_lines(one: Comparison, *, gates: bool = True, tolerance: Tolerance = DEFAULT) -> list[str]:
    """Of two layers; `gates`: with what parts first inside a step, which has to be computed."""
    aspects = (*one.conventions, *one.operators)
    lines = table([("", one.a, one.b), *((each.aspect, each.a, each.b) for each in aspects)])
    lines += layer_notes(one)
    if one.weights:
        lines += in_lines(one.weights)
    lines += [f"largest difference of {name}: {in_words(each)}" for name, each in one.deviations.items()]
    return lines + places(one, gates=gates, tolerance=tolerance)


def layer_notes(one: Comparison) -> list[str]:
    """What is said of two layers beside tables."""
    lines = [f"a pair by: {one.paired_by}"] if one.paired_by else []
    if one.not_compared:
        lines.append(f"not compared: {printable(one.not_compared)}")
    elif not one.operators:
        lines.append("operators: the same")
    return lines


def part(one: Comparison, tolerance: Tolerance = DEFAULT) -> bool:
    """Whether it is known where two layers part, and they do by this tolerance."""
    return one.first_difference is not None and first_apart(one.deviations, tolerance) is not None


def first_pair(one: ModelComparison, tolerance: Tolerance = DEFAULT) -> Comparison | None:
    """The first pair of layers that part."""
    return next((pair for pair in one.layers.values() if part(pair, tolerance)), None)


def places(one: Comparison, *, gates: bool, tolerance: Tolerance = DEFAULT) -> list[str]:
    """Where two layers part: places by the tolerance that they were looked for with, and none if all agree by this."""
    if not part(one, tolerance):
        return []
    by_gate = _gates(one) if gates else ["by gate: shown for the first layers that part"]
    return _where(one.profiles, "" if tolerance == DEFAULT else f" ({DEFAULT})") + by_gate


def _where(profiles: Mapping[str, Profile], by: str) -> list[str]:
    lines = [f"first apart{by}: {each.first}" for each in profiles.values() if each.first is not None]
    return lines + [
        f"largest difference of {name} by step: {by_step_in_words(each.by_step)}"
        for name, each in profiles.items()
        if each.first is not None and each.first.step is not None and len(each.by_step) > 1
    ]


def _gates(one: Comparison) -> list[str]:
    found = one.gates
    lines = []
    if found:
        lines = ["by gate: " + ", ".join(f"{name} {each.largest:.3g}" for name, each in found.items())]
        first = one.first_gate
        lines.append(f"first gate apart: {first}" if first is not None else "no gate is apart in exact arithmetic")
    return lines + ([f"by gate: {one.gates_note}"] if one.gates_note else [])


def model_lines(one: ModelComparison, *, tolerance: Tolerance = DEFAULT) -> list[str]:
    """Of two models; what parts inside a step is computed for the first pair of layers that part."""
    lines = [f"{one.a} and {one.b}"]
    first = first_pair(one, tolerance)
    for pair in one.layers.values():
        lines += ["", *layer_lines(pair, gates=pair is first, tolerance=tolerance)]
    lines += ["", *model_notes(one)]
    lines += [f"largest difference of output {shown(name)}: {in_words(each)}" for name, each in one.deviations.items()]
    return lines + value_notes(one, tolerance)


def model_notes(one: ModelComparison) -> list[str]:
    """What is said of two models beside tables."""
    lines = [f"only in one of them: {name}" for name in one.unpaired]
    shapes = ", ".join(f"{shown(name)} {shape}" for name, shape in one.input_shapes.items())
    lines += [f"run on {shapes}"] if shapes else []
    lines += [f"{each.aspect}: {each.a}; {each.b}" for each in one.outputs]
    return lines + ([f"outputs: not compared: {one.not_compared}"] if one.not_compared else [])


def value_notes(one: ModelComparison, tolerance: Tolerance = DEFAULT) -> list[str]:
    """The first value that parts."""
    if not one.values and not one.values_skipped:
        return []
    first, count = first_apart(one.values, tolerance), len(one.values)
    skipped = f"; {one.values_skipped} could not be computed" if one.values_skipped else ""
    if first is None:
        return [f"values that both have: {count}, none of them apart{skipped}"]
    names = list(one.values)
    before = f"the {names.index(first)} before it agree" if names[0] != first else "the first of all"
    return [
        f"first value apart: {shown(first)}, {apart_in_words(one.values[first])}; "
        f"{before}, of {count} that both have{skipped}"
    ]
