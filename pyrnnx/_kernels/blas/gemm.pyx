"""SciPy's BLAS, wrapped once: row-major operands in, no copies."""

from cython cimport floating
from libc.limits cimport INT_MAX
from scipy.linalg.cython_blas cimport dgemm, sgemm

from pyrnnx._kernels.assertions cimport debug_assert


cdef inline bint holds_product(Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, Py_ssize_t lda, Py_ssize_t ldb,
                               Py_ssize_t ldc) noexcept nogil:
    """Whether sizes fit a C int and rows do not overlap."""
    return 0 <= max(m, n, k, lda, ldb, ldc) <= INT_MAX and min(m, n, k) >= 0 and lda >= k and ldb >= k and ldc >= n


cdef void gemm(Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const floating *A, Py_ssize_t lda,
               const floating *B, Py_ssize_t ldb, floating *C, Py_ssize_t ldc) noexcept nogil:
    """C := A.B^T + C, row-major: A [m, k], B [n, k], C [m, n], rows `lda`, `ldb`, `ldc` elements apart.

    BLAS reads columns: row-major C is its C^T = B.A^T + C^T. Sizes and leading dimensions fit a C int (checked before).
    """
    debug_assert(holds_product(m, n, k, lda, ldb, ldc))
    if m == 0 or n == 0 or k == 0:
        return
    cdef:
        int rows = <int> n, columns = <int> m, inner = <int> k
        int ld_a = <int> lda, ld_b = <int> ldb, ld_c = <int> ldc
        floating one = 1
        floating *a = <floating *> A
        floating *b = <floating *> B
    if floating is float:
        sgemm(b"T", b"N", &rows, &columns, &inner, &one, b, &ld_b, a, &ld_a, &one, C, &ld_c)
    else:
        dgemm(b"T", b"N", &rows, &columns, &inner, &one, b, &ld_b, a, &ld_a, &one, C, &ld_c)


def gemm_accumulate(const floating[:, ::1] A not None, const floating[:, ::1] B not None,
                    floating[:, ::1] C not None):
    """C := A.B^T + C on arrays; the kernel's `gemm` as Python sees it, for its tests."""
    if A.shape[1] != B.shape[1] or C.shape[0] != A.shape[0] or C.shape[1] != B.shape[0]:
        raise ValueError("expected A [m, k], B [n, k], C [m, n]")
    if max(A.shape[0], A.shape[1], B.shape[0]) > INT_MAX:
        raise ValueError("expected sizes that fit a C int")
    if A.shape[0] and A.shape[1] and B.shape[0]:
        gemm(A.shape[0], B.shape[0], A.shape[1], &A[0, 0], A.shape[1], &B[0, 0], B.shape[1], &C[0, 0], C.shape[1])
