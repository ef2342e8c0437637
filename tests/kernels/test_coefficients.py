"""The polynomials of functions.h: as benchmarks/coefficients.py computes them, with the stated accuracy."""

from __future__ import annotations

import numpy as np
import pytest
from rows import each_row

pytest.importorskip("mpmath")

import coefficients as made

SETS = [(kind, name) for kind in made.DTYPES for name in made.FUNCTIONS]
each_set = each_row(("kind", "name"), SETS, ids=[" ".join(row) for row in SETS])


@pytest.mark.slow
@each_set
def test_the_header_holds_what_the_script_makes(kind: str, name: str) -> None:
    coefficients = made.fitted(kind, name)
    assert made.define(kind, name, coefficients) + "\n" in made.HEADER.read_text(encoding="utf-8")
    assert made.polynomial_error(kind, name, coefficients) < 0.2
    if kind == "double" and np.finfo(np.longdouble).nmant == np.finfo(np.float64).nmant:
        return  # nothing wider than float64 to compare with
    assert made.computed_error(kind, name, coefficients, step=4999) < 1


def test_the_header_has_no_other_sets() -> None:
    assert made.HEADER.read_text(encoding="utf-8").count("#define COEFFICIENTS_") == len(SETS)
