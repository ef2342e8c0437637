"""One BLAS time step of the RNN cell for a block of rows."""

from cython cimport floating

from pyrnnx._kernels.blas.activations cimport activate
from pyrnnx._kernels.blas.gemm cimport gemm
from pyrnnx._kernels.parameters cimport Parameters


cdef void rnn_step(const Parameters *p, Py_ssize_t rows, floating *projected, const floating *h_prev, floating *c,
                   floating *h_next, floating *work) noexcept nogil:
    """Compute Ht = f(Xt.W^T + Ht-1.R^T + Wb + Rb).

    `projected` [rows, H] is Xt.W^T + Wb + Rb; `h_prev` and `h_next` are [rows, H]; `c` and `work` are not used.
    """
    cdef Py_ssize_t H = p.hidden_size
    gemm(rows, H, H, h_prev, H, <const floating *> p.R, H, projected, H)
    activate(&p.functions[0], p.clip, projected, h_next, rows * H)
