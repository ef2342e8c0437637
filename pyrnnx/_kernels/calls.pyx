"""Preparation of one call of a packed layer: checks of its inputs, the order of its rows, weights split for matrices.

`PackedLayer` uses it with NumPy arrays, the operators of onnxruntime/ with tensors of ONNX Runtime.
"""

from libc.stdlib cimport free, malloc

from pyrnnx._kernels.arrays cimport arranged
from pyrnnx._kernels.blocks cimport Array
from pyrnnx._kernels.engine cimport PYRNNX_MATRIX_ROWS
from pyrnnx._kernels.plan cimport ALIGNMENT, round_up
from pyrnnx._kernels.tables cimport CELL_ROWS
from pyrnnx._kernels.threads cimport load_flag, once_begin, once_done, once_end, store_flag

cdef int batch_invariant = False
num_threads = 1

cdef enum:
    ONE_CALL_ROWS = 1024    # fewest rows, over all time steps, for which splitting W and R pays in one call


def set_batch_invariant(bint value) -> None:
    """Set whether each row's bits equal those of a batch of that row alone, in calls that begin afterwards."""
    store_flag(&batch_invariant, value)


def get_num_threads() -> int:
    """Return the maximum number of threads of a call."""
    return load_flag(&num_threads)


def set_num_threads(int n) -> None:
    """Set the maximum number of threads of calls that begin afterwards."""
    store_flag(&num_threads, n)


cdef bint set_state(const Packed *packed, const Call *call, const Taken *taken, Array *state) noexcept nogil:
    cdef const Axes *axes = &packed.state
    state.data = NULL
    state.t = state.d = state.n = 0
    if taken == NULL:
        return True
    if taken.shape[axes.last] != call.hidden_size:
        return False
    state[0] = arranged(taken, axes)
    return taken.shape[axes.n] == call.batch_size and (axes.d < 0 or taken.shape[axes.d] == packed.directions)


cdef bint set_inputs(const Packed *packed, Call *call, const Taken *X, const Taken *initial_h,
                     const Taken *initial_c) noexcept nogil:
    """Set the call's inputs and sizes; return False if a shape does not match the layer.

    The arrays have the layer's ranks. A state may be NULL.
    """
    if X.shape[packed.X.last] != call.input_size:
        return False
    call.X = arranged(X, &packed.X)
    call.seq_length = 1 if packed.X.t < 0 else X.shape[packed.X.t]
    call.batch_size = X.shape[packed.X.n]
    call.order = call.lengths = NULL
    return (set_state(packed, call, initial_h, &call.initial_h) and set_state(packed, call, initial_c, &call.initial_c)
            and (initial_c == NULL or CELL_ROWS[packed.parameters[0].cell].has_cell_state))


cdef inline bint comes_before(const Py_ssize_t *lengths, Py_ssize_t row, Py_ssize_t other) noexcept nogil:
    return lengths[row] > lengths[other] or (lengths[row] == lengths[other] and row < other)


cdef bint set_lengths(Call *call, Py_ssize_t *lengths, Py_ssize_t *order) noexcept nogil:
    """Set the call's lengths and the order of its rows; return False if a length is not in 0 to seq_length.

    `lengths` has one number for each row of the batch, `order` memory for two.
    """
    cdef:
        Py_ssize_t count = call.batch_size, shortest = call.seq_length, gap = 1, k, j, row
        Py_ssize_t *falling = order + count
    for k in range(count):
        if not 0 <= lengths[k] <= call.seq_length:
            return False
        shortest = min(shortest, lengths[k])
        order[k] = k
    if shortest == call.seq_length:
        return True
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap:  # Shell sort: in place, deterministic because no two rows compare equal
        for k in range(gap, count):
            row, j = order[k], k
            while j >= gap and comes_before(lengths, row, order[j - gap]):
                order[j] = order[j - gap]
                j -= gap
            order[j] = row
        gap //= 3
    for k in range(count):
        falling[k] = lengths[order[k]]
    call.order, call.lengths = order, falling
    return True


cdef void free_split(SplitWeights *weights) noexcept nogil:
    free(weights.memory)
    weights.memory = NULL


cdef Py_ssize_t size_of(const SplitWeights *weights, int direction, int recurrent) noexcept nogil:
    return round_up(weights.matrices.packed_size(&weights.parameters[direction], recurrent), ALIGNMENT)


cdef bint split(SplitWeights *weights) noexcept nogil:
    """Split W and R of all directions; return False if memory is exceeded."""
    cdef:
        Py_ssize_t total = ALIGNMENT
        char *memory
        char *at
        int d, recurrent
    for d in range(weights.directions):
        total += size_of(weights, d, 0) + size_of(weights, d, 1)
    memory = <char *> malloc(total)
    if memory == NULL:
        return False
    at = <char *> round_up(<Py_ssize_t> memory, ALIGNMENT)
    for d in range(weights.directions):
        weights.parameters[d].split_W, weights.parameters[d].split_R = at, at + size_of(weights, d, 0)
        for recurrent in range(2):
            if not weights.matrices.pack_weights(&weights.parameters[d], recurrent, at):
                free(memory)
                weights.impossible = True
                return True
            at += size_of(weights, d, recurrent)
    weights.memory = memory
    return True


cdef Status choose_matrices(Packed *packed, Call *call) noexcept nogil:
    """Choose the time steps in which matrices multiply, by the rows of the whole call.

    The first call that needs them splits the weights; other threads wait meanwhile.
    """
    cdef:
        SplitWeights *weights = &packed.split
        bint done
    call.matrices = NULL
    if load_flag(&batch_invariant) or weights.matrices == NULL or call.batch_size < PYRNNX_MATRIX_ROWS:
        return DONE
    if packed.one_call and call.seq_length < (ONE_CALL_ROWS + call.batch_size - 1) // call.batch_size:
        return DONE
    if not once_done(&weights.once) and once_begin(&weights.once):
        done = split(weights)
        once_end(&weights.once, done)
        if not done:
            return NO_SPLIT_MEMORY
    if not weights.impossible:
        call.matrices = weights.matrices
        call.matrix_steps = call.seq_length if call.lengths == NULL else call.lengths[PYRNNX_MATRIX_ROWS - 1]
    return DONE
