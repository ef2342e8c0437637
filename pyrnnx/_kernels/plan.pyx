"""The plan of a call: how threads share it, and the memory that its row blocks take."""

from libc.stdlib cimport free, malloc

from pyrnnx._kernels.parameters cimport Parameters
from pyrnnx._kernels.threads cimport Barrier, barrier_init, team_release, team_run, team_take
from pyrnnx._kernels.timeloop cimport Block, Call, run_block

cdef enum:
    MAX_TEAMS = 128
    STATE_BYTES = 1 << 21       # of a row block: states, and X and projected of one step
    CHUNK_BYTES = 1 << 18       # of a chunk of time steps: X and projected; stays in the second level of cache
    TASK_MACS = 1 << 20         # multiply-adds below which another thread does not pay: some 30 us
    STEP_MACS = 1 << 14         # the same for sharing one time step: a barrier costs some 0.2 us


cdef struct Plan:
    # How a call is shared: `teams` work on different directions or rows, the threads of a team on different units.
    const Call *call
    const Parameters *parameters            # of each direction
    bint *reverse
    Py_ssize_t steps                        # of all rows together
    Py_ssize_t directions, row_parts, teams, team_size
    Py_ssize_t rows, chunk_rows             # of a row block; of a chunk of it
    Py_ssize_t state_bytes, x_bytes, projected_bytes, coded_bytes, team_bytes
    char *scratch
    Barrier barriers[MAX_TEAMS]


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


cdef void size_blocks(Plan *plan) noexcept nogil:
    """Rows and time steps that a team takes at once, cut so that its buffers stay small whatever the call."""
    cdef:
        const Call *call = plan.call
        Py_ssize_t state = 4 * call.padded_size * call.itemsize
        Py_ssize_t step = call.x_size + call.projected_size * call.itemsize, row_bytes = 0
    plan.rows = min(max(STATE_BYTES // (state + step), 1), call.batch_size)
    if call.coding != NULL:
        plan.rows, row_bytes = call.batch_size, call.input_size * call.itemsize
    plan.chunk_rows = min(max(CHUNK_BYTES // step, plan.rows), plan.rows * max(call.seq_length, 1))
    plan.state_bytes = round_up(plan.rows * call.padded_size * call.itemsize, ALIGNMENT)
    plan.x_bytes = round_up(plan.chunk_rows * call.x_size, ALIGNMENT)
    plan.projected_bytes = round_up(plan.chunk_rows * call.projected_size * call.itemsize, ALIGNMENT)
    plan.coded_bytes = round_up(plan.rows * call.coded_size, ALIGNMENT)
    plan.team_bytes = (4 * plan.state_bytes + plan.x_bytes + plan.projected_bytes + plan.coded_bytes
                       + round_up(row_bytes, ALIGNMENT))


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

        | h | h_next | c | work | x | projected | coded | row |      the first four of state_bytes each
    """
    cdef:
        char *memory = plan.scratch + team * plan.team_bytes
        Py_ssize_t first = begin
    b.chunk_rows = plan.chunk_rows
    b.c, b.work = memory + 2 * plan.state_bytes, memory + 3 * plan.state_bytes
    b.x = memory + 4 * plan.state_bytes
    b.projected = b.x + plan.x_bytes
    b.coded = b.projected + plan.projected_bytes
    b.row = b.coded + plan.coded_bytes
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


cdef int run_call(const Call *call, const Parameters *parameters, bint *reverse, int directions, int threads) except -1:
    """Take a team of threads, plan, and run."""
    cdef:
        Plan plan
        Py_ssize_t steps = total_steps(call), team
        double macs = <double> steps * directions * call.projected_size * (call.hidden_size + call.input_size)
        char *memory
    if call.coding != NULL:
        threads = min(threads, directions)
    threads = team_take(min(threads, MAX_TEAMS, <int> min(macs / TASK_MACS, <double> MAX_TEAMS)))
    plan.call, plan.steps, plan.parameters, plan.reverse, plan.directions = call, steps, parameters, reverse, directions
    share(&plan, threads)
    size_blocks(&plan)
    memory = <char *> malloc(plan.teams * plan.team_bytes + ALIGNMENT)
    if memory == NULL:
        if threads > 1:
            team_release(False)
        raise MemoryError("what it is computed in exceeds memory")
    with nogil:
        plan.scratch = <char *> round_up(<Py_ssize_t> memory, ALIGNMENT)
        for team in range(plan.teams):
            barrier_init(&plan.barriers[team], <int> plan.team_size)
        team_run(<int> (plan.teams * plan.team_size), run_member, &plan)
        if threads > 1:
            team_release(disbanded(&plan))
        free(memory)
    return 0
