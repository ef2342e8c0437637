"""X and h rounded to 8 bits where weights are multiplied as floats: by the BLAS engine, and in sums that are too long for
integers.

What simd/codes.h makes codes of becomes, here, the floats that the codes stand for: rows of elements, which every engine
takes.
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
    """scale * clip(rint(x / scale), -zero_point, 255 - zero_point); NaN stays NaN."""
    cdef:
        Py_ssize_t r, k
        float width = bounds[1] - bounds[0], scale, zero_point, value
        float *row
    # the width may be beyond the largest float
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
