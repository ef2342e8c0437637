"""Rounding of X and h to 8 bits for products of floats: in the BLAS engine, and in sums too long for integers.

The results are the floats represented by the codes of simd/codes.h, which every engine can multiply.
"""

from libc.math cimport INFINITY, isfinite, rintf

from pyrnnx._kernels.engine cimport Coding
from pyrnnx._kernels.parameters cimport Parameters


cdef void widen_range(Py_ssize_t rows, Py_ssize_t depth, const float *x, Py_ssize_t ldx, float *bounds) noexcept nogil:
    cdef:
        Py_ssize_t r, k
        float low = bounds[0], high = bounds[1], value
    for r in range(rows):
        for k in range(depth):
            value = x[r * ldx + k]
            if isfinite(value):
                low, high = min(low, value), max(high, value)
    bounds[0], bounds[1] = low, high


cdef void round_rows(const Parameters *p, Py_ssize_t rows, Py_ssize_t depth, const float *x, Py_ssize_t ldx,
                     const float *bounds, void *rounded, size_t row_size) noexcept nogil:
    """Compute scale * clip(rint(x / scale), -zero_point, 255 - zero_point); NaN stays NaN."""
    cdef:
        Py_ssize_t r, k
        float width = bounds[1] - bounds[0], scale, zero_point, value
        float *row
    # the width may overflow to infinity
    scale = width / 255 if width < INFINITY else bounds[1] / 255 - bounds[0] / 255
    if not scale > 0:
        scale = 1
    zero_point = rintf(min(-bounds[0] / scale, <float> 255))
    for r in range(rows):
        row = <float *> (<char *> rounded + r * <Py_ssize_t> row_size)
        for k in range(depth):
            value = rintf(x[r * ldx + k] / scale)
            if value < -zero_point:
                value = -zero_point
            if value > 255 - zero_point:
                value = 255 - zero_point
            row[k] = value * scale


ROUNDING.best_dot, ROUNDING.row_size = NULL, NULL
ROUNDING.widen_range, ROUNDING.encode = widen_range, round_rows
