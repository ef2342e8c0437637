from pyrnnx._kernels.onnxruntime.api cimport (
    OrtApi,
    OrtCustomOp,
    OrtKernelContext,
    OrtKernelInfo,
    OrtShapeInferContext,
    OrtStatus,
)

cdef OrtStatus *create_guard(const OrtCustomOp *op, const OrtApi *api, const OrtKernelInfo *info,
                             void **result) noexcept nogil
cdef void destroy_guard(void *kernel) noexcept nogil
cdef OrtStatus *compute_guard(void *kernel, OrtKernelContext *context) noexcept nogil
cdef OrtStatus *infer_guard(const OrtCustomOp *op, OrtShapeInferContext *context) noexcept nogil
