"""Cases of OpenVINO's operations that each detect wrong axes, gate orders and bias sums."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyrnnx import reference
from pyrnnx.testing.cases.attributes import DIRECTION_FAILS
from pyrnnx.testing.cases.case import BOTH, PARAMETERS, Case, named, replaced
from pyrnnx.testing.cases.operators import INPUTS, OPERATIONS, OPTIONAL, SEQUENCES, STEPS
from pyrnnx.testing.cases.sizes import DTYPE_FAILS, LONG_SUMS, WIDE, WIDE_FAILS, one_fails
from pyrnnx.testing.cases.space import TEXT_ACTIVATIONS

T = 5
LENS = (T, 0, 2, 1)
ORDERS = {"RNN": "", "GRU": "z, r, h", "LSTM": "f, i, c, o"}
ZERO_FAILS = "the results of a row of length 0 are not zeros"
EMPTY_FAILS = "an empty batch is refused, or its results have another shape"


def cases() -> Iterator[Case]:
    for operation in OPERATIONS:
        yield from _alone(operation)
        yield from _activations(operation)
        yield from _dtypes(operation)
        if operation.startswith("GRU"):
            yield from _linear_before_reset(operation)
        if operation in ("LSTMSequence-1", "LSTMCell-1"):
            yield from _first_version(operation)
    for operation in SEQUENCES:
        yield from _directions(operation)
        yield from _lengths(operation)
        yield from _not_a_number(operation)
    for operation in STEPS:
        yield _case(operation, "N=0", "empty batch", EMPTY_FAILS, N=0)


def _case(operation: str, name: str, feature: str, fails: str, *more: Any, **fields: Any) -> Case:
    """Build a case; a cell has one step."""
    sizes = {"T": T, "N": 4, "I": 3, "H": 6, "opset": int(operation.rpartition("-")[2])} | fields
    return named(operation, name, feature, fails, *more, **sizes | ({"T": 1} if operation in STEPS else {}))


def _alone(operation: str) -> Iterator[Case]:
    axes = "the axes of X or of the states are exchanged" if operation in SEQUENCES else "H is ignored"
    order = ORDERS[_cell(operation)]
    fails = f"{f'the gates are not in the order {order}, ' if order else ''}B is not a sum, or {axes}"
    yield _case(operation, "defaults", "defaults", fails, {}, ())
    yield _case(operation, "clip", "clip", "clip is ignored, or applied to the state", {"clip": 0.25})
    fails = "clip 0, which means no clip, sets everything to 0"
    yield _case(operation, "clip=0", "clip", fails, {"clip": 0.0})
    inputs = ("B",) if "B" in OPTIONAL[operation] else ()
    for name, feature in (("H", "initial_h"), ("C", "initial_c"), ("B", "B")):
        if name in INPUTS[operation]:
            yield _case(operation, f"input-{name}", feature, f"{name} is ignored", {}, inputs)
    for size in ("N", "I", "H") if operation in STEPS else ("T", "N", "I", "H"):
        yield _case(operation, f"{size}=1", "sizes of 1", one_fails(size), **{size: 1})
    yield _case(operation, "wide", "large sizes", WIDE_FAILS, **WIDE)
    fails = "input_size 0 is refused, or the recurrence is skipped"
    yield _case(operation, "I=0", "input_size 0", fails, I=0)
    fails = "a function of a large argument is NaN or infinite because exp overflows"
    yield _case(operation, "large-values", "large values", fails, scale=2000.0)


def _activations(operation: str) -> Iterator[Case]:
    default, both = _defaults(operation), _both(operation)
    share = ", shared by both directions" if operation in SEQUENCES else ""
    for k, letter in enumerate("fgh"[: len(default)]):
        for name in TEXT_ACTIVATIONS:
            attributes: dict[str, Any] = {**both, "activations": replaced(default, k, name)}
            fails = f"the activations are not {', '.join(attributes['activations'])}{share}"
            yield _case(operation, f"{letter}={name}", "activations", fails, attributes)
        for name in PARAMETERS:  # parameters at earlier positions have no effect
            attributes = {**both, "activations": replaced(default, k, name.lower())}
            for key, value in zip(("alpha", "beta"), PARAMETERS[name], strict=False):
                attributes[f"activations_{key}"] = [7.0] * k + [value]
            fails = f"{name} does not take the parameters at its own position{share}"
            yield _case(operation, f"{letter}={name.lower()}", "activation_alpha/beta", fails, attributes)
    names = ["elu", "hardsigmoid", "leakyrelu"][: len(default)]
    fails = f"{' or '.join(names)} without parameters does not use the defaults of the operator of that name"
    name, feature, attributes = "default-parameters", "default activation parameters", {**both, "activations": names}
    yield _case(operation, name, feature, fails, attributes)
    names = [name.title() for name in replaced(default, 0, "relu")]
    capitals = ", or a direction in capitals," if operation in SEQUENCES else ""
    attributes = {**{key: value.upper() for key, value in both.items()}, "activations": names}
    fails = f"{', '.join(names)}{capitals} is unknown"
    yield _case(operation, "names-in-any-case", "names in any case", fails, attributes)


def _cell(operation: str) -> str:
    return Case("", operation).cell


def _defaults(operation: str) -> list[str]:
    return [name.lower() for name in reference.DEFAULT_ACTIVATIONS[_cell(operation)]]


def _both(operation: str) -> dict[str, str]:
    return BOTH if operation in SEQUENCES else {}


def _dtypes(operation: str) -> Iterator[Case]:
    for dtype, fails in DTYPE_FAILS.items():
        yield _case(operation, dtype, dtype, fails, _both(operation), dtype=dtype, **LONG_SUMS)


def _linear_before_reset(operation: str) -> Iterator[Case]:
    flag = "linear_before_reset"
    fails = "the reset gate multiplies h before the product, or does not multiply Rb of h, the fourth block of B"
    attributes = {flag: True, **_both(operation)}
    yield _case(operation, flag, flag, fails, attributes)
    yield _case(operation, f"{flag}-clip", flag, fails, {**attributes, "clip": 0.375})


def _first_version(operation: str) -> Iterator[Case]:
    """Yield cases with P in the order f, i, o, and i = 1 - f, as in OpenVINO's own reference."""
    coupled = "i is not 1 - f, or weights, bias or peephole of i are used"
    for direction in ("forward", "reverse", "bidirectional") if operation in SEQUENCES else ("",):
        way, tag = ({"direction": direction}, f"-{direction}") if direction else ({}, "")
        peepholes = "P is ignored, its blocks are not in the order f, i, o, or o uses C of the previous step"
        yield _case(operation, f"P{tag}", "P", peepholes, way)
        attributes: dict[str, Any] = {**way, "input_forget": True}
        yield _case(operation, f"input_forget{tag}", "input_forget", coupled, attributes, ("B",))
        fails = f"{coupled}, or P or clip is ignored"
        attributes = {**attributes, "clip": 0.375}
        yield _case(operation, f"input_forget-P-clip{tag}", "all together", fails, attributes)
    relu = {"input_forget": True, "activations": ["relu", "tanh", "tanh"]}
    fails = f"{coupled}, for a function with 1 - f(x) != f(-x)"
    yield _case(operation, "input_forget-relu", "input_forget", fails, relu)


