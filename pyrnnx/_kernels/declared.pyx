"""Recognition of arrays that have declared dtypes and shapes, for calls of models that take microseconds."""

cimport cython
cimport numpy as cnp
from cpython.dict cimport PyDict_GetItem, PyDict_SetItem
from cpython.object cimport PyObject
from libc.stdlib cimport calloc, free

import numpy as np

cnp.import_array()

cdef enum:
    ANY_RANK = -1
    ANY_TYPE = -1


cdef struct Array:
    int type                # NumPy's number of the dtype, or ANY_TYPE
    int rank                # or ANY_RANK
    cnp.npy_intp *sizes     # lowest and highest size of each axis
    bint is_optional


cdef class Declared:
    """Declarations of arrays.

    Parameters
    ----------
    names : tuple of str
    dtypes : sequence
        The native dtype of each array; None if any value fits.
    shapes : sequence
        For each array its axes' lowest and highest sizes; None if any rank fits.
    optional : sequence of bool
        Whether an array may be missing.
    """

    cdef tuple names
    cdef Array *arrays
    cdef Py_ssize_t count

    def __cinit__(self, tuple names, dtypes, shapes, optional):
        cdef Py_ssize_t k, axis
        self.names, self.count = names, len(names)
        self.arrays = <Array *> calloc(self.count + 1, sizeof(Array))
        if self.arrays == NULL:
            raise MemoryError
        for k in range(self.count):
            self.arrays[k].type = ANY_TYPE if dtypes[k] is None else (<cnp.dtype?> dtypes[k]).type_num
            self.arrays[k].is_optional = optional[k]
            self.arrays[k].rank = ANY_RANK
            if shapes[k] is not None:
                self.arrays[k].sizes = <cnp.npy_intp *> calloc(2 * len(shapes[k]) + 1, sizeof(cnp.npy_intp))
                if self.arrays[k].sizes == NULL:
                    raise MemoryError
                self.arrays[k].rank = len(shapes[k])
                for axis, (low, high) in enumerate(shapes[k]):
                    self.arrays[k].sizes[2 * axis], self.arrays[k].sizes[2 * axis + 1] = low, high

    def __dealloc__(self):
        cdef Py_ssize_t k
        if self.arrays != NULL:
            for k in range(self.count):
                free(self.arrays[k].sizes)
        free(self.arrays)

    def recognized(self, tuple values, dict named):
        """Return {name: array} of values by place or by name; None unless all are known, and exactly as declared.

        A single value that is a dict has the arrays by name.
        """
        cdef:
            Py_ssize_t k, count = len(values)
            PyObject *value
            dict source = named, result = {}
        if count == 1 and type(values[0]) is dict:
            if named:
                return None
            source, count = values[0], 0
        elif count and named or count > self.count:
            return None
        with cython.critical_section(source):  # so that no other thread frees a value that is borrowed
            for k in range(self.count):
                if count:
                    value = <PyObject *> values[k] if k < count else NULL
                else:
                    value = PyDict_GetItem(source, self.names[k])
                if value == NULL:
                    if not self.arrays[k].is_optional:
                        return None
                elif is_declared(<object> value, &self.arrays[k]):
                    PyDict_SetItem(result, self.names[k], <object> value)
                else:
                    return None
        return None if len(result) != (count or len(source)) else result


cdef bint is_declared(object value, const Array *declared):
    """Return whether a value is an array of the declared dtype and shape."""
    cdef:
        cnp.ndarray array
        int axis
    if type(value) is not cnp.ndarray:
        return False
    array = value
    if not cnp.PyArray_ISNOTSWAPPED(array):
        return False
    if declared.type != ANY_TYPE and cnp.PyArray_TYPE(array) != declared.type:
        return False
    if declared.rank == ANY_RANK:
        return True
    if cnp.PyArray_NDIM(array) != declared.rank:
        return False
    for axis in range(declared.rank):
        if not declared.sizes[2 * axis] <= cnp.PyArray_DIM(array, axis) <= declared.sizes[2 * axis + 1]:
            return False
    return True
