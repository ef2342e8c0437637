"""engine.h for Cython."""

from pyrnnx._kernels.parameters cimport Parameters

cdef extern from "engine.h" nogil:
    ctypedef struct Coding "pyrnnx_coding":
        int (*best_dot)() noexcept nogil
        size_t (*row_size)(const Parameters *, Py_ssize_t depth) noexcept nogil
        void (*widen_range)(Py_ssize_t rows, Py_ssize_t depth, const float *x, Py_ssize_t ldx, float *range) noexcept nogil
        void (*encode)(const Parameters *, Py_ssize_t rows, Py_ssize_t depth, const float *x, Py_ssize_t ldx,
                       const float *range, void *coded, size_t row_size) noexcept nogil

    ctypedef struct Step "pyrnnx_step":
        Py_ssize_t number
        Py_ssize_t rows
        void *projected
        const void *h_prev
        void *c
        void *h_next
        void *work
        Py_ssize_t u0
        Py_ssize_t u1
        int h_is_zero

    enum:
        PYRNNX_MATRIX_ROWS

    ctypedef struct Matrices "pyrnnx_matrices":
        int (*pays)(const Parameters *) noexcept nogil
        size_t (*packed_size)(const Parameters *, int recurrent) noexcept nogil
        int (*pack_weights)(const Parameters *, int recurrent, void *packed) noexcept nogil
        size_t (*split_size)(const Parameters *, Py_ssize_t rows, Py_ssize_t depth) noexcept nogil
        void (*split)(const Parameters *, Py_ssize_t rows, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t depth,
                      const float *x, Py_ssize_t ldx, void *split) noexcept nogil
        void (*project)(const Parameters *, Py_ssize_t rows, const void *x, Py_ssize_t ldx, const void *split,
                        void *projected, Py_ssize_t u0, Py_ssize_t u1) noexcept nogil
        void (*step)(const Parameters *, int phase, const Step *, const void *split) noexcept nogil

    ctypedef struct Kernels "pyrnnx_kernels":
        int itemsize
        int lanes
        int weight_dtypes
        int (*gate_count)(const Parameters *) noexcept nogil
        int (*phases)(const Parameters *) noexcept nogil
        size_t (*packed_size)(const Parameters *, int recurrent) noexcept nogil
        void (*pack_weights)(const Parameters *, int recurrent, const void *source, void *packed) noexcept nogil
        void (*pack_bias)(const Parameters *, const void *source, void *packed) noexcept nogil
        void (*pack_units)(const Parameters *, Py_ssize_t count, const void *source, void *packed) noexcept nogil
        const Coding *coding
        const Matrices *matrices
        void (*project)(const Parameters *, Py_ssize_t rows, const void *x, Py_ssize_t ldx, void *projected,
                        Py_ssize_t u0, Py_ssize_t u1) noexcept nogil
        void (*step)(const Parameters *, int phase, const Step *) noexcept nogil
        void (*widen)(int storage, size_t itemsize, const char *source, void *row, Py_ssize_t n) noexcept nogil
        void (*narrow)(int storage, size_t itemsize, const void *row, char *target, Py_ssize_t n) noexcept nogil
        int (*steps)(const Parameters *, Py_ssize_t count, void *projected, void *h, void *c, void *y,
                     Py_ssize_t y_time) noexcept nogil
        int whole
        Py_ssize_t max_ldx
