"""The operator Guard: a copy of tensors that returns an error where ONNX Runtime would end the process.

ONNX Runtime writes what a body of Scan returns to memory whose shape it chose before. A Guard as the last node of the
body returns an error unless each value has that shape.

The inputs are the values, then the states before the step that the first values replace. Attribute `ranks` has a
character for each value: "A" for rank 0, "B" for rank 1 and so on; "?" for any rank, "+" for two axes or more. In lower
case, or "!" for any rank, the value must have elements. Attribute `sizes`, which is optional and needs ranks, has the sizes of all values in
order: a number, -1 for any size, or a smaller number for a size that is the same wherever that number is.
"""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from pyrnnx._kernels.onnxruntime.api cimport (
    PYRNNX_ORT_FAIL,
    PYRNNX_ORT_TEXT,
    OrtApi,
    OrtCustomOp,
    OrtKernelContext,
    OrtKernelInfo,
    OrtOpAttr,
    OrtShapeInferContext,
    OrtStatus,
    OrtValue,
)
from pyrnnx._kernels.onnxruntime.inference cimport LARGEST_RANK, infer_rank
from pyrnnx._kernels.onnxruntime.runtime cimport Value, ignore, ort, read_value

cdef extern from "Python.h" nogil:
    long PyOS_strtol(const char *text, char **end, int base)    # strtoll has a new version in glibc 2.38

cdef enum:
    MOST_VALUES = 255
    MESSAGE_SIZE = 256
    MOST_SYMBOLS = 64
    MOST_TEXT = 4096    # of `sizes`, to infer them

cdef struct Kernel:
    size_t count                # of values
    char ranks[MOST_VALUES + 1]
    char *sizes                 # the attribute; NULL: none


cdef inline int rank_of(char letter) noexcept nogil:
    """Return the rank that a character of `ranks` stands for; -1: any."""
    if c'A' <= letter <= c'Z':
        return letter - c'A'
    return letter - c'a' if c'a' <= letter <= c'z' else -1


cdef inline bint needs_elements(char letter) noexcept nogil:
    return letter == c'!' or c'a' <= letter <= c'z'


cdef size_t item_size(int type) noexcept nogil:
    """Return the bytes of an element of an ONNXTensorElementDataType; 0 of one that is not copied by its bytes."""
    if type in (2, 3, 9, 17, 18, 19, 20):
        return 1
    if type in (4, 5, 10, 16):
        return 2
    if type in (1, 6, 12):
        return 4
    if type in (7, 11, 13, 14):
        return 8
    return 16 if type == 15 else 0


cdef OrtStatus *create_guard(const OrtCustomOp *op, const OrtApi *api, const OrtKernelInfo *info,
                             void **result) noexcept nogil:
    cdef:
        Kernel *kernel = <Kernel *> calloc(1, sizeof(Kernel))
        size_t size = MOST_VALUES + 1   # with the zero at the end
        OrtStatus *status
    if kernel == NULL:
        return ort.CreateStatus(PYRNNX_ORT_FAIL, b"Guard: an operator exceeds memory")
    status = ort.KernelInfoGetAttribute_string(info, b"ranks", kernel.ranks, &size)
    if status == NULL:
        status = read_sizes(kernel, info)
    if status != NULL:
        free(kernel)
        return status
    while kernel.count < MOST_VALUES and kernel.ranks[kernel.count]:
        kernel.count += 1
    result[0] = kernel
    return NULL


cdef OrtStatus *read_sizes(Kernel *kernel, const OrtKernelInfo *info) noexcept nogil:
    cdef:
        size_t size = 0
        OrtStatus *status = ort.KernelInfoGetAttribute_string(info, b"sizes", NULL, &size)
    if status != NULL or not size:
        ignore(status)
        return NULL
    kernel.sizes = <char *> malloc(size)
    if kernel.sizes == NULL:
        return ort.CreateStatus(PYRNNX_ORT_FAIL, b"Guard: an operator exceeds memory")
    status = ort.KernelInfoGetAttribute_string(info, b"sizes", kernel.sizes, &size)
    if status != NULL:
        free(kernel.sizes)
    return status


cdef void destroy_guard(void *kernel) noexcept nogil:
    free((<Kernel *> kernel).sizes)
    free(kernel)


cdef const char *check_sizes(const char *sizes, const Value *value, int64_t *symbols) noexcept nogil:
    """Return the text after the sizes of a value, which must have them; NULL if it does not."""
    cdef:
        char *end
        size_t k
        int64_t size, symbol
    for k in range(value.rank):
        size = PyOS_strtol(sizes, &end, 10)
        symbol = -2 - size
        if end == sizes or symbol >= MOST_SYMBOLS or (size >= 0 and size != value.sizes[k]):
            return NULL
        if symbol >= 0:
            if symbols[symbol] >= 0 and symbols[symbol] != value.sizes[k]:
                return NULL
            symbols[symbol] = value.sizes[k]
        sizes = end + 1 if end[0] else end
    return sizes


