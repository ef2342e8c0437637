"""Message of a failed `assert_same` of layers, in the order in which a person would look."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.comparison import oracle
from pyrnnx.comparison.agreement import Limits, Rule, agreement, is_away
from pyrnnx.comparison.aspects import Difference
from pyrnnx.comparison.layers import Comparison
from pyrnnx.comparison.steps import Place
from pyrnnx.comparison.weights import directions, in_lines
from pyrnnx.errors import PyrnnxError, printable
from pyrnnx.operator.op import RecurrentOp
from pyrnnx.testing.same import torch_modules
from pyrnnx.testing.same.layers import Arrays, Parting, Run, Side
from pyrnnx.testing.same.mistakes import MOST_MISTAKES, mistakes

WIDTH = 76  # 80 columns, less what pytest writes before each line
GATE_NAMES = {
    "RNN": {"i": "hidden gate"},
    "GRU": {"z": "update gate", "r": "reset gate", "h": "hidden gate"},
    "LSTM": {"i": "input gate", "o": "output gate", "f": "forget gate", "c": "cell gate"},
}
AXIS_WORDS = {"T": "time step", "D": "direction", "N": "row", "H": "unit"}
STATES = {"H": "hidden state after the step", "C": "cell state after the step"}


def layers_differ(run: Run, parting: Parting, rule: Rule) -> str:
    """Return the message about two layers, or a layer and a function, that differ."""
    comparison, oracles = run.compare(), _oracles(run)
    lines = [f"{run.a.label} (a) and {run.b.label} (b) are not the same", ""]
    if comparison is not None:
        lines += settings(comparison)
    else:
        lines += _names(run)
        if isinstance(oracles, dict):
            lines += _meant(run, rule, next(iter(oracles.values())))
    lines.append("")
    if parting.problem:
        return "\n".join([*lines, *wrapped(parting.problem)])
    lines += _where(run, parting, rule)
    lines += _judged(run, parting, rule, oracles) if isinstance(oracles, dict) else wrapped(oracles, "  ")
    lines += _gates(comparison, run.layer.op) if comparison is not None else []
    return "\n".join(lines)


def wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(printable(text), WIDTH, initial_indent=indent, subsequent_indent=indent + "    ")


def _names(run: Run) -> list[str]:
    """Return the conventions of the layer next to a function, which has none."""
    side = run.a if run.a.layer else run.b
    order = ", ".join(side.convention.gate_order(run.layer.op.cell))
    return wrapped(
        f"conventions of {side.letter}: {side.convention.name}; gate order: {order}; B: {side.convention.bias}"
    )


def settings(comparison: Comparison, indent: str = "") -> list[str]:
    """Return how conventions, operators and weights differ."""
    lines: list[str] = []
    for title, differences in (("conventions", comparison.conventions), ("operators", comparison.operators)):
        lines += [f"{indent}{line}" for line in _differing_lines(title, differences)]
    for line in in_lines(comparison.weights):
        lines += wrapped(line.strip(), f"{indent}  " if line.startswith(" ") else indent)
    return lines


def _differing_lines(title: str, differences: Iterable[Difference]) -> list[str]:
    """Return a table of two columns, with the values in lines of their own if it is too wide."""
    differences = list(differences)
    lines = [f"{title}: {'these differ' if differences else 'the same'}"]
    for difference in differences:
        both = f"  {difference.aspect}: {difference.a} in a; {difference.b} in b"
        lines += [both] if len(both) <= WIDTH else _stacked(difference)
    return lines


def _stacked(difference: Difference) -> list[str]:
    values = [
        line
        for letter, text in (("a", difference.a), ("b", difference.b))
        for line in wrapped(f"{letter}: {text}", "    ")
    ]
    return [*wrapped(f"{difference.aspect}:", "  "), *values]


def _where(run: Run, parting: Parting, rule: Rule) -> list[str]:
    """Return the output, how much of it differs, and its first place with the values and indices of both sides."""
    a, b = (side.canonical(parting.name) for side in run.sides)
    place = parting.place
    assert place is not None
    own = " and ".join(dict.fromkeys(side.convention.name_of(parting.name) for side in run.sides))
    allowed = in_words_of(rule.between(a, b))
    lines = wrapped(f"{own}: {parting.apart} of {a.size} numbers are apart by more than {allowed}; the first is at")
    lines += wrapped(in_words(place, run), "  ")
    dtypes = {side.outputs[parting.name].dtype for side in run.sides}
    for side, value in zip(run.sides, (place.a, place.b), strict=True):
        dtype = f" {side.outputs[parting.name].dtype}" if len(dtypes) > 1 else ""
        lines.append(f"  {side.letter:7}{number(value)}{dtype}  {own_index(side, parting.name, place, run)}")
    return lines


def in_words(place: Place, run: Run) -> str:
    """Return "Y at time step 3, direction 0 (forward), row 1, unit 4", and what is special about that step."""
    words = [f"direction {_number_of(place, run)} ({place.direction})", f"row {place.row}", f"unit {place.unit}"]
    if place.step is not None:
        words.insert(0, f"time step {place.step}")
        length = int(run.arrays["sequence_lens"][place.row])
        if place.step >= length:
            words.append(f"beyond the length of that row, {length}")
        elif place.direction == "reverse":
            words.append(f"which is step {length - 1 - place.step} of that direction")
    return f"{place.name} at {', '.join(words)}"


def _number_of(place: Place, run: Run) -> int:
    return directions(run.layer.op).index(place.direction)


def own_index(side: Side, name: str, place: Place, run: Run) -> str:
    """Return "Y[1, 0, 3, 4]", in the axes of that side."""
    letters = {"T": place.step or 0, "D": _number_of(place, run), "N": place.row, "H": place.unit}
    axes = side.convention.axes_of(name)
    if name == "Y" and torch_modules.joins_directions(side.convention):
        letters["H"] += letters["D"] * run.layer.op.hidden_size
        axes = axes.replace("D", "")
    return f"{side.convention.name_of(name)}[{', '.join(str(letters[axis]) for axis in axes)}]"


def in_words_of(tolerance: Limits) -> str:
    """Return "atol 1e-05, rtol 0.1", without an rtol of 0."""
    return f"atol {tolerance.atol:.3g}" + (f", rtol {tolerance.rtol:.3g}" if tolerance.rtol else "")


def number(value: float) -> str:
    return f"{value:< 14.9g}"


def _oracles(run: Run) -> dict[str, Arrays] | str:
    """Return the oracle's outputs for each side that is a layer, or why there are none."""
    try:
        return {
            side.letter: oracle.outputs(side.layer, oracle.arguments(side.layer, run.arrays))
            for side in run.sides
            if side.layer is not None
        }
    except PyrnnxError as error:
        return str(error)


