"""The 11 activation functions of the ONNX RNN, GRU and LSTM texts, one formula each.

Every formula holds over the whole range of its dtype: no overflow on the way to a finite result, relative accuracy
kept near zero, and NaN stays NaN (comparisons are written so that NaN falls through to the argument).
"""

from cython cimport floating
from libc.math cimport exp, expm1, fabs, isinf, log1p, tanh

from pyrnnx._kernels cimport cell as kinds
from pyrnnx._kernels.cell cimport Activation

cdef extern from "<math.h>" nogil:
    float expf(float)
    float expm1f(float)
    float fabsf(float)
    float log1pf(float)
    float tanhf(float)


cdef inline floating _tanh(floating x) noexcept nogil:
    return tanhf(x) if floating is float else tanh(x)


cdef inline floating _exp(floating x) noexcept nogil:
    return expf(x) if floating is float else exp(x)


cdef inline floating _expm1(floating x) noexcept nogil:
    return expm1f(x) if floating is float else expm1(x)


cdef inline floating _log1p(floating x) noexcept nogil:
    return log1pf(x) if floating is float else log1p(x)


cdef inline floating _abs(floating x) noexcept nogil:
    return fabsf(x) if floating is float else fabs(x)


cdef inline floating relu(floating x) noexcept nogil:
    return 0 if x < 0 else x


cdef inline floating sigmoid(floating x) noexcept nogil:
    cdef floating e = _exp(-_abs(x))  # in [0, 1]: neither tail overflows
    return (e if x < 0 else 1) / (1 + e)


cdef inline floating leaky_relu(floating x, floating alpha) noexcept nogil:
    return x if x >= 0 else alpha * x


cdef inline floating thresholded_relu(floating x, floating alpha) noexcept nogil:
    return 0 if x < alpha else x


cdef inline floating hard_sigmoid(floating x, floating alpha, floating beta) noexcept nogil:
    cdef floating y = alpha * x + beta
    return 0 if y < 0 else (1 if y > 1 else y)


cdef inline floating elu(floating x, floating alpha) noexcept nogil:
    return x if x >= 0 else alpha * _expm1(x)


cdef inline floating softsign(floating x) noexcept nogil:
    if isinf(x):
        return 1 if x > 0 else -1  # the limit, where inf/inf would be NaN
    return x / (1 + _abs(x))


cdef inline floating softplus(floating x) noexcept nogil:
    return (0 if x < 0 else x) + _log1p(_exp(-_abs(x)))


cdef inline floating clipped(floating x, floating bound) noexcept nogil:
    return bound if x > bound else (-bound if x < -bound else x)


cdef inline floating evaluate(int kind, floating x, floating alpha, floating beta) noexcept nogil:
    if kind == kinds.PYRNNX_SIGMOID:
        return sigmoid(x)
    if kind == kinds.PYRNNX_TANH:
        return _tanh(x)
    if kind == kinds.PYRNNX_RELU:
        return relu(x)
    if kind == kinds.PYRNNX_AFFINE:
        return alpha * x + beta
    if kind == kinds.PYRNNX_LEAKY_RELU:
        return leaky_relu(x, alpha)
    if kind == kinds.PYRNNX_THRESHOLDED_RELU:
        return thresholded_relu(x, alpha)
    if kind == kinds.PYRNNX_SCALED_TANH:
        return alpha * _tanh(beta * x)
    if kind == kinds.PYRNNX_HARD_SIGMOID:
        return hard_sigmoid(x, alpha, beta)
    if kind == kinds.PYRNNX_ELU:
        return elu(x, alpha)
    if kind == kinds.PYRNNX_SOFTSIGN:
        return softsign(x)
    return softplus(x)


cdef void activate(const Activation *function, double clip, const floating *x, floating *y, Py_ssize_t n) noexcept nogil:
    """y := function(clip(x)) for n elements; y may be x."""
    cdef:
        int kind = function.kind
        floating alpha = <floating> function.alpha
        floating beta = <floating> function.beta
        floating bound = <floating> clip
        Py_ssize_t i
    for i in range(n):
        y[i] = evaluate(kind, clipped(x[i], bound), alpha, beta)
