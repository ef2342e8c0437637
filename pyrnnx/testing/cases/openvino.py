"""Cases of OpenVINO's operations that each detect wrong axes, gate orders and bias sums."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyrnnx import reference
from pyrnnx.testing.cases.case import Case
from pyrnnx.testing.cases.make import PARAMETERS, named
from pyrnnx.testing.cases.operators import OPERATIONS, OPTIONAL, SEQUENCES, STEPS
from pyrnnx.testing.cases.sizes import DTYPE_FAILS, LONG_SUMS
from pyrnnx.testing.cases.space import TEXT_ACTIVATIONS

T, H = 5, 6
LENS = (T, 0, 2, 1)
ORDERS = {"RNN": "", "GRU": "z, r, h", "LSTM": "f, i, c, o"}


def cases() -> Iterator[Case]:
    for operation in OPERATIONS:
        yield from _alone(operation)
        yield from _activations(operation)
        yield from _dtypes(operation)
        if operation.startswith("GRU"):
            yield from _linear_before_reset(operation)
        if operation.endswith("-1") and operation.startswith("LSTM"):
            yield from _first_version(operation)
    for operation in SEQUENCES:
        yield from _directions(operation)
        yield from _lengths(operation)
        yield from _not_a_number(operation)
    for operation in STEPS:
        nothing = "an empty batch is refused, or its results have another shape"
        yield _case(operation, "N=0", "empty batch", nothing, "shapes", N=0)


def _case(
    operation: str,
    name: str,
    feature: str,
    fails_if: str,
    place: str,
    attributes: dict[str, Any] | None = None,
    inputs: tuple[str, ...] | None = None,
    lens: tuple[int, ...] | None = None,
    **fields: Any,
) -> Case:
    fields = {"T": T, "N": 4, "I": 3, "H": H, "opset": int(operation.rpartition("-")[2])} | fields
    if operation in STEPS:
        fields["T"] = 1
    inputs = OPTIONAL[operation] if inputs is None else inputs
    return named(f"{operation}-{name}", operation, feature, fails_if, place, attributes, inputs, lens, **fields)


def _alone(operation: str) -> Iterator[Case]:
    cell = Case("", operation).cell
    gates = f"the gates are not in the order {ORDERS[cell]}, " if ORDERS[cell] else ""
    axes = "the axes of X or of the states are exchanged" if operation in SEQUENCES else "H is ignored"
    yield _case(operation, "defaults", "defaults", f"{gates}B is not a sum, or {axes}", "equations", {}, ())
    yield _case(operation, "clip", "clip", "clip is ignored, or applied to the state", "attribute clip", {"clip": 0.25})
    no_bound = "clip 0, which means no clip, sets everything to 0"
    yield _case(operation, "clip=0", "clip", no_bound, "attribute clip", {"clip": 0.0})
    for name, meaning in (("H", "initial_h"), ("C", "initial_c"), ("B", "B")):
        if name in ("C", "B") and name not in _inputs(operation):
            continue
        ignored = f"{name} is ignored"
        yield _case(operation, f"input-{name}", meaning, ignored, f"input {name}", {}, ("B",) * _optional(operation))
    for size in ("N", "I", "H") if operation in STEPS else ("T", "N", "I", "H"):
        fails = f"an axis of length 1, here {size}, is dropped or confused with another"
        change: dict[str, Any] = {size: 1}
        yield _case(operation, f"{size}=1", "sizes of 1", fails, "shapes", **change)
    wide = "some of 19 rows, 130 inputs or 40 units are left out"
    yield _case(operation, "wide", "large sizes", wide, "shapes", T=2, N=19, I=130, H=40)
    inputs = "input_size 0 is refused, or the recurrence is skipped"
    yield _case(operation, "I=0", "input_size 0", inputs, "shapes", I=0)
    far = "a function of a large argument is NaN or infinite because exp overflows"
    yield _case(operation, "large-values", "large values", far, "equations", scale=2000.0)


def _inputs(operation: str) -> tuple[str, ...]:
    return Case("", operation, inputs=OPTIONAL[operation]).given


def _optional(operation: str) -> bool:
    return "B" in OPTIONAL[operation]


def _activations(operation: str) -> Iterator[Case]:
    default = _defaults(operation)
    share = ", shared by both directions" if operation in SEQUENCES else ""
    for place, letter in enumerate("fgh"[: len(default)]):
        for name in TEXT_ACTIVATIONS:
            names = _at(default, place, name)
            fails = f"the activations are not {', '.join(names)}{share}"
            yield _case(
                operation,
                f"{letter}={name}",
                "activations",
                fails,
                "attribute activations",
                {**_both(operation), "activations": names},
            )
        for name in PARAMETERS:  # parameters at earlier positions have no effect
            attributes: dict[str, Any] = {**_both(operation), "activations": _at(default, place, name.lower())}
            for key, value in zip(("alpha", "beta"), PARAMETERS[name], strict=False):
                attributes[f"activations_{key}"] = [7.0] * place + [value]
            yield _case(
                operation,
                f"{letter}={name.lower()}",
                "activation_alpha/beta",
                f"{name} does not take the parameters at its own position{share}",
                "attribute activations_alpha",
                attributes,
            )
    names = ["elu", "hardsigmoid", "leakyrelu"][: len(default)]
    fails = f"{' or '.join(names)} without parameters does not use the defaults of the operator of that name"
    yield _case(
        operation,
        "default-parameters",
        "default activation parameters",
        fails,
        "attribute activations_alpha",
        {**_both(operation), "activations": names},
    )
    spelt = [name.title() for name in _at(default, 0, "relu")]
    yield _case(
        operation,
        "names-in-any-case",
        "names in any case",
        f"{', '.join(spelt)}{', or a direction in capitals,' if operation in SEQUENCES else ''} is unknown",
        "attribute activations",
        {**{key: value.upper() for key, value in _both(operation).items()}, "activations": spelt},
    )


def _defaults(operation: str) -> list[str]:
    return [name.lower() for name in reference.DEFAULT_ACTIVATIONS[Case("", operation).cell]]


def _at(names: Sequence[str], place: int, name: str) -> list[str]:
    return [*names[:place], name, *names[place + 1 :]]


def _both(operation: str) -> dict[str, str]:
    return {"direction": "bidirectional"} if operation in SEQUENCES else {}


def _dtypes(operation: str) -> Iterator[Case]:
    for dtype, fails in DTYPE_FAILS.items():
        yield _case(operation, dtype, dtype, fails, "types", _both(operation), dtype=dtype, **LONG_SUMS)


def _linear_before_reset(operation: str) -> Iterator[Case]:
    fails = "the reset gate multiplies h before the product, or does not multiply Rb of h, the fourth block of B"
    for clip in (None, 0.375):
        attributes = {"linear_before_reset": True, **_both(operation)} | ({"clip": clip} if clip else {})
        yield _case(
            operation,
            f"linear_before_reset{'-clip' if clip else ''}",
            "linear_before_reset",
            fails,
            "attribute linear_before_reset",
            attributes,
        )


def _first_version(operation: str) -> Iterator[Case]:
    """Yield cases with P in the order f, i, o, and i = 1 - f, as in OpenVINO's own reference."""
    coupled = "i is not 1 - f, or weights, bias or peephole of i are used"
    for direction in ("forward", "reverse", "bidirectional") if operation in SEQUENCES else ("",):
        way, tag = ({"direction": direction}, f"-{direction}") if direction else ({}, "")
        peepholes = "P is ignored, its blocks are not in the order f, i, o, or o uses C of the previous step"
        yield _case(operation, f"P{tag}", "P", peepholes, "input P", way)
        attributes = {**way, "input_forget": True}
        yield _case(
            operation, f"input_forget{tag}", "input_forget", coupled, "attribute input_forget", attributes, ("B",)
        )
        fails = f"{coupled}, or P or clip is ignored"
        attributes = {**attributes, "clip": 0.375}
        yield _case(operation, f"input_forget-P-clip{tag}", "all together", fails, "attribute input_forget", attributes)
    relu = {"input_forget": True, "activations": ["relu", "tanh", "tanh"]}
    fails = f"{coupled}, for a function with 1 - f(x) != f(-x)"
    yield _case(operation, "input_forget-relu", "input_forget", fails, "attribute input_forget", relu)


