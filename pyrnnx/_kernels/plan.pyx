"""The plan of a call: its division among threads, and the memory of its row blocks."""

from libc.stdlib cimport free, malloc

import os
import threading

from pyrnnx._kernels.parameters cimport Parameters
from pyrnnx._kernels.threads cimport (
    PYRNNX_DISBANDED,
    Barrier,
    Interrupt,
    barrier_init,
    interrupt_init,
    team_release,
    team_run,
    team_take,
)
from pyrnnx._kernels.timeloop cimport ROW_WORK, STEP_WORK, Block, Call, run_block

cdef extern from "Python.h":
    int PyErr_CheckSignals()
    unsigned long PyThread_get_thread_ident() nogil

cdef unsigned long main_thread = 0

cdef enum:
    MAX_TEAMS = 128
    STATE_BYTES = 1 << 21       # of a row block: states, and X and projected of one step
    CHUNK_BYTES = 1 << 16       # of a chunk, X and projected: the system would map a larger one again for each call
    MAX_CHUNK_BYTES = 1 << 22   # of a chunk if W, which each chunk reads again, is larger
    SPLIT_BYTES = 1 << 20       # of split rows, which fit the second-level cache with the weights
    SPLIT_X_BYTES = 1 << 21     # of split rows of X of one time step, which are read fewer times
    MATRIX_BLOCK = 32           # rows in one product of matrices
    TASK_MACS = 3 << 18         # fewest multiply-adds worth another thread: about 30 us
    STEP_MACS = 1 << 14         # fewest worth sharing one time step: a barrier costs about 0.2 us
    GIL_MACS = 1 << 16          # fewest worth releasing the GIL: about 2 us
    SHORT_WORK = 1 << 24        # least work (see timeloop) of a call that can be interrupted: about 0.3 to 10 ms
    STACK_BYTES = 1 << 14       # largest scratch memory on the stack


cdef struct Plan:
    # The division of a call: teams run different directions or rows, the threads of a team different units.
    const Call *call
    const Parameters *parameters            # of each direction
    const bint *reverse
    Py_ssize_t steps                        # sum over all rows
    Py_ssize_t directions, row_parts, teams, team_size
    Py_ssize_t rows, chunk_rows             # of a row block; of one of its chunks
    Py_ssize_t state_bytes, x_bytes, projected_bytes, coded_bytes, split_x_bytes, split_states_bytes, team_bytes
    char *scratch
    Barrier barriers[MAX_TEAMS]


cdef Py_ssize_t total_steps(const Call *call) noexcept nogil:
    """Return the sum of the time steps of all rows."""
    cdef Py_ssize_t total = 0, place
    if call.lengths == NULL:
        return call.seq_length * call.batch_size
    for place in range(call.batch_size):
        total += call.lengths[place]
    return total