cdef OrtStatus *refused(size_t place, const char *why) noexcept nogil:
    cdef char text[MESSAGE_SIZE]
    snprintf(text, MESSAGE_SIZE, b"Guard: value %zu %s", place, why)
    return ort.CreateStatus(PYRNNX_ORT_FAIL, text)


cdef OrtStatus *read_input(const OrtKernelContext *context, size_t place, Value *value) noexcept nogil:
    cdef:
        const OrtValue *source = NULL
        OrtStatus *status
    memset(value, 0, sizeof(Value))
    status = ort.KernelContext_GetInput(context, place, &source)
    return read_value(source, value) if status == NULL else status


cdef OrtStatus *read_shape(const OrtKernelContext *context, size_t place, Value *value) noexcept nogil:
    cdef OrtStatus *status = ort.KernelContext_GetInput(context, place, &value.value)
    if status == NULL:
        status = ort.GetTensorElementTypeAndShapeDataReference(value.value, &value.type, &value.sizes, &value.rank)
    return status


cdef bint is_alike(const Value *value, const Value *state) noexcept nogil:
    cdef size_t k
    if value.rank != state.rank or value.type != state.type:
        return False
    for k in range(value.rank):
        if value.sizes[k] != state.sizes[k]:
            return False
    return True


cdef OrtStatus *compute_guard(void *pointer, OrtKernelContext *context) noexcept nogil:
    cdef:
        const Kernel *kernel = <const Kernel *> pointer
        Value value, state
        OrtValue *target
        OrtStatus *status
        void *data
        size_t inputs = 0, place, k, size
        const char *sizes = kernel.sizes
        int64_t symbols[MOST_SYMBOLS]
        int rank
    if sizes != NULL:
        memset(symbols, 0xff, sizeof(symbols))  # each is -1
    status = ort.KernelContext_GetInputCount(context, &inputs)
    for place in range(kernel.count):
        if status == NULL:
            status = read_input(context, place, &value)
        if status != NULL:
            return status
        size, rank = item_size(value.type), rank_of(kernel.ranks[place])
        if value.value == NULL or not size:
            return refused(place, b"is missing or has elements that are not copied")
        if rank >= 0 and value.rank != <size_t> rank:
            return refused(place, b"has another rank than declared")
        if kernel.ranks[place] == c'+' and value.rank < 2:
            return refused(place, b"has fewer than two axes")
        if kernel.sizes != NULL:
            sizes = check_sizes(sizes, &value, symbols)
            if sizes == NULL:
                return refused(place, b"has other sizes than the model declares")
        if kernel.count + place < inputs:
            status = read_shape(context, kernel.count + place, &state)
            if status != NULL:
                return status
            if not is_alike(&value, &state):
                return refused(place, b"is a state that a step gives another shape or type")
        for k in range(value.rank):
            size *= value.sizes[k]
        if not size and needs_elements(kernel.ranks[place]):
            return refused(place, b"has no elements")
        target = NULL
        status = ort.KernelContext_GetOutput(context, place, value.sizes, value.rank, &target)
        if status == NULL and target != NULL and size:
            status = ort.GetTensorMutableData(target, &data)
            if status == NULL and data != value.data:
                memcpy(data, value.data, size)
    return status


cdef OrtStatus *infer_guard(const OrtCustomOp *op, OrtShapeInferContext *context) noexcept nogil:
    """Infer types, ranks and the sizes that `sizes` has."""
    cdef:
        const OrtOpAttr *attribute = NULL
        char ranks[MOST_VALUES + 1]
        char sizes[MOST_TEXT + 1]
        int64_t known[LARGEST_RANK + 1]
        char *end = sizes
        size_t size = 0, length = 0, place = 0
        int k, rank
        OrtStatus *status = ort.ShapeInferContext_GetAttribute(context, b"ranks", &attribute)
    memset(ranks, 0, sizeof(ranks))
    memset(sizes, 0, sizeof(sizes))
    if status == NULL and attribute != NULL:
        status = ort.ReadOpAttr(attribute, PYRNNX_ORT_TEXT, ranks, MOST_VALUES, &size)
    attribute = NULL
    ignore(ort.ShapeInferContext_GetAttribute(context, b"sizes", &attribute))
    if attribute != NULL:
        ignore(ort.ReadOpAttr(attribute, PYRNNX_ORT_TEXT, sizes, MOST_TEXT, &length))  # none if they are too long
    while status == NULL and place < size and ranks[place]:
        rank = rank_of(ranks[place])
        for k in range(rank):
            known[k] = PyOS_strtol(end, &end, 10) if end[0] else -1
            end += end[0] != 0
        status = infer_rank(context, place, rank, known)
        place += 1
    return status
