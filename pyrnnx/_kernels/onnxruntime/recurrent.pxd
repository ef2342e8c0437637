from pyrnnx._kernels.onnxruntime.api cimport OrtApi, OrtCustomOp, OrtKernelContext, OrtKernelInfo, OrtStatus

cdef enum:
    INPUT_COUNT = 12
    CALL_INPUTS = 4         # X to initial_c

cdef OrtStatus *create_recurrent(const OrtCustomOp *op, const OrtApi *api, const OrtKernelInfo *info,
                                 void **result) noexcept with gil
cdef void destroy_recurrent(void *pointer) noexcept nogil
cdef OrtStatus *compute_recurrent(void *pointer, OrtKernelContext *context) noexcept nogil
