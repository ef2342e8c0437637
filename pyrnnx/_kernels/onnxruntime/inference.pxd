from pyrnnx._kernels.onnxruntime.api cimport OrtCustomOp, OrtShapeInferContext, OrtStatus

cdef OrtStatus *infer_recurrent(const OrtCustomOp *op, OrtShapeInferContext *context) noexcept nogil
cdef OrtStatus *infer_unfold(const OrtCustomOp *op, OrtShapeInferContext *context) noexcept nogil
