"""The portable engine, on SciPy's BLAS: a step for each cell, weights and buffers in ONNX's order, float32 and float64."""

from cpython.pycapsule cimport PyCapsule_GetPointer
from cython cimport floating
from libc.limits cimport INT_MAX
from libc.math cimport INFINITY
from libc.string cimport memcpy

from pyrnnx._kernels.engine cimport Kernels, Step
from pyrnnx._kernels.engines cimport register_blas
from pyrnnx._kernels.parameters cimport PYRNNX_WEIGHTS_FULL, Activation, Parameters
from pyrnnx._kernels.storage cimport narrow, widen
from pyrnnx._kernels.tables cimport (
    CELL_ROWS,
    PYRNNX_CELL_COUNT,
    PYRNNX_COUPLED_FORGET,
    PYRNNX_COUPLED_INPUT,
    PYRNNX_GRU,
    PYRNNX_LINEAR_BEFORE_RESET,
    PYRNNX_LSTM,
    PYRNNX_RNN,
)

from scipy.linalg import cython_blas

cdef extern from "blas/activations.h" nogil:
    void activate_float(const Activation *function, double clip, const float *x, float *y, Py_ssize_t n)
    void activate_double(const Activation *function, double clip, const double *x, double *y, Py_ssize_t n)

ctypedef void (*Sgemm)(char *, char *, int *, int *, int *, float *, float *, int *, float *, int *, float *, float *,
                       int *) noexcept nogil
ctypedef void (*Dgemm)(char *, char *, int *, int *, int *, double *, double *, int *, double *, int *, double *, double *,
                       int *) noexcept nogil


cdef void *blas_function(str name, str element) except NULL:
    """Return a function of SciPy's BLAS from its capsule; raise an error for another signature.

    A cimport would do the same, but would make SciPy a build requirement.
    """
    number = f"__pyx_t_5scipy_6linalg_11cython_blas_{element} *"
    arguments = ["char *"] * 2 + ["int *"] * 3 + [number] * 2 + ["int *", number, "int *"] + [number] * 2 + ["int *"]
    return PyCapsule_GetPointer(cython_blas.__pyx_capi__[name], f"void ({', '.join(arguments)})".encode())


cdef:
    Sgemm sgemm = <Sgemm> blas_function("sgemm", "s")
    Dgemm dgemm = <Dgemm> blas_function("dgemm", "d")


cdef void gemm(Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const floating *A, Py_ssize_t lda,
               const floating *B, Py_ssize_t ldb, floating *C, Py_ssize_t ldc) noexcept nogil:
    """Compute C := A.B^T + C, row-major: A [m, k], B [n, k], C [m, n], rows `lda`, `ldb`, `ldc` elements apart.

    BLAS is column-major and computes C^T = B.A^T + C^T. Callers check that sizes and leading dimensions fit a C int.
    """
    if m == 0 or n == 0 or k == 0:
        return
    cdef:
        int rows = <int> n, columns = <int> m, inner = <int> k
        int ld_a = <int> lda, ld_b = <int> ldb, ld_c = <int> ldc
        floating unit = 1
        floating *a = <floating *> A
        floating *b = <floating *> B
    if floating is float:
        sgemm(b"T", b"N", &rows, &columns, &inner, &unit, b, &ld_b, a, &ld_a, &unit, C, &ld_c)
    else:
        dgemm(b"T", b"N", &rows, &columns, &inner, &unit, b, &ld_b, a, &ld_a, &unit, C, &ld_c)


cdef void activate(const Activation *function, double clip, const floating *x, floating *y, Py_ssize_t n) noexcept nogil:
    """Compute y := function(clip(x)) for n elements; y may be x."""
    if floating is float:
        activate_float(function, clip, x, y, n)
    else:
        activate_double(function, clip, x, y, n)


cdef void rnn_step(const Parameters *p, Py_ssize_t rows, floating *projected, const floating *h_prev, floating *c,
                   floating *h_next, floating *work) noexcept nogil:
    """Compute Ht = f(Xt.W^T + Ht-1.R^T + Wb + Rb).

    `projected` [rows, H] is Xt.W^T + Wb + Rb; `h_prev` and `h_next` are [rows, H]; `c` and `work` are not used.
    """
    cdef Py_ssize_t H = p.hidden_size
    gemm(rows, H, H, h_prev, H, <const floating *> p.R, H, projected, H)
    activate(&p.functions[0], p.clip, projected, h_next, rows * H)


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


cdef inline void add_peephole(const floating *p, const floating *c, floating *gate, Py_ssize_t H) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(H):
        gate[i] += p[i] * c[i]


