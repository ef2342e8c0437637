"""Cases of attributes and optional inputs, alone and together, of NaN, and of the versions of ONNX's operators."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pyrnnx import reference
from pyrnnx.testing.cases.case import BOTH, Case, activation_attributes, named
from pyrnnx.testing.cases.operators import OPERATORS, OPTIONAL, version_of
from pyrnnx.testing.cases.space import OPSETS

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
    yield named("RNN", "schema-default-activations", "activations", fails, attributes, ("B",))


def _alone(op: str) -> Iterator[Case]:
    """Yield nothing set, then one attribute or input at a time."""

    def case(name: str, feature: str, fails: str, attributes: Any = None, *more: Any) -> Case:
        return named(op, name, feature, fails, attributes, *(more or [()]))

    yield case("defaults", "defaults", "gates or terms of the equations are exchanged")
    fails = "hidden_size is not read from the shape of R if the attribute is absent"
    yield named(op, "hidden_size-left-out", "hidden_size left out", fails)
    for name in OPTIONAL[op]:
        yield case(f"only-{name}", name, INPUT_FAILS[name], {}, (name,))
    fails = "sequence_lens is ignored, Y is not zero beyond a row's length, or Y_h is not the last valid state"
    yield case("only-sequence_lens", "sequence_lens", fails, {}, (), (2, 4, 1))
    yield named(op, "length-0", "length 0", "the results of a row of length 0 are not zeros", lens=(3, 0, 4))
    yield case("only-clip", "clip", "clip is ignored, or applied to the output", {"clip": 0.125})
    for direction, fails in DIRECTION_FAILS.items():
        attributes = {"direction": direction}
        yield case(f"only-{direction}", direction, fails, attributes)
        padding = "padding is processed too, or the results of a reversed row do not begin at step 0"
        name, feature = f"only-{direction}-sequence_lens", "sequence_lens with reverse"
        yield case(name, feature, padding, attributes, (), (2, 4, 1))
    fails = "X and Y, or only the states, are not treated as batch first"
    states = tuple(name for name in OPTIONAL[op] if name.startswith("initial"))
    yield case("only-layout", "layout=1", fails, {"layout": 1}, states)


def _with_flag(op: str, value: int | None) -> Iterator[Case]:
    """Yield bias, clip, directions, layouts and lengths with a value of the operator's own flag, if it has one."""
    flags: dict[str, Any] = {} if value is None else {FLAGS[op]: value}
    tag = "" if value is None else f"{FLAGS[op]}={value}-"
    flag = FLAGS[op] if value else ""
    own = f" or {FLAG_FAILS[flag]}" if flag else ""

    def case(name: str, feature: str, fails: str, attributes: dict[str, Any], *more: Any) -> Case:
        return named(op, tag + name, feature, fails + own, flags | attributes, *more)

    yield case("bias", flag or "B", "a block of B is not added to its own gate", {}, ("B",))
    feature = flag or "all together"
    yield case("no-bias", feature, "a missing B does not count as zeros", {}, OPTIONAL[op][1:])
    fails = "clip is ignored, applied before the bias is added, or applied to the state too"
    yield case("clip", "clip", fails, {"clip": 0.375})
    yield case("hidden_size", feature, "one of the optional inputs is ignored", {})
    for direction in DIRECTIONS:
        for layout in (0, 1):
            attributes: dict[str, Any] = {"direction": direction, "layout": layout}
            name = f"{direction}-layout{layout}"
            axes = "batch first" if layout else "time first"
            fails = f"one of {direction}, {axes} and the optional inputs is ignored"
            feature = "layout=1" if layout else flag or (direction if direction != "forward" else "all together")
            yield case(name, feature, fails, attributes)
            lengths = f"{fails}, or the rows do not run for 0, 4 and 2 steps"
            feature = "sequence_lens" if direction == "forward" else "sequence_lens with reverse"
            feature = "layout=1" if layout else feature
            yield case(f"{name}-lens", feature, lengths, attributes, None, (0, 4, 2))
            fails = f"{fails}, or clip is ignored, or the rows do not run for 3, 1 and 4 steps"
            attributes["clip"] = 0.25
            yield case(f"{name}-clip-lens", "all together", fails, attributes, None, (3, 1, 4))


def _not_a_number(op: str) -> Iterator[Case]:
    fails = "X beyond a row's length is read, and its NaN reaches a result"
    for direction in DIRECTIONS:
        for layout in (0, 1):
            name, attributes = f"NaN-in-padding-{direction}-layout{layout}", {"direction": direction, "layout": layout}
            yield named(op, name, "NaN in padding", fails, attributes, lens=(2, 0, 3), nan="padding")
    fails = "a NaN in X reaches another row, or does not reach Y and Y_h of its own row"
    for name, inputs in (("NaN-in-a-row", ()), ("NaN-in-a-row-all-inputs", OPTIONAL[op])):
        yield named(op, name, "NaN in a row", fails, BOTH, inputs, nan="row")


def versions() -> Iterator[Case]:
    """Yield each opset's features, alone and together."""
    for op in OPERATORS:
        for opset in OPSETS:
            yield from _of_opset(op, opset)
        for opset in (1, 3, 7, 14, 22):
            yield _all_attributes(op, opset)


def _of_opset(op: str, opset: int) -> Iterator[Case]:
    version, name, lens = version_of(op, opset), f"opset{opset}", (4, 2, 1)
    fails = f"opset {opset} is refused, or {version} is not computed like the later versions"
    feature = "opset 1 to 6" if opset < 7 else "all together"
    plain = named(op, name, feature, fails, BOTH, lens=lens, opset=opset)
    yield plain
    if opset < 7:
        fails = f"the default direction of {version} is not forward, or hidden_size is not read from R"
        defaults = named(op, f"{name}-defaults", feature, fails, lens=lens, opset=opset)
        yield replace(defaults, attributes={})
        fails = "output_sequence is refused, or Y is missing although it is requested"
        for value in (0, 1):
            attributes = {"direction": "reverse", "output_sequence": value}
            full_name = f"{name}-output_sequence={value}"
            yield named(op, full_name, feature, fails, attributes, lens=lens, opset=opset)
    flag = {"GRU": "linear_before_reset" if opset >= 3 else "", "LSTM": "input_forget"}.get(op)
    if flag:
        fails = f"{flag} is unknown at opset {opset}, or ignored"
        yield named(op, f"{name}-{flag}", flag, fails, {flag: 1}, lens=lens, opset=opset)


def _all_attributes(op: str, opset: int) -> Case:
    """Return every attribute of an opset, all at once."""
    names = ["HardSigmoid", *reference.DEFAULT_ACTIVATIONS[op][1:]] * 2
    attributes = {**activation_attributes(names), "clip": 1.5, **BOTH}
    attributes |= {"output_sequence": 1} if opset < 7 else {}
    attributes |= {"layout": 1} if opset >= 14 else {}
    attributes |= {"linear_before_reset": 1} if op == "GRU" and opset >= 3 else {}
    attributes |= {"input_forget": 1} if op == "LSTM" else {}
    fails = f"an attribute of opset {opset} is ignored if all are present"
    name = f"opset{opset}-all-attributes"
    return named(op, name, "all together", fails, attributes, lens=(4, 0, 3), opset=opset)
