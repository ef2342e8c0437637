"""The plan of a call: the order of its rows, how threads share it, and the memory that its row blocks take."""

cimport numpy as cnp
from libc.stdlib cimport free, malloc

import numpy as np

from pyrnnx._kernels.parameters cimport Parameters
from pyrnnx._kernels.threads cimport Barrier, barrier_init, team_release, team_run, team_take
from pyrnnx._kernels.timeloop cimport Block, Call, run_block

cnp.import_array()


cdef enum:
    MAX_TEAMS = 128
    STATE_BYTES = 1 << 21       # of a row block: states, and X and projected of one step
    CHUNK_BYTES = 1 << 16       # of a chunk of time steps, X and projected: more would be mapped anew for each call
    MAX_CHUNK_BYTES = 1 << 22   # the same where W, which each chunk reads anew, is larger than that level
    SPLIT_BYTES = 1 << 20       # of rows split for matrices, which stay in the second level of cache beside the weights
    SPLIT_X_BYTES = 1 << 21     # the same of the rows of X of one time step, of which each is read fewer times
    MATRIX_BLOCK = 32           # rows that matrices take at once
    TASK_MACS = 3 << 18         # multiply-adds below which another thread does not pay: some 30 us
    STEP_MACS = 1 << 14         # the same for sharing one time step: a barrier costs some 0.2 us
    HELD_MACS = 1 << 16         # multiply-adds below which it does not pay to let go of the GIL: some 2 us
    FEW_ROWS = 32               # that are sorted here; more by NumPy
    STACK_BYTES = 1 << 14       # so much memory to work in lies on the stack; more is allocated


cdef struct Plan:
    # How a call is shared: `teams` work on different directions or rows, the threads of a team on different units.
    const Call *call
    const Parameters *parameters            # of each direction
    bint *reverse
    Py_ssize_t steps                        # of all rows together
    Py_ssize_t directions, row_parts, teams, team_size
    Py_ssize_t rows, chunk_rows             # of a row block; of a chunk of it
    Py_ssize_t state_bytes, x_bytes, projected_bytes, coded_bytes, split_x_bytes, split_states_bytes, team_bytes
    char *scratch
    Barrier barriers[MAX_TEAMS]


cdef cnp.ndarray checked_lengths(lengths, const Call *call):
    """The lengths of the rows of a call: a copy, which nobody else can write to."""
    cdef:
        cnp.npy_intp count = call.batch_size
        cnp.ndarray given = np.asarray(lengths), own
        const Py_ssize_t *length
        Py_ssize_t k
        bint fit = cnp.PyArray_NDIM(given) == 1 and cnp.PyArray_DIM(given, 0) == count
    if fit:
        own = cnp.PyArray_EMPTY(1, &count, cnp.NPY_INTP, 0)
        cnp.PyArray_CopyInto(own, given)
        length = <const Py_ssize_t *> cnp.PyArray_DATA(own)
        for k in range(count):
            fit &= 0 <= length[k] <= call.seq_length
    if not fit:
        raise ValueError(f"lengths are not [batch_size={count}] of 0 to seq_length={call.seq_length}")
    return own


cdef cnp.ndarray by_falling_length(cnp.ndarray lengths, Call *call):
    """Sort lengths in place, for the call, and give the rows in that order; None where all are seq_length."""
    cdef:
        Py_ssize_t *length = <Py_ssize_t *> cnp.PyArray_DATA(lengths)
        Py_ssize_t *order
        Py_ssize_t k, j, own, shortest = call.seq_length
        cnp.npy_intp count = call.batch_size
        cnp.ndarray rows
    for k in range(count):
        shortest = min(shortest, length[k])
    if shortest == call.seq_length:
        return None
    if count > FEW_ROWS:
        rows = np.argsort(-lengths, kind="stable")
        lengths[:] = lengths[rows]
    else:
        rows = np.arange(count, dtype=np.intp)
        order = <Py_ssize_t *> cnp.PyArray_DATA(rows)
        for k in range(1, count):
            own, j = length[k], k
            while j > 0 and length[j - 1] < own:
                length[j], order[j] = length[j - 1], order[j - 1]
                j -= 1
            length[j], order[j] = own, k
    call.order, call.lengths = <Py_ssize_t *> cnp.PyArray_DATA(rows), length
    return rows


cdef Py_ssize_t total_steps(const Call *call) noexcept nogil:
    """Time steps of all rows together."""
    cdef Py_ssize_t total = 0, place
    if call.lengths == NULL:
        return call.seq_length * call.batch_size
    for place in range(call.batch_size):
        total += call.lengths[place]
    return total


