"""The only wrapper of SciPy's BLAS: row-major operands, no copies."""

cimport numpy as cnp
from cpython.pycapsule cimport PyCapsule_GetPointer
from cython cimport floating
from libc.limits cimport INT_MAX

from pyrnnx._kernels.assertions cimport debug_assert

from scipy.linalg import cython_blas

cnp.import_array()

ctypedef void (*Sgemm)(char *, char *, int *, int *, int *, float *, float *, int *, float *, int *, float *, float *,
                       int *) noexcept nogil
ctypedef void (*Dgemm)(char *, char *, int *, int *, int *, double *, double *, int *, double *, int *, double *, double *,
                       int *) noexcept nogil


cdef void *blas_function(str name, str element) except NULL:
    """Return a function of SciPy's BLAS from its capsule; raise an error for another signature.

    A cimport would do the same, but would make SciPy a build requirement.
    """
    number = f"__pyx_t_5scipy_6linalg_11cython_blas_{element} *"
    arguments = ["char *"] * 2 + ["int *"] * 3 + [number] * 2 + ["int *", number, "int *"] + [number] * 2 + ["int *"]
    return PyCapsule_GetPointer(cython_blas.__pyx_capi__[name], f"void ({', '.join(arguments)})".encode())


cdef:
    Sgemm sgemm = <Sgemm> blas_function("sgemm", "s")
    Dgemm dgemm = <Dgemm> blas_function("dgemm", "d")


cdef inline bint sizes_are_valid(Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, Py_ssize_t lda, Py_ssize_t ldb,
                                 Py_ssize_t ldc) noexcept nogil:
    """Return whether sizes fit a C int and rows do not overlap."""
    return 0 <= max(m, n, k, lda, ldb, ldc) <= INT_MAX and min(m, n, k) >= 0 and lda >= k and ldb >= k and ldc >= n


cdef void gemm(Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const floating *A, Py_ssize_t lda,
               const floating *B, Py_ssize_t ldb, floating *C, Py_ssize_t ldc) noexcept nogil:
    """Compute C := A.B^T + C, row-major: A [m, k], B [n, k], C [m, n], rows `lda`, `ldb`, `ldc` elements apart.

    BLAS is column-major and computes C^T = B.A^T + C^T. Callers check that sizes and leading dimensions fit a C int.
    """
    debug_assert(sizes_are_valid(m, n, k, lda, ldb, ldc))
    if m == 0 or n == 0 or k == 0:
        return
    cdef:
        int rows = <int> n, columns = <int> m, inner = <int> k
        int ld_a = <int> lda, ld_b = <int> ldb, ld_c = <int> ldc
        floating unit = 1
        floating *a = <floating *> A
        floating *b = <floating *> B
    if floating is float:
        sgemm(b"T", b"N", &rows, &columns, &inner, &unit, b, &ld_b, a, &ld_a, &unit, C, &ld_c)
    else:
        dgemm(b"T", b"N", &rows, &columns, &inner, &unit, b, &ld_b, a, &ld_a, &unit, C, &ld_c)


def gemm_accumulate(cnp.ndarray A not None, cnp.ndarray B not None, cnp.ndarray C not None):
    """Compute C := A.B^T + C on arrays with `gemm`, for tests."""
    cdef:
        cnp.ndarray array
        Py_ssize_t m, n, k
    for array in (A, B, C):
        # Not typed memory views: those of each float type take most of a module's time to compile.
        if array.dtype != C.dtype or array.dtype.char not in "fd" or not array.dtype.isnative or array.ndim != 2:
            raise ValueError("expected arrays of the same dtype, float32 or float64, with two axes")
        if not cnp.PyArray_IS_C_CONTIGUOUS(array):
            raise ValueError("expected C-contiguous arrays")
    m, n, k = cnp.PyArray_DIM(A, 0), cnp.PyArray_DIM(B, 0), cnp.PyArray_DIM(A, 1)
    if cnp.PyArray_DIM(B, 1) != k or cnp.PyArray_DIM(C, 0) != m or cnp.PyArray_DIM(C, 1) != n:
        raise ValueError("expected A [m, k], B [n, k], C [m, n]")
    if max(m, n, k) > INT_MAX or not cnp.PyArray_ISWRITEABLE(C):
        raise ValueError("expected sizes that fit a C int, and a writable C")
    if cnp.PyArray_ITEMSIZE(C) == sizeof(float):
        gemm(m, n, k, <const float *> cnp.PyArray_DATA(A), k, <const float *> cnp.PyArray_DATA(B), k,
             <float *> cnp.PyArray_DATA(C), n)
    else:
        gemm(m, n, k, <const double *> cnp.PyArray_DATA(A), k, <const double *> cnp.PyArray_DATA(B), k,
             <double *> cnp.PyArray_DATA(C), n)
