"""The engines of this build, by instruction set."""

from pyrnnx._kernels.blas_engine cimport blas_kernels
from pyrnnx._kernels.engine cimport Kernels

cdef extern from "simd/simd.h" nogil:
    const Kernels *simd_kernels "pyrnnx_simd_kernels"(const char *isa, int itemsize)
    int simd_supported "pyrnnx_simd_supported"(const char *isa)

# Fastest first.
SIMD = ("avx512", "avx2", "baseline")


def supported() -> tuple:
    """The instruction sets of the SIMD engine that this build has and this processor can run, fastest first."""
    return tuple(isa for isa in SIMD if simd_supported(isa.encode()))


cdef const Kernels *find_kernels(str isa, int itemsize) except NULL:
    """The kernels of "blas" or of an instruction set, for float32 (4) or float64 (8)."""
    cdef const Kernels *kernels = blas_kernels(itemsize) if isa == "blas" else simd_kernels(isa.encode(), itemsize)
    if kernels == NULL:
        raise ValueError(f"no kernels for {isa}")
    return kernels
