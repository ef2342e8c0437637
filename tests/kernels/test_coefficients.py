"""The polynomials of functions.h: as benchmarks/coefficients.py computes them, with the stated accuracy."""

from __future__ import annotations

import numpy as np
import pytest
from rows import each_row

pytest.importorskip("mpmath")

import coefficients as made

SETS = [(kind, name) for kind in made.DTYPES for name, function in made.FUNCTIONS.items() if kind in function.counts]
each_set = each_row(("kind", "name"), SETS, ids=[" ".join(row) for row in SETS])


@pytest.mark.slow
@each_set
def test_the_header_holds_what_the_script_makes(kind: str, name: str) -> None:
    function = made.FUNCTIONS[name]
    coefficients = made.fitted(kind, function)
    assert made.define(kind, function, coefficients) + "\n" in made.HEADER.read_text(encoding="utf-8")
    assert made.polynomial_error(kind, function, coefficients) < function.bounds[0]
    if kind == "double" and np.finfo(np.longdouble).nmant == np.finfo(np.float64).nmant:
        return  # nothing wider than float64 to compare with
    assert made.computed_error(kind, function, coefficients, step=4999) < function.bounds[1]


def test_the_header_has_no_other_sets() -> None:
    lines = sum(len(made.FUNCTIONS[name].names) for _, name in SETS)
    assert made.HEADER.read_text(encoding="utf-8").count("#define COEFFICIENTS_") == lines
