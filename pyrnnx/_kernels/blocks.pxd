"""A call, its row blocks and its teams of threads, for the time loop and all that it uses."""

from pyrnnx._kernels.engine cimport Coding, Kernels, Matrices
from pyrnnx._kernels.parameters cimport Parameters
from pyrnnx._kernels.threads cimport (
    PYRNNX_REGROUP,
    PYRNNX_STOPPED,
    Barrier,
    Interrupt,
    Verdict,
    barrier_wait,
    interrupt_poll,
)


cdef enum:
    STEP_WORK = 1 << 12     # overhead of a time step, in multiply-adds
    ROW_WORK = 1 << 8       # overhead of a row: copies to the buffer x and to Y
    ELEMENT_WORK = 1 << 6   # overhead of an element of `projected`: its activation function
    POLL_WORK = 1 << 22     # work between two polls: about 0.1 to 2 ms


cdef struct Array:
    # A caller's array: data (NULL: no array) and strides in bytes; the innermost axis is contiguous.
    char *data
    Py_ssize_t t, d, n


cdef struct Call:
    # Constants of a call, shared by its threads. Those before X are the layer's.
    const Kernels *kernels
    int itemsize                            # of an element in the kernels
    int storage, outer_itemsize             # of X and Y: storage type and size of an element
    int state_storage, state_itemsize       # of the initial and last states
    Py_ssize_t input_size, hidden_size
    Py_ssize_t padded_size      # hidden_size rounded up to whole unit blocks
    Py_ssize_t unit_blocks
    Py_ssize_t projected_size   # elements in a row of the buffer `projected`: gate_count * padded_size
    int phases                  # of one time step
    double step_work            # of a row in one time step, without the projection of X
    const Coding *coding        # rounds X and h to 8 bits; NULL: no rounding
    Py_ssize_t x_size, ldx      # of a row of the buffer x: bytes; `ldx` of project
    Py_ssize_t coded_size       # bytes of a coded row of h
    bint keeps_states           # whether the last state of a row without steps is its initial state, not zero
    Array X, initial_h, initial_c, Y, Y_h, Y_c
    Py_ssize_t seq_length, batch_size
    const Matrices *matrices    # multiply many rows; NULL: only the kernels do
    Py_ssize_t matrix_steps     # number of first time steps with enough running rows for matrices
    Py_ssize_t *order           # row of the caller's arrays at each place; NULL: the same
    Py_ssize_t *lengths         # length of the row at each place, descending; NULL: seq_length
    Interrupt *interrupt        # stops the call early; NULL: never


cdef struct Team


cdef struct Block:
    # A row block of one direction, for one thread of its team. The team shares the buffers but for coded and row; a
    # thread writes only its own units. Between two time steps, the blocks of all members differ only in these buffers,
    # rank, unit blocks, is_caller, unpolled.
    const Call *call
    const Parameters *parameters
    int direction
    bint reverse
    Py_ssize_t first, rows      # place of its first row; number of rows
    Py_ssize_t end, most_rows   # end of the places of this direction's row blocks; most rows of a block
    Py_ssize_t active           # number of running rows, which are the first
    Py_ssize_t step, chunk_end  # the next time step; end of the time steps that are projected
    Py_ssize_t limit            # run_steps pauses before this time step, whose X may not be there yet
    Py_ssize_t chunk_rows       # capacity of the buffers: rows of X in all time steps of a chunk
    char *x
    char *projected
    char *next_projected        # rows of the next time step
    char *h
    char *h_next
    char *c
    char *work
    char *split_x               # with matrices: split rows of X of the chunk, and split states of a phase
    char *split_states
    char *coded                 # with a coding: Ht-1 as coded rows, the same in each member's buffer
    char *row                   # with a coding: one widened row of X
    Py_ssize_t own_bytes        # from these two of a member to those of the next
    float x_range[2]            # with a coding: the range of X
    Py_ssize_t last_active      # with a coding: rows that ran in the last time step, whose h have one range
    Team *team                  # NULL: no other thread may join
    int rank, team_size         # this thread's place in the team, whose leader has 0; number of members
    Py_ssize_t u0, u1           # this thread's unit blocks: [u0, u1)
    bint regroup                # whether the leader is alone after this step, and others leave
    bint is_caller              # whether this is the caller's thread, which polls the interrupt
    bint stopped                # whether this thread leaves because the call was interrupted
    double unpolled             # work since the last poll, in multiply-adds


cdef struct Team:
    # Threads that share the units of each step.
    Barrier barrier
    Block leader                # of the last admission
    int limit, threads          # most members; threads of the call
    # Functions of the pool of threads, see threads.h.
    void (*rest)(long long lost) noexcept nogil
    bint (*may_call)(int size) noexcept nogil
    void (*call)(int size) noexcept nogil


cdef inline Py_ssize_t row_at(const Block *b, Py_ssize_t place) noexcept nogil:
    return b.first + place if b.call.order == NULL else b.call.order[b.first + place]


cdef inline Py_ssize_t length_at(const Block *b, Py_ssize_t place) noexcept nogil:
    return b.call.seq_length if b.call.lengths == NULL else b.call.lengths[b.first + place]


cdef inline Py_ssize_t time_at(const Block *b, Py_ssize_t place, Py_ssize_t step) noexcept nogil:
    return length_at(b, place) - 1 - step if b.reverse else step


cdef inline Py_ssize_t running(const Block *b, Py_ssize_t step, Py_ssize_t rows) noexcept nogil:
    """Return how many of the first `rows` rows are longer than `step`."""
    while rows > 0 and length_at(b, rows - 1) <= step:
        rows -= 1
    return rows


cdef inline bint poll(Block *b, double work) noexcept nogil:
    """Count work; after every POLL_WORK return whether the call must stop, else False.

    Results computed after True are not used: a thread may skip work, but must reach the next barrier.
    """
    if b.call.interrupt == NULL:
        return False
    b.unpolled += work
    if b.unpolled < POLL_WORK:
        return False
    b.unpolled = 0
    if not interrupt_poll(b.call.interrupt, b.is_caller):
        return False
    b.stopped = b.team_size == 1
    return True


cdef inline bint leave(Block *b) noexcept nogil:
    """Wait for the team at its barrier; return whether this thread must leave at once."""
    cdef Verdict verdict
    if b.team_size == 1:
        return b.stopped
    verdict = barrier_wait(&b.team.barrier)
    b.stopped, b.regroup = verdict == PYRNNX_STOPPED, verdict == PYRNNX_REGROUP
    return b.stopped
