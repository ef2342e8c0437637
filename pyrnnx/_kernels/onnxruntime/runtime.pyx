"""Helpers of the operators: ONNX Runtime's functions, handles, exceptions, and tensors as arrays.

A Python exception becomes a status, whose text ends with the number that `exception_of` finds the exception by.
"""

cimport numpy as cnp
from cpython.ref cimport Py_INCREF, PyObject
from libc.stdint cimport int64_t

import re
import secrets
import traceback

import numpy as np

from pyrnnx._kernels.onnxruntime.api cimport PYRNNX_ORT_FAIL, OrtKernelContext, OrtKernelInfo, OrtStatus, OrtValue
from pyrnnx._kernels.threads cimport Task

cdef extern from "numpy/arrayobject.h":
    ctypedef struct PyTypeObject:
        pass
    cnp.ndarray PyArray_NewFromDescr(PyTypeObject *cls, cnp.dtype dtype, int rank, const cnp.npy_intp *shape,
                                     const cnp.npy_intp *strides, void *data, int flags, PyObject *object)

cdef extern from "Python.h" nogil:
    unsigned long PyThread_get_thread_ident()

cnp.import_array()

cdef enum:
    STORED_EXCEPTIONS = 64
    LARGEST_RANK = 32

cdef:
    OrtFunctions ort
    # No typed dict: Cython's `get` of those borrows a reference, which another thread may free.
    object handles = {}
    dict exceptions = {}
    dict dtypes = {}    # of NumPy, by element type, as far as they were asked for
    object find_dtype = None


def set_dtypes(find) -> None:
    """Set the function that returns NumPy's dtype of an element type, or None if there is none."""
    global find_dtype
    find_dtype = find


def new_handle(target) -> int:
    """Return the number by which nodes name a layer or a function, until `drop_handle`."""
    cdef int64_t number = secrets.randbits(62)  # no file of another process happens to have it
    while number in handles:
        number = secrets.randbits(62)
    handles[number] = target
    return number


cdef target_of(int64_t number):
    """Return the layer or function that a handle names, or None."""
    return handles.get(number)


def drop_handle(int64_t number) -> None:
    """Forget a handle; sessions that have it keep its layer or function."""
    handles.pop(number, None)


cdef OrtStatus *failed(error) noexcept:
    """Return a status for an exception, which is stored under the number at the end of its text."""
    try:
        number = secrets.randbits(48)
        traceback.clear_frames(error.__traceback__)  # with their views of what the session will free
        exceptions[number] = error
        for oldest in list(exceptions)[:-STORED_EXCEPTIONS]:
            exceptions.pop(oldest, None)
        text = f"{str(error) or type(error).__name__} [pyrnnx error {number}]".encode(errors="replace")
        return ort.CreateStatus(PYRNNX_ORT_FAIL, text)
    except BaseException:
        return ort.CreateStatus(PYRNNX_ORT_FAIL, b"pyrnnx: an error that cannot be described")


def exception_of(str text):
    """Return the exception that a status with that text stands for, and forget it; None if it stands for none."""
    match = re.search(r"\[pyrnnx error (\d+)\]", text)
    return None if match is None else exceptions.pop(int(match[1]), None)


cdef int check(OrtStatus *status) except -1:
    """Raise RuntimeError with ONNX Runtime's message if a status is an error."""
    if status == NULL:
        return 0
    text = ort.GetErrorMessage(status).decode(errors="replace")
    ort.ReleaseStatus(status)
    raise RuntimeError(f"ONNX Runtime: {text}")


cdef void ignore(OrtStatus *status) noexcept nogil:
    if status != NULL:
        ort.ReleaseStatus(status)


cdef str read_text(const OrtKernelInfo *info, const char *name):
    cdef size_t size = 0
    cdef bytes text
    ignore(ort.KernelInfoGetAttribute_string(info, name, NULL, &size))
    text = bytes(size)
    check(ort.KernelInfoGetAttribute_string(info, name, <char *> text, &size))
    return text[:size].rstrip(b"\0").decode()


