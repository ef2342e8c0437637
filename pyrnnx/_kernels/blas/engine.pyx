"""The portable engine's kernels: a step for each cell, weights and buffers in ONNX's order, float32 and float64."""

from cython cimport floating
from libc.limits cimport INT_MAX
from libc.string cimport memcpy

from pyrnnx._kernels.blas.activations cimport activate
from pyrnnx._kernels.blas.gemm cimport gemm
from pyrnnx._kernels.blas.gru cimport gru_step
from pyrnnx._kernels.blas.lstm cimport lstm_step
from pyrnnx._kernels.blas.rnn cimport rnn_step
from pyrnnx._kernels.engine cimport Kernels, Step
from pyrnnx._kernels.engines cimport register_blas
from pyrnnx._kernels.parameters cimport PYRNNX_WEIGHTS_FULL, Parameters
from pyrnnx._kernels.storage cimport narrow, widen
from pyrnnx._kernels.tables cimport CELL_ROWS, PYRNNX_CELL_COUNT, PYRNNX_GRU, PYRNNX_LSTM, PYRNNX_RNN


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


cdef void activate_all(const Parameters *p, const void *x, void *y, Py_ssize_t count) noexcept nogil:
    if p.itemsize == sizeof(float):
        activate(&p.functions[0], p.clip, <const float *> x, <float *> y, count)
    else:
        activate(&p.functions[0], p.clip, <const double *> x, <double *> y, count)


cdef Kernels kernels(int itemsize):
    cdef Kernels table
    table.itemsize, table.lanes = itemsize, 1
    table.weight_dtypes = 1 << PYRNNX_WEIGHTS_FULL
    table.gate_count, table.phases = gate_count, phases
    table.packed_size, table.pack_weights = packed_size, pack_weights
    table.pack_bias, table.pack_units = pack_bias, pack_units
    table.coding, table.matrices = NULL, NULL
    table.project, table.step, table.activate = project, step, activate_all
    table.widen, table.narrow = widen, narrow
    table.steps = NULL
    table.whole = 1  # the order of BLAS's sums depends on the shape of a product
    table.max_ldx = INT_MAX  # leading dimensions of BLAS are C ints
    return table


cdef Kernels FLOAT = kernels(sizeof(float)), DOUBLE = kernels(sizeof(double))
register_blas(&FLOAT, &DOUBLE)
