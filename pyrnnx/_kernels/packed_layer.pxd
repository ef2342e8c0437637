cimport numpy as cnp

from pyrnnx._kernels.blocks cimport Call
from pyrnnx._kernels.calls cimport Packed, Status
from pyrnnx._kernels.engine cimport Kernels
from pyrnnx._kernels.arrays cimport Axes
from pyrnnx._kernels.parameters cimport Parameters


cdef class PackedLayer:
    cdef:
        Packed packed
        int itemsize, storage
        const Kernels *kernels
        cnp.dtype dtype, kernel_dtype
        list memory                 # of the packed weights

    cdef const void *checked_data(self, str name, a, tuple shape, int direction, dtype=*) except NULL
    cdef void prepare_call(self, bint coded)
    cdef void *allocate(self, Py_ssize_t size)
    cdef Py_ssize_t padded(self, const Parameters *p)
    cdef const void *pack_weights(self, const Parameters *p, int recurrent, const void *source)
    cdef const void *pack_codes(self, const Parameters *p, int recurrent, str name, codes, tuple shape, int direction,
                                scale, zero_point) except NULL
    cdef const void *pack_bias(self, const Parameters *p, const void *source)
    cdef const void *pack_units(self, const Parameters *p, Py_ssize_t count, const void *source)
    cdef Status run_prepared(self, Call *call, int threads) noexcept nogil
    cdef int compute(self, Call *call, int threads) except -1
    cdef cnp.ndarray result(self, out, const Axes *axes, const Call *call, cnp.dtype dtype)
    cdef tuple set_outputs(self, Call *call, tuple out, cnp.dtype state_dtype)
    cdef bint is_like_state(self, cnp.ndarray a, cnp.ndarray state)
    cdef bint read_inputs(self, Call *call, X, initial_h, initial_c, cnp.dtype state_dtype)
    cdef cnp.ndarray read_lengths(self, lengths, Call *call)
    cpdef tuple run(self, int threads, X, lengths, initial_h, initial_c, bint wide_states=*, tuple out=*)
    cpdef cnp.ndarray push(self, X, cnp.ndarray h, cnp.ndarray c, out=*, cnp.ndarray h_next=*, cnp.ndarray c_next=*)
