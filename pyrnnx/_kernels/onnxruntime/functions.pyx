"""The operator Python: a function that is called with views of its inputs, and whose results are copied."""

cimport numpy as cnp
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t

from pyrnnx._kernels.onnxruntime.api cimport (
    OrtApi,
    OrtCustomOp,
    OrtKernelContext,
    OrtKernelInfo,
    OrtShapeInferContext,
    OrtStatus,
    OrtValue,
)
from pyrnnx._kernels.onnxruntime.runtime cimport (
    Value,
    check,
    failed,
    ort,
    read_value,
    target_of,
    view_of,
    write_output,
)

cdef extern from "Python.h" nogil:
    int Py_IsInitialized()

cnp.import_array()


cdef OrtStatus *create_python(const OrtCustomOp *op, const OrtApi *api, const OrtKernelInfo *info,
                              void **result) noexcept with gil:
    cdef int64_t number = 0
    try:
        check(ort.KernelInfoGetAttribute_int64(info, b"handle", &number))
        function = target_of(number)
        if function is None:
            raise ValueError("Python: attribute handle names no function of this process; expected a session that is "
                             "made while the handle's owner is alive")
        Py_INCREF(function)
        result[0] = <void *> function
        return NULL
    except BaseException as error:
        return failed(error)


cdef void destroy_python(void *function) noexcept nogil:
    if function != NULL and Py_IsInitialized():
        with gil:
            Py_DECREF(<object> function)


cdef OrtStatus *compute_python(void *function, OrtKernelContext *context) noexcept with gil:
    try:
        call_function(<object> function, context)
        return NULL
    except BaseException as error:
        return failed(error)


cdef int call_function(function, OrtKernelContext *context) except -1:
    cdef:
        size_t inputs = 0, outputs = 0, k
        const OrtValue *source
        Value value
        cnp.ndarray array
    check(ort.KernelContext_GetInputCount(context, &inputs))
    check(ort.KernelContext_GetOutputCount(context, &outputs))
    arguments = []
    for k in range(inputs):
        source = NULL
        check(ort.KernelContext_GetInput(context, k, &source))
        check(read_value(source, &value))
        array = view_of(&value)
        array.flags.writeable = False
        arguments.append(array)
    results = function(*arguments)
    if <size_t> len(results) != outputs:
        raise ValueError(f"Python: the function returned {len(results)} results; expected {outputs}")
    for k in range(outputs):
        if results[k] is not None:
            write_output(context, k, results[k])
    return 0


cdef OrtStatus *infer_python(const OrtCustomOp *op, OrtShapeInferContext *context) noexcept nogil:
    """Do nothing: the graph has the types of the outputs, in value_info or as its own outputs."""
    return NULL
