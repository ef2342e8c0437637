"""The time loop, which handles directions, lengths and layouts and calls the kernels of an engine.

Rows of the batch are sorted by descending length, so that the rows still running are always the first. The loop gathers
a chunk of time steps of X (in any layout, reversed within each row's length for a reverse direction), projects it with
one product, and steps through it. h and c stay in scratch memory, and h is written to Y after each step. Scratch memory
does not grow with the number of time steps.

If the call has a coding, X and h are rounded to 8 bits before products: X with one scale for the call, h with one scale
for each time step. That scale depends on all rows, so a direction is then one row block, and every thread rounds all h.

If the call has matrices, they project all of X, and multiply the states while enough rows run. The rows of the whole
call decide, not those of a row block, so that results do not depend on row blocks.

A team of threads shares the hidden units of every step. All threads read all of x and of the last h, and write only
their own units. A barrier separates writes from reads by other threads. Between two time steps all members have the same
state, so the leader, while it is alone, can admit others there: they copy its block.

A call with an `interrupt` polls it after every `POLL_WORK`, and cuts long products into ranges of unit blocks. A team
of one leaves at once; the members of a larger team leave together, at the next barrier.
"""

from libc.string cimport memset

from pyrnnx._kernels.blocks cimport (
    ROW_WORK,
    STEP_WORK,
    Array,
    Block,
    Call,
    Team,
    leave,
    length_at,
    poll,
    row_at,
    running,
    time_at,
)
from pyrnnx._kernels.engine cimport Step
from pyrnnx._kernels.operands cimport encode_states, gather, plan_chunk, split, widen_x_range
from pyrnnx._kernels.storage cimport NATIVE
from pyrnnx._kernels.threads cimport (
    barrier_admit,
    barrier_close,
    barrier_joined,
    barrier_late,
    barrier_open,
    load_flag,
)


cdef enum:
    PRODUCT_WORK = 1 << 26  # largest work of a product between two polls: about 2 to 20 ms


cdef inline Py_ssize_t first_unit(const Block *b) noexcept nogil:
    return b.u0 * b.call.kernels.lanes


cdef inline Py_ssize_t own_units(const Block *b) noexcept nogil:
    """Return the number of this thread's hidden units, without padding."""
    return min(b.u1 * b.call.kernels.lanes, b.call.hidden_size) - first_unit(b)


cdef inline char *own_state(const Block *b, char *state, Py_ssize_t place) noexcept nogil:
    """Return this thread's units of a row of h or c."""
    return state + (place * b.call.padded_size + first_unit(b)) * b.call.itemsize


cdef inline char *own_row(const Block *b, const Array *a, int itemsize, Py_ssize_t place) noexcept nogil:
    """Return this thread's units of a row of the caller's states or, at time 0, of Y."""
    return a.data + b.direction * a.d + row_at(b, place) * a.n + first_unit(b) * itemsize


cdef inline Py_ssize_t blocks_per_poll(const Block *b, double work) noexcept nogil:
    """Return how many of this thread's unit blocks a product of all of them, `work`, may compute between two polls."""
    cdef Py_ssize_t blocks = b.u1 - b.u0
    if b.call.interrupt == NULL or b.call.kernels.whole or work <= PRODUCT_WORK:
        return blocks
    return max(<Py_ssize_t> (blocks * (PRODUCT_WORK / work)), 1)


cdef void set_share(Block *b, int rank, int team_size) noexcept nogil:
    """Set this thread's place in its team, and so its unit blocks."""
    b.rank, b.team_size = rank, team_size
    b.u0, b.u1 = b.call.unit_blocks * rank // team_size, b.call.unit_blocks * (rank + 1) // team_size


