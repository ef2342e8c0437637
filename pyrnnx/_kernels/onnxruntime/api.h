/* The part of ONNX Runtime's C API (onnxruntime_c_api.h) that the custom operators use: the places of functions in
   OrtApi, and OrtCustomOp up to its last field that is set.

   Both structs only ever grow at their ends, so that a place is the same in every version from the one that introduced
   it. */
#ifndef PYRNNX_ONNXRUNTIME_API_H
#define PYRNNX_ONNXRUNTIME_API_H

#include <stddef.h>
#include <stdint.h>

enum { PYRNNX_ORT_API_VERSION = 24 }; /* the first that has all functions below; ONNX Runtime 1.24 */

enum { PYRNNX_ORT_FAIL = 1 };                                           /* OrtErrorCode */
enum { PYRNNX_ORT_INT = 1, PYRNNX_ORT_TEXT = 5 };                       /* OrtOpAttrType */
enum { PYRNNX_ORT_REQUIRED, PYRNNX_ORT_OPTIONAL, PYRNNX_ORT_VARIADIC }; /* OrtCustomOpInputOutputCharacteristic */

/* ONNXTensorElementDataType: TensorProto.DataType's numbers, but for the three from 14 on, which are as below. */
enum {
    PYRNNX_ORT_UNDEFINED = 0,
    PYRNNX_ORT_FLOAT = 1,
    PYRNNX_ORT_INT32 = 6,
    PYRNNX_ORT_INT64 = 7,
    PYRNNX_ORT_FLOAT16 = 10,
    PYRNNX_ORT_DOUBLE = 11,
    PYRNNX_ORT_BFLOAT16 = 16
};

typedef struct OrtApi OrtApi;
typedef struct OrtStatus OrtStatus;
typedef struct OrtValue OrtValue;
typedef struct OrtSessionOptions OrtSessionOptions;
typedef struct OrtCustomOpDomain OrtCustomOpDomain;
typedef struct OrtKernelInfo OrtKernelInfo;
typedef struct OrtKernelContext OrtKernelContext;
typedef struct OrtShapeInferContext OrtShapeInferContext;
typedef struct OrtOpAttr OrtOpAttr;
typedef struct OrtTensorTypeAndShapeInfo OrtTensorTypeAndShapeInfo;

typedef struct {
    const OrtApi *(*GetApi)(uint32_t version);
} OrtApiBase;

typedef struct OrtCustomOp OrtCustomOp;
struct OrtCustomOp {
    uint32_t version;
    void *(*CreateKernel)(const OrtCustomOp *, const OrtApi *, const OrtKernelInfo *);
    const char *(*GetName)(const OrtCustomOp *);
    const char *(*GetExecutionProviderType)(const OrtCustomOp *);
    int (*GetInputType)(const OrtCustomOp *, size_t place);
    size_t (*GetInputTypeCount)(const OrtCustomOp *);
    int (*GetOutputType)(const OrtCustomOp *, size_t place);
    size_t (*GetOutputTypeCount)(const OrtCustomOp *);
    void (*KernelCompute)(void *kernel, OrtKernelContext *);
    void (*KernelDestroy)(void *kernel);
    int (*GetInputCharacteristic)(const OrtCustomOp *, size_t place);
    int (*GetOutputCharacteristic)(const OrtCustomOp *, size_t place);
    int (*GetInputMemoryType)(const OrtCustomOp *, size_t place);
    int (*GetVariadicInputMinArity)(const OrtCustomOp *);
    int (*GetVariadicInputHomogeneity)(const OrtCustomOp *);
    int (*GetVariadicOutputMinArity)(const OrtCustomOp *);
    int (*GetVariadicOutputHomogeneity)(const OrtCustomOp *);
    OrtStatus *(*CreateKernelV2)(const OrtCustomOp *, const OrtApi *, const OrtKernelInfo *, void **kernel);
    OrtStatus *(*KernelComputeV2)(void *kernel, OrtKernelContext *);
    OrtStatus *(*InferOutputShapeFn)(const OrtCustomOp *, OrtShapeInferContext *);
    int (*GetStartVersion)(const OrtCustomOp *);
    int (*GetEndVersion)(const OrtCustomOp *);
    size_t (*GetMayInplace)(int **input, int **output);
    void (*ReleaseMayInplace)(int *input, int *output);
    size_t (*GetAliasMap)(int **input, int **output);
    void (*ReleaseAliasMap)(int *input, int *output);
};

