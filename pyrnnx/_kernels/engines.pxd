from pyrnnx._kernels.engine cimport Kernels

cdef const Kernels *find_kernels(str isa, int itemsize) except NULL
