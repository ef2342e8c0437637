"""Preparation of one call of a packed layer, without Python objects and without the GIL."""

from libc.string cimport memcpy

from pyrnnx._kernels.arrays cimport Axes, Taken
from pyrnnx._kernels.blocks cimport Call
from pyrnnx._kernels.engine cimport Matrices
from pyrnnx._kernels.parameters cimport Parameters
from pyrnnx._kernels.threads cimport Once


cdef int num_threads            # the maximum of a call; read and written as a flag of threads/


cdef struct SplitWeights:
    # W and R of all directions for matrices; the fields from `memory` on are initially zero.
    const Matrices *matrices    # NULL: not worthwhile
    Parameters *parameters      # of each direction
    int directions
    void *memory
    bint impossible             # a weight cannot be split, so no call uses matrices
    Once once


cdef struct Packed:
    # Constants of a layer, shared by its calls; only `split` changes, once.
    Parameters parameters[2]    # of each direction
    bint reverse[2]
    int directions
    bint one_call               # whether the layer is called only once
    Axes X, Y, state
    Call call                   # template: its fields before X
    SplitWeights split


cdef enum Status:
    DONE
    NO_SPLIT_MEMORY             # for split weights
    NO_SCRATCH_MEMORY           # for buffers of the call


cdef inline void begin_call(const Packed *packed, Call *call) noexcept nogil:
    """Copy the layer's constants to a call; the compiler would copy the whole template slowly, and twice."""
    memcpy(call, &packed.call, <const char *> &packed.call.X - <const char *> &packed.call)


cdef bint set_inputs(const Packed *packed, Call *call, const Taken *X, const Taken *initial_h,
                     const Taken *initial_c) noexcept nogil
cdef bint set_lengths(Call *call, Py_ssize_t *lengths, Py_ssize_t *order) noexcept nogil
cdef void free_split(SplitWeights *weights) noexcept nogil
cdef Status choose_matrices(Packed *packed, Call *call) noexcept nogil
