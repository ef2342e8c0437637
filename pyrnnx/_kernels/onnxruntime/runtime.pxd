cimport numpy as cnp
from libc.stdint cimport int64_t

from pyrnnx._kernels.onnxruntime.api cimport OrtFunctions, OrtKernelContext, OrtKernelInfo, OrtStatus, OrtValue
from pyrnnx._kernels.threads cimport Task

cdef OrtFunctions ort    # loaded when the first session registers the operators


cdef struct Value:
    # A tensor of a session.
    const OrtValue *value   # NULL: absent
    int type
    const int64_t *sizes
    size_t rank
    void *data


cdef target_of(int64_t number)
cdef OrtStatus *failed(error) noexcept
cdef int check(OrtStatus *status) except -1
cdef void ignore(OrtStatus *status) noexcept nogil
cdef str read_text(const OrtKernelInfo *info, const char *name)
cdef int64_t read_number(const OrtKernelInfo *info, const char *name, int64_t default)
cdef OrtStatus *read_value(const OrtValue *source, Value *value) noexcept nogil
cdef cnp.ndarray view_of(const Value *value)
cdef int write_output(OrtKernelContext *context, size_t place, result) except -1
cdef void run_tasks(void *context, int count, Task task, void *argument) noexcept nogil
