from pyrnnx._kernels.parameters cimport Parameters
from pyrnnx._kernels.threads cimport Interrupt, Task
from pyrnnx._kernels.timeloop cimport Call


cdef enum:
    ALIGNMENT = 64


cdef inline Py_ssize_t round_up(Py_ssize_t n, Py_ssize_t multiple) noexcept nogil:
    return (n + multiple - 1) // multiple * multiple


cdef struct Pool:
    # A pool of another runtime: it runs task(argument, k) for each k below count, possibly one after the other.
    void *context
    void (*run)(void *context, int count, Task task, void *argument) noexcept nogil


cdef bint run_call(const Call *call, const Parameters *parameters, const bint *reverse, int directions, int threads,
                   const Pool *pool) noexcept nogil
cdef bint is_short(const Call *call, int directions) noexcept nogil
cdef bint keeps_gil(const Call *call, int directions) noexcept nogil
cdef bint can_be_interrupted(const Call *call, int directions) noexcept nogil
cdef bint watch_signals(Interrupt *interrupt) noexcept nogil
