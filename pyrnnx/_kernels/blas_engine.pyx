"""The portable engine: any machine, float32 and float64, weights as they come, products by BLAS."""

from cython cimport floating
from libc.limits cimport INT_MAX
from libc.string cimport memcpy

from pyrnnx._kernels.activations cimport activate
from pyrnnx._kernels.blas cimport gemm
from pyrnnx._kernels.cell cimport PYRNNX_GRU, PYRNNX_LSTM, PYRNNX_RNN, PYRNNX_WEIGHTS_FULL, Activation, Cell
from pyrnnx._kernels.engine cimport Kernels
from pyrnnx._kernels.engines cimport register_blas
from pyrnnx._kernels.gru cimport gru_step
from pyrnnx._kernels.lstm cimport lstm_step
from pyrnnx._kernels.rnn cimport rnn_step

ctypedef void (*StepFloat)(const Cell *, Py_ssize_t, float *, const float *, float *, float *, float *) noexcept nogil
ctypedef void (*StepDouble)(const Cell *, Py_ssize_t, double *, const double *, double *, double *, double *) noexcept nogil

cdef:
    int GATES[3]
    StepFloat STEP_FLOAT[3]
    StepDouble STEP_DOUBLE[3]
    Kernels FLOAT, DOUBLE

GATES[PYRNNX_RNN], GATES[PYRNNX_GRU], GATES[PYRNNX_LSTM] = 1, 3, 4
STEP_FLOAT[PYRNNX_RNN], STEP_DOUBLE[PYRNNX_RNN] = rnn_step[float], rnn_step[double]
STEP_FLOAT[PYRNNX_GRU], STEP_DOUBLE[PYRNNX_GRU] = gru_step[float], gru_step[double]
STEP_FLOAT[PYRNNX_LSTM], STEP_DOUBLE[PYRNNX_LSTM] = lstm_step[float], lstm_step[double]


cdef void project(const Cell *cell, Py_ssize_t rows, const floating *x, Py_ssize_t ldx, floating *gates) noexcept nogil:
    """gates [rows, G*H] := bias + x.W^T"""
    cdef Py_ssize_t columns = GATES[cell.cell] * cell.hidden_size, row
    for row in range(rows):
        memcpy(gates + row * columns, cell.bias, columns * sizeof(floating))
    gemm(rows, columns, cell.input_size, x, ldx, <const floating *> cell.W, cell.input_size, gates, columns)


cdef void project_float(const Cell *cell, Py_ssize_t rows, const void *x, Py_ssize_t ldx, void *gates,
                        Py_ssize_t u0, Py_ssize_t u1) noexcept nogil:
    project(cell, rows, <const float *> x, ldx, <float *> gates)


cdef void project_double(const Cell *cell, Py_ssize_t rows, const void *x, Py_ssize_t ldx, void *gates,
                         Py_ssize_t u0, Py_ssize_t u1) noexcept nogil:
    project(cell, rows, <const double *> x, ldx, <double *> gates)


cdef void step_float(const Cell *cell, int phase, Py_ssize_t rows, void *gates, const void *h_prev, void *c,
                     void *h_next, void *work, Py_ssize_t u0, Py_ssize_t u1) noexcept nogil:
    STEP_FLOAT[cell.cell](cell, rows, <float *> gates, <const float *> h_prev, <float *> c, <float *> h_next,
                          <float *> work)


cdef void step_double(const Cell *cell, int phase, Py_ssize_t rows, void *gates, const void *h_prev, void *c,
                      void *h_next, void *work, Py_ssize_t u0, Py_ssize_t u1) noexcept nogil:
    STEP_DOUBLE[cell.cell](cell, rows, <double *> gates, <const double *> h_prev, <double *> c, <double *> h_next,
                           <double *> work)


cdef int gates(const Cell *cell) noexcept nogil:
    return GATES[cell.cell]


cdef int phases(const Cell *cell) noexcept nogil:
    return 1


cdef inline Py_ssize_t weight_count(const Cell *cell, int recurrent) noexcept nogil:
    return GATES[cell.cell] * cell.hidden_size * (cell.hidden_size if recurrent else cell.input_size)


cdef size_t packed_size_float(const Cell *cell, int recurrent) noexcept nogil:
    return weight_count(cell, recurrent) * sizeof(float)


cdef size_t packed_size_double(const Cell *cell, int recurrent) noexcept nogil:
    return weight_count(cell, recurrent) * sizeof(double)


cdef void pack_weights_float(const Cell *cell, int recurrent, const void *source, void *packed) noexcept nogil:
    memcpy(packed, source, packed_size_float(cell, recurrent))


cdef void pack_weights_double(const Cell *cell, int recurrent, const void *source, void *packed) noexcept nogil:
    memcpy(packed, source, packed_size_double(cell, recurrent))


cdef void pack_bias_float(const Cell *cell, const void *source, void *packed) noexcept nogil:
    memcpy(packed, source, GATES[cell.cell] * cell.hidden_size * sizeof(float))


cdef void pack_bias_double(const Cell *cell, const void *source, void *packed) noexcept nogil:
    memcpy(packed, source, GATES[cell.cell] * cell.hidden_size * sizeof(double))


cdef void pack_units_float(const Cell *cell, Py_ssize_t count, const void *source, void *packed) noexcept nogil:
    memcpy(packed, source, count * cell.hidden_size * sizeof(float))


cdef void pack_units_double(const Cell *cell, Py_ssize_t count, const void *source, void *packed) noexcept nogil:
    memcpy(packed, source, count * cell.hidden_size * sizeof(double))


cdef void activate_float(const Activation *f, double clip, const void *x, void *y, Py_ssize_t count) noexcept nogil:
    activate(f, clip, <const float *> x, <float *> y, count)


cdef void activate_double(const Activation *f, double clip, const void *x, void *y, Py_ssize_t count) noexcept nogil:
    activate(f, clip, <const double *> x, <double *> y, count)


FLOAT.isa = DOUBLE.isa = "blas"
FLOAT.lanes = DOUBLE.lanes = 1
FLOAT.formats = DOUBLE.formats = 1 << PYRNNX_WEIGHTS_FULL
FLOAT.whole = DOUBLE.whole = 1  # BLAS sums in an order that depends on the shape of a product
FLOAT.max_ldx = DOUBLE.max_ldx = INT_MAX  # BLAS takes distances as C ints
FLOAT.gates = DOUBLE.gates = gates
FLOAT.phases = DOUBLE.phases = phases
FLOAT.packed_size, DOUBLE.packed_size = packed_size_float, packed_size_double
FLOAT.pack_weights, DOUBLE.pack_weights = pack_weights_float, pack_weights_double
FLOAT.pack_bias, DOUBLE.pack_bias = pack_bias_float, pack_bias_double
FLOAT.pack_units, DOUBLE.pack_units = pack_units_float, pack_units_double
FLOAT.itemsize, DOUBLE.itemsize = sizeof(float), sizeof(double)
FLOAT.project, DOUBLE.project = project_float, project_double
FLOAT.step, DOUBLE.step = step_float, step_double
FLOAT.activate, DOUBLE.activate = activate_float, activate_double


register_blas(&FLOAT, &DOUBLE)
