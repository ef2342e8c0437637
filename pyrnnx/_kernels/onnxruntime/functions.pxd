from pyrnnx._kernels.onnxruntime.api cimport (
    OrtApi,
    OrtCustomOp,
    OrtKernelContext,
    OrtKernelInfo,
    OrtShapeInferContext,
    OrtStatus,
)

cdef OrtStatus *create_python(const OrtCustomOp *op, const OrtApi *api, const OrtKernelInfo *info,
                              void **result) noexcept with gil
cdef void destroy_python(void *function) noexcept nogil
cdef OrtStatus *compute_python(void *function, OrtKernelContext *context) noexcept with gil
cdef OrtStatus *infer_python(const OrtCustomOp *op, OrtShapeInferContext *context) noexcept nogil
