"""The time loop: directions, lengths and layouts, over the kernels of an engine.

Rows of the batch are ordered by falling length, so that the rows still running are always the first ones. The loop
gathers a chunk of time steps of X (in any layout, reversed within each row's length where the direction says so),
projects it by one product, and steps through it; h and c stay in scratch, h is written to Y after each step. Scratch
memory does not grow with the number of time steps.

Where the call has a coding, X and h are rounded to 8 bits on their way into the products: X with one scale for the call,
h with one scale for each time step. The range of h is that of all rows, so that a direction is one row block then, and
the work of one thread.

Where the call has matrices, they project all of X, and multiply the states as long as enough rows run. That is said of
the rows of the call, not of a row block, so that results do not depend on how it is cut.

A team of threads shares the hidden units of every step: all of them read the whole of x and of the last h, and write
their own units of everything else, with a barrier where one reads what another wrote.
"""

from libc.string cimport memset

from pyrnnx._kernels.assertions cimport debug_assert
from pyrnnx._kernels.engine cimport Step
from pyrnnx._kernels.storage cimport NATIVE
from pyrnnx._kernels.threads cimport barrier_wait


cdef inline Py_ssize_t row_at(const Block *b, Py_ssize_t place) noexcept nogil:
    return b.first + place if b.call.order == NULL else b.call.order[b.first + place]


cdef inline Py_ssize_t length_at(const Block *b, Py_ssize_t place) noexcept nogil:
    return b.call.seq_length if b.call.lengths == NULL else b.call.lengths[b.first + place]


cdef inline Py_ssize_t time_at(const Block *b, Py_ssize_t place, Py_ssize_t step) noexcept nogil:
    return length_at(b, place) - 1 - step if b.reverse else step


cdef inline bint holds_rows(const Block *b) noexcept nogil:
    """Whether the block's rows are rows of the call, the longest first, and its units those of the layer."""
    cdef:
        const Call *call = b.call
        Py_ssize_t place, longest = call.seq_length
    if b.first < 0 or b.rows < 1 or b.first + b.rows > call.batch_size or b.active != b.rows:
        return False
    for place in range(b.rows):
        if not 0 <= row_at(b, place) < call.batch_size or not 0 <= length_at(b, place) <= longest:
            return False
        longest = length_at(b, place)
    return 0 <= b.u0 <= b.u1 <= call.unit_blocks and b.u1 * call.kernels.lanes <= call.padded_size


cdef inline bint is_alone(const Block *b) noexcept nogil:
    """Whether the block is all rows of the call and all units, as a range of all of them needs it."""
    return b.rows == b.call.batch_size and b.team_size == 1


cdef inline Py_ssize_t first_unit(const Block *b) noexcept nogil:
    return b.u0 * b.call.kernels.lanes


cdef inline Py_ssize_t own_units(const Block *b) noexcept nogil:
    """How many hidden units are this thread's, without padding."""
    return min(b.u1 * b.call.kernels.lanes, b.call.hidden_size) - first_unit(b)


cdef inline char *own_state(const Block *b, char *state, Py_ssize_t place) noexcept nogil:
    """This thread's units of a row of h or c."""
    return state + (place * b.call.padded_size + first_unit(b)) * b.call.itemsize


cdef inline char *own_row(const Block *b, const Array *a, int itemsize, Py_ssize_t place) noexcept nogil:
    """This thread's units of a row of the caller's states or, at time 0, of Y."""
    return a.data + b.direction * a.d + row_at(b, place) * a.n + first_unit(b) * itemsize


cdef bint leave(Block *b) noexcept nogil:
    """Meet the team at its barrier; whether this thread is to leave.

    Threads of one team, each with its share of the unit blocks, until the barrier disbands the team:

        rank 0   |--- step ---| barrier |--- step ---| barrier: disbanded |--- step, all unit blocks --- ...
        rank 1   |--- step ---| barrier |--- step ---| barrier: disbanded, leaves

    All members learn it at the same barrier, where nobody is within a step: so rank 0 finds every unit written.
    """
    if b.team_size == 1 or not barrier_wait(b.barrier):
        return False
    b.team_size, b.u0, b.u1 = 1, 0, b.call.unit_blocks
    return b.rank != 0


cdef void load_state(const Block *b, const Array *initial, char *state) noexcept nogil:
    cdef:
        const Call *call = b.call
        Py_ssize_t place, size = (b.u1 - b.u0) * call.kernels.lanes * call.itemsize
    for place in range(b.rows):
        if initial.data == NULL:
            memset(own_state(b, state, place), 0, size)
        else:
            call.kernels.widen(call.state_storage, call.itemsize, own_row(b, initial, call.state_itemsize, place),
                               own_state(b, state, place), own_units(b))


