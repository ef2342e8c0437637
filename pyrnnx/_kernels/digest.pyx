"""A digest of arrays that somebody else may change."""

cimport numpy as cnp
from libc.stdint cimport uint64_t

cnp.import_array()

cdef extern from "digest.h" nogil:
    int digest_has_aes()
    uint64_t digest_of(const char *bytes, size_t size, uint64_t start, int aes)

cdef enum:
    GIL_BYTES = 1 << 16     # fewest bytes worth releasing the GIL: 1 to 8 us

cdef bint has_aes = digest_has_aes()


def digest(tuple arrays not None) -> int:
    """Return a digest of 64 bits of the bytes of C-contiguous arrays; it differs between processors."""
    cdef:
        uint64_t result = 0
        size_t size
        const char *bytes
    for array in arrays:
        if not cnp.PyArray_Check(array) or not cnp.PyArray_IS_C_CONTIGUOUS(array):
            raise ValueError("expected C-contiguous arrays")
        bytes, size = cnp.PyArray_BYTES(array), cnp.PyArray_NBYTES(array)
        if size < GIL_BYTES:
            result = digest_of(bytes, size, result, has_aes)
        else:
            with nogil:
                result = digest_of(bytes, size, result, has_aes)
    return result
