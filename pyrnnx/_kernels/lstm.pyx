"""One time step of the LSTM cell, for a block of rows, on BLAS."""

from cython cimport floating
from libc.math cimport INFINITY

from pyrnnx._kernels.activations cimport activate
from pyrnnx._kernels.blas cimport gemm
from pyrnnx._kernels.cell cimport PYRNNX_COUPLED_FORGET, PYRNNX_COUPLED_INPUT, Cell


cdef inline void _add_peephole(const floating *p, const floating *c, floating *gate, Py_ssize_t H) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(H):
        gate[i] += p[i] * c[i]


cdef void lstm_step(const Cell *cell, Py_ssize_t rows, floating *gates, const floating *h_prev, floating *c,
                    floating *h_next, floating *work) noexcept nogil:
    """it = f(Xt.Wi^T + Ht-1.Ri^T + Pi (.) Ct-1 + Wbi + Rbi)       coupled input gate: it = 1 - ft
    ft = f(Xt.Wf^T + Ht-1.Rf^T + Pf (.) Ct-1 + Wbf + Rbf)       coupled forget gate: ft = 1 - it
    ct = g(Xt.Wc^T + Ht-1.Rc^T + Wbc + Rbc)
    Ct = ft (.) Ct-1 + it (.) ct
    ot = f(Xt.Wo^T + Ht-1.Ro^T + Po (.) Ct + Wbo + Rbo)
    Ht = ot (.) h(Ct)

    `gates` [rows, 4*H], in the order i, o, f, c, holds all that does not depend on Ht-1; `h_prev`, `h_next` [rows, H];
    `c` [rows, H] is Ct-1 and becomes Ct; `work` is not used.
    """
    cdef:
        Py_ssize_t H = cell.hidden_size, row, k
        const floating *P = <const floating *> cell.peepholes
        floating *i
        floating *o
        floating *f
        floating *g
        floating *C
        floating *out
    gemm(rows, 4 * H, H, h_prev, H, <const floating *> cell.R, H, gates, 4 * H)
    for row in range(rows):
        i, C, out = gates + row * 4 * H, c + row * H, h_next + row * H
        o, f, g = i + H, i + 2 * H, i + 3 * H
        if P != NULL:
            _add_peephole(P, C, i, H)
            _add_peephole(P + 2 * H, C, f, H)
        activate(&cell.g, cell.clip, g, g, H)
        if cell.coupling == PYRNNX_COUPLED_INPUT:
            activate(&cell.f, cell.clip, f, f, H)
            for k in range(H):
                i[k] = 1 - f[k]
        else:
            activate(&cell.f, cell.clip, i, i, H)
        if cell.coupling == PYRNNX_COUPLED_FORGET:
            for k in range(H):
                f[k] = 1 - i[k]
        elif cell.coupling != PYRNNX_COUPLED_INPUT:
            activate(&cell.f, cell.clip, f, f, H)
        for k in range(H):
            C[k] = f[k] * C[k] + i[k] * g[k]
        if P != NULL:
            _add_peephole(P + H, C, o, H)
        activate(&cell.f, cell.clip, o, o, H)
        activate(&cell.h, INFINITY, C, out, H)
        for k in range(H):
            out[k] *= o[k]
