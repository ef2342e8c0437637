from pyrnnx._kernels.engine cimport Coding

cdef Coding ROUNDING
