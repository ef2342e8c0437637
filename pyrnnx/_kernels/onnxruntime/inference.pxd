from libc.stdint cimport int64_t

from pyrnnx._kernels.onnxruntime.api cimport OrtCustomOp, OrtShapeInferContext, OrtStatus

cdef OrtStatus *infer_recurrent(const OrtCustomOp *op, OrtShapeInferContext *context) noexcept nogil

cdef enum:
    LARGEST_RANK = 25

cdef OrtStatus *infer_rank(OrtShapeInferContext *context, size_t place, int rank,
                           const int64_t *known) noexcept nogil
