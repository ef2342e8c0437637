from pyrnnx._kernels.engine cimport Matrices
from pyrnnx._kernels.parameters cimport Parameters
from pyrnnx._kernels.threads cimport Once


cdef enum Split:
    SPLIT_MADE
    SPLIT_IMPOSSIBLE    # a weight cannot be split, so no call uses matrices
    SPLIT_NO_MEMORY


cdef struct SplitWeights:
    # W and R of all directions for matrices; the fields from `memory` on are initially zero.
    const Matrices *matrices    # NULL: not worthwhile
    Parameters *parameters      # of each direction
    int directions
    void *memory
    bint impossible
    Once once


cdef Split ready_split(SplitWeights *weights) noexcept nogil
cdef void free_split(SplitWeights *weights) noexcept nogil
