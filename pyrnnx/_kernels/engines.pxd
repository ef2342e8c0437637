from pyrnnx._kernels.engine cimport Kernels, Matrices

cdef const Kernels *find_kernels(str isa, int itemsize) except NULL
cdef const Matrices *find_matrices(str isa, int itemsize) except? NULL
cdef void register_blas(const Kernels *for_float, const Kernels *for_double) noexcept