def _directions(operation: str) -> Iterator[Case]:
    for direction, fails in (
        ("reverse", "the steps run forwards, or Y is in the order of computation instead of time"),
        ("bidirectional", "both directions have the same weights or order of steps, or Y is not [N, D, T, H]"),
    ):
        attributes: dict[str, Any] = {"direction": direction}
        yield _case(operation, direction, direction, fails, "attribute direction", attributes)
        lengths = "padding is processed too, or the results of a reversed row do not begin at step 0"
        yield _case(
            operation,
            f"{direction}-sequence_lengths",
            "sequence_lens with reverse",
            lengths,
            "input sequence_lengths",
            attributes,
            None,
            LENS,
        )
        everything = {**attributes, "clip": 0.375, "activations": _at(_defaults(operation), 0, "relu")}
        yield _case(
            operation,
            f"{direction}-all-attributes",
            "all together",
            f"direction ({direction}), clip, activations or sequence_lengths is ignored if all are present",
            "attributes",
            everything,
            None,
            LENS,
        )


def _lengths(operation: str) -> Iterator[Case]:
    place = "input sequence_lengths"
    lengths = "sequence_lengths is ignored, Y is not zero beyond a row's length, or Ho is not the last valid state"
    yield _case(operation, "sequence_lengths", "sequence_lens", lengths, place, {}, None, (2, 5, 3, 1))
    zero = "the results of a row of length 0 are not zeros"
    yield _case(operation, "length-0", "length 0", zero, place, {}, None, LENS)
    both = _both(operation)
    yield _case(operation, "all-lengths-zero", "length 0", zero, place, both, None, (0,) * 4)
    yield _case(operation, "T=0", "T = 0", "T = 0 is refused, or leaves states that are not zeros", place, both, T=0)
    empty = "an empty batch is refused, or its results have another shape"
    yield _case(operation, "N=0", "empty batch", empty, "shapes", both, None, (), N=0)
    long = "steps after step 100 are left out"
    yield _case(operation, "long", "long sequences", long, place, both, None, (130, 67), T=130, N=2, H=17)


def _not_a_number(operation: str) -> Iterator[Case]:
    for direction in ("forward", "bidirectional"):
        yield _case(
            operation,
            f"NaN-in-padding-{direction}",
            "NaN in padding",
            "X beyond a row's length is read, and its NaN reaches a result",
            "input sequence_lengths",
            {"direction": direction},
            None,
            LENS,
            nan="padding",
        )
    fails = "a NaN in X reaches another row, or does not reach Y and Ho of its own row"
    yield _case(operation, "NaN-in-a-row", "NaN in a row", fails, "equations", _both(operation), nan="row")
