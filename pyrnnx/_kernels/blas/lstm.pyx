"""One BLAS time step of the LSTM cell for a block of rows."""

from cython cimport floating
from libc.math cimport INFINITY

from pyrnnx._kernels.blas.activations cimport activate
from pyrnnx._kernels.blas.gemm cimport gemm
from pyrnnx._kernels.parameters cimport Parameters
from pyrnnx._kernels.tables cimport PYRNNX_COUPLED_FORGET, PYRNNX_COUPLED_INPUT


cdef inline void _add_peephole(const floating *p, const floating *c, floating *gate, Py_ssize_t H) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(H):
        gate[i] += p[i] * c[i]


cdef inline void _complement(const floating *gate, floating *other, Py_ssize_t H) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(H):
        other[i] = 1 - gate[i]


cdef void lstm_step(const Parameters *p, Py_ssize_t rows, floating *projected, const floating *h_prev, floating *c,
                    floating *h_next, floating *work) noexcept nogil:
    """Compute Ht and Ct from Ht-1 and Ct-1.

    it = f(Xt.Wi^T + Ht-1.Ri^T + Pi (.) Ct-1 + Wbi + Rbi)       coupled input gate: it = 1 - ft
    ft = f(Xt.Wf^T + Ht-1.Rf^T + Pf (.) Ct-1 + Wbf + Rbf)       coupled forget gate: ft = 1 - it
    ct = g(Xt.Wc^T + Ht-1.Rc^T + Wbc + Rbc)
    Ct = ft (.) Ct-1 + it (.) ct
    ot = f(Xt.Wo^T + Ht-1.Ro^T + Po (.) Ct + Wbo + Rbo)
    Ht = ot (.) h(Ct)

    `projected` [rows, 4*H], in the order i, o, f, c, has all terms without Ht-1. `h_prev` and `h_next` are [rows, H];
    `c` [rows, H] is Ct-1 and becomes Ct; `work` is not used.
    """
    cdef:
        Py_ssize_t H = p.hidden_size, row, k
        const floating *P = <const floating *> p.peepholes
        floating *i
        floating *o
        floating *f
        floating *g
        floating *C
        floating *out
    gemm(rows, 4 * H, H, h_prev, H, <const floating *> p.R, H, projected, 4 * H)
    for row in range(rows):
        i, C, out = projected + row * 4 * H, c + row * H, h_next + row * H
        o, f, g = i + H, i + 2 * H, i + 3 * H
        if P != NULL:
            _add_peephole(P, C, i, H)
            _add_peephole(P + 2 * H, C, f, H)
        activate(&p.functions[1], p.clip, g, g, H)
        if p.variant != PYRNNX_COUPLED_INPUT:
            activate(&p.functions[0], p.clip, i, i, H)
        if p.variant != PYRNNX_COUPLED_FORGET:
            activate(&p.functions[0], p.clip, f, f, H)
        if p.variant == PYRNNX_COUPLED_INPUT:
            _complement(f, i, H)
        if p.variant == PYRNNX_COUPLED_FORGET:
            _complement(i, f, H)
        for k in range(H):
            C[k] = f[k] * C[k] + i[k] * g[k]
        if P != NULL:
            _add_peephole(P + H, C, o, H)
        activate(&p.functions[0], p.clip, o, o, H)
        activate(&p.functions[2], INFINITY, C, out, H)
        for k in range(H):
            out[k] *= o[k]