cdef void watch_team(Block *b) noexcept nogil:
    """Before the last round of a time step, let the leader say whether the team regroups after it."""
    cdef:
        Team *team = b.team
        long long late
    if b.team_size == 1 or b.rank != 0:
        return
    late = barrier_late(&team.barrier)
    if late:
        barrier_close(&team.barrier)
        if b.is_caller:
            team.rest(late)
    if late or barrier_joined(&team.barrier, 0) + 1 > b.team_size:
        team.barrier.regroup = True


cdef void admit(Block *b) noexcept nogil:
    """Between two time steps, let the leader, which is alone, admit the threads that joined; after a rest, call them."""
    cdef:
        Team *team = b.team
        int joined
    if load_flag(&team.barrier.closed):
        if not b.is_caller or not team.may_call(team.threads):
            return
        barrier_open(&team.barrier)
        team.call(team.threads)
    joined = barrier_joined(&team.barrier, team.limit - 1 if b.step == 0 else 0)
    if joined:
        team.leader = b[0]
        set_share(b, 0, joined + 1)
        barrier_admit(&team.barrier, joined)


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
    """Store the last state of a row; for a row without steps, zero or its initial state."""
    cdef:
        const Call *call = b.call
        char *row
    if last.data == NULL:
        return
    row = own_row(b, last, call.state_itemsize, place)
    if length_at(b, place) == 0 and not call.keeps_states:
        memset(row, 0, own_units(b) * call.state_itemsize)
    else:
        call.kernels.narrow(call.state_storage, call.itemsize, own_state(b, state, place), row, own_units(b))


cdef void retire(Block *b, Py_ssize_t step) noexcept nogil:
    """Store the states of the rows that end before `step`."""
    cdef Py_ssize_t active = running(b, step, b.active), place
    for place in range(active, b.active):
        store_state(b, &b.call.Y_h, b.h, place)
        store_state(b, &b.call.Y_c, b.c, place)
    b.active = active


cdef void write_outputs(const Block *b, Py_ssize_t step) noexcept nogil:
    cdef:
        const Call *call = b.call
        Py_ssize_t place
        char *row
    for place in range(b.active):
        row = own_row(b, &call.Y, call.outer_itemsize, place) + time_at(b, place, step) * call.Y.t
        call.kernels.narrow(call.storage, call.itemsize, own_state(b, b.h, place), row, own_units(b))


cdef void zero_padding(Block *b) noexcept nogil:
    """Set Y beyond each row's length to zero."""
    cdef:
        const Call *call = b.call
        Py_ssize_t place, t, size = own_units(b) * call.outer_itemsize
    for place in range(b.rows):
        for t in range(length_at(b, place), call.seq_length):
            memset(own_row(b, &call.Y, call.outer_itemsize, place) + t * call.Y.t, 0, size)
            if poll(b, ROW_WORK + size):
                return


cdef inline bint uses_matrices(const Call *call, Py_ssize_t step) noexcept nogil:
    return call.matrices != NULL and step < call.matrix_steps


cdef bint project(Block *b, Py_ssize_t total, const char *x, Py_ssize_t ldx) noexcept nogil:
    """Project a chunk's rows of X to the buffer `projected`; return False if this thread must leave."""
    cdef:
        const Call *call = b.call
        double work = <double> total * call.projected_size * call.input_size / b.team_size
        Py_ssize_t blocks = blocks_per_poll(b, work), u, v
    if call.matrices != NULL and not split(b, total, call.input_size, x, ldx, b.split_x):
        return False
    u = b.u0
    while u < b.u1:
        v = min(u + blocks, b.u1)
        if call.matrices == NULL:
            call.kernels.project(b.parameters, total, x, ldx, b.projected, u, v)
        else:
            call.matrices.project(b.parameters, total, x, ldx, b.split_x, b.projected, u, v)
        if poll(b, work * blocks / (b.u1 - b.u0)):
            return b.team_size > 1
        u = v
    return True


