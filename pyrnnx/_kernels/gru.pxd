from cython cimport floating

from pyrnnx._kernels.cell cimport Cell

cdef void gru_step(const Cell *cell, Py_ssize_t rows, floating *gates, const floating *h_prev, floating *c,
                   floating *h_next, floating *work) noexcept nogil
