"""Cases of attributes and optional inputs, alone and together, and of NaN."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyrnnx.testing.cases.case import BOTH, Case, named
from pyrnnx.testing.cases.operators import OPERATORS, OPTIONAL

FLAGS = {"RNN": "", "GRU": "linear_before_reset", "LSTM": "input_forget"}
FLAG_FAILS = {
    "linear_before_reset": "the reset gate multiplies h before the product with R, instead of the product and its bias",
    "input_forget": "the forget gate is not 1 - i",
}
INPUT_FAILS = {
    "B": "B is ignored, or only one of its halves (Wb, Rb) is added",
    "initial_h": "initial_h is ignored and the first step starts from zeros",
    "initial_c": "initial_c is ignored and the first step starts from zeros",
    "P": "P is ignored, its blocks are not in the order i, o, f, or o uses C of the previous step",
}
DIRECTION_FAILS = {
    "reverse": "the steps run forwards, or Y is in the order of computation instead of time",
    "bidirectional": "both directions have the same weights or order of steps, or one is missing",
}
DIRECTIONS = ("forward", *DIRECTION_FAILS)


def cases() -> Iterator[Case]:
    for op in OPERATORS:
        yield from _alone(op)
        for value in (0, 1) if FLAGS[op] else (None,):
            yield from _with_flag(op, value)
        yield from _not_a_number(op)
    attributes = {"activations": ["Tanh", "Tanh"]}
    fails = "the schema's default, Tanh twice, is refused for one direction"
    yield named("RNN", "schema-default-activations", "activations", fails, "attribute activations", attributes, ("B",))


def _alone(op: str) -> Iterator[Case]:
    """Yield nothing set, then one attribute or input at a time."""

    def case(name: str, feature: str, fails: str, place: str, attributes: Any = None, *more: Any) -> Case:
        return named(op, name, feature, fails, place, attributes, *(more or [()]))

    yield case("defaults", "defaults", "gates or terms of the equations are exchanged", "equations")
    fails = "hidden_size is not read from the shape of R if the attribute is absent"
    yield named(op, "hidden_size-left-out", "hidden_size left out", fails, "attribute hidden_size")
    for name in OPTIONAL[op]:
        yield case(f"only-{name}", name, INPUT_FAILS[name], f"input {name}", {}, (name,))
    place = "input sequence_lens"
    fails = "sequence_lens is ignored, Y is not zero beyond a row's length, or Y_h is not the last valid state"
    yield case("only-sequence_lens", "sequence_lens", fails, place, {}, (), (2, 4, 1))
    yield named(op, "length-0", "length 0", "the results of a row of length 0 are not zeros", place, lens=(3, 0, 4))
    yield case("only-clip", "clip", "clip is ignored, or applied to the output", "attribute clip", {"clip": 0.125})
    for direction, fails in DIRECTION_FAILS.items():
        attributes = {"direction": direction}
        yield case(f"only-{direction}", direction, fails, "attribute direction", attributes)
        padding = "padding is processed too, or the results of a reversed row do not begin at step 0"
        name, feature = f"only-{direction}-sequence_lens", "sequence_lens with reverse"
        yield case(name, feature, padding, place, attributes, (), (2, 4, 1))
    fails = "X and Y, or only the states, are not treated as batch first"
    states = tuple(name for name in OPTIONAL[op] if name.startswith("initial"))
    yield case("only-layout", "layout=1", fails, "attribute layout", {"layout": 1}, states)


def _with_flag(op: str, value: int | None) -> Iterator[Case]:
    """Yield bias, clip, directions, layouts and lengths with a value of the operator's own flag, if it has one."""
    flags: dict[str, Any] = {} if value is None else {FLAGS[op]: value}
    tag = "" if value is None else f"{FLAGS[op]}={value}-"
    flag = FLAGS[op] if value else ""
    own = f" or {FLAG_FAILS[flag]}" if flag else ""

    def case(name: str, feature: str, place: str, fails: str, attributes: dict[str, Any], *more: Any) -> Case:
        return named(op, tag + name, feature, fails + own, place, flags | attributes, *more)

    place = f"attribute {flag}" if flag else "input B"
    yield case("bias", flag or "B", place, "a block of B is not added to its own gate", {}, ("B",))
    feature = flag or "all together"
    yield case("no-bias", feature, place, "a missing B does not count as zeros", {}, OPTIONAL[op][1:])
    fails = "clip is ignored, applied before the bias is added, or applied to the state too"
    yield case("clip", "clip", "attribute clip", fails, {"clip": 0.375})
    yield case("hidden_size", feature, "inputs", "one of the optional inputs is ignored", {})
    for direction in DIRECTIONS:
        for layout in (0, 1):
            attributes: dict[str, Any] = {"direction": direction, "layout": layout}
            name = f"{direction}-layout{layout}"
            axes = "batch first" if layout else "time first"
            fails = f"one of {direction}, {axes} and the optional inputs is ignored"
            feature = "layout=1" if layout else flag or (direction if direction != "forward" else "all together")
            yield case(name, feature, "attribute layout" if layout else "attribute direction", fails, attributes)
            lengths = f"{fails}, or the rows do not run for 0, 4 and 2 steps"
            feature = "sequence_lens" if direction == "forward" else "sequence_lens with reverse"
            feature, place = ("layout=1", "attribute layout") if layout else (feature, "input sequence_lens")
            yield case(f"{name}-lens", feature, place, lengths, attributes, None, (0, 4, 2))
            fails = f"{fails}, or clip is ignored, or the rows do not run for 3, 1 and 4 steps"
            attributes["clip"] = 0.25
            yield case(f"{name}-clip-lens", "all together", "attributes", fails, attributes, None, (3, 1, 4))


def _not_a_number(op: str) -> Iterator[Case]:
    fails = "X beyond a row's length is read, and its NaN reaches a result"
    for direction in DIRECTIONS:
        for layout in (0, 1):
            name, attributes = f"NaN-in-padding-{direction}-layout{layout}", {"direction": direction, "layout": layout}
            feature, place = "NaN in padding", "input sequence_lens"
            yield named(op, name, feature, fails, place, attributes, lens=(2, 0, 3), nan="padding")
    fails = "a NaN in X reaches another row, or does not reach Y and Y_h of its own row"
    for name, inputs in (("NaN-in-a-row", ()), ("NaN-in-a-row-all-inputs", OPTIONAL[op])):
        yield named(op, name, "NaN in a row", fails, "equations", BOTH, inputs, nan="row")
