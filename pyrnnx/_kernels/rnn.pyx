"""One time step of the RNN cell, for a block of rows, on BLAS."""

from cython cimport floating

from pyrnnx._kernels.activations cimport activate
from pyrnnx._kernels.blas cimport gemm
from pyrnnx._kernels.cell cimport Cell


cdef void rnn_step(const Cell *cell, Py_ssize_t rows, floating *gates, const floating *h_prev, floating *c,
                   floating *h_next, floating *work) noexcept nogil:
    """Ht = f(Xt.W^T + Ht-1.R^T + Wb + Rb)

    `gates` [rows, H] holds Xt.W^T + Wb + Rb; `h_prev`, `h_next` [rows, H]; `c` and `work` are not used.
    """
    cdef Py_ssize_t H = cell.hidden_size
    gemm(rows, H, H, h_prev, H, <const floating *> cell.R, H, gates, H)
    activate(&cell.f, cell.clip, gates, h_next, rows * H)
