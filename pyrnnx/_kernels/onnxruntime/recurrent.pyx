"""The operator Recurrent: a packed layer on a session's own buffers.

A call takes neither the GIL nor a Python object. For an argument that does not fit it takes the GIL, and the layer itself
says what is wrong.
"""

cimport numpy as cnp
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

import numpy as np

from pyrnnx._kernels.arrays cimport MAX_RANK, Axes, Taken
from pyrnnx._kernels.blocks cimport Array, Call
from pyrnnx._kernels.calls cimport DONE, Packed, choose_matrices, set_inputs, set_lengths
from pyrnnx._kernels.onnxruntime.api cimport (
    PYRNNX_ORT_FAIL,
    PYRNNX_ORT_BFLOAT16,
    PYRNNX_ORT_DOUBLE,
    PYRNNX_ORT_FLOAT,
    PYRNNX_ORT_FLOAT16,
    PYRNNX_ORT_INT32,
    PYRNNX_ORT_INT64,
    OrtApi,
    OrtCustomOp,
    OrtKernelContext,
    OrtKernelInfo,
    OrtStatus,
    OrtValue,
)
from pyrnnx._kernels.onnxruntime.runtime cimport (
    Value,
    check,
    failed,
    ignore,
    ort,
    read_number,
    read_text,
    read_value,
    run_tasks,
    target_of,
    view_of,
)
from pyrnnx._kernels.packed_layer cimport PackedLayer
from pyrnnx._kernels.plan cimport Pool, can_be_interrupted, run_call, watch_signals
from pyrnnx._kernels.storage cimport NATIVE
from pyrnnx._kernels.tables cimport CELL_ROWS
from pyrnnx._kernels.threads cimport Interrupt

cdef extern from "Python.h" nogil:
    int Py_IsInitialized()

cnp.import_array()

# In this order, of which the first `CALL_INPUTS` are those of a call; the others are constants.
INPUTS = ("X", "sequence_lens", "initial_h", "initial_c", "W", "R", "B", "P",
          "W_scale", "W_zero_point", "R_scale", "R_zero_point")

cdef enum:
    FEW_ROWS = 64           # whose lengths lie on the stack
    FEW_BYTES = 1 << 14     # of rows of Y that nobody wants, which lie on the stack

cdef:
    dict element_types = {"float32": PYRNNX_ORT_FLOAT, "float64": PYRNNX_ORT_DOUBLE, "float16": PYRNNX_ORT_FLOAT16,
                          "bfloat16": PYRNNX_ORT_BFLOAT16}
    object make_layer = None
    object explain = None
    object default_threads = None
    int max_threads = 1


def set_python(*, layer_of, explanation, threads, int most_threads) -> None:
    """Set the functions of Python that the operator calls.

    `layer_of`: makes the layer of a node without handle, from a `Definition`. `explanation`: raises what is wrong with
    arguments, given the layer and X, sequence_lens, initial_h, initial_c. `threads`: returns how many threads a call of
    a node without that attribute may use. `most_threads`: the most that any call uses; threads that share time steps wait
    for each other, so each needs a processor of its own.
    """
    global make_layer, explain, default_threads, max_threads
    make_layer, explain, default_threads, max_threads = layer_of, explanation, threads, most_threads


cdef struct Kernel:
    Packed *packed
    PyObject *owner             # (layer, packed layer, what constants lie in)
    int element_type            # of X, the states and the results
    bint has_h, has_c           # whether the layer has constants for them
    Taken h, c
    Taken wide_h, wide_c        # the same in float32, of a layer of float16
    const Py_ssize_t *lengths   # the same; NULL: none
    Py_ssize_t length_count
    int threads                 # of ONNX Runtime's pool that a call may use
    bint keeps_states           # whether a row without steps ends with its initial state
    bint optional_states        # whether an initial state with hidden size 0 counts as absent


cdef class Definition:
    """A layer as its node describes it: attribute `operator` as text, attributes that are numbers, constant inputs."""

    cdef readonly str text
    cdef readonly dict numbers, constants


