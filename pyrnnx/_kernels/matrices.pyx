"""Split weights of a layer for the processor's matrices, computed when a call first needs them."""

from libc.stdlib cimport free, malloc

from pyrnnx._kernels.plan cimport ALIGNMENT, round_up
from pyrnnx._kernels.threads cimport once_begin, once_done, once_end


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


cdef Split ready_split(SplitWeights *weights) noexcept nogil:
    """Split the weights if no earlier call has; other threads wait meanwhile."""
    cdef bint done
    if not once_done(&weights.once) and once_begin(&weights.once):
        done = split(weights)
        once_end(&weights.once, done)
        if not done:
            return SPLIT_NO_MEMORY
    return SPLIT_IMPOSSIBLE if weights.impossible else SPLIT_MADE
