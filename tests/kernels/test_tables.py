"""The rows of tables.h: their values in Python."""

from __future__ import annotations

import math

from pyrnnx import ACTIVATIONS, reference
from pyrnnx._kernels import engines
from pyrnnx.operator.op import CELLS, KERNEL_NUMBERS


def test_defaults_are_numbers_or_required_or_not_taken() -> None:
    for parameter, oracle in (("alpha", reference.ALPHA), ("beta", reference.BETA)):
        found = {name: getattr(row, parameter) for name, row in ACTIVATIONS.items()}
        taken = {name: value for name, value in found.items() if value is not None}
        assert {name: None if math.isnan(value) else value for name, value in taken.items()} == oracle


def test_a_row_stands_at_its_number() -> None:
    assert [engines.ACTIVATIONS[number][0] for number in KERNEL_NUMBERS.values()] == list(ACTIVATIONS)
    assert [engines.CELLS[row.kernel_number][0] for row in CELLS.values()] == list(CELLS)
