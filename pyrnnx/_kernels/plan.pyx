"""The plan of a call: its division among threads, and the memory of its row blocks."""

from libc.stdlib cimport free, malloc

import os
import threading

from pyrnnx._kernels.blocks cimport ROW_WORK, STEP_WORK, Block, Call, Team
from pyrnnx._kernels.parameters cimport Parameters
from pyrnnx._kernels.threads cimport (
    Interrupt,
    Task,
    barrier_begin,
    barrier_begun,
    barrier_close,
    barrier_enter,
    barrier_init,
    barrier_join,
    barrier_watch,
    count_up,
    interrupt_init,
    team_call,
    team_may_call,
    team_release,
    team_rest,
    team_rests,
    team_run,
    team_take,
)
from pyrnnx._kernels.timeloop cimport begin_block, run_steps, set_share

cdef extern from "Python.h":
    int PyErr_CheckSignals()
    unsigned long PyThread_get_thread_ident() nogil

cdef unsigned long main_thread = 0

cdef enum:
    MAX_TEAMS = 128
    STATE_BYTES = 1 << 21       # of a row block: states, and X and projected of one step
    CHUNK_BYTES = 1 << 16       # of a chunk, X and projected: least
    NEAR_CHUNK_BYTES = 1 << 18  # most, so that it stays in the second-level cache with panels of W and R
    FAR_CHUNK_BYTES = 1 << 22   # if W, which each chunk reads again, is as large as this
    SPLIT_BYTES = 1 << 20       # of split rows, which fit the second-level cache with the weights
    SPLIT_X_BYTES = 1 << 21     # of split rows of X of one time step, which are read fewer times
    MATRIX_BLOCK = 32           # rows in one product of matrices
    TASK_MACS = 3 << 18         # fewest multiply-adds worth another thread: about 30 us
    STEP_MACS = 1 << 14         # fewest worth sharing one time step: a barrier costs about 0.2 us
    ROW_BYTES = 1 << 19         # of R, which a thread multiplies by a row in the time of reading them
    GIL_MACS = 1 << 16          # fewest worth releasing the GIL: about 2 us
    SHORT_WORK = 1 << 24        # least work (see blocks) of a call that can be interrupted: about 0.3 to 10 ms
    STACK_BYTES = 1 << 14       # largest scratch memory on the stack


cdef Py_ssize_t total_steps(const Call *call) noexcept nogil:
    """Return the sum of the time steps of all rows."""
    cdef Py_ssize_t total = 0, place
    if call.lengths == NULL:
        return call.seq_length * call.batch_size
    for place in range(call.batch_size):
        total += call.lengths[place]
    return total


cdef bint rows_pay(const Call *call, Py_ssize_t rows) noexcept nogil:
    """Return whether `rows` rows of a thread hide its reading all of R, of which a thread that shares steps reads a part."""
    return call.matrices == NULL and rows * ROW_BYTES >= call.projected_size * call.hidden_size * call.itemsize


