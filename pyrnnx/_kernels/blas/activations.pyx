"""The activation functions on arrays, a fused interface to activations.h."""

from cython cimport floating

from pyrnnx._kernels.parameters cimport Activation

cdef extern from "blas/activations.h" nogil:
    void activate_float(const Activation *function, double clip, const float *x, float *y, Py_ssize_t n)
    void activate_double(const Activation *function, double clip, const double *x, double *y, Py_ssize_t n)


cdef void activate(const Activation *function, double clip, const floating *x, floating *y, Py_ssize_t n) noexcept nogil:
    """Compute y := function(clip(x)) for n elements; y may be x."""
    if floating is float:
        activate_float(function, clip, x, y, n)
    else:
        activate_double(function, clip, x, y, n)
