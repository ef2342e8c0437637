"""engine.h for Cython."""

from pyrnnx._kernels.cell cimport Cell

cdef extern from "engine.h" nogil:
    ctypedef struct Kernels "pyrnnx_kernels":
        const char *isa
        int itemsize
        int lanes
        void (*project)(const Cell *cell, Py_ssize_t rows, const void *x, Py_ssize_t ldx, void *gates,
                        Py_ssize_t u0, Py_ssize_t u1) noexcept nogil
        int (*phases)(const Cell *cell) noexcept nogil
        void (*step)(const Cell *cell, int phase, Py_ssize_t rows, void *gates, const void *h_prev, void *c,
                     void *h_next, void *work, Py_ssize_t u0, Py_ssize_t u1) noexcept nogil
