"""Random cases from a seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from pyrnnx._internal.scalars import integer
from pyrnnx.errors import ArgumentError, shown
from pyrnnx.testing.cases.case import Case
from pyrnnx.testing.cases.operators import INPUTS, OPERATORS
from pyrnnx.testing.cases.space import choose_case, hangs_on_rounding

_T = TypeVar("_T")


class Generator:
    """Choices of a random generator, the same on every machine and version of Python."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        return low + int(self._random.random() * (high - low + 1))

    def pick(self, values: Sequence[_T]) -> _T:
        return values[self.integer(0, len(values) - 1)]


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
        case = replace(choose_case(generator, operator), name=f"{operator}-random-{seed}-{number}")
        if not hangs_on_rounding(case):
            return case