cdef void share(Plan *plan, int threads) noexcept nogil:
    """Directions first, for they need no barrier; then the units of a step where it is long enough; then rows.

    Directions alone where a product is not to be cut, and where all h of a step have one range.
    """
    cdef:
        const Call *call = plan.call
        Py_ssize_t per_row = call.projected_size * call.hidden_size
        Py_ssize_t per_direction = threads // plan.directions
    plan.row_parts = plan.team_size = 1
    plan.teams = plan.directions if per_direction >= 1 else 1
    if per_direction <= 1 or call.kernels.whole or call.coding != NULL:
        return
    plan.team_size = min(per_direction, call.unit_blocks, call.batch_size * per_row // STEP_MACS)
    if plan.team_size < 2:
        plan.team_size = 1
        plan.row_parts = min(per_direction, call.batch_size)
        plan.teams *= plan.row_parts


cdef Py_ssize_t split_rows(const Plan *plan, Py_ssize_t depth, Py_ssize_t most) noexcept nogil:
    """How many rows are split into so many bytes; at least those of a block, which are less than the weights."""
    cdef Py_ssize_t size = plan.call.matrices.split_size(plan.parameters, MATRIX_BLOCK, depth) // MATRIX_BLOCK
    return max(most // size, MATRIX_BLOCK)


cdef void size_matrix_blocks(Plan *plan, Py_ssize_t step, Py_ssize_t weights) noexcept nogil:
    """The same where matrices multiply: they are so fast that weights are to be read less often, for more rows."""
    cdef:
        const Call *call = plan.call
        Py_ssize_t most = min(split_rows(plan, call.hidden_size, SPLIT_BYTES),
                              split_rows(plan, call.input_size, SPLIT_X_BYTES))
        Py_ssize_t blocks = (call.batch_size + most - 1) // most
    plan.rows = min(round_up((call.batch_size + blocks - 1) // blocks, MATRIX_BLOCK), call.batch_size)
    plan.chunk_rows = min(max(weights, CHUNK_BYTES) // step, split_rows(plan, call.input_size, SPLIT_BYTES))


cdef void size_blocks(Plan *plan) noexcept nogil:
    """Rows and time steps that a team takes at once, cut so that its buffers stay small whatever the call."""
    cdef:
        const Call *call = plan.call
        Py_ssize_t state = 4 * call.padded_size * call.itemsize
        Py_ssize_t step = call.x_size + call.projected_size * call.itemsize, row_bytes = 0
        Py_ssize_t weights = call.projected_size * call.input_size * call.itemsize  # bytes of W
    if call.matrices != NULL:
        size_matrix_blocks(plan, step, weights)
    else:
        plan.rows = min(max(STATE_BYTES // (state + step), 1), call.batch_size)
        plan.chunk_rows = max(CHUNK_BYTES, min(weights // 4, MAX_CHUNK_BYTES)) // step
    if call.coding != NULL:
        plan.rows, row_bytes = call.batch_size, call.input_size * call.itemsize
    plan.chunk_rows = min(max(plan.chunk_rows, plan.rows), plan.rows * max(call.seq_length, 1))
    plan.state_bytes = round_up(plan.rows * call.padded_size * call.itemsize, ALIGNMENT)
    plan.x_bytes = round_up(plan.chunk_rows * call.x_size, ALIGNMENT)
    plan.projected_bytes = round_up(plan.chunk_rows * call.projected_size * call.itemsize, ALIGNMENT)
    plan.coded_bytes = round_up(plan.rows * call.coded_size, ALIGNMENT)
    plan.split_x_bytes = plan.split_states_bytes = 0
    if call.matrices != NULL:
        plan.split_x_bytes = round_up(
            call.matrices.split_size(plan.parameters, plan.chunk_rows, call.input_size), ALIGNMENT)
        plan.split_states_bytes = round_up(
            call.matrices.split_size(plan.parameters, plan.rows, call.hidden_size), ALIGNMENT)
    plan.team_bytes = (4 * plan.state_bytes + plan.x_bytes + plan.projected_bytes + plan.coded_bytes
                       + plan.split_x_bytes + plan.split_states_bytes + round_up(row_bytes, ALIGNMENT))


cdef Py_ssize_t first_row(const Plan *plan, Py_ssize_t part) noexcept nogil:
    """The place where a part of the rows begins; parts have about the same number of time steps."""
    cdef:
        const Call *call = plan.call
        Py_ssize_t place = 0, before = 0, wanted
    if call.lengths == NULL or part == plan.row_parts:
        return call.batch_size * part // plan.row_parts
    wanted = plan.steps * part // plan.row_parts
    while place < call.batch_size and before < wanted:
        before += call.lengths[place]
        place += 1
    return place


cdef void run_rows(const Plan *plan, Block *b, Py_ssize_t team, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """The rows [begin, end) of one direction, row block by row block, in the team's memory:

        | h | h_next | c | work | x | projected | coded | split_x | split_states | row |     the first four of state_bytes
    """
    cdef:
        char *memory = plan.scratch + team * plan.team_bytes
        Py_ssize_t first = begin
    b.chunk_rows = plan.chunk_rows
    b.c, b.work = memory + 2 * plan.state_bytes, memory + 3 * plan.state_bytes
    b.x = memory + 4 * plan.state_bytes
    b.projected = b.x + plan.x_bytes
    b.coded = b.projected + plan.projected_bytes
    b.split_x = b.coded + plan.coded_bytes
    b.split_states = b.split_x + plan.split_x_bytes
    b.row = b.split_states + plan.split_states_bytes
    while first < end:
        b.h, b.h_next = memory, memory + plan.state_bytes  # which a block of an odd number of steps leaves exchanged
        b.first, b.rows = first, min(plan.rows, end - first)
        b.active = b.rows
        run_block(b)
        if b.rank >= b.team_size:  # the team has disbanded, and rank 0 goes on alone
            return
        first += plan.rows


cdef void run_member(void *argument, int rank) noexcept nogil:
    """What one thread of the call does: its share of its team's directions and rows."""
    cdef:
        const Plan *plan = <const Plan *> argument
        const Call *call = plan.call
        Py_ssize_t team = rank // plan.team_size, d
        Py_ssize_t part = team % plan.row_parts
        Py_ssize_t first = team // plan.row_parts, stride = plan.teams // plan.row_parts
        Block b
    b.call = call
    b.team_size, b.rank = <int> plan.team_size, rank % <int> plan.team_size
    b.barrier = <Barrier *> &plan.barriers[team]
    b.u0, b.u1 = call.unit_blocks * b.rank // b.team_size, call.unit_blocks * (b.rank + 1) // b.team_size
    for d in range(plan.directions):
        if d % stride == first and b.rank < b.team_size:
            b.direction, b.parameters, b.reverse = <int> d, &plan.parameters[d], plan.reverse[d]
            run_rows(plan, &b, team, first_row(plan, part), first_row(plan, part + 1))


cdef bint disbanded(const Plan *plan) noexcept nogil:
    cdef Py_ssize_t team
    for team in range(plan.teams):
        if plan.barriers[team].disbanded:
            return True
    return False


cdef double count_macs(const Call *call, int directions) noexcept nogil:
    """Multiply-adds of a call."""
    cdef double per_step = call.projected_size * (call.hidden_size + call.input_size)
    return per_step * total_steps(call) * directions


cdef bint takes_one_thread(const Call *call, int directions) noexcept nogil:
    return count_macs(call, directions) < 2 * TASK_MACS


cdef void run_plan(Plan *plan, char *memory, bint shared) noexcept nogil:
    cdef Py_ssize_t team
    plan.scratch = <char *> round_up(<Py_ssize_t> memory, ALIGNMENT)
    for team in range(plan.teams):
        barrier_init(&plan.barriers[team], <int> plan.team_size)
    team_run(<int> (plan.teams * plan.team_size), run_member, plan)
    if shared:
        team_release(disbanded(plan))


cdef int run_call(const Call *call, const Parameters *parameters, bint *reverse, int directions, int threads) except -1:
    """Take a team of threads, plan, and run."""
    cdef:
        Plan plan
        double macs = count_macs(call, directions)
        char *memory
        char stack[STACK_BYTES + ALIGNMENT]
    if call.coding != NULL:
        threads = min(threads, directions)
    threads = team_take(min(threads, MAX_TEAMS, <int> min(macs / TASK_MACS, <double> MAX_TEAMS)))
    plan.call, plan.steps, plan.directions = call, total_steps(call), directions
    plan.parameters, plan.reverse = parameters, reverse
    share(&plan, threads)
    size_blocks(&plan)
    if plan.teams * plan.team_bytes <= STACK_BYTES:
        memory = stack
    else:
        memory = <char *> malloc(plan.teams * plan.team_bytes + ALIGNMENT)
    if memory == NULL:
        if threads > 1:
            team_release(False)
        raise MemoryError("what it is computed in exceeds memory")
    if macs < HELD_MACS:
        run_plan(&plan, memory, threads > 1)
    else:
        with nogil:
            run_plan(&plan, memory, threads > 1)
    if memory != stack:
        free(memory)
    return 0