def _judged(run: Run, parting: Parting, rule: Rule, oracles: dict[str, Arrays]) -> list[str]:
    """Return the oracle's values, and which side is away from them."""
    place = parting.place
    assert place is not None
    index = ([] if place.step is None else [place.step]) + [_number_of(place, run), place.row, place.unit]
    values = {letter: float(arrays[parting.name][tuple(index)]) for letter, arrays in oracles.items()}
    agree = len(oracles) == 1 or not is_away(oracles["a"], oracles["b"], rule)
    if agree:
        lines = [f"  oracle {number(next(iter(values.values())))}".rstrip()]
    else:
        lines = [f"  oracle of {letter}: {value:.9g}" for letter, value in values.items()]
    first = next(iter(oracles.values()))
    away = [side.letter for side in run.sides if is_away(_comparable(run, side), oracles.get(side.letter, first), rule)]
    return [*lines, *wrapped(_verdict(away, agree, len(oracles)))]


def _meant(run: Run, rule: Rule, right: Arrays) -> list[str]:
    """Return a line that names the common mistake that gives the function's results, or all that fit equally well."""
    side = next(side for side in run.sides if side.layer is None)
    given = _comparable(run, side)
    if MOST_MISTAKES * oracle.cost(run.layer, run.arrays) > oracle.MOST_COST:
        return []
    if len(given) < len(run.names) or not is_away(given, right, rule):
        return []
    arguments = oracle.arguments(run.layer, run.arrays)
    fits = {}
    for mistake in mistakes(run.layer, arguments):
        outputs = mistake.outputs(run.layer, arguments, right)
        if not is_away(given, outputs, rule):
            fits[mistake.words] = max(agreement(given, outputs, rule).differences.values(), default=0.0)
    if not fits:
        return []
    rounding = Rule().tolerance([*given.values()]).atol / 100  # see TOLERANCES
    named = [words for words, distance in fits.items() if distance <= 2 * min(fits.values()) + rounding]
    return wrapped(f"By its numbers, {side.letter} computes that layer as if {', or as if '.join(named)}.")


def _comparable(run: Run, side: Side) -> dict[str, AnyArray]:
    return {name: side.canonical(name) for name in run.comparable}


def _verdict(away: Sequence[str], agree: bool, layers: int) -> str:
    if not agree:
        verdict = "The two are not the same layer: by their weights and attributes, the oracle gives other numbers."
        return verdict + "".join(f" Beside that, {letter} is away from its oracle." for letter in away)
    subject = "By weights and attributes the two are the same layer: " if layers == 2 else ""
    if not away:
        return f"{subject}Each is within the tolerance of the oracle, on either side of it."
    other = {"a": "b", "b": "a"}
    if len(away) == 2:
        return f"{subject}Both are away from the oracle."
    return f"{subject}{away[0]} is away from the oracle, {other[away[0]]} is not."


def _gates(comparison: Comparison, op: RecurrentOp) -> list[str]:
    """Return the first gate in which two layers part, by the oracle's steps."""
    place = comparison.first_gate
    if place is None:
        note = comparison.gates_note
        return wrapped(f"gates: {note}") if note else []
    letter = place.name.removesuffix("_in")
    what = GATE_NAMES[op.cell].get(letter) or STATES[letter]
    what += ", before its activation" if place.name.endswith("_in") else ""
    lines = ["", *wrapped(f"Step by step, by the oracle, the two part first in {place.name} ({what}), at")]
    where = f"time step {place.step}, direction {directions(op).index(place.direction)} ({place.direction})"
    lines += wrapped(f"{where}, row {place.row}, unit {place.unit}", "  ")
    return [*lines, f"  oracle of a: {place.a:.9g}", f"  oracle of b: {place.b:.9g}"]
