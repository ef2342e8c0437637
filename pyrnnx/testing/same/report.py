"""Message of a failed `assert_same` of layers, in the order in which a person would look."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.comparison import oracle
from pyrnnx.comparison.agreement import Rule, Tolerance, agreement, in_range, is_away
from pyrnnx.comparison.layers import Comparison, LayerCall
from pyrnnx.comparison.steps import EQUATIONS, Place
from pyrnnx.comparison.views.text import apart_lines, settings_lines
from pyrnnx.comparison.weights import directions
from pyrnnx.errors import PyrnnxError, printable
from pyrnnx.testing.same.layers import Arrays, Sides
from pyrnnx.testing.same.mistakes import mistakes

WIDTH = 76  # 80 columns, less what pytest writes before each line
MOST_NAMED = 6  # mistakes that give the same numbers


def layers_differ(sides: Sides, comparison: Comparison, rule: Rule) -> list[str]:
    """Return the lines about two layers, or a layer and a function, that differ."""
    call, place = comparison.call, comparison.first_difference
    assert call is not None
    assert place is not None
    function = next((letter for letter, side in zip("ab", sides, strict=True) if side.is_function), "")
    lines = _convention(sides, call) if function else settings_lines(comparison, WIDTH)
    first, second = (outputs[place.name] for outputs in call.outputs)
    allowed = Tolerance(*rule.between(first, second))
    count = comparison.profiles[place.name].apart
    apart = [f"{place.name}: {count} of {first.size} numbers are apart by more than {allowed}"]
    apart += [f"dtypes: {first.dtype} in a, {second.dtype} in b"] if first.dtype != second.dtype else []
    apart += apart_lines(comparison, gates=not function)
    try:
        oracles = {
            letter: oracle.outputs(layer, oracle.arguments(layer, call.arrays))
            for letter, side, layer in zip("ab", sides, call.layers, strict=True)
            if not side.is_function
        }
    except PyrnnxError as error:
        apart.append(str(error))
    else:
        if function:
            lines += wrapped(_mistakes(function, call, rule, next(iter(oracles.values()))))
        apart += [*_gates_of_the_oracle(call, place), _judged(call, rule, oracles)]
    return [*lines, "", *(part for line in apart for part in wrapped(line))]


def wrapped(text: str) -> list[str]:
    return textwrap.wrap(printable(text), WIDTH, subsequent_indent="    ")


def _convention(sides: Sides, call: LayerCall) -> list[str]:
    """Return the conventions of the layer next to a function, which has none."""
    letter, convention = "b" if sides[0].is_function else "a", sides[0].convention
    order = ", ".join(convention.gate_order(call.layers[0].op.cell))
    return wrapped(f"conventions of {letter}: {convention.name}; gate order: {order}; B: {convention.bias}")


def _gates_of_the_oracle(call: LayerCall, place: Place) -> list[str]:
    """Return the oracle's values of the step of a place, for the weights of a."""
    layer, length = call.layers[0], int(call.arrays["sequence_lens"][place.row])
    direction = directions(layer.op).index(place.direction)
    last = length - 1 if place.direction == "forward" else 0
    step = last if place.step is None else place.step
    if not 0 <= step < length:
        return [f"row {place.row} has a length of {length}"]
    values = oracle.steps(layer, call.arrays)
    numbers = {name: float(values[name][step, direction, place.row, place.unit]) for name in EQUATIONS[layer.op.cell]}
    words = ", ".join(f"{name} {number:.6g}" for name, number in numbers.items() if not np.isnan(number))
    return [f"that step by the oracle: {words}"]


def _judged(call: LayerCall, rule: Rule, oracles: Mapping[str, Arrays]) -> str:
    """Return which side is away from the oracle."""
    first = next(iter(oracles.values()))
    away = [
        letter
        for letter, outputs in zip("ab", call.outputs, strict=True)
        if is_away(outputs, oracles.get(letter, first), rule)
    ]
    if len(oracles) == 2 and is_away(oracles["a"], oracles["b"], rule):
        verdict = "The two are not the same layer: by their weights and attributes, the oracle gives other numbers."
        return verdict + "".join(f" Beside that, {letter} is away from its oracle." for letter in away)
    subject = "By weights and attributes the two are the same layer: " if len(oracles) == 2 else ""
    if not away:
        return f"{subject}Each is within the tolerance of the oracle, on either side of it."
    if len(away) == 2:
        return f"{subject}Both are away from the oracle."
    return f"{subject}{away[0]} is away from the oracle, {'b' if away[0] == 'a' else 'a'} is not."


def _mistakes(letter: str, call: LayerCall, rule: Rule, right: Arrays) -> str:
    """Return which usual mistakes give the numbers of a function, or that none does."""
    layer, outputs = call.layers[0], call.outputs["ab".index(letter)]
    if not is_away(outputs, right, rule):
        return ""
    arguments = oracle.arguments(layer, call.arrays)
    tried = list(mistakes(layer, arguments))
    if len(tried) * oracle.cost(layer, call.arrays) > oracle.MOST_COST:
        return f"No usual mistakes of {letter} were tried, which takes too long: pass shorter inputs."

    def is_apart(array: AnyArray, index: Any) -> bool:
        return bool(rule.beyond(outputs["Y"][index], in_range(array, layer.dtype)).any())

    fits = {}
    for mistake in tried:
        wrong = mistake.outputs(layer, arguments, right, is_apart if "Y" in outputs else None)
        if wrong and not is_away(outputs, wrong, rule):
            fits[mistake.words] = max(agreement(outputs, wrong, rule).differences.values(), default=0.0)
    if not fits:
        return f"None of {len(tried)} usual mistakes gives the numbers of {letter}."
    rounding = max(Rule().of_all(array, array.dtype.name) for array in outputs.values()) / 100  # see TOLERANCES
    named = [words for words, distance in fits.items() if distance <= 2 * min(fits.values()) + rounding]
    others = f" (or {len(named) - MOST_NAMED} others)" if len(named) > MOST_NAMED else ""
    return f"By its numbers, {letter} computes that layer as if {', or as if '.join(named[:MOST_NAMED])}{others}."