cdef Definition read_definition(const OrtKernelInfo *info):
    cdef:
        Definition definition = Definition()
        int place, is_constant
        const OrtValue *source
        Value value
        int64_t number = 0
    definition.text, definition.numbers, definition.constants = read_text(info, b"operator"), {}, {}
    for name in ("hidden_size", "num_directions", "layout"):
        check(ort.KernelInfoGetAttribute_int64(info, name.encode(), &number))
        definition.numbers[name] = number
    for place in range(CALL_INPUTS, INPUT_COUNT):
        source, is_constant = NULL, 0
        ignore(ort.KernelInfoGetConstantInput_tensor(info, place, &is_constant, &source))
        if is_constant and source != NULL:
            check(read_value(source, &value))
            definition.constants[INPUTS[place]] = view_of(&value).copy()
    return definition


cdef OrtStatus *create_recurrent(const OrtCustomOp *op, const OrtApi *api, const OrtKernelInfo *info,
                                 void **result) noexcept with gil:
    cdef:
        Kernel *kernel = NULL
        int64_t number = 0
        OrtStatus *status = ort.KernelInfoGetAttribute_int64(info, b"handle", &number)
    try:
        if status == NULL:
            layer = target_of(number)
            if layer is None:
                raise ValueError("Recurrent: attribute handle names no layer of this process; expected a session that "
                                 "is made while the handle's owner is alive, or a model without handles")
        else:
            ort.ReleaseStatus(status)
            layer = make_layer(read_definition(info))
        kernel = <Kernel *> calloc(1, sizeof(Kernel))
        if kernel == NULL:
            raise MemoryError("an operator exceeds memory")
        fill_kernel(kernel, layer)
        kernel.threads = max(1, min(read_number(info, b"threads", default_threads()), max_threads))
        kernel.keeps_states = read_number(info, b"keeps_states", 0) != 0
        kernel.optional_states = read_number(info, b"optional_states", 0) != 0
        result[0] = kernel
        return NULL
    except BaseException as error:
        free(kernel)
        return failed(error)


cdef int fill_kernel(Kernel *kernel, layer) except -1:
    cdef:
        PackedLayer packed = layer._packed
        cnp.ndarray lengths = None, state, wide
        tuple owner
    kernel.packed = &packed.packed
    kernel.element_type = element_types[packed.dtype.name]
    states = []
    for name in ("initial_h", "initial_c"):
        if name in layer.constants:
            state = np.ascontiguousarray(layer.constants[name])
            wide = state.astype(np.float32)
            states += [state, wide]
            if name == "initial_h":
                kernel.has_h = take_array(state, &kernel.h) and take_array(wide, &kernel.wide_h)
            else:
                kernel.has_c = take_array(state, &kernel.c) and take_array(wide, &kernel.wide_c)
    if layer.constants.get("sequence_lens") is not None:
        lengths = np.array(layer.constants["sequence_lens"], np.intp)
        kernel.lengths, kernel.length_count = <const Py_ssize_t *> cnp.PyArray_DATA(lengths), lengths.size
    owner = (layer, packed, lengths, states)
    Py_INCREF(owner)
    kernel.owner = <PyObject *> owner
    return 0


cdef bint take_array(cnp.ndarray array, Taken *taken):
    cdef int k
    taken.data = cnp.PyArray_BYTES(array)
    for k in range(cnp.PyArray_NDIM(array)):
        taken.shape[k], taken.strides[k] = cnp.PyArray_DIM(array, k), cnp.PyArray_STRIDE(array, k)
    return True


cdef void destroy_recurrent(void *pointer) noexcept nogil:
    if pointer != NULL and Py_IsInitialized():
        with gil:
            Py_DECREF(<object> (<Kernel *> pointer).owner)
    free(pointer)


cdef bint take_value(const Value *value, const Axes *axes, int type, Py_ssize_t itemsize, Taken *taken) noexcept nogil:
    """Return whether a value has the rank and type that the layer reads; a tensor is contiguous."""
    cdef:
        Py_ssize_t stride = itemsize
        int k
    if value.rank != <size_t> axes.rank or value.type != type:
        return False
    taken.data = <char *> value.data
    for k in range(axes.rank - 1, -1, -1):
        taken.shape[k], taken.strides[k] = value.sizes[k], stride
        stride *= value.sizes[k]
    return True