cdef void divide(Plan *plan, int threads, bint barriers) noexcept nogil:
    """Divide a call among threads: directions first, which need no barrier; then units of long steps, or else rows.

    Only directions are divided if products must stay whole, or if all h of a step have one range. `barriers`: whether
    threads may share a step.
    """
    cdef:
        const Call *call = plan.call
        Py_ssize_t per_row = call.projected_size * call.hidden_size
        Py_ssize_t per_direction = threads // plan.directions
    plan.row_parts = plan.team_size = 1
    plan.teams = plan.directions if per_direction >= 1 else 1
    if per_direction <= 1 or call.kernels.whole or call.coding != NULL:
        return
    if barriers:
        plan.team_size = min(per_direction, call.unit_blocks, call.batch_size * per_row // STEP_MACS)
    if plan.team_size < 2:
        plan.team_size = 1
        plan.row_parts = min(per_direction, call.batch_size)
        plan.teams *= plan.row_parts


cdef Py_ssize_t split_rows(const Plan *plan, Py_ssize_t depth, Py_ssize_t max_bytes) noexcept nogil:
    """Return how many split rows fit `max_bytes`; at least a block, which is smaller than the weights."""
    cdef Py_ssize_t size = plan.call.matrices.split_size(plan.parameters, MATRIX_BLOCK, depth) // MATRIX_BLOCK
    return max(max_bytes // size, MATRIX_BLOCK)


cdef void size_matrix_blocks(Plan *plan, Py_ssize_t step, Py_ssize_t weights) noexcept nogil:
    """Set rows and chunk_rows for matrices, which are so fast that reading weights dominates: blocks have more rows."""
    cdef:
        const Call *call = plan.call
        Py_ssize_t most = min(split_rows(plan, call.hidden_size, SPLIT_BYTES),
                              split_rows(plan, call.input_size, SPLIT_X_BYTES))
        Py_ssize_t blocks = (call.batch_size + most - 1) // most
    plan.rows = min(round_up((call.batch_size + blocks - 1) // blocks, MATRIX_BLOCK), call.batch_size)
    plan.chunk_rows = min(max(weights, CHUNK_BYTES) // step, split_rows(plan, call.input_size, SPLIT_BYTES))


cdef void size_blocks(Plan *plan) noexcept nogil:
    """Set the sizes of row blocks and chunks, so that a team's buffers stay small for every call."""
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
    """Return the place of the first row of a part; parts have about the same number of time steps."""
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
    """Run the rows [begin, end) of one direction, row block by row block, in the team's memory:

        | h | h_next | c | work | x | projected | coded | split_x | split_states | row |     4 * state_bytes, ...
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
        b.h, b.h_next = memory, memory + plan.state_bytes  # swapped after a block with an odd number of steps
        b.first, b.rows = first, min(plan.rows, end - first)
        b.active = b.rows
        run_block(b)
        if b.stopped or b.rank >= b.team_size:  # the team disbanded: rank 0 continues alone
            return
        first += plan.rows


cdef void run_member(void *argument, int rank) noexcept nogil:
    """Run one thread of the call: its share of its team's directions and rows."""
    cdef:
        const Plan *plan = <const Plan *> argument
        const Call *call = plan.call
        Py_ssize_t team = rank // plan.team_size, d
        Py_ssize_t part = team % plan.row_parts
        Py_ssize_t first = team // plan.row_parts, stride = plan.teams // plan.row_parts
        Block b
    b.call = call
    b.is_caller, b.stopped, b.unpolled = rank == 0, False, 0
    b.team_size, b.rank = <int> plan.team_size, rank % <int> plan.team_size
    b.barrier = <Barrier *> &plan.barriers[team]
    b.u0, b.u1 = call.unit_blocks * b.rank // b.team_size, call.unit_blocks * (b.rank + 1) // b.team_size
    for d in range(plan.directions):
        if d % stride == first and b.rank < b.team_size and not b.stopped:
            b.direction, b.parameters, b.reverse = <int> d, &plan.parameters[d], plan.reverse[d]
            run_rows(plan, &b, team, first_row(plan, part), first_row(plan, part + 1))


cdef bint disbanded(const Plan *plan) noexcept nogil:
    cdef Py_ssize_t team
    for team in range(plan.teams):
        if plan.barriers[team].verdict == PYRNNX_DISBANDED:
            return True
    return False


cdef double count_macs(const Call *call, Py_ssize_t steps, int directions) noexcept nogil:
    """Return the multiply-adds of a call; `steps` is the sum over its rows."""
    cdef double per_step = call.projected_size * (call.hidden_size + call.input_size)
    return per_step * steps * directions


cdef double count_work(const Call *call, Py_ssize_t steps, int directions) noexcept nogil:
    """Return the work of a call in multiply-adds, overheads included."""
    cdef double per_step = call.projected_size * call.input_size + call.step_work
    return directions * (call.seq_length * (<double> STEP_WORK + call.batch_size * ROW_WORK) + per_step * steps)


cdef bint is_short(const Call *call, int directions) noexcept nogil:
    """Return whether a call runs in one thread and cannot be interrupted."""
    cdef Py_ssize_t steps = total_steps(call)
    return count_macs(call, steps, directions) < 2 * TASK_MACS and count_work(call, steps, directions) < SHORT_WORK


cdef bint keeps_gil(const Call *call, int directions) noexcept nogil:
    """Return whether a call takes less time than releasing the GIL may cost."""
    return call.interrupt == NULL and count_macs(call, total_steps(call), directions) < GIL_MACS


cdef bint can_be_interrupted(const Call *call, int directions) noexcept nogil:
    """Return whether a call takes so long that it must check signals."""
    return count_work(call, total_steps(call), directions) >= SHORT_WORK


cdef int check_signals() noexcept with gil:
    """Run Python's handlers of pending signals; return whether a handler raised an error, which is then set."""
    return PyErr_CheckSignals() != 0


def find_main_thread() -> None:
    """Store the ident of the main thread, in which Python handles signals."""
    global main_thread
    main_thread = threading.main_thread().ident


find_main_thread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=find_main_thread)


cdef bint watch_signals(Interrupt *interrupt) noexcept nogil:
    """Initialize an interrupt and return True if this is the main thread, in which Python handles signals.

    This function must not run Python code, which would handle pending signals and might raise.
    """
    if PyThread_get_thread_ident() != main_thread:
        return False
    interrupt_init(interrupt, check_signals)
    return True


cdef void run_plan(Plan *plan, char *memory, const Pool *pool) noexcept nogil:
    cdef:
        Py_ssize_t team
        int size = <int> (plan.teams * plan.team_size)
    plan.scratch = <char *> round_up(<Py_ssize_t> memory, ALIGNMENT)
    for team in range(plan.teams):
        barrier_init(&plan.barriers[team], <int> plan.team_size, plan.call.interrupt)
    if pool != NULL and size > 1:
        pool.run(pool.context, size, run_member, plan)
    else:
        team_run(size, run_member, plan, plan.call.interrupt)


cdef bint run_call(const Call *call, const Parameters *parameters, const bint *reverse, int directions, int threads,
                   const Pool *pool) noexcept nogil:
    """Plan and run a call, with at most `threads` threads or in the pool of another runtime; False: out of memory."""
    cdef:
        Plan plan
        Py_ssize_t steps = total_steps(call)
        double macs = count_macs(call, steps, directions)
        char *memory
        char stack[STACK_BYTES + ALIGNMENT]
    if call.coding != NULL:
        threads = min(threads, directions)
    threads = min(threads, MAX_TEAMS, <int> min(macs / TASK_MACS, <double> MAX_TEAMS))
    if pool == NULL:
        threads = team_take(threads)
    plan.call, plan.steps, plan.directions = call, steps, directions
    plan.parameters, plan.reverse = parameters, reverse
    divide(&plan, threads, pool == NULL)
    size_blocks(&plan)
    if plan.teams * plan.team_bytes <= STACK_BYTES:
        memory = stack
    else:
        memory = <char *> malloc(plan.teams * plan.team_bytes + ALIGNMENT)
    if memory != NULL:
        run_plan(&plan, memory, pool)
    if pool == NULL and threads > 1:
        team_release(memory != NULL and disbanded(&plan))
    if memory != stack:
        free(memory)
    return memory != NULL
