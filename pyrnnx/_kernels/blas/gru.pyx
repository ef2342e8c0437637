"""One BLAS time step of the GRU cell for a block of rows."""

from cython cimport floating
from libc.string cimport memcpy

from pyrnnx._kernels.blas.activations cimport activate
from pyrnnx._kernels.blas.gemm cimport gemm
from pyrnnx._kernels.parameters cimport Parameters
from pyrnnx._kernels.tables cimport PYRNNX_LINEAR_BEFORE_RESET


cdef void gru_step(const Parameters *p, Py_ssize_t rows, floating *projected, const floating *h_prev, floating *c,
                   floating *h_next, floating *work) noexcept nogil:
    """Compute Ht from Ht-1.

    zt = f(Xt.Wz^T + Ht-1.Rz^T + Wbz + Rbz)
    rt = f(Xt.Wr^T + Ht-1.Rr^T + Wbr + Rbr)
    ht = g(Xt.Wh^T + (rt (.) Ht-1).Rh^T + Rbh + Wbh)       linear_before_reset = 0
    ht = g(Xt.Wh^T + rt (.) (Ht-1.Rh^T + Rbh) + Wbh)       linear_before_reset = 1
    Ht = (1 - zt) (.) ht + zt (.) Ht-1

    `projected` [rows, 3*H], in the order z, r, h, has all terms without Ht-1. `h_prev`, `h_next` and `work` are
    [rows, H]; `c` is not used.
    """
    cdef:
        bint linear_before_reset = p.variant == PYRNNX_LINEAR_BEFORE_RESET
        Py_ssize_t H = p.hidden_size, row, i
        const floating *R = <const floating *> p.R
        const floating *R_h = R + 2 * H * H
        const floating *Rb_h = <const floating *> p.recurrent_bias
        const floating *h
        floating *z
        floating *r
        floating *g
        floating *w
        floating *out
    gemm(rows, 2 * H, H, h_prev, H, R, H, projected, 3 * H)
    if linear_before_reset:
        for row in range(rows):
            memcpy(work + row * H, Rb_h, H * sizeof(floating))
        gemm(rows, H, H, h_prev, H, R_h, H, work, H)
    for row in range(rows):
        z, h, w = projected + row * 3 * H, h_prev + row * H, work + row * H
        r, g = z + H, z + 2 * H
        activate(&p.functions[0], p.clip, z, z, 2 * H)
        if linear_before_reset:
            for i in range(H):
                g[i] += r[i] * w[i]
        else:
            for i in range(H):
                w[i] = r[i] * h[i]
    if not linear_before_reset:
        gemm(rows, H, H, work, H, R_h, H, projected + 2 * H, 3 * H)
    for row in range(rows):
        z, h, out = projected + row * 3 * H, h_prev + row * H, h_next + row * H
        g = z + 2 * H
        activate(&p.functions[1], p.clip, g, g, H)
        for i in range(H):
            out[i] = (1 - z[i]) * g[i] + z[i] * h[i]
