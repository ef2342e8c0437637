"""Random cases from a seed, over everything that the texts allow."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from pyrnnx import reference
from pyrnnx._internal.scalars import integer
from pyrnnx.errors import ArgumentError, shown
from pyrnnx.testing.cases.arrays import expected_outputs, make_arrays
from pyrnnx.testing.cases.case import Case
from pyrnnx.testing.cases.operators import INPUTS, OPERATORS, OPTIONAL, STEPS, VERSIONS, opset_dtypes
from pyrnnx.testing.numbers import DTYPES

OPSETS = (1, 2, 3, 6, 7, 13, 14, 21, 22, 23)  # the first and last of every version, and one that is newer
TEXT_ACTIVATIONS = ("relu", "sigmoid", "tanh")  # those that OpenVINO's specification names
SIXTEENTHS = [k / 16 for k in range(-16, 20)]  # exact in every dtype, so that an attribute means the same everywhere
SPELLINGS: tuple[Callable[[str], str], ...] = (str, str, str.lower, str.upper)  # of names, which are read in any case
LARGEST = {"T": 6, "N": 5, "I": 9, "H": 20}
_T = TypeVar("_T")


class Generator:
    """Choices of a random generator, the same on every machine and version of Python."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        return low + int(self._random.random() * (high - low + 1))

    def pick(self, values: Sequence[_T]) -> _T:
        return values[self.integer(0, len(values) - 1)]


def _any_case(choices: Generator, operator: str) -> Case:
    """Choose a case of ONNX or OpenVINO."""
    opset = choices.pick(OPSETS) if operator in OPERATORS else int(operator.rpartition("-")[2])
    H = choices.integer(1, LARGEST["H"])
    attributes = (
        _onnx_attributes(choices, operator, opset, H)
        if operator in OPERATORS
        else _openvino_attributes(choices, operator, H)
    )
    # an empty axis leaves nothing to compute, so only some cases may have one
    T, N, I = (choices.integer(choices.pick((1, 1, 1, 0)), LARGEST[size]) for size in "TNI")
    T = 1 if operator in STEPS else T
    lens = None
    if operator not in STEPS and _coin(choices):
        lens = tuple(choices.integer(0, T) for _ in range(N))
    kinds = ["", "", "", "", "", ""]
    kinds += ["row"] if T and N and I else []
    kinds += ["padding"] if lens and I and min(lens) < T else []
    inputs = tuple(name for name in OPTIONAL[operator] if _coin(choices))
    return Case(
        name=f"drawn-{choices.integer(0, 2**16)}",  # names seed the arrays
        operator=operator,
        attributes=attributes,
        inputs=inputs,
        lens=lens,
        T=T,
        N=N,
        I=I,
        H=H,
        opset=opset,
        dtype=choices.pick(opset_dtypes(opset) if operator in OPERATORS else DTYPES),
        nan=choices.pick(kinds),
    )


def _coin(choices: Generator) -> bool:
    return choices.pick((False, True))


def _maybe(choices: Generator, attributes: dict[str, Any], name: str, values: Sequence[Any]) -> None:
    if _coin(choices):
        attributes[name] = choices.pick(values)


def _onnx_attributes(choices: Generator, operator: str, opset: int, hidden_size: int) -> dict[str, Any]:
    """Choose, for each attribute of the operator at that opset, its absence or any allowed value."""
    attributes: dict[str, Any] = {}
    _maybe(choices, attributes, "direction", ["bidirectional", "reverse", "forward"])
    _maybe(choices, attributes, "clip", [0.0625, 0.25, 0.75, 100.0])
    if choices.pick((True, True, True, False)):
        attributes["hidden_size"] = hidden_size
    if opset >= 14:
        _maybe(choices, attributes, "layout", (0, 1))
    if opset < VERSIONS["LSTM"][1]:
        _maybe(choices, attributes, "output_sequence", [0, 1])
    if operator == "GRU" and opset >= VERSIONS["GRU"][1]:
        _maybe(choices, attributes, "linear_before_reset", [1, 0])
    if operator == "LSTM":
        _maybe(choices, attributes, "input_forget", [1, 0])
    if _coin(choices):
        num_directions = 2 if attributes.get("direction") == "bidirectional" else 1
        attributes |= _activations(choices, operator, num_directions)
    elif operator == "RNN" and _coin(choices):
        attributes["activations"] = ["Tanh", "Tanh"]  # the schema's default, in any direction
    return attributes


