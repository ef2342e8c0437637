from pyrnnx._kernels.onnxruntime.api cimport OrtApi, OrtCustomOp, OrtKernelContext, OrtKernelInfo, OrtStatus

cdef OrtStatus *create_unfold(const OrtCustomOp *op, const OrtApi *api, const OrtKernelInfo *info,
                              void **result) noexcept nogil
cdef void destroy_unfold(void *kernel) noexcept nogil
cdef OrtStatus *compute_unfold(void *kernel, OrtKernelContext *context) noexcept nogil
