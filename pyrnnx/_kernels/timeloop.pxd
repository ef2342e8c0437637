"""The time loop: a row block of one direction, from its first time step to its last."""

from pyrnnx._kernels.engine cimport Coding, Kernels, Matrices
from pyrnnx._kernels.parameters cimport Parameters
from pyrnnx._kernels.threads cimport Barrier


cdef struct Array:
    # A caller's array: its bytes and its strides in bytes; the innermost axis is contiguous. NULL: not there.
    char *data
    Py_ssize_t t, d, n


cdef struct Call:
    # What all threads of a call share, and none changes.
    const Kernels *kernels
    int itemsize                            # of an element in the kernels
    int storage, outer_itemsize             # of X and Y: how an element lies there, and its size
    int state_storage, state_itemsize       # of the initial and last states
    Py_ssize_t seq_length, batch_size, input_size, hidden_size
    Py_ssize_t padded_size      # hidden_size rounded up to whole unit blocks
    Py_ssize_t unit_blocks
    Py_ssize_t projected_size   # elements in a row of the buffer `projected`: gate_count * padded_size
    int phases                  # of one time step
    const Coding *coding        # how X and h are rounded to 8 bits; NULL: they are not
    const Matrices *matrices    # what multiplies many rows; NULL: the kernels alone
    Py_ssize_t matrix_steps     # the first time steps, in which enough rows run for that
    Py_ssize_t x_size, ldx      # a row of the buffer x: its bytes; the distance that project takes
    Py_ssize_t coded_size       # bytes of a row of h as step takes it, where it is coded
    Array X, initial_h, initial_c, Y, Y_h, Y_c
    Py_ssize_t *order           # row of the caller's arrays at each place; NULL: as they come
    Py_ssize_t *lengths         # length of the row at each place, falling; NULL: seq_length


cdef struct Block:
    # A row block of one direction as one thread of its team sees it. Buffers are the team's; a thread writes only its
    # own units of them.
    const Call *call
    const Parameters *parameters
    int direction
    bint reverse
    Py_ssize_t first, rows      # the place of its first row; how many
    Py_ssize_t active           # rows that are still running: the first ones
    Py_ssize_t chunk_rows       # rows of X, of all time steps of a chunk, that the buffers hold
    char *x
    char *projected
    char *h
    char *h_next
    char *c
    char *work
    char *coded                 # Ht-1 as step takes it, where the call has a coding
    char *split_x               # with matrices: the chunk's rows of X, and the states of a phase, split
    char *split_states
    char *row                   # one row of X, widened, for the coding to read
    float x_range[2]            # of all X of the block, with a coding
    Py_ssize_t ran              # rows that ran in the last time step: they have a part in the range of h
    int rank, team_size
    Barrier *barrier
    Py_ssize_t u0, u1           # this thread's unit blocks: [u0, u1)


cdef void run_block(Block *b) noexcept nogil
