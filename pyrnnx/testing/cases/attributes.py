"""Cases of attributes and optional inputs, alone and together, and of NaN."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyrnnx.testing.cases.case import Case
from pyrnnx.testing.cases.make import BOTH, named, spelt
from pyrnnx.testing.cases.operators import OPERATORS, OPTIONAL

FLAGS: dict[str, tuple[dict[str, Any], ...]] = {
    "RNN": ({},),
    "GRU": ({"linear_before_reset": 0}, {"linear_before_reset": 1}),
    "LSTM": ({"input_forget": 0}, {"input_forget": 1}),
}
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


def cases() -> Iterator[Case]:
    for op in OPERATORS:
        yield from _alone(op)
        for flags in FLAGS[op]:
            yield from _with_flags(op, flags)
        yield from _not_a_number(op)
    yield named(
        "RNN-schema-default-activations",
        "RNN",
        "activations",
        "the schema's default, Tanh twice, is refused for one direction",
        "attribute activations",
        {"activations": ["Tanh", "Tanh"]},
        ("B",),
    )


def _alone(op: str) -> Iterator[Case]:
    """Yield nothing set, then one attribute or input at a time."""
    yield named(f"{op}-defaults", op, "defaults", "gates or terms of the equations are exchanged", "equations")
    yield named(
        f"{op}-hidden_size-left-out",
        op,
        "hidden_size left out",
        "hidden_size is not read from the shape of R if the attribute is absent",
        "attribute hidden_size",
        {},
        OPTIONAL[op],
    )
    for name in OPTIONAL[op]:
        yield named(f"{op}-only-{name}", op, name, INPUT_FAILS[name], f"input {name}", {}, (name,))
    lengths = "sequence_lens is ignored, Y is not zero beyond a row's length, or Y_h is not the last valid state"
    yield named(f"{op}-only-sequence_lens", op, "sequence_lens", lengths, "input sequence_lens", {}, (), (2, 4, 1))
    zero = "the results of a row of length 0 are not zeros"
    yield named(f"{op}-length-0", op, "length 0", zero, "input sequence_lens", {}, OPTIONAL[op], (3, 0, 4))
    yield named(
        f"{op}-only-clip", op, "clip", "clip is ignored, or applied to the output", "attribute clip", {"clip": 0.125}
    )
    for direction, fails in (
        ("reverse", "the steps run forwards, or Y is in the order of computation instead of time"),
        ("bidirectional", "both directions have the same weights or order of steps, or one is missing"),
    ):
        attributes = {"direction": direction}
        yield named(f"{op}-only-{direction}", op, direction, fails, "attribute direction", attributes)
        yield named(
            f"{op}-only-{direction}-sequence_lens",
            op,
            "sequence_lens with reverse",
            "padding is processed too, or the results of a reversed row do not begin at step 0",
            "input sequence_lens",
            attributes,
            (),
            (2, 4, 1),
        )
    layout = "X and Y, or only the states, are not treated as batch first"
    inputs = tuple(name for name in OPTIONAL[op] if name.startswith("initial"))
    yield named(f"{op}-only-layout", op, "layout=1", layout, "attribute layout", {"layout": 1}, inputs)


def _with_flags(op: str, flags: dict[str, Any]) -> Iterator[Case]:
    """Yield bias, clip, directions, layouts and lengths with each value of the operator's own flag."""
    tag = op + spelt(flags)
    flag = next((key for key, value in flags.items() if value), "")
    own = f" or {FLAG_FAILS[flag]}" if flag else ""

    def case(name: str, feature: str, place: str, fails: str, *arguments: Any) -> Case:
        return named(f"{tag}-{name}", op, feature, fails + own, place, *arguments)

    what = f"attribute {flag}" if flag else "input B"
    bias = "a block of B is not added to its own gate"
    yield case("bias", flag or "B", what, bias, flags, ("B",))
    yield case("no-bias", flag or "all together", what, "a missing B does not count as zeros", flags, OPTIONAL[op][1:])
    clip = "clip is ignored, applied before the bias is added, or applied to the state too"
    yield case("clip", "clip", "attribute clip", clip, flags | {"clip": 0.375}, OPTIONAL[op])
    inputs = "one of the optional inputs is ignored"
    yield case("hidden_size", flag or "all together", "inputs", inputs, flags, OPTIONAL[op])
    for direction in ("forward", "reverse", "bidirectional"):
        for layout in (0, 1):
            attributes = flags | {"direction": direction, "layout": layout}
            place = f"{direction}-layout{layout}"
            fault = (
                f"one of {direction}, {'batch first' if layout else 'time first'} and the optional inputs is ignored"
            )
            source = "attribute layout" if layout else "attribute direction"
            feature = flag or (direction if direction != "forward" else "all together")
            yield case(place, "layout=1" if layout else feature, source, fault, attributes, OPTIONAL[op])
            lengths = f"{fault}, or the rows do not run for 0, 4 and 2 steps"
            feature = "sequence_lens" if direction == "forward" else "sequence_lens with reverse"
            feature, source = ("layout=1", source) if layout else (feature, "input sequence_lens")
            yield case(f"{place}-lens", feature, source, lengths, attributes, OPTIONAL[op], (0, 4, 2))
            clip_fault = f"{fault}, or clip is ignored, or the rows do not run for 3, 1 and 4 steps"
            attributes = attributes | {"clip": 0.25}
            yield case(
                f"{place}-clip-lens", "all together", "attributes", clip_fault, attributes, OPTIONAL[op], (3, 1, 4)
            )


def _not_a_number(op: str) -> Iterator[Case]:
    for direction in ("forward", "reverse", "bidirectional"):
        for layout in (0, 1):
            attributes = {"direction": direction, "layout": layout}
            yield named(
                f"{op}-NaN-in-padding-{direction}-layout{layout}",
                op,
                "NaN in padding",
                "X beyond a row's length is read, and its NaN reaches a result",
                "input sequence_lens",
                attributes,
                OPTIONAL[op],
                (2, 0, 3),
                nan="padding",
            )
    for inputs in ((), OPTIONAL[op]):
        yield named(
            f"{op}-NaN-in-a-row{'-all-inputs' if inputs else ''}",
            op,
            "NaN in a row",
            "a NaN in X reaches another row, or does not reach Y and Y_h of its own row",
            "equations",
            BOTH,
            inputs,
            nan="row",
        )
