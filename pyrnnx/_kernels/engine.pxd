"""engine.h for Cython."""

from pyrnnx._kernels.cell cimport Activation, Cell

cdef extern from "engine.h" nogil:
    ctypedef struct Kernels "pyrnnx_kernels":
        const char *isa
        int itemsize
        int lanes
        int formats
        int (*gates)(const Cell *) noexcept nogil
        int (*phases)(const Cell *) noexcept nogil
        size_t (*packed_size)(const Cell *, int recurrent) noexcept nogil
        void (*pack_weights)(const Cell *, int recurrent, const void *source, void *packed) noexcept nogil
        void (*pack_bias)(const Cell *, const void *source, void *packed) noexcept nogil
        void (*pack_units)(const Cell *, Py_ssize_t count, const void *source, void *packed) noexcept nogil
        void (*project)(const Cell *, Py_ssize_t rows, const void *x, Py_ssize_t ldx, void *gates,
                        Py_ssize_t u0, Py_ssize_t u1) noexcept nogil
        void (*step)(const Cell *, int phase, Py_ssize_t rows, void *gates, const void *h_prev, void *c,
                     void *h_next, void *work, Py_ssize_t u0, Py_ssize_t u1) noexcept nogil
        void (*activate)(const Activation *f, double clip, const void *x, void *y, Py_ssize_t count) noexcept nogil
        int whole
        Py_ssize_t max_ldx