cdef int64_t read_number(const OrtKernelInfo *info, const char *name, int64_t default):
    """Return an attribute that is an integer, or the default if the node does not have it."""
    cdef:
        int64_t number = 0
        OrtStatus *status = ort.KernelInfoGetAttribute_int64(info, name, &number)
    if status == NULL:
        return number
    ort.ReleaseStatus(status)
    return default


cdef OrtStatus *read_value(const OrtValue *source, Value *value) noexcept nogil:
    """Read type, shape and data of a tensor."""
    cdef OrtStatus *status
    value.value = source
    if source == NULL:
        return NULL
    status = ort.GetTensorElementTypeAndShapeDataReference(source, &value.type, &value.sizes, &value.rank)
    if status == NULL:
        status = ort.GetTensorMutableData(<OrtValue *> source, &value.data)
    return status


cdef cnp.ndarray view_of(const Value *value):
    """Return a tensor as an array that must not be used after the call."""
    cdef:
        cnp.npy_intp shape[LARGEST_RANK]
        cnp.dtype dtype
        size_t k
    if value.rank > LARGEST_RANK:
        raise ValueError(f"a tensor has {value.rank} axes; expected at most {LARGEST_RANK}")
    for k in range(value.rank):
        shape[k] = value.sizes[k]
    if value.type not in dtypes:
        dtypes[value.type] = find_dtype(value.type)
    dtype = dtypes[value.type]
    if dtype is None:
        raise TypeError(f"a tensor has elements of ONNX type {value.type}, which NumPy has no dtype for")
    Py_INCREF(dtype)
    return PyArray_NewFromDescr(  # which takes a reference to the dtype
        <PyTypeObject *> cnp.ndarray, dtype, <int> value.rank, shape, NULL, value.data, cnp.NPY_ARRAY_CARRAY, NULL)


cdef int write_output(OrtKernelContext *context, size_t place, result) except -1:
    """Copy an array where the session wants the output; None only if it does not want it."""
    cdef:
        int64_t sizes[LARGEST_RANK]
        OrtValue *target = NULL
        Value value
        cnp.ndarray array, view
        int k
    array = np.asarray(result)
    if array.ndim > LARGEST_RANK:
        raise ValueError(f"output {place} has {array.ndim} axes; expected at most {LARGEST_RANK}")
    for k in range(array.ndim):
        sizes[k] = array.shape[k]
    check(ort.KernelContext_GetOutput(context, place, sizes, array.ndim, &target))
    if target == NULL:
        return 0
    check(read_value(target, &value))
    view = view_of(&value)
    # ONNX Runtime runs nodes of float16 between others that it has no kernels of float16 for in float32.
    if array.dtype != view.dtype and (array.dtype != np.float16 or view.dtype != np.float32):
        raise TypeError(f"output {place} has dtype {array.dtype}; expected {view.dtype}")
    view[...] = array
    return 0


cdef struct Tasks:
    Task task
    void *argument
    unsigned long caller
    bint caller_ran


cdef void run_task(void *pointer, size_t number) noexcept nogil:
    cdef:
        Tasks *tasks = <Tasks *> pointer
        int rank = 1
    if PyThread_get_thread_ident() == tasks.caller and not tasks.caller_ran:
        tasks.caller_ran, rank = True, 0
    tasks.task(tasks.argument, rank)


cdef void run_tasks(void *context, int count, Task task, void *argument) noexcept nogil:
    """Run tasks on ONNX Runtime's threads; the others may have taken all before the caller does."""
    cdef:
        Tasks tasks
        OrtStatus *status
    tasks.task, tasks.argument, tasks.caller, tasks.caller_ran = task, argument, PyThread_get_thread_ident(), False
    status = ort.KernelContext_ParallelFor(<const OrtKernelContext *> context, run_task, count, 0, &tasks)
    if status != NULL:  # none has run
        ort.ReleaseStatus(status)
    if not tasks.caller_ran:
        task(argument, 0)
