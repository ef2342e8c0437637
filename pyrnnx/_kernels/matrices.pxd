from pyrnnx._kernels.engine cimport Matrices
from pyrnnx._kernels.parameters cimport Parameters


cdef enum State:
    WANTED
    MADE
    IMPOSSIBLE      # some weight cannot be split: then no call takes matrices


cdef class SplitWeights:
    cdef:
        const Matrices *matrices
        Parameters *parameters      # of each direction
        int directions
        void *memory
        void *lock                  # of what follows but `seen`; whoever waits for it has let go of the GIL
        long process                # whose lock it is
        State state, seen           # seen: the same, as known to those who have the GIL

    cdef Py_ssize_t size(self, int direction, int recurrent) noexcept nogil
    cdef bint split(self) noexcept nogil
    cdef bint ready(self) except -1
    cdef bint make(self) except -1


cdef SplitWeights split_weights(const Matrices *matrices, Parameters *parameters, int directions)