def _directions(operation: str) -> Iterator[Case]:
    for direction in ("reverse", "bidirectional"):
        attributes: dict[str, Any] = {"direction": direction}
        fails = DIRECTION_FAILS[direction].replace("one is missing", "Y is not [N, D, T, H]")
        yield _case(operation, direction, direction, fails, attributes)
        fails = "padding is processed too, or the results of a reversed row do not begin at step 0"
        name, feature = f"{direction}-sequence_lengths", "sequence_lens with reverse"
        yield _case(operation, name, feature, fails, attributes, None, LENS)
        attributes |= {"clip": 0.375, "activations": replaced(_defaults(operation), 0, "relu")}
        fails = f"direction ({direction}), clip, activations or sequence_lengths is ignored if all are present"
        name = f"{direction}-all-attributes"
        yield _case(operation, name, "all together", fails, attributes, None, LENS)


def _lengths(operation: str) -> Iterator[Case]:
    fails = "sequence_lengths is ignored, Y is not zero beyond a row's length, or Ho is not the last valid state"
    yield _case(operation, "sequence_lengths", "sequence_lens", fails, lens=(2, 5, 3, 1))
    yield _case(operation, "length-0", "length 0", ZERO_FAILS, lens=LENS)
    yield _case(operation, "all-lengths-zero", "length 0", ZERO_FAILS, BOTH, lens=(0,) * 4)
    yield _case(operation, "T=0", "T = 0", "T = 0 is refused, or leaves states that are not zeros", BOTH, T=0)
    yield _case(operation, "N=0", "empty batch", EMPTY_FAILS, BOTH, lens=(), N=0)
    fails = "steps after step 100 are left out"
    yield _case(operation, "long", "long sequences", fails, BOTH, lens=(130, 67), T=130, N=2, H=17)


def _not_a_number(operation: str) -> Iterator[Case]:
    fails = "X beyond a row's length is read, and its NaN reaches a result"
    for direction in ("forward", "bidirectional"):
        name, way = f"NaN-in-padding-{direction}", {"direction": direction}
        yield _case(operation, name, "NaN in padding", fails, way, lens=LENS, nan="padding")
    fails = "a NaN in X reaches another row, or does not reach Y and Ho of its own row"
    yield _case(operation, "NaN-in-a-row", "NaN in a row", fails, BOTH, nan="row")