cdef void divide(Plan *plan, int threads) noexcept nogil:
    """Divide a call among threads: directions first, then rows, which need no barrier, or else units of long steps.

    Only directions are divided if products must stay whole; rows are not if all h of a step have one range.
    """
    cdef:
        const Call *call = plan.call
        Py_ssize_t per_row = call.projected_size * call.hidden_size
        Py_ssize_t per_direction = threads // plan.directions
    plan.row_parts = plan.team_size = 1
    if per_direction > 1 and not call.kernels.whole:
        if call.coding != NULL or not rows_pay(call, call.batch_size // per_direction):
            plan.team_size = max(
                1, min(per_direction, call.unit_blocks, call.batch_size * per_row // STEP_MACS))
        if plan.team_size == 1 and call.coding == NULL:
            plan.row_parts = min(per_direction, call.batch_size)
    plan.jobs = plan.directions * plan.row_parts
    plan.threads = max(1, min(threads, plan.jobs * plan.team_size))


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
    """Set the sizes of row blocks and chunks, so that a block's buffers stay small for every call."""
    cdef:
        const Call *call = plan.call
        Py_ssize_t state = 4 * call.padded_size * call.itemsize
        Py_ssize_t step = call.x_size + call.projected_size * call.itemsize, row_bytes = 0
        Py_ssize_t weights = call.projected_size * call.input_size * call.itemsize  # bytes of W
        Py_ssize_t most, blocks
    if call.matrices != NULL:
        size_matrix_blocks(plan, step, weights)
    else:
        # Each step of a block reads its states and all of R: blocks are as large as R, so that few of them read it.
        most = max(STATE_BYTES, call.projected_size * call.hidden_size * call.itemsize)
        plan.rows = call.batch_size  # these conditions save the time of divisions in small calls
        if plan.rows * (state + step) > most:
            blocks = (plan.rows * (state + step) + most - 1) // most
            plan.rows = (plan.rows + blocks - 1) // blocks
        plan.chunk_rows = plan.rows * max(call.seq_length, 1)
        if plan.chunk_rows * step > CHUNK_BYTES:
            most = FAR_CHUNK_BYTES if weights >= FAR_CHUNK_BYTES else min(weights, NEAR_CHUNK_BYTES)
            plan.chunk_rows = max(CHUNK_BYTES, most) // step
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
    plan.own_bytes = plan.coded_bytes + round_up(row_bytes, ALIGNMENT)
    plan.block_bytes = (4 * plan.state_bytes + plan.x_bytes + plan.projected_bytes + plan.split_x_bytes
                       + plan.split_states_bytes + plan.team_size * plan.own_bytes)


cdef Py_ssize_t first_row(const Plan *plan, Py_ssize_t part) noexcept nogil:
    """Return the place of the first row of a part; parts have about the same number of time steps."""
    cdef:
        const Call *call = plan.call
        Py_ssize_t place = 0, before = 0, wanted
    if part == 0:
        return 0
    if part == plan.row_parts:
        return call.batch_size
    if call.lengths == NULL:
        return call.batch_size * part // plan.row_parts
    wanted = plan.steps * part // plan.row_parts
    while place < call.batch_size and before < wanted:
        before += call.lengths[place]
        place += 1
    return place


cdef bint run_rows(Block *b) noexcept nogil:
    """Run the rows from `first` to `end`, row block by row block; return False if this thread must leave."""
    while b.first < b.end:
        if not begin_block(b) or not run_steps(b):
            return False
        b.first += b.rows
    return True


cdef void set_block(Block *b, Plan *plan, Py_ssize_t job) noexcept nogil:
    """Set the block of a job, in memory of its own, for one thread.

        | h | h_next | c | work | x | projected | split_x | split_states | coded | row |     4 * state_bytes, ...

    Each member of its team has the last two for itself.
    """
    cdef:
        Py_ssize_t part = job % plan.row_parts
        char *memory = plan.scratch + job * plan.block_bytes
    b.call, b.is_caller, b.stopped, b.regroup, b.unpolled = plan.call, False, False, False, 0
    b.direction = <int> (job // plan.row_parts)
    b.parameters, b.reverse = &plan.parameters[b.direction], plan.reverse[b.direction]
    b.first, b.end, b.most_rows = first_row(plan, part), first_row(plan, part + 1), plan.rows
    b.chunk_rows, b.limit = plan.chunk_rows, plan.call.seq_length
    b.h, b.h_next = memory, memory + plan.state_bytes
    b.c, b.work = memory + 2 * plan.state_bytes, memory + 3 * plan.state_bytes
    b.x = memory + 4 * plan.state_bytes
    b.projected = b.x + plan.x_bytes
    b.split_x = b.projected + plan.projected_bytes
    b.split_states = b.split_x + plan.split_x_bytes
    b.coded = b.split_states + plan.split_states_bytes
    b.row = b.coded + plan.coded_bytes
    b.own_bytes = plan.own_bytes
    b.team = &plan.teams[job] if plan.team_size > 1 else NULL
    set_share(b, 0, 1)


cdef bint lead(Plan *plan, Py_ssize_t job, bint is_caller) noexcept nogil:
    """Run a job; return False if the call was interrupted."""
    cdef:
        bint done
        Block b
    set_block(&b, plan, job)
    b.is_caller = is_caller
    if b.team != NULL:
        barrier_begin(&b.team.barrier)
    done = run_rows(&b)
    if b.team != NULL:
        barrier_close(&b.team.barrier)
    return done


cdef void follow(Team *team) noexcept nogil:
    """Share the steps of a team's leader."""
    cdef:
        int place
        unsigned seen = 0
        Block b
    if not barrier_begun(&team.barrier):
        return
    place = barrier_join(&team.barrier)
    while barrier_enter(&team.barrier, place, &seen):
        b = team.leader
        b.is_caller, b.unpolled = False, 0
        b.coded += place * b.own_bytes
        b.row += place * b.own_bytes
        set_share(&b, place, team.barrier.size)
        if run_steps(&b):
            b.first += b.rows
            if run_rows(&b):
                return


cdef void run_member(void *argument, int rank) noexcept nogil:
    """Run one thread of the call: job after job, or else a share of a team's steps.

    The caller leads the first team, however late it runs: no other thread polls the interrupt, or may open a team again.
    """
    cdef:
        Plan *plan = <Plan *> argument
        Py_ssize_t job = 0 if rank == 0 and plan.team_size > 1 else count_up(&plan.next_job), taken = 0
    while job < plan.jobs:
        if not lead(plan, job, rank == 0):
            return
        taken += 1
        job = count_up(&plan.next_job)
    if not taken and plan.team_size > 1:
        follow(&plan.teams[(job - plan.jobs) % plan.jobs])


cdef void plan_alone(Plan *plan, const Call *call, const Parameters *parameters, const bint *reverse) noexcept nogil:
    """Plan a call of one direction for one thread."""
    plan.call, plan.steps, plan.directions = call, total_steps(call), 1
    plan.parameters, plan.reverse = parameters, reverse
    divide(plan, 1)
    size_blocks(plan)


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
    """Return whether a call takes less time than releasing the GIL may cost; then it cannot be interrupted either."""
    cdef Py_ssize_t steps = total_steps(call)
    return count_macs(call, steps, directions) < GIL_MACS and count_work(call, steps, directions) < SHORT_WORK


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


cdef void set_team(Team *team, Py_ssize_t limit, int threads, Interrupt *interrupt, bint rests) noexcept nogil:
    """Set a team of at most `limit` threads, of all that run a call; it begins closed if threads rest."""
    team.limit, team.threads = <int> limit, threads
    team.rest, team.may_call, team.call = team_rest, team_may_call, team_call
    barrier_init(&team.barrier, <int> limit, interrupt)
    if rests:
        barrier_close(&team.barrier)


cdef bint may_not_call(int size) noexcept nogil:
    """Return False: the threads of another runtime's pool come once."""
    return False


cdef void run_plan(Plan *plan, char *memory, const Pool *pool) noexcept nogil:
    cdef:
        Py_ssize_t team
        int size = <int> plan.threads
        bint rests = plan.team_size > 1 and team_rests()
    plan.scratch = <char *> round_up(<Py_ssize_t> memory, ALIGNMENT)
    plan.next_job = plan.team_size > 1  # of those that wait in the queue
    if plan.team_size > 1:
        for team in range(plan.jobs):
            set_team(&plan.teams[team], plan.team_size, size, plan.call.interrupt, rests)
            if pool != NULL:
                plan.teams[team].may_call = may_not_call
    if pool != NULL and size > 1:
        pool.run(pool.context, size, run_member, plan)
    else:
        team_run(size, not rests or plan.jobs > 1, run_member, plan, plan.call.interrupt)


cdef void run_team(int threads, Task task, void *argument, Team *team, Interrupt *interrupt) noexcept nogil:
    """Run a task in a team of at most `threads` threads; fewer if another call has them."""
    threads = team_take(threads)
    cdef bint rests = threads > 1 and team_rests()
    set_team(team, threads, threads, interrupt, rests)
    barrier_watch(&team.barrier)
    team_run(threads, not rests, task, argument, interrupt)
    if threads > 1:
        team_release()


cdef bint run_call(const Call *call, const Parameters *parameters, const bint *reverse, int directions, int threads,
                   const Pool *pool) noexcept nogil:
    """Plan and run a call with at most `threads` threads; return False if it is out of memory.

    They are those of another runtime's pool unless it is NULL: ours would wait for processors on which its threads spin.
    """
    cdef:
        Plan plan
        Py_ssize_t steps = total_steps(call)
        double macs = count_macs(call, steps, directions)
        char *memory
        char stack[STACK_BYTES + ALIGNMENT]
    threads = min(threads, MAX_TEAMS, <int> min(macs / TASK_MACS, <double> MAX_TEAMS))
    plan.call, plan.steps, plan.directions = call, steps, directions
    plan.parameters, plan.reverse = parameters, reverse
    divide(&plan, threads)
    if pool == NULL and threads > 1:
        threads = team_take(threads)
        divide(&plan, threads)
    elif plan.team_size > 1 and team_rests():
        divide(&plan, directions)
    size_blocks(&plan)
    if plan.jobs * plan.block_bytes <= STACK_BYTES:
        memory = stack
    else:
        memory = <char *> malloc(plan.jobs * plan.block_bytes + ALIGNMENT)
    if memory != NULL:
        run_plan(&plan, memory, pool)
    if pool == NULL and threads > 1:
        team_release()
    if memory != stack:
        free(memory)
    return memory != NULL
