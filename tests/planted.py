"""Functions that compute cases as the oracle does, except for one fault each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyrnnx.testing.cases import Case, expected_outputs
from pyrnnx.testing.numbers import Array, numpy_dtype

Arrays = Mapping[str, Array]


def right(case: Case, arrays: Arrays, **changes: Any) -> list[Array]:
    return [output.astype(numpy_dtype(case.dtype)) for output in expected_outputs(case, arrays, **changes)]


def four_wide(case: Case, arrays: Arrays) -> list[Array]:
    """Units beyond the fourth are zero."""
    outputs = right(case, arrays)
    for output in outputs:
        output[..., 4:] = 0
    return outputs


def refuses_peepholes(case: Case, arrays: Arrays) -> list[Array]:
    if "P" in arrays:
        raise NotImplementedError("peepholes <b>&| are not there\nsecond line")
    return right(case, arrays)


NO_FUNCTION = 1
