"""Operands of products: rows of X and h, read in place or copied, and widened, rounded to 8 bits or split."""

from libc.math cimport INFINITY, isfinite, rintf

from pyrnnx._kernels.blocks cimport ROW_WORK, Array, Block, Call, leave, poll, row_at, running, time_at
from pyrnnx._kernels.parameters cimport Parameters
from pyrnnx._kernels.storage cimport NATIVE


cdef Py_ssize_t plan_chunk(const Block *b, Py_ssize_t step, Py_ssize_t *total) noexcept nogil:
    """Return how many time steps from `step` on fit a chunk, and set `total` to the sum of their rows."""
    cdef Py_ssize_t steps = 0, active = b.active
    total[0] = 0
    while True:
        active = running(b, step + steps, active)
        if active == 0 or total[0] + active > b.chunk_rows or step + steps == b.limit:
            return steps
        total[0] += active
        steps += 1


cdef bint can_read_in_place(const Block *b, Py_ssize_t steps) noexcept nogil:
    """Return whether the chunk's rows of X can be read in place: equally spaced, in the kernels' dtype.

    A chunk has the rows of its time steps, step by step, so with several steps X must be [T, N, I] without gaps between
    the steps.
    """
    cdef:
        const Call *call = b.call
        const Array *X = &call.X
        Py_ssize_t distance = X.t if call.batch_size == 1 else X.n
    if call.coding != NULL:
        return False
    if call.kernels.max_ldx and distance // call.itemsize > call.kernels.max_ldx:
        return False
    return (call.storage == NATIVE and not b.reverse and call.lengths == NULL and b.rows == call.batch_size
            and (X.t == call.batch_size * distance or steps == 1)
            and distance >= call.input_size * call.itemsize
            and not (distance | <Py_ssize_t> X.data) & (call.itemsize - 1))


cdef void read_X(const Block *b, Py_ssize_t place, Py_ssize_t time, void *row) noexcept nogil:
    cdef const Call *call = b.call
    call.kernels.widen(call.storage, call.itemsize, call.X.data + time * call.X.t + row_at(b, place) * call.X.n, row,
                       call.input_size)


cdef void widen_x_range(Block *b) noexcept nogil:
    """Set x_range to the range of X within its rows' lengths."""
    cdef:
        const Call *call = b.call
        const Array *X = &call.X
        Py_ssize_t active = b.rows, time, place
        bint aligned = (<size_t> X.data | <size_t> X.t | <size_t> X.n) % <size_t> call.itemsize == 0
    b.x_range[0] = b.x_range[1] = 0
    for time in range(call.seq_length):
        active = running(b, time, active)
        if poll(b, active * call.input_size + ROW_WORK):
            return
        if aligned and call.storage == NATIVE and call.lengths == NULL:
            call.coding.widen_range(active, call.input_size, <const float *> (X.data + time * X.t),
                                    X.n // call.itemsize, b.x_range)
            continue
        for place in range(active):
            read_X(b, place, time, b.row)
            call.coding.widen_range(1, call.input_size, <const float *> b.row, 0, b.x_range)


cdef void encode_states(Block *b) noexcept nogil:
    """Encode Ht-1 of the running rows into the buffer `coded`."""
    cdef:
        const Call *call = b.call
        float bounds[2]
    bounds[0] = bounds[1] = 0
    call.coding.widen_range(b.last_active, call.hidden_size, <const float *> b.h, call.padded_size, bounds)
    call.coding.encode(b.parameters, b.active, call.hidden_size, <const float *> b.h, call.padded_size, bounds, b.coded,
                       call.coded_size)
    b.last_active = b.active


cdef void copy_rows(const Block *b, Py_ssize_t step, Py_ssize_t steps, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Copy the rows [begin, end) of a chunk from X to the buffer x, widened and, with a coding, coded.

    A chunk has no rows of ended sequences:

        place in the row block        0    1    2
        time step `step`              x0   x1   x2       longest row first
        time step `step` + 1          x3   x4
        time step `step` + 2          x5
    """
    cdef:
        const Call *call = b.call
        Py_ssize_t active = b.active, before = 0, s, place
        char *row
    for s in range(step, step + steps):
        active = running(b, s, active)
        for place in range(max(begin - before, 0), min(end - before, active)):
            row = b.x + (before + place) * call.x_size
            if call.coding == NULL:
                read_X(b, place, time_at(b, place, s), row)
            else:
                read_X(b, place, time_at(b, place, s), b.row)
                call.coding.encode(b.parameters, 1, call.input_size, <const float *> b.row, 0, b.x_range, row,
                                   call.x_size)
        before += active


cdef const char *gather(Block *b, Py_ssize_t step, Py_ssize_t steps, Py_ssize_t total, Py_ssize_t *ldx) noexcept nogil:
    """Return the `total` rows of X for a chunk, `ldx` apart: in place, or copied by the threads of the team.

    Return NULL if this thread must leave.
    """
    cdef:
        const Call *call = b.call
        const Array *X = &call.X
    if can_read_in_place(b, steps):
        ldx[0] = (X.t if call.batch_size == 1 else X.n) // call.itemsize
        return X.data + step * X.t
    ldx[0] = call.ldx
    copy_rows(b, step, steps, total * b.rank // b.team_size, total * (b.rank + 1) // b.team_size)
    return NULL if leave(b) else b.x


cdef bint split(Block *b, Py_ssize_t rows, Py_ssize_t depth, const char *x, Py_ssize_t ldx, char *target) noexcept nogil:
    """Split rows for matrices, each thread of the team a range; return False if this thread must leave."""
    b.call.matrices.split(b.parameters, rows, rows * b.rank // b.team_size, rows * (b.rank + 1) // b.team_size, depth,
                          <const float *> x, ldx, target)
    return not leave(b)


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


# Rounding of X and h to 8 bits for products of floats: in the BLAS engine, and in sums too long for integers. The results
# are the floats represented by the codes of simd/codes.h, which every engine can multiply.
ROUNDING.best_dot, ROUNDING.row_size = NULL, NULL
ROUNDING.widen_range, ROUNDING.encode = widen_range, round_rows
