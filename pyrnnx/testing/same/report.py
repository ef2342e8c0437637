"""Message of a failed `assert_same` of layers, in the order in which a person would look."""

from __future__ import annotations

import textwrap

from pyrnnx.comparison import oracle
from pyrnnx.comparison.agreement import Limits, Rule, agreement, is_away
from pyrnnx.comparison.layers import LayerCall
from pyrnnx.comparison.steps import Place
from pyrnnx.comparison.views.text import gate_lines, settings_lines
from pyrnnx.comparison.weights import directions
from pyrnnx.errors import PyrnnxError, printable
from pyrnnx.testing.same import torch_modules
from pyrnnx.testing.same.layers import Arrays, Compared, Side
from pyrnnx.testing.same.mistakes import MOST_MISTAKES, mistakes

WIDTH = 76  # 80 columns, less what pytest writes before each line


def layers_differ(compared: Compared, rule: Rule) -> str:
    """Return the message about two layers, or a layer and a function, that differ."""
    (a, b), comparison = compared.sides, compared.comparison
    place, call = comparison.first_difference, comparison.call
    assert call is not None
    lines = [f"{a.label} (a) and {b.label} (b) are not the same", ""]
    oracles = _oracles(compared, call)
    function = next((side for side in compared.sides if side.is_function), None)
    if function is None:
        lines += settings_lines(comparison, WIDTH)
    else:
        lines += _convention(a if b.is_function else b, call)
        if isinstance(oracles, dict) and not compared.problem:
            lines += _mistakes(function, call, rule, next(iter(oracles.values())))
    if compared.problem:
        return "\n".join([*lines, "", *wrapped(compared.problem)])
    assert place is not None
    lines += ["", *_where(compared, call, place, rule)]
    lines += _judged(compared, call, place, rule, oracles) if isinstance(oracles, dict) else wrapped(oracles, "  ")
    if function is None and (gates := gate_lines(comparison)):
        lines += ["", *(line for gate in gates for line in wrapped(gate))]
    return "\n".join(lines)


def wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(printable(text), WIDTH, initial_indent=indent, subsequent_indent=indent + "    ")


def _convention(layer: Side, call: LayerCall) -> list[str]:
    """Return the conventions of the layer next to a function, which has none."""
    convention, order = layer.convention, ", ".join(layer.convention.gate_order(call.layers[0].op.cell))
    return wrapped(f"conventions of {layer.letter}: {convention.name}; gate order: {order}; B: {convention.bias}")


def _where(compared: Compared, call: LayerCall, place: Place, rule: Rule) -> list[str]:
    """Return the output, how much of it differs, and its first place with the values and indices of both sides."""
    first, second = (outputs[place.name] for outputs in call.outputs)
    own = " and ".join(dict.fromkeys(side.convention.name_of(place.name) for side in compared.sides))
    apart, allowed = compared.comparison.profiles[place.name].apart, in_words_of(rule.between(first, second))
    lines = wrapped(f"{own}: {apart} of {first.size} numbers are apart by more than {allowed}; the first is at")
    lines += wrapped(_in_words(place, call), "  ")
    for side, array, value in zip(compared.sides, (first, second), (place.a, place.b), strict=True):
        dtype = f" {array.dtype}" if first.dtype != second.dtype else ""
        lines.append(f"  {side.letter:7}{number(value)}{dtype}  {_own_index(side, place, call)}")
    return lines


def _direction(place: Place, call: LayerCall) -> int:
    return directions(call.layers[0].op).index(place.direction)


def _in_words(place: Place, call: LayerCall) -> str:
    """Return "Y at time step 3, direction 0 (forward), row 1, unit 4", and what is special about that step."""
    words = [f"direction {_direction(place, call)} ({place.direction})", f"row {place.row}", f"unit {place.unit}"]
    if place.step is not None:
        words.insert(0, f"time step {place.step}")
        length = int(call.arrays["sequence_lens"][place.row])
        if place.step >= length:
            words.append(f"beyond the length of that row, {length}")
        elif place.direction == "reverse":
            words.append(f"which is step {length - 1 - place.step} of that direction")
    return f"{place.name} at {', '.join(words)}"


