from pyrnnx._kernels.engine cimport Kernels

cdef const Kernels *blas_kernels(int itemsize) noexcept nogil
