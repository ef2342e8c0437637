"""api.h for Cython."""

from libc.stdint cimport int64_t, uint32_t

cdef extern from "onnxruntime/api.h" nogil:
    enum:
        PYRNNX_ORT_API_VERSION
        PYRNNX_ORT_FAIL
        PYRNNX_ORT_INT
        PYRNNX_ORT_TEXT
        PYRNNX_ORT_REQUIRED
        PYRNNX_ORT_OPTIONAL
        PYRNNX_ORT_VARIADIC
        PYRNNX_ORT_UNDEFINED
        PYRNNX_ORT_FLOAT
        PYRNNX_ORT_INT32
        PYRNNX_ORT_INT64
        PYRNNX_ORT_FLOAT16
        PYRNNX_ORT_DOUBLE
        PYRNNX_ORT_BFLOAT16

    ctypedef struct OrtApi:
        pass
    ctypedef struct OrtStatus:
        pass
    ctypedef struct OrtValue:
        pass
    ctypedef struct OrtSessionOptions:
        pass
    ctypedef struct OrtCustomOpDomain:
        pass
    ctypedef struct OrtKernelInfo:
        pass
    ctypedef struct OrtKernelContext:
        pass
    ctypedef struct OrtShapeInferContext:
        pass
    ctypedef struct OrtOpAttr:
        pass
    ctypedef struct OrtTensorTypeAndShapeInfo:
        pass

    ctypedef struct OrtApiBase:
        const OrtApi *(*GetApi)(uint32_t version) noexcept nogil

    ctypedef struct OrtCustomOp:
        uint32_t version
        const char *(*GetName)(const OrtCustomOp *) noexcept nogil
        const char *(*GetExecutionProviderType)(const OrtCustomOp *) noexcept nogil
        int (*GetInputType)(const OrtCustomOp *, size_t place) noexcept nogil
        size_t (*GetInputTypeCount)(const OrtCustomOp *) noexcept nogil
        int (*GetOutputType)(const OrtCustomOp *, size_t place) noexcept nogil
        size_t (*GetOutputTypeCount)(const OrtCustomOp *) noexcept nogil
        void (*KernelDestroy)(void *kernel) noexcept nogil
        int (*GetInputCharacteristic)(const OrtCustomOp *, size_t place) noexcept nogil
        int (*GetOutputCharacteristic)(const OrtCustomOp *, size_t place) noexcept nogil
        int (*GetInputMemoryType)(const OrtCustomOp *, size_t place) noexcept nogil
        int (*GetVariadicInputMinArity)(const OrtCustomOp *) noexcept nogil
        int (*GetVariadicInputHomogeneity)(const OrtCustomOp *) noexcept nogil
        int (*GetVariadicOutputMinArity)(const OrtCustomOp *) noexcept nogil
        int (*GetVariadicOutputHomogeneity)(const OrtCustomOp *) noexcept nogil
        OrtStatus *(*CreateKernelV2)(const OrtCustomOp *, const OrtApi *, const OrtKernelInfo *,
                                     void **kernel) noexcept nogil
        OrtStatus *(*KernelComputeV2)(void *kernel, OrtKernelContext *) noexcept nogil
        OrtStatus *(*InferOutputShapeFn)(const OrtCustomOp *, OrtShapeInferContext *) noexcept nogil
        int (*GetStartVersion)(const OrtCustomOp *) noexcept nogil
        int (*GetEndVersion)(const OrtCustomOp *) noexcept nogil

    ctypedef struct OrtFunctions "pyrnnx_ort_functions":
        OrtStatus *(*CreateStatus)(int code, const char *message) noexcept nogil
        const char *(*GetErrorMessage)(const OrtStatus *) noexcept nogil
        OrtStatus *(*CreateCustomOpDomain)(const char *name, OrtCustomOpDomain **) noexcept nogil
        OrtStatus *(*CustomOpDomain_Add)(OrtCustomOpDomain *, const OrtCustomOp *) noexcept nogil
        OrtStatus *(*AddCustomOpDomain)(OrtSessionOptions *, OrtCustomOpDomain *) noexcept nogil
        OrtStatus *(*GetTensorMutableData)(OrtValue *, void **data) noexcept nogil
        OrtStatus *(*CreateTensorTypeAndShapeInfo)(OrtTensorTypeAndShapeInfo **) noexcept nogil
        OrtStatus *(*SetTensorElementType)(OrtTensorTypeAndShapeInfo *, int type) noexcept nogil
        OrtStatus *(*SetDimensions)(OrtTensorTypeAndShapeInfo *, const int64_t *sizes, size_t rank) noexcept nogil
        OrtStatus *(*GetTensorElementType)(const OrtTensorTypeAndShapeInfo *, int *type) noexcept nogil
        OrtStatus *(*GetDimensionsCount)(const OrtTensorTypeAndShapeInfo *, size_t *rank) noexcept nogil
        OrtStatus *(*GetDimensions)(const OrtTensorTypeAndShapeInfo *, int64_t *sizes, size_t rank) noexcept nogil
        OrtStatus *(*GetSymbolicDimensions)(const OrtTensorTypeAndShapeInfo *, const char **names,
                                            size_t rank) noexcept nogil
        OrtStatus *(*KernelInfoGetAttribute_int64)(const OrtKernelInfo *, const char *name, int64_t *) noexcept nogil
        OrtStatus *(*KernelInfoGetAttribute_string)(const OrtKernelInfo *, const char *name, char *text,
                                                    size_t *size) noexcept nogil
        OrtStatus *(*KernelContext_GetInputCount)(const OrtKernelContext *, size_t *count) noexcept nogil
        OrtStatus *(*KernelContext_GetOutputCount)(const OrtKernelContext *, size_t *count) noexcept nogil
        OrtStatus *(*KernelContext_GetInput)(const OrtKernelContext *, size_t place, const OrtValue **) noexcept nogil
        OrtStatus *(*KernelContext_GetOutput)(OrtKernelContext *, size_t place, const int64_t *sizes, size_t rank,
                                              OrtValue **) noexcept nogil
        void (*ReleaseStatus)(OrtStatus *) noexcept nogil
        void (*ReleaseTensorTypeAndShapeInfo)(OrtTensorTypeAndShapeInfo *) noexcept nogil
        OrtStatus *(*KernelInfoGetConstantInput_tensor)(const OrtKernelInfo *, size_t place, int *is_constant,
                                                        const OrtValue **) noexcept nogil
        OrtStatus *(*ShapeInferContext_GetInputTypeShape)(const OrtShapeInferContext *, size_t place,
                                                          OrtTensorTypeAndShapeInfo **) noexcept nogil
        OrtStatus *(*ShapeInferContext_GetAttribute)(const OrtShapeInferContext *, const char *name,
                                                     const OrtOpAttr **) noexcept nogil
        OrtStatus *(*ShapeInferContext_SetOutputTypeShape)(const OrtShapeInferContext *, size_t place,
                                                           const OrtTensorTypeAndShapeInfo *) noexcept nogil
        OrtStatus *(*AddSessionConfigEntry)(OrtSessionOptions *, const char *key, const char *value) noexcept nogil
        OrtStatus *(*HasSessionConfigEntry)(const OrtSessionOptions *, const char *key, int *has) noexcept nogil
        OrtStatus *(*SetSymbolicDimensions)(OrtTensorTypeAndShapeInfo *, const char **names, size_t rank) noexcept nogil
        OrtStatus *(*ReadOpAttr)(const OrtOpAttr *, int type, void *data, size_t size, size_t *written) noexcept nogil
        OrtStatus *(*KernelContext_ParallelFor)(const OrtKernelContext *, void (*task)(void *, size_t) noexcept nogil,
                                                size_t total, size_t batches, void *argument) noexcept nogil
        OrtStatus *(*GetTensorElementTypeAndShapeDataReference)(const OrtValue *, int *type, const int64_t **sizes,
                                                                size_t *rank) noexcept nogil

    void load_functions "pyrnnx_ort_load"(OrtFunctions *functions, const OrtApi *api)