def _own_index(side: Side, place: Place, call: LayerCall) -> str:
    """Return "Y[1, 0, 3, 4]", in the axes of that side."""
    letters = {"T": place.step or 0, "D": _direction(place, call), "N": place.row, "H": place.unit}
    axes = side.convention.axes_of(place.name)
    if place.name == "Y" and torch_modules.joins_directions(side.convention):
        letters["H"] += letters["D"] * call.layers[0].op.hidden_size
        axes = axes.replace("D", "")
    return f"{side.convention.name_of(place.name)}[{', '.join(str(letters[axis]) for axis in axes)}]"


def in_words_of(tolerance: Limits) -> str:
    """Return "atol 1e-05, rtol 0.1", without an rtol of 0."""
    return f"atol {tolerance.atol:.3g}" + (f", rtol {tolerance.rtol:.3g}" if tolerance.rtol else "")


def number(value: float) -> str:
    return f"{value:< 14.9g}"


def _oracles(compared: Compared, call: LayerCall) -> dict[str, Arrays] | str:
    """Return the oracle's outputs for each side that is a layer, or why there are none."""
    try:
        return {
            side.letter: oracle.outputs(layer, oracle.arguments(layer, call.arrays))
            for side, layer in zip(compared.sides, call.layers, strict=True)
            if not side.is_function
        }
    except PyrnnxError as error:
        return str(error)


def _judged(compared: Compared, call: LayerCall, place: Place, rule: Rule, oracles: dict[str, Arrays]) -> list[str]:
    """Return the oracle's values, and which side is away from them."""
    index = (*(() if place.step is None else (place.step,)), _direction(place, call), place.row, place.unit)
    values = {letter: float(arrays[place.name][index]) for letter, arrays in oracles.items()}
    agree = len(oracles) == 1 or not is_away(oracles["a"], oracles["b"], rule)
    if agree:
        lines = [f"  oracle {number(next(iter(values.values())))}".rstrip()]
    else:
        lines = [f"  oracle of {letter}: {value:.9g}" for letter, value in values.items()]
    first = next(iter(oracles.values()))
    away = [
        side.letter
        for side, outputs in zip(compared.sides, call.outputs, strict=True)
        if is_away(outputs, oracles.get(side.letter, first), rule)
    ]
    return [*lines, *wrapped(_verdict(away, agree, len(oracles)))]


def _verdict(away: list[str], agree: bool, layers: int) -> str:
    if not agree:
        verdict = "The two are not the same layer: by their weights and attributes, the oracle gives other numbers."
        return verdict + "".join(f" Beside that, {letter} is away from its oracle." for letter in away)
    subject = "By weights and attributes the two are the same layer: " if layers == 2 else ""
    if not away:
        return f"{subject}Each is within the tolerance of the oracle, on either side of it."
    if len(away) == 2:
        return f"{subject}Both are away from the oracle."
    return f"{subject}{away[0]} is away from the oracle, {'b' if away[0] == 'a' else 'a'} is not."


def _mistakes(side: Side, call: LayerCall, rule: Rule, right: Arrays) -> list[str]:
    """Return a line that names the common mistake that gives the function's results, or all that fit equally well."""
    layer, outputs = call.layers[0], call.outputs["ab".index(side.letter)]
    if MOST_MISTAKES * oracle.cost(layer, call.arrays) > oracle.MOST_COST or not is_away(outputs, right, rule):
        return []
    arguments = oracle.arguments(layer, call.arrays)
    fits = {}
    for mistake in mistakes(layer, arguments):
        wrong = mistake.outputs(layer, arguments, right)
        if not is_away(outputs, wrong, rule):
            fits[mistake.words] = max(agreement(outputs, wrong, rule).differences.values(), default=0.0)
    if not fits:
        return []
    rounding = max(Rule().tolerance(array).atol for array in outputs.values()) / 100  # see TOLERANCES
    named = [words for words, distance in fits.items() if distance <= 2 * min(fits.values()) + rounding]
    return wrapped(f"By its numbers, {side.letter} computes that layer as if {', or as if '.join(named)}.")
