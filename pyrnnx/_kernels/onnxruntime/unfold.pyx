"""The operator Unfold: the windows that a convolution over one axis multiplies with its kernel.

    Y[n, i, j, c] = X[n, i * stride + j * dilation - pad_begin, c]      zero outside X

X is [N, L, C] and Y [N, windows, kernel * C], so that a product with the kernel as a matrix is the convolution.
"""

from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from pyrnnx._kernels.onnxruntime.api cimport (
    PYRNNX_ORT_FAIL,
    PYRNNX_ORT_FLOAT,
    OrtApi,
    OrtCustomOp,
    OrtKernelContext,
    OrtKernelInfo,
    OrtStatus,
    OrtValue,
)
from pyrnnx._kernels.onnxruntime.runtime cimport Value, ort, read_value

cdef enum:
    NUMBERS = 5
    LARGEST = 1 << 24   # of an attribute

cdef struct Kernel:
    int64_t size, stride, dilation, pad_begin, pad_end

cdef const char **NAMES = ["kernel", "stride", "dilation", "pad_begin", "pad_end"]


cdef OrtStatus *create_unfold(const OrtCustomOp *op, const OrtApi *api, const OrtKernelInfo *info,
                              void **result) noexcept nogil:
    cdef:
        Kernel *kernel = <Kernel *> calloc(1, sizeof(Kernel))
        int64_t *numbers[NUMBERS]
        OrtStatus *status = NULL
        int k
    if kernel == NULL:
        return ort.CreateStatus(PYRNNX_ORT_FAIL, b"Unfold: an operator exceeds memory")
    numbers = [&kernel.size, &kernel.stride, &kernel.dilation, &kernel.pad_begin, &kernel.pad_end]
    for k in range(NUMBERS):
        if status == NULL:
            status = ort.KernelInfoGetAttribute_int64(info, NAMES[k], numbers[k])
        if status == NULL and not (k < 3) <= numbers[k][0] <= LARGEST:
            status = ort.CreateStatus(
                PYRNNX_ORT_FAIL, b"Unfold: an attribute is out of range; expected kernel, stride and dilation from 1, and "
                                 b"pad_begin and pad_end from 0, to 2**24")
    if status != NULL:
        free(kernel)
        return status
    result[0] = kernel
    return NULL


cdef void destroy_unfold(void *kernel) noexcept nogil:
    free(kernel)


cdef void unfold_window(const Kernel *kernel, const float *X, int64_t length, int64_t channels, int64_t start,
                        float *Y) noexcept nogil:
    """Copy the window that begins at `start`, which may lie outside X."""
    cdef int64_t j, place, begin, end
    if kernel.dilation == 1:
        begin = min(max(-start, 0), kernel.size)
        end = max(min(length - start, kernel.size), begin)
        memset(Y, 0, begin * channels * sizeof(float))
        memcpy(Y + begin * channels, X + (start + begin) * channels, (end - begin) * channels * sizeof(float))
        memset(Y + end * channels, 0, (kernel.size - end) * channels * sizeof(float))
        return
    for j in range(kernel.size):
        place = start + j * kernel.dilation
        if 0 <= place < length:
            memcpy(Y + j * channels, X + place * channels, channels * sizeof(float))
        else:
            memset(Y + j * channels, 0, channels * sizeof(float))


cdef OrtStatus *compute_unfold(void *pointer, OrtKernelContext *context) noexcept nogil:
    cdef:
        const Kernel *kernel = <const Kernel *> pointer
        const OrtValue *source = NULL
        OrtValue *target = NULL
        OrtStatus *status = ort.KernelContext_GetInput(context, 0, &source)
        Value X
        int64_t sizes[3]
        int64_t length, channels, room, n, i
        void *Y = NULL
    X.value = NULL
    if status == NULL:
        status = read_value(source, &X)
    if status != NULL:
        return status
    if X.value == NULL or X.type != PYRNNX_ORT_FLOAT or X.rank != 3:
        return ort.CreateStatus(PYRNNX_ORT_FAIL, b"Unfold: X is no float32 tensor with 3 axes")
    length, channels = X.sizes[1], X.sizes[2]
    room = length + kernel.pad_begin + kernel.pad_end - (kernel.size - 1) * kernel.dilation - 1
    if room < 0:
        return ort.CreateStatus(PYRNNX_ORT_FAIL, b"Unfold: X with its padding is shorter than the kernel")
    sizes[0], sizes[1], sizes[2] = X.sizes[0], room // kernel.stride + 1, kernel.size * channels
    status = ort.KernelContext_GetOutput(context, 0, sizes, 3, &target)
    if status == NULL and target != NULL:
        status = ort.GetTensorMutableData(target, &Y)
    if status != NULL or Y == NULL or not channels:
        return status
    for n in range(sizes[0]):
        for i in range(sizes[1]):
            unfold_window(kernel, <const float *> X.data + n * length * channels, length, channels,
                          i * kernel.stride - kernel.pad_begin, <float *> Y + (n * sizes[1] + i) * sizes[2])
    return NULL