cdef bint take_lengths(const Value *value, const Kernel *kernel, Py_ssize_t count,
                       Py_ssize_t *lengths) noexcept nogil:
    """Copy the lengths of the rows, given or constant; return False if their number is not `count`."""
    cdef Py_ssize_t k
    if value.value == NULL:
        if kernel.length_count != count:
            return False
        memcpy(lengths, kernel.lengths, count * sizeof(Py_ssize_t))
        return True
    if value.rank != 1 or value.sizes[0] != count:
        return False
    if value.type == PYRNNX_ORT_INT32:
        for k in range(count):
            lengths[k] = (<const int *> value.data)[k]
    elif value.type == PYRNNX_ORT_INT64:
        for k in range(count):
            lengths[k] = <Py_ssize_t> (<const int64_t *> value.data)[k]
    else:
        return False
    return True


cdef OrtStatus *misfit(const Kernel *kernel, const Value *values) noexcept with gil:
    """Return what is wrong with the arguments of a call, in the words of the layer."""
    try:
        arrays = [None if values[k].value == NULL else view_of(&values[k]) for k in range(CALL_INPUTS)]
        explain((<tuple> kernel.owner)[0], *arrays)
        raise ValueError("Recurrent: the inputs do not fit the layer")
    except BaseException as error:
        return failed(error)


cdef OrtStatus *no_memory(const Kernel *kernel) noexcept with gil:
    try:
        raise MemoryError(f"{(<tuple> kernel.owner)[0].label}: the call exceeds memory")
    except MemoryError as error:
        return failed(error)


cdef int raise_pending() except -1:
    """Raise the error that a signal's handler has set."""
    return -1


cdef OrtStatus *interrupted() noexcept with gil:
    try:
        raise_pending()
    except BaseException as error:
        return failed(error)


cdef OrtStatus *make_output(OrtKernelContext *context, size_t place, size_t count, const Axes *axes, const Kernel *kernel,
                            const Call *call, Array *array) noexcept nogil:
    """Set the array to an output that the session allocates; to NULL data if the session does not want it."""
    cdef:
        int64_t sizes[MAX_RANK]
        Py_ssize_t strides[MAX_RANK]
        Py_ssize_t stride = call.outer_itemsize
        OrtValue *target = NULL
        OrtStatus *status
        void *data = NULL
        int k
    array.data = NULL
    array.t = array.d = array.n = 0
    if place >= count:
        return NULL
    sizes[axes.last], sizes[axes.n] = call.hidden_size, call.batch_size
    if axes.t >= 0:
        sizes[axes.t] = call.seq_length
    if axes.d >= 0:
        sizes[axes.d] = kernel.packed.directions
    status = ort.KernelContext_GetOutput(context, place, sizes, axes.rank, &target)
    if status == NULL and target != NULL:
        status = ort.GetTensorMutableData(target, &data)
    if status != NULL or target == NULL:
        return status
    for k in range(axes.rank - 1, -1, -1):
        strides[k] = stride
        stride *= sizes[k]
    array.data, array.n = <char *> data, strides[axes.n]
    array.t = 0 if axes.t < 0 else strides[axes.t]
    array.d = 0 if axes.d < 0 else strides[axes.d]
    return NULL


cdef OrtStatus *run(const Kernel *kernel, OrtKernelContext *context, Call *call, size_t outputs) noexcept nogil:
    """Run a call whose inputs are set."""
    cdef:
        char unwanted[FEW_BYTES]
        char *memory = NULL
        Py_ssize_t row = call.hidden_size * call.outer_itemsize
        Pool pool
        Interrupt interrupt
        OrtStatus *status
        bint has_memory
    if outputs > 2 and not CELL_ROWS[kernel.packed.parameters[0].cell].has_cell_state:
        return ort.CreateStatus(PYRNNX_ORT_FAIL, b"Recurrent: the node has an output Y_c; its cell has Y and Y_h alone")
    status = make_output(context, 0, outputs, &kernel.packed.Y, kernel, call, &call.Y)
    if status == NULL:
        status = make_output(context, 1, outputs, &kernel.packed.state, kernel, call, &call.Y_h)
    if status == NULL and CELL_ROWS[kernel.packed.parameters[0].cell].has_cell_state:
        status = make_output(context, 2, outputs, &kernel.packed.state, kernel, call, &call.Y_c)
    if status != NULL or call.batch_size == 0:
        return status
    if choose_matrices(kernel.packed, call) != DONE:
        return no_memory(kernel)
    if call.Y.data == NULL:  # one row for all, which nobody reads
        call.Y.data, call.Y.d = unwanted, row
        if kernel.packed.directions * row > FEW_BYTES:
            memory = <char *> malloc(kernel.packed.directions * row)
            if memory == NULL:
                return no_memory(kernel)
            call.Y.data = memory
    call.keeps_states = kernel.keeps_states
    interrupt.stop = False
    if can_be_interrupted(call, kernel.packed.directions) and watch_signals(&interrupt):
        call.interrupt = &interrupt
    pool.context, pool.run = context, run_tasks
    has_memory = run_call(
        call, kernel.packed.parameters, kernel.packed.reverse, kernel.packed.directions, kernel.threads, &pool)
    free(memory)
    if interrupt.stop:
        return interrupted()
    return NULL if has_memory else no_memory(kernel)


