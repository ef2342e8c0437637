from cython cimport floating

from pyrnnx._kernels.parameters cimport Parameters

cdef void rnn_step(const Parameters *p, Py_ssize_t rows, floating *projected, const floating *h_prev, floating *c,
                   floating *h_next, floating *work) noexcept nogil