cdef void store_state(const Block *b, const Array *last, char *state, Py_ssize_t place) noexcept nogil:
    """The last state of a row; zero for a row that never ran."""
    cdef:
        const Call *call = b.call
        char *row
    if last.data == NULL:
        return
    row = own_row(b, last, call.state_itemsize, place)
    if length_at(b, place) == 0:
        memset(row, 0, own_units(b) * call.state_itemsize)
    else:
        call.kernels.narrow(call.state_storage, call.itemsize, own_state(b, state, place), row, own_units(b))


cdef Py_ssize_t running(const Block *b, Py_ssize_t step, Py_ssize_t rows) noexcept nogil:
    """How many of the first `rows` rows are longer than `step`."""
    while rows > 0 and length_at(b, rows - 1) <= step:
        rows -= 1
    return rows


cdef void retire(Block *b, Py_ssize_t step) noexcept nogil:
    """Store the states of the rows that end before `step`."""
    cdef Py_ssize_t active = running(b, step, b.active), place
    for place in range(active, b.active):
        store_state(b, &b.call.Y_h, b.h, place)
        store_state(b, &b.call.Y_c, b.c, place)
    b.active = active


cdef Py_ssize_t plan_chunk(const Block *b, Py_ssize_t step, Py_ssize_t *total) noexcept nogil:
    """The number of time steps from `step` on that fit a chunk, and the rows of them all."""
    cdef Py_ssize_t steps = 0, active = b.active
    total[0] = 0
    while True:
        active = running(b, step + steps, active)
        if active == 0 or total[0] + active > b.chunk_rows:
            return steps
        total[0] += active
        steps += 1


