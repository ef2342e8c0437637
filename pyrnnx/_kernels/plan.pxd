from pyrnnx._kernels.blocks cimport Block, Call, Team
from pyrnnx._kernels.parameters cimport Parameters
from pyrnnx._kernels.threads cimport Interrupt, Task


cdef enum:
    ALIGNMENT = 64


cdef inline Py_ssize_t round_up(Py_ssize_t n, Py_ssize_t multiple) noexcept nogil:
    return (n + multiple - 1) // multiple * multiple


cdef struct Pool:
    # A pool of another runtime: it runs task(argument, rank) `count` times, possibly one after the other: with rank 0
    # once, in the thread that calls it, and with rank 1 in all others.
    void *context
    void (*run)(void *context, int count, Task task, void *argument) noexcept nogil


cdef struct Plan:
    # The division of a call into jobs: rows of a direction. A thread takes job after job from the queue, so that one that
    # comes late costs nothing. Threads that find no job join a team and share the units of its steps.
    const Call *call
    const Parameters *parameters            # of each direction
    const bint *reverse
    Py_ssize_t steps                        # sum over all rows
    Py_ssize_t directions, row_parts, jobs, team_size, threads
    Py_ssize_t rows, chunk_rows             # of a row block; of one of its chunks
    Py_ssize_t state_bytes, x_bytes, projected_bytes, coded_bytes, own_bytes, split_x_bytes, split_states_bytes
    Py_ssize_t block_bytes
    char *scratch                           # of each job, whose number is small
    int next_job
    Team teams[2]                           # of each direction if threads share steps


cdef void plan_alone(Plan *plan, const Call *call, const Parameters *parameters, const bint *reverse) noexcept nogil
cdef void set_block(Block *b, Plan *plan, Py_ssize_t job) noexcept nogil
cdef void run_team(int threads, Task task, void *argument, Team *team, Interrupt *interrupt) noexcept nogil
cdef bint run_call(const Call *call, const Parameters *parameters, const bint *reverse, int directions, int threads,
                   const Pool *pool) noexcept nogil
cdef bint is_short(const Call *call, int directions) noexcept nogil
cdef bint keeps_gil(const Call *call, int directions) noexcept nogil
cdef bint can_be_interrupted(const Call *call, int directions) noexcept nogil
cdef bint watch_signals(Interrupt *interrupt) noexcept nogil