def _activations(choices: Generator, operator: str, num_directions: int) -> dict[str, Any]:
    """Choose ONNX attributes: any functions with any parameters, or fewer if they have defaults."""
    count = num_directions * len(reference.DEFAULT_ACTIVATIONS[operator])
    names = [choices.pick(list(reference.ACTIVATIONS)) for _ in range(count)]
    attributes: dict[str, Any] = {}
    for key, defaults in (("activation_alpha", reference.ALPHA), ("activation_beta", reference.BETA)):
        takers = [name for name in names if name in defaults]
        required = max((place + 1 for place, name in enumerate(takers) if defaults[name] is None), default=0)
        values = [choices.pick(SIXTEENTHS) for _ in range(choices.integer(required, len(takers)))]
        if values or _coin(choices):
            attributes[key] = values
    spelling = choices.pick(SPELLINGS)
    attributes["activations"] = [spelling(name) for name in names]
    return attributes


def _openvino_attributes(choices: Generator, operation: str, hidden_size: int) -> dict[str, Any]:
    """Choose attributes that the specification allows; hidden_size is required."""
    attributes: dict[str, Any] = {"hidden_size": hidden_size}
    if operation not in STEPS:
        _maybe(choices, attributes, "direction", ["bidirectional", "reverse", "forward"])
    _maybe(choices, attributes, "clip", [0.0625, 0.25, 0.75, 100.0])
    if operation.startswith("GRU"):
        _maybe(choices, attributes, "linear_before_reset", [True, False])
    if "P" in OPTIONAL[operation]:  # of the first version of an LSTM
        _maybe(choices, attributes, "input_forget", [True, False])
    if _coin(choices):
        count = len(reference.DEFAULT_ACTIVATIONS[Case("", operation).cell])
        attributes["activations"] = [choices.pick(TEXT_ACTIVATIONS) for _ in range(count)]
    return attributes


def _hangs_on_rounding(case: Case) -> bool:
    """Return whether rounding may move a pre-activation across the jump of a ThresholdedRelu."""
    if "thresholdedrelu" not in (name.lower() for name in case.attributes.get("activations", ())):
        return False
    arrays = make_arrays(case)
    near = 1e-9 if case.dtype == "float64" else 1e-4  # far above the error of a pre-activation
    below, above = (expected_outputs(case, arrays, threshold_shift=shift) for shift in (-near, near))
    return not all(np.array_equal(b, a, equal_nan=True) for b, a in zip(below, above, strict=True))


def random_cases(seed: int, count: int, *, operators: Sequence[str] = OPERATORS) -> list[Case]:
    """Generate cases over everything that the texts allow, whose results do not depend on rounding.

    Parameters
    ----------
    seed : int
    count : int
        Number of cases; the first ones are the same for any count.
    operators : sequence of str
        Operators, in turn. Default: ONNX's RNN, GRU and LSTM; `OPERATIONS` are OpenVINO's.

    Returns
    -------
    list of Case
        A case's `features` are all that it uses. Its name contains the operator, the seed and its number.

    Raises
    ------
    ArgumentError
        A seed or count that is no integer of 0 or above; operators that are none.
    """
    seed, count = integer("random_cases", "seed", seed, 0), integer("random_cases", "count", count, 0)
    if isinstance(operators, str) or not operators or any(operator not in INPUTS for operator in operators):
        raise ArgumentError(f"random_cases: operators is {shown(operators)}; expected some of {', '.join(INPUTS)}")
    return [_random_case(seed, number, operators[number % len(operators)]) for number in range(count)]


def _random_case(seed: int, number: int, operator: str) -> Case:
    generator = Generator(f"{seed} {number} {operator}")
    while True:
        case = replace(_any_case(generator, operator), name=f"{operator}-random-{seed}-{number}")
        if not _hangs_on_rounding(case):
            return case