cdef bint lies_in_place(const Block *b, Py_ssize_t steps) noexcept nogil:
    """Whether the rows of X for a chunk can be read where they are: one distance apart, in the kernels' dtype.

    The chunk's rows are those of its time steps, one step after the other, so with several steps X must be [T, N, I]
    without gaps between the steps.
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
            and distance >= call.input_size * call.itemsize and distance % call.itemsize == 0
            and <size_t> X.data % <size_t> call.itemsize == 0)


cdef void read_X(const Block *b, Py_ssize_t place, Py_ssize_t time, void *row) noexcept nogil:
    cdef const Call *call = b.call
    call.kernels.widen(call.storage, call.itemsize, call.X.data + time * call.X.t + row_at(b, place) * call.X.n, row,
                       call.input_size)


cdef void widen_x_range(Block *b) noexcept nogil:
    """The range of all X within its rows' lengths."""
    cdef:
        const Call *call = b.call
        const Array *X = &call.X
        Py_ssize_t active = b.rows, time, place
        bint aligned = (<size_t> X.data | <size_t> X.t | <size_t> X.n) % <size_t> call.itemsize == 0
    b.x_range[0] = b.x_range[1] = 0
    for time in range(call.seq_length):
        active = running(b, time, active)
        if aligned and call.storage == NATIVE and call.lengths == NULL:
            call.coding.widen_range(active, call.input_size, <const float *> (X.data + time * X.t),
                                    X.n // call.itemsize, b.x_range)
            continue
        for place in range(active):
            read_X(b, place, time, b.row)
            call.coding.widen_range(1, call.input_size, <const float *> b.row, 0, b.x_range)


cdef void encode_states(Block *b) noexcept nogil:
    """Ht-1 of the running rows to the buffer `coded`."""
    cdef:
        const Call *call = b.call
        float bounds[2]
    bounds[0] = bounds[1] = 0
    call.coding.widen_range(b.ran, call.hidden_size, <const float *> b.h, call.padded_size, bounds)
    call.coding.encode(b.parameters, b.active, call.hidden_size, <const float *> b.h, call.padded_size, bounds, b.coded,
                       call.coded_size)
    b.ran = b.active


cdef void copy_rows(const Block *b, Py_ssize_t step, Py_ssize_t steps, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """The rows [begin, end) of a chunk from X to the buffer x, widened and, with a coding, coded. Rows that have ended
    have none:

        place in the row block        0    1    2
        time step `step`              x0   x1   x2       lengths fall from place to place
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
    """The `total` rows of X for a chunk, `ldx` apart: in place, or each thread of the team copies its share.

    NULL: this thread is to leave.
    """
    cdef:
        const Call *call = b.call
        const Array *X = &call.X
    if lies_in_place(b, steps):
        ldx[0] = (X.t if call.batch_size == 1 else X.n) // call.itemsize
        return X.data + step * X.t
    ldx[0] = call.ldx
    copy_rows(b, step, steps, total * b.rank // b.team_size, total * (b.rank + 1) // b.team_size)
    return NULL if leave(b) else b.x


cdef void write_outputs(const Block *b, Py_ssize_t step) noexcept nogil:
    cdef:
        const Call *call = b.call
        Py_ssize_t place
        char *row
    for place in range(b.active):
        row = own_row(b, &call.Y, call.outer_itemsize, place) + time_at(b, place, step) * call.Y.t
        call.kernels.narrow(call.storage, call.itemsize, own_state(b, b.h, place), row, own_units(b))


cdef void zero_padding(const Block *b) noexcept nogil:
    """Y beyond each row's length."""
    cdef:
        const Call *call = b.call
        Py_ssize_t place, t, size = own_units(b) * call.outer_itemsize
    for place in range(b.rows):
        for t in range(length_at(b, place), call.seq_length):
            memset(own_row(b, &call.Y, call.outer_itemsize, place) + t * call.Y.t, 0, size)


cdef inline bint takes_matrices(const Call *call, Py_ssize_t step) noexcept nogil:
    return call.matrices != NULL and step < call.matrix_steps


cdef bint split(Block *b, Py_ssize_t rows, Py_ssize_t depth, const char *x, Py_ssize_t ldx, char *target) noexcept nogil:
    """Rows for matrices, each thread of the team its share of them; False: leave."""
    b.call.matrices.split(b.parameters, rows, rows * b.rank // b.team_size, rows * (b.rank + 1) // b.team_size, depth,
                          <const float *> x, ldx, target)
    return not leave(b)


cdef bint project(Block *b, Py_ssize_t total, const char *x, Py_ssize_t ldx) noexcept nogil:
    """A chunk's rows of X to the buffer `projected`; False: leave."""
    cdef const Call *call = b.call
    if call.matrices == NULL:
        call.kernels.project(b.parameters, total, x, ldx, b.projected, b.u0, b.u1)
        return True
    if not split(b, total, call.input_size, x, ldx, b.split_x):
        return False
    call.matrices.project(b.parameters, total, x, ldx, b.split_x, b.projected, b.u0, b.u1)
    return True


cdef bint advance(Block *b, Py_ssize_t number, char *projected) noexcept nogil:
    """One time step of the running rows: Ht and Ct from Ht-1, Ct-1 and the projected Xt; False: leave."""
    cdef:
        const Call *call = b.call
        bint by_matrices = takes_matrices(call, number)
        int phase
        Step step
    step.number, step.rows, step.projected, step.h_prev = number, b.active, projected, b.h
    step.c, step.h_next, step.work = b.c, b.h_next, b.work
    step.h_is_zero = number == 0 and call.initial_h.data == NULL and b.parameters.finite_R
    if call.coding != NULL:
        encode_states(b)
        step.h_prev, step.h_is_zero = b.coded, False
    for phase in range(call.phases):
        if by_matrices and not split(b, b.active, call.hidden_size, b.work if phase else b.h, call.padded_size,
                                     b.split_states):
            return False
        step.u0, step.u1 = b.u0, b.u1
        if by_matrices:
            call.matrices.step(b.parameters, phase, &step, b.split_states)
        else:
            call.kernels.step(b.parameters, phase, &step)
        if leave(b):
            return False
    b.h, b.h_next = b.h_next, b.h
    return True


cdef bint run_row(const Block *b, char *projected, Py_ssize_t step, Py_ssize_t steps) noexcept nogil:
    """Whether the engine took these time steps of the one row that is still running in one call.

    Not the first step without an initial state, whose product `advance` leaves out.
    """
    cdef:
        const Call *call = b.call
        char *y = own_row(b, &call.Y, call.outer_itemsize, 0) + time_at(b, 0, step) * call.Y.t
    if (call.kernels.steps == NULL or takes_matrices(call, step) or call.coding != NULL or call.storage != NATIVE
            or b.team_size > 1 or step == 0 and call.initial_h.data == NULL
            or (<size_t> y | <size_t> call.Y.t) % <size_t> call.itemsize):
        return False
    return call.kernels.steps(b.parameters, steps, projected, b.h, b.c, y, -call.Y.t if b.reverse else call.Y.t)


cdef void run_block(Block *b) noexcept nogil:
    """All time steps of a row block in one direction, chunk by chunk."""
    cdef:
        const Call *call = b.call
        Py_ssize_t step = 0, steps, total, ldx, s
        const char *x
        char *projected
    debug_assert(holds_rows(b))
    if call.coding != NULL:
        debug_assert(is_alone(b))
        b.ran = b.rows
        widen_x_range(b)
    load_state(b, &call.initial_h, b.h)
    load_state(b, &call.initial_c, b.c)
    if leave(b):
        return
    retire(b, 0)
    while b.active:
        steps = plan_chunk(b, step, &total)
        x = gather(b, step, steps, total, &ldx)
        if x == NULL:
            return
        if not project(b, total, x, ldx):
            return
        projected = b.projected
        for s in range(step, step + steps):
            retire(b, s)
            if b.active == 1 and run_row(b, projected, s, step + steps - s):  # so it is to the end of the chunk
                break
            if not advance(b, s, projected):
                return
            write_outputs(b, s)
            projected += b.active * call.projected_size * call.itemsize
        step += steps
        retire(b, step)
    zero_padding(b)