cdef inline void complement(const floating *gate, floating *other, Py_ssize_t H) noexcept nogil:
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
            add_peephole(P, C, i, H)
            add_peephole(P + 2 * H, C, f, H)
        activate(&p.functions[1], p.clip, g, g, H)
        if p.variant != PYRNNX_COUPLED_INPUT:
            activate(&p.functions[0], p.clip, i, i, H)
        if p.variant != PYRNNX_COUPLED_FORGET:
            activate(&p.functions[0], p.clip, f, f, H)
        if p.variant == PYRNNX_COUPLED_INPUT:
            complement(f, i, H)
        if p.variant == PYRNNX_COUPLED_FORGET:
            complement(i, f, H)
        for k in range(H):
            C[k] = f[k] * C[k] + i[k] * g[k]
        if P != NULL:
            add_peephole(P + H, C, o, H)
        activate(&p.functions[0], p.clip, o, o, H)
        activate(&p.functions[2], INFINITY, C, out, H)
        for k in range(H):
            out[k] *= o[k]


cdef struct CellStep:
    # A cell's step for each element type.
    void (*of_float)(const Parameters *, Py_ssize_t, float *, const float *, float *, float *, float *) noexcept nogil
    void (*of_double)(const Parameters *, Py_ssize_t, double *, const double *, double *, double *, double *) noexcept nogil


cdef CellStep STEPS[PYRNNX_CELL_COUNT]
STEPS[PYRNNX_RNN] = CellStep(rnn_step[float], rnn_step[double])
STEPS[PYRNNX_GRU] = CellStep(gru_step[float], gru_step[double])
STEPS[PYRNNX_LSTM] = CellStep(lstm_step[float], lstm_step[double])
for _number in range(PYRNNX_CELL_COUNT):
    if STEPS[_number].of_float == NULL or STEPS[_number].of_double == NULL:
        raise ImportError(f"the BLAS engine has no step for {CELL_ROWS[_number].name.decode()}")


cdef int gate_count(const Parameters *p) noexcept nogil:
    return CELL_ROWS[p.cell].gate_count


cdef int phases(const Parameters *p) noexcept nogil:
    return 1


cdef size_t packed_size(const Parameters *p, int recurrent) noexcept nogil:
    return gate_count(p) * p.hidden_size * (p.hidden_size if recurrent else p.input_size) * p.itemsize


cdef void pack_weights(const Parameters *p, int recurrent, const void *source, void *packed) noexcept nogil:
    memcpy(packed, source, packed_size(p, recurrent))


cdef void pack_bias(const Parameters *p, const void *source, void *packed) noexcept nogil:
    memcpy(packed, source, gate_count(p) * p.hidden_size * p.itemsize)


cdef void pack_units(const Parameters *p, Py_ssize_t count, const void *source, void *packed) noexcept nogil:
    memcpy(packed, source, count * p.hidden_size * p.itemsize)


cdef void multiply(const Parameters *p, Py_ssize_t rows, const floating *x, Py_ssize_t ldx, floating *projected) noexcept nogil:
    """Compute projected [rows, G*H] := x.W^T + projected."""
    cdef Py_ssize_t columns = gate_count(p) * p.hidden_size
    gemm(rows, columns, p.input_size, x, ldx, <const floating *> p.W, p.input_size, projected, columns)


cdef void project(const Parameters *p, Py_ssize_t rows, const void *x, Py_ssize_t ldx, void *projected,
                  Py_ssize_t u0, Py_ssize_t u1) noexcept nogil:
    """Compute projected [rows, G*H] := bias + x.W^T."""
    cdef Py_ssize_t size = gate_count(p) * p.hidden_size * p.itemsize, row
    for row in range(rows):
        memcpy(<char *> projected + row * size, p.bias, size)
    if p.itemsize == sizeof(float):
        multiply(p, rows, <const float *> x, ldx, <float *> projected)
    else:
        multiply(p, rows, <const double *> x, ldx, <double *> projected)


cdef void step(const Parameters *p, int phase, const Step *s) noexcept nogil:
    if p.itemsize == sizeof(float):
        STEPS[p.cell].of_float(p, s.rows, <float *> s.projected, <const float *> s.h_prev, <float *> s.c,
                               <float *> s.h_next, <float *> s.work)
    else:
        STEPS[p.cell].of_double(p, s.rows, <double *> s.projected, <const double *> s.h_prev, <double *> s.c,
                                <double *> s.h_next, <double *> s.work)


cdef Kernels kernels(int itemsize):
    cdef Kernels table
    table.itemsize, table.lanes = itemsize, 1
    table.weight_dtypes = 1 << PYRNNX_WEIGHTS_FULL
    table.gate_count, table.phases = gate_count, phases
    table.packed_size, table.pack_weights = packed_size, pack_weights
    table.pack_bias, table.pack_units = pack_bias, pack_units
    table.coding, table.matrices = NULL, NULL
    table.project, table.step = project, step
    table.widen, table.narrow = widen, narrow
    table.steps = NULL
    table.whole = 1  # the order of BLAS's sums depends on the shape of a product
    table.max_ldx = INT_MAX  # leading dimensions of BLAS are C ints
    return table


cdef Kernels FLOAT = kernels(sizeof(float)), DOUBLE = kernels(sizeof(double))
register_blas(&FLOAT, &DOUBLE)
