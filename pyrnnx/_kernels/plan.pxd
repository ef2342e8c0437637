cimport numpy as cnp

from pyrnnx._kernels.parameters cimport Parameters
from pyrnnx._kernels.timeloop cimport Call


cdef enum:
    ALIGNMENT = 64


cdef inline Py_ssize_t round_up(Py_ssize_t n, Py_ssize_t multiple) noexcept nogil:
    return (n + multiple - 1) // multiple * multiple


cdef int run_call(const Call *call, const Parameters *parameters, bint *reverse, int directions, int threads) except -1
cdef bint takes_one_thread(const Call *call, int directions) noexcept nogil
cdef cnp.ndarray checked_lengths(lengths, const Call *call)
cdef cnp.ndarray by_falling_length(cnp.ndarray lengths, Call *call)
