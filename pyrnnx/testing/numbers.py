"""The dtypes of the operators, and how near to the oracle a right result is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Array = NDArray[Any]

DTYPES = ("float32", "float64", "float16", "bfloat16")

# Allowed difference, relative to max(1, largest expected magnitude).
TOLERANCES = {
    "float64": 1e-10,  # the oracle's own arithmetic: only the order of sums differs
    "float32": 1e-5,  # 2^-24 a rounding, sums of up to some hundred terms, carried over some steps
    "float16": 2e-3,  # computed in float32 and rounded once: 2^-11 = 4.9e-4 of the value
    "bfloat16": 2e-2,  # the same with 2^-8 = 3.9e-3
}

# The same of longer sequences, and of whole models: errors carried over some hundred steps and some layers, and
# approximate activations. Another computation is apart by more than 1e-2.
LONG_TOLERANCES = {"float64": 1e-10, "float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}


def numpy_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """The dtype of a name.

    Raises
    ------
    ImportError
        bfloat16 without ml_dtypes, which defines it.
    """
    if dtype == "bfloat16":
        import ml_dtypes

        dtype = ml_dtypes.bfloat16
    named: np.dtype[Any] = np.dtype(dtype)
    return named


def tolerance_of(dtype: DTypeLike) -> float:
    return TOLERANCES[dtype if isinstance(dtype, str) else np.dtype(dtype).name]


def long_tolerance(wanted: Array, dtype: DTypeLike | None = None) -> float:
    """What `LONG_TOLERANCES` allow for an array, times its largest magnitude where above 1; nothing for integers.

    `dtype`: of the one that is compared with it, by default its own.
    """
    name = wanted.dtype.name if dtype is None else numpy_dtype(dtype).name
    if name not in LONG_TOLERANCES:
        return 0.0
    wide = np.abs(wanted.astype(np.float64))
    return LONG_TOLERANCES[name] * max(1.0, float(wide[np.isfinite(wide)].max(initial=0)))


def assert_close(actual: Sequence[Array], expected: Sequence[Array], tolerance: float, what: object = "") -> None:
    """Same number, shapes, NaNs and infinities; no difference above tolerance * max(1, largest expected magnitude).

    What is beyond the range of the actual dtype is an infinity there.
    """
    assert len(actual) == len(expected)
    for name, given, wanted in zip(("Y", "Y_h", "Y_c"), actual, expected, strict=False):
        assert isinstance(given, np.ndarray)
        assert given.shape == wanted.shape, f"{what} {name}"
        with np.errstate(over="ignore"):
            rounded = wanted.astype(given.dtype).astype(np.float64)
        a, e = given.astype(np.float64), np.where(np.isinf(rounded), rounded, wanted.astype(np.float64))
        finite = np.isfinite(e)
        np.testing.assert_array_equal(a[~finite], e[~finite], err_msg=f"{what} {name}: NaN or infinity")
        scale = max(1.0, np.abs(e[finite]).max(initial=0.0))
        difference = np.abs(a[finite] - e[finite]).max(initial=0.0) / scale
        assert difference <= tolerance, f"{what} {name}: {difference:.3g} apart, allowed {tolerance:.3g}"
