"""The matrix product of the BLAS engine, compared with NumPy in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from rows import each_row

from pyrnnx._kernels.blas.gemm import gemm_accumulate

SIZES = {  # name: m, n, k of C [m, n] += A [m, k] . B [n, k]^T
    "ones": (1, 1, 1),
    "one row": (1, 37, 19),
    "one column": (23, 1, 5),
    "one inner": (7, 11, 1),
    "odd": (3, 5, 7),
    "prime": (13, 17, 31),
    "vector widths": (8, 16, 32),
    "beside vector widths": (9, 15, 33),
    "four gates of one row": (1, 4 * 129, 129),
    "many rows": (1031, 9, 3),
    "long inner": (5, 6, 4099),
    "larger than blocks": (261, 515, 387),  # beyond the tiles that BLAS libraries cut operands into
    "no rows": (0, 3, 4),
    "no columns": (3, 0, 4),
    "no inner": (3, 4, 0),
}
EPSILON = {np.float32: 2.0**-24, np.float64: 2.0**-53}
each_dtype = each_row("dtype", EPSILON, ids=lambda dtype: dtype.__name__)


@each_dtype
@each_row("size", SIZES.values(), ids=SIZES)
def test_gemm_accumulate(size: tuple[int, int, int], dtype: Any) -> None:
    m, n, k = size
    rng = np.random.default_rng(m * 7919 + n * 31 + k)
    A, B, C = (rng.normal(size=shape).astype(dtype) for shape in ((m, k), (n, k), (m, n)))
    wide = np.longdouble if dtype is np.float64 else np.float64
    expected = A.astype(wide) @ B.T.astype(wide) + C
    magnitude = np.abs(A).astype(np.float64) @ np.abs(B).T.astype(np.float64) + np.abs(C)
    before = A.copy(), B.copy()
    gemm_accumulate(A, B, C)
    # k products and k sums, each rounded once, in any order: the standard bound, (k + 1) roundings of the magnitudes
    assert (np.abs(C - expected) <= (k + 1) * EPSILON[dtype] * magnitude).all()
    np.testing.assert_array_equal(A, before[0])
    np.testing.assert_array_equal(B, before[1])


@each_dtype
def test_nan_and_infinity_stay_in_their_row(dtype: Any) -> None:
    rng = np.random.default_rng(6)
    A, B, C = (rng.uniform(1, 2, shape).astype(dtype) for shape in ((9, 5), (17, 5), (9, 17)))
    A[2, 3], A[6, 0] = np.nan, np.inf
    gemm_accumulate(A, B, C)
    assert np.isnan(C[2]).all()
    assert np.isposinf(C[6]).all()
    assert np.isfinite(np.delete(C, (2, 6), axis=0)).all()


@each_row(
    "shapes",
    [((2, 3), (4, 5), (2, 4)), ((2, 3), (4, 3), (4, 2)), ((2, 3), (4, 3), (2, 5)), ((2, 3), (4, 3), (1, 4))],
    ids=["inner sizes differ", "C transposed", "C too wide", "C too short"],
)
def test_shapes_that_do_not_fit_are_rejected(shapes: tuple[tuple[int, int], ...]) -> None:
    A, B, C = (np.ones(shape, np.float32) for shape in shapes)
    with pytest.raises(ValueError, match="expected A"):
        gemm_accumulate(A, B, C)
    np.testing.assert_array_equal(C, 1)