cdef bint has_no_units(const Value *value, const Axes *axes) noexcept nogil:
    return value.rank == <size_t> axes.rank and value.sizes[axes.last] == 0


cdef OrtStatus *compute_recurrent(void *pointer, OrtKernelContext *context) noexcept nogil:
    cdef:
        const Kernel *kernel = <const Kernel *> pointer
        const Packed *packed = kernel.packed
        Call call = packed.call
        Value values[CALL_INPUTS]
        Taken taken[CALL_INPUTS]
        const Taken *h = &kernel.h if kernel.has_h else NULL
        const Taken *c = &kernel.c if kernel.has_c else NULL
        Py_ssize_t few[3 * FEW_ROWS]
        Py_ssize_t *lengths = few
        const OrtValue *source
        OrtStatus *status
        size_t inputs = 0, outputs = 0
        int type = kernel.element_type, k
        bint fits
    status = ort.KernelContext_GetInputCount(context, &inputs)
    if status == NULL:
        status = ort.KernelContext_GetOutputCount(context, &outputs)
    for k in range(CALL_INPUTS):
        source = NULL
        if status == NULL and <size_t> k < inputs:
            status = ort.KernelContext_GetInput(context, k, &source)
        if status == NULL:
            status = read_value(source, &values[k])
    if status != NULL:
        return status
    if kernel.optional_states:
        for k in range(2, CALL_INPUTS):
            if values[k].value != NULL and has_no_units(&values[k], &packed.state):
                values[k].value = NULL
    if type == PYRNNX_ORT_FLOAT16 and values[0].value != NULL and values[0].type == PYRNNX_ORT_FLOAT:
        # ONNX Runtime runs nodes of float16 between others that it has no kernels of float16 for in float32.
        type, call.storage, call.state_storage = PYRNNX_ORT_FLOAT, NATIVE, NATIVE
        call.outer_itemsize = call.state_itemsize = sizeof(float)
        h, c = &kernel.wide_h if kernel.has_h else NULL, &kernel.wide_c if kernel.has_c else NULL
    fits = values[0].value != NULL and take_value(&values[0], &packed.X, type, call.outer_itemsize, &taken[0])
    if values[2].value != NULL:
        fits = fits and take_value(&values[2], &packed.state, type, call.outer_itemsize, &taken[2])
        h = &taken[2]
    if values[3].value != NULL:
        fits = fits and take_value(&values[3], &packed.state, type, call.outer_itemsize, &taken[3])
        c = &taken[3]
    if not (fits and set_inputs(packed, &call, &taken[0], h, c)):
        return misfit(kernel, values)
    if values[1].value == NULL and kernel.lengths == NULL:
        return run(kernel, context, &call, outputs)
    if call.batch_size > FEW_ROWS:
        lengths = <Py_ssize_t *> malloc(3 * call.batch_size * sizeof(Py_ssize_t))
        if lengths == NULL:
            return no_memory(kernel)
    if take_lengths(&values[1], kernel, call.batch_size, lengths) and set_lengths(
            &call, lengths, lengths + call.batch_size):
        status = run(kernel, context, &call, outputs)
    else:
        status = misfit(kernel, values)
    if lengths != few:
        free(lengths)
    return status