cdef bint advance(Block *b, Py_ssize_t number, char *projected) noexcept nogil:
    """Run one time step of the running rows; return False if this thread must leave."""
    cdef:
        const Call *call = b.call
        bint by_matrices = uses_matrices(call, number)
        double work = STEP_WORK + <double> b.active * call.step_work / b.team_size
        Py_ssize_t blocks = blocks_per_poll(b, work)
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
        step.u1 = b.u0
        while step.u1 < b.u1:
            step.u0, step.u1 = step.u1, min(step.u1 + blocks, b.u1)
            if by_matrices:
                call.matrices.step(b.parameters, phase, &step, b.split_states)
            else:
                call.kernels.step(b.parameters, phase, &step)
            if poll(b, work * blocks / (b.u1 - b.u0)):
                break
        if phase == call.phases - 1:
            watch_team(b)
        if leave(b):
            return False
    b.h, b.h_next = b.h_next, b.h
    return True


cdef bint run_row(Block *b, char *projected, Py_ssize_t step, Py_ssize_t steps) noexcept nogil:
    """Run time steps of the only running row with the engine's `steps`; return False if it cannot.

    The first step without an initial state is left to `advance`, which skips its product.
    """
    cdef:
        const Call *call = b.call
        char *y = own_row(b, &call.Y, call.outer_itemsize, 0) + time_at(b, 0, step) * call.Y.t
        Py_ssize_t y_time = -call.Y.t if b.reverse else call.Y.t, count = steps, done = 0
    if (call.kernels.steps == NULL or uses_matrices(call, step) or call.coding != NULL or call.storage != NATIVE
            or b.team_size > 1 or step == 0 and call.initial_h.data == NULL
            or (<size_t> y | <size_t> call.Y.t) & <size_t> (call.itemsize - 1)):
        return False
    if call.interrupt != NULL:
        count = min(max(<Py_ssize_t> (PRODUCT_WORK / call.step_work), 1), steps)
    while done < steps and not b.stopped:
        count = min(count, steps - done)
        if not call.kernels.steps(b.parameters, count, projected + done * call.projected_size * call.itemsize, b.h, b.c,
                                  y + done * y_time, y_time):
            return False
        done += count
        poll(b, count * call.step_work)
    return True


cdef bint project_chunk(Block *b) noexcept nogil:
    """Project X of the next time steps; return False if this thread must leave."""
    cdef:
        Py_ssize_t total, ldx, steps = plan_chunk(b, b.step, &total)
        const char *x = gather(b, b.step, steps, total, &ldx)
    b.chunk_end, b.next_projected = b.step + steps, b.projected
    return x != NULL and project(b, total, x, ldx)


cdef bint begin_block(Block *b) noexcept nogil:
    """Load the states of a row block; return False if this thread must leave."""
    b.step = b.chunk_end = 0
    b.rows = b.active = min(b.most_rows, b.end - b.first)
    if b.call.coding != NULL:
        b.last_active = b.rows
        widen_x_range(b)
    load_state(b, &b.call.initial_h, b.h)
    load_state(b, &b.call.initial_c, b.c)
    if leave(b):
        return False
    retire(b, 0)
    return True


cdef bint run_steps(Block *b) noexcept nogil:
    """Run the time steps of a row block from `step` to `limit`; return False if this thread must leave."""
    while b.active and b.step < b.limit:
        if b.team_size == 1 and b.team != NULL:
            admit(b)
        if b.step == b.chunk_end and not project_chunk(b):
            return False
        if b.active == 1 and run_row(b, b.next_projected, b.step, b.chunk_end - b.step):
            b.step = b.chunk_end
        else:
            if not advance(b, b.step, b.next_projected):
                return False
            if b.regroup:
                if b.rank != 0:
                    return False  # at once: the leader goes on without waiting, and overwrites the states
                b.regroup = False
                set_share(b, 0, 1)
            write_outputs(b, b.step)
            b.next_projected += b.active * b.call.projected_size * b.call.itemsize
            b.step += 1
        if b.stopped:
            return False
        retire(b, b.step)
    if b.active == 0:
        zero_padding(b)
    return not b.stopped
