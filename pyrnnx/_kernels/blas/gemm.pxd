from cython cimport floating

cdef void gemm(Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const floating *A, Py_ssize_t lda,
               const floating *B, Py_ssize_t ldb, floating *C, Py_ssize_t ldc) noexcept nogil
