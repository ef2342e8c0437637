"""Dtypes of the operators, and tolerances of right results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from pyrnnx._internal.dtypes import named_dtype
from pyrnnx.comparison.agreement import in_range
from pyrnnx.comparison.distances import LONG_TOLERANCES, TOLERANCES, element_distances, magnitude

__all__ = ["DTYPES", "LONG_TOLERANCES", "TOLERANCES", "Array", "assert_close", "numpy_dtype", "tolerance_of"]

Array = NDArray[Any]

DTYPES = ("float32", "float64", "float16", "bfloat16")


def numpy_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """Return the dtype of a name.

    Raises
    ------
    ImportError
        bfloat16 without ml_dtypes, which defines it.
    """
    return named_dtype(dtype) if isinstance(dtype, str) else np.dtype(dtype)


def tolerance_of(dtype: DTypeLike) -> float:
    """Return what `TOLERANCES` allow for a dtype."""
    return TOLERANCES[dtype if isinstance(dtype, str) else np.dtype(dtype).name]


def assert_close(actual: Sequence[Array], expected: Sequence[Array], tolerance: float, what: object = "") -> None:
    """Assert the same number, shapes, NaNs and infinities, and small differences.

    These are at most tolerance * max(1, largest expected magnitude). Numbers beyond the range of the actual dtype are
    infinities there.
    """
    assert len(actual) == len(expected)
    for name, array, right in zip(("Y", "Y_h", "Y_c"), actual, expected, strict=False):
        assert isinstance(array, np.ndarray)
        assert array.shape == right.shape, f"{what} {name}"
        wanted = in_range(right, array.dtype)
        distance = element_distances(array, wanted).distance
        assert not np.isinf(distance).any(), f"{what} {name}: NaN or infinity"
        difference = distance.max(initial=0.0) / magnitude(wanted)
        assert difference <= tolerance, f"{what} {name}: {difference:.3g} apart, allowed {tolerance:.3g}"
