from pyrnnx._kernels.onnxruntime.api cimport OrtCustomOp, OrtShapeInferContext, OrtStatus

cdef OrtStatus *infer_recurrent(const OrtCustomOp *op, OrtShapeInferContext *context) noexcept nogil

cdef enum:
    NAME_SIZE = 40    # of "pyrnnx_size_" and a number

cdef void name_size(char *name) noexcept nogil
cdef OrtStatus *infer_rank(OrtShapeInferContext *context, size_t place, int rank) noexcept nogil
