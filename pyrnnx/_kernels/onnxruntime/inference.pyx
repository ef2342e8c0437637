"""Inference of the types and shapes that the operators Recurrent and Unfold return."""

cimport cython
from libc.stdint cimport int64_t
from libc.stdio cimport snprintf

from pyrnnx._kernels.arrays cimport MAX_RANK, Axes
from pyrnnx._kernels.onnxruntime.api cimport (
    PYRNNX_ORT_FAIL,
    PYRNNX_ORT_INT,
    OrtCustomOp,
    OrtOpAttr,
    OrtShapeInferContext,
    OrtStatus,
    OrtTensorTypeAndShapeInfo,
)
from pyrnnx._kernels.onnxruntime.runtime cimport ignore, ort, target_of
from pyrnnx._kernels.packed_layer cimport PackedLayer

cdef enum:
    NAME_SIZE = 40    # of "pyrnnx_size_" and a number

cdef:
    list counting = []          # locked where `names` changes
    int64_t names = 0           # of sizes that are not known when a session is made


cdef bint find_axes(int64_t number, Axes *Y, Axes *state, Axes *X, int64_t *D, int64_t *H) noexcept with gil:
    """Read the axes and sizes of the layer that a handle names; return False if it names none."""
    cdef PackedLayer packed
    try:
        packed = target_of(number)._packed
    except BaseException:
        return False
    X[0], Y[0], state[0] = packed.packed.X, packed.packed.Y, packed.packed.state
    D[0], H[0] = packed.packed.directions, packed.packed.call.hidden_size
    return True


cdef bint read_integer(OrtShapeInferContext *context, const char *name, int64_t *value) noexcept nogil:
    cdef:
        const OrtOpAttr *attribute = NULL
        size_t written = 0
        OrtStatus *status = ort.ShapeInferContext_GetAttribute(context, name, &attribute)
    if status == NULL and attribute != NULL:
        status = ort.ReadOpAttr(attribute, PYRNNX_ORT_INT, value, sizeof(int64_t), &written)
    if status != NULL:
        ort.ReleaseStatus(status)
        return False
    return attribute != NULL


cdef void layout_axes(bint batch_first, Axes *Y, Axes *state, Axes *X) noexcept nogil:
    """Set the axes of ONNX's layouts 0 and 1."""
    X.rank, X.t, X.n, X.d, X.last = 3, batch_first, not batch_first, -1, 2
    state.rank, state.t, state.n, state.d, state.last = 3, -1, not batch_first, batch_first, 2
    if batch_first:
        Y.rank, Y.t, Y.n, Y.d, Y.last = 4, 1, 0, 2, 3
    else:
        Y.rank, Y.t, Y.n, Y.d, Y.last = 4, 0, 2, 1, 3


cdef void name_size(char *name) noexcept nogil:
    """Write a new name: ONNX Runtime treats sizes of one name as equal."""
    global names
    with gil, cython.critical_section(counting):
        names += 1
        snprintf(name, NAME_SIZE, b"pyrnnx_size_%lld", <long long> names)


cdef OrtStatus *infer_recurrent(const OrtCustomOp *op, OrtShapeInferContext *context) noexcept nogil:
    """Infer types and shapes of the outputs from those of X."""
    cdef:
        Axes X, Y, state
        int64_t handle = 0, layout = 0, D = 1, H = 0
        int64_t sizes[MAX_RANK]
        const char *symbols[MAX_RANK]
        int64_t T = -1, N = -1
        const char *T_name = b""
        const char *N_name = b""
        char own_T[NAME_SIZE]
        char own_N[NAME_SIZE]
        OrtTensorTypeAndShapeInfo *info = NULL
        OrtStatus *status
        int type = 0, k
        size_t rank = 0, place
        Axes *axes
    if read_integer(context, b"handle", &handle):
        if not find_axes(handle, &Y, &state, &X, &D, &H):
            return NULL  # CreateKernel says so
    elif (read_integer(context, b"hidden_size", &H) and read_integer(context, b"num_directions", &D)
            and read_integer(context, b"layout", &layout)):
        layout_axes(layout != 0, &Y, &state, &X)
    else:
        return ort.CreateStatus(
            PYRNNX_ORT_FAIL, b"Recurrent: attributes hidden_size, num_directions and layout are missing; expected "
                             b"them, or handle")
    status = ort.ShapeInferContext_GetInputTypeShape(context, 0, &info)
    if status == NULL:
        status = ort.GetTensorElementType(info, &type)
    if status == NULL:
        status = ort.GetDimensionsCount(info, &rank)
    if status == NULL and rank == <size_t> X.rank:
        status = ort.GetDimensions(info, sizes, rank)
        if status == NULL:
            status = ort.GetSymbolicDimensions(info, symbols, rank)
        if status == NULL:
            N, N_name = sizes[X.n], symbols[X.n]
            if X.t >= 0:
                T, T_name = sizes[X.t], symbols[X.t]
    if status != NULL:
        return status
    if T < 0 and (T_name == NULL or not T_name[0]):
        name_size(own_T)
        T_name = own_T
    if N < 0 and (N_name == NULL or not N_name[0]):
        name_size(own_N)
        N_name = own_N
    for place in range(3):
        axes = &state if place else &Y
        for k in range(axes.rank):
            symbols[k], sizes[k] = b"", H
            if k == axes.t:
                sizes[k] = T
                if T < 0:
                    symbols[k] = T_name
            elif k == axes.n:
                sizes[k] = N
                if N < 0:
                    symbols[k] = N_name
            elif k == axes.d:
                sizes[k] = D
        ignore(set_output(context, place, type, axes.rank, sizes, symbols))  # the node may not have this output
    return NULL


cdef OrtStatus *set_output(OrtShapeInferContext *context, size_t place, int type, int rank, const int64_t *sizes,
                           const char **symbols) noexcept nogil:
    cdef:
        OrtTensorTypeAndShapeInfo *info = NULL
        OrtStatus *status = ort.CreateTensorTypeAndShapeInfo(&info)
    if status == NULL:
        status = ort.SetTensorElementType(info, type)
    if status == NULL:
        status = ort.SetDimensions(info, sizes, rank)
    if status == NULL:
        status = ort.SetSymbolicDimensions(info, symbols, rank)
    if status == NULL:
        status = ort.ShapeInferContext_SetOutputTypeShape(context, place, info)
    if info != NULL:
        ort.ReleaseTensorTypeAndShapeInfo(info)
    return status


cdef OrtStatus *infer_unfold(const OrtCustomOp *op, OrtShapeInferContext *context) noexcept nogil:
    """Infer that the output has the type of X, and three axes of sizes that are not known."""
    cdef:
        OrtTensorTypeAndShapeInfo *source = NULL
        int64_t sizes[3]
        const char *symbols[3]
        char names[3][NAME_SIZE]
        int type = 0, k
        OrtStatus *status = ort.ShapeInferContext_GetInputTypeShape(context, 0, &source)
    if status == NULL:
        status = ort.GetTensorElementType(source, &type)
    if status != NULL:
        return status
    for k in range(3):
        name_size(names[k])
        symbols[k], sizes[k] = names[k], -1
    return set_output(context, 0, type, 3, sizes, symbols)
