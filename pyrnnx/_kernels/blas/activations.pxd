from cython cimport floating

from pyrnnx._kernels.parameters cimport Activation

cdef void activate(const Activation *function, double clip, const floating *x, floating *y, Py_ssize_t n) noexcept nogil
