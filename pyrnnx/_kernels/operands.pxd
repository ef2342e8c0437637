"""Operands of products, for the time loop."""

from pyrnnx._kernels.blocks cimport Block
from pyrnnx._kernels.engine cimport Coding

cdef Coding ROUNDING


cdef Py_ssize_t plan_chunk(const Block *b, Py_ssize_t step, Py_ssize_t *total) noexcept nogil
cdef const char *gather(Block *b, Py_ssize_t step, Py_ssize_t steps, Py_ssize_t total, Py_ssize_t *ldx) noexcept nogil
cdef void widen_x_range(Block *b) noexcept nogil
cdef void encode_states(Block *b) noexcept nogil
cdef bint split(Block *b, Py_ssize_t rows, Py_ssize_t depth, const char *x, Py_ssize_t ldx, char *target) noexcept nogil