/* FUNCTION(place in OrtApi, result, name, arguments) */
#define PYRNNX_ORT_FUNCTIONS(FUNCTION) \
    FUNCTION(0, OrtStatus *, CreateStatus, (int code, const char *message)) \
    FUNCTION(2, const char *, GetErrorMessage, (const OrtStatus *)) \
    FUNCTION(26, OrtStatus *, CreateCustomOpDomain, (const char *name, OrtCustomOpDomain **)) \
    FUNCTION(27, OrtStatus *, CustomOpDomain_Add, (OrtCustomOpDomain *, const OrtCustomOp *)) \
    FUNCTION(28, OrtStatus *, AddCustomOpDomain, (OrtSessionOptions *, OrtCustomOpDomain *)) \
    FUNCTION(51, OrtStatus *, GetTensorMutableData, (OrtValue *, void **data)) \
    FUNCTION(57, OrtStatus *, CreateTensorTypeAndShapeInfo, (OrtTensorTypeAndShapeInfo **)) \
    FUNCTION(58, OrtStatus *, SetTensorElementType, (OrtTensorTypeAndShapeInfo *, int type)) \
    FUNCTION(59, OrtStatus *, SetDimensions, (OrtTensorTypeAndShapeInfo *, const int64_t *sizes, size_t rank)) \
    FUNCTION(60, OrtStatus *, GetTensorElementType, (const OrtTensorTypeAndShapeInfo *, int *type)) \
    FUNCTION(61, OrtStatus *, GetDimensionsCount, (const OrtTensorTypeAndShapeInfo *, size_t *rank)) \
    FUNCTION(62, OrtStatus *, GetDimensions, (const OrtTensorTypeAndShapeInfo *, int64_t *sizes, size_t rank)) \
    FUNCTION(63, OrtStatus *, GetSymbolicDimensions, \
             (const OrtTensorTypeAndShapeInfo *, const char **names, size_t rank)) \
    FUNCTION(86, OrtStatus *, KernelInfoGetAttribute_int64, (const OrtKernelInfo *, const char *name, int64_t *)) \
    FUNCTION(87, OrtStatus *, KernelInfoGetAttribute_string, \
             (const OrtKernelInfo *, const char *name, char *text, size_t *size)) \
    FUNCTION(88, OrtStatus *, KernelContext_GetInputCount, (const OrtKernelContext *, size_t *count)) \
    FUNCTION(89, OrtStatus *, KernelContext_GetOutputCount, (const OrtKernelContext *, size_t *count)) \
    FUNCTION(90, OrtStatus *, KernelContext_GetInput, (const OrtKernelContext *, size_t place, const OrtValue **)) \
    FUNCTION(91, OrtStatus *, KernelContext_GetOutput, \
             (OrtKernelContext *, size_t place, const int64_t *sizes, size_t rank, OrtValue **)) \
    FUNCTION(93, void, ReleaseStatus, (OrtStatus *)) \
    FUNCTION(99, void, ReleaseTensorTypeAndShapeInfo, (OrtTensorTypeAndShapeInfo *)) \
    FUNCTION(130, OrtStatus *, AddSessionConfigEntry, (OrtSessionOptions *, const char *key, const char *value)) \
    FUNCTION(237, OrtStatus *, HasSessionConfigEntry, (const OrtSessionOptions *, const char *key, int *has)) \
    FUNCTION(249, OrtStatus *, KernelInfoGetConstantInput_tensor, \
             (const OrtKernelInfo *, size_t place, int *is_constant, const OrtValue **)) \
    FUNCTION(268, OrtStatus *, ShapeInferContext_GetInputTypeShape, \
             (const OrtShapeInferContext *, size_t place, OrtTensorTypeAndShapeInfo **)) \
    FUNCTION(269, OrtStatus *, ShapeInferContext_GetAttribute, \
             (const OrtShapeInferContext *, const char *name, const OrtOpAttr **)) \
    FUNCTION(270, OrtStatus *, ShapeInferContext_SetOutputTypeShape, \
             (const OrtShapeInferContext *, size_t place, const OrtTensorTypeAndShapeInfo *)) \
    FUNCTION(271, OrtStatus *, SetSymbolicDimensions, (OrtTensorTypeAndShapeInfo *, const char **names, size_t rank)) \
    FUNCTION(272, OrtStatus *, ReadOpAttr, (const OrtOpAttr *, int type, void *data, size_t size, size_t *written)) \
    FUNCTION(274, OrtStatus *, KernelContext_ParallelFor, \
             (const OrtKernelContext *, void (*task)(void *, size_t), size_t total, size_t batches, void *argument)) \
    FUNCTION(414, OrtStatus *, GetTensorElementTypeAndShapeDataReference, \
             (const OrtValue *, int *type, const int64_t **sizes, size_t *rank))

#define PYRNNX_ORT_FIELD(place, result, name, arguments) result(*name) arguments;
typedef struct {
    PYRNNX_ORT_FUNCTIONS(PYRNNX_ORT_FIELD)
} pyrnnx_ort_functions;

static inline void pyrnnx_ort_load(pyrnnx_ort_functions *functions, const OrtApi *api) {
    void *const *places = (void *const *)api;
#define PYRNNX_ORT_LOAD(place, result, name, arguments) functions->name = (result(*) arguments)places[place];
    PYRNNX_ORT_FUNCTIONS(PYRNNX_ORT_LOAD)
}

#endif
