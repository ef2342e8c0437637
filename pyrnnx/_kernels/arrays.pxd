"""The caller's arrays: where their axes lie, and what a call reads of them; once, and only where it fits."""

cimport numpy as cnp

from pyrnnx._kernels.timeloop cimport Array

cdef enum:
    MAX_RANK = 4


cdef struct Axes:
    # The place of each axis in an array of the caller's, -1 where it has none; `last` is the contiguous one.
    int rank, t, n, d, last


cdef struct Taken:
    # What the call knows of an array of the caller's. All of it is read at once, under the GIL, and never again: another
    # thread may give the array another shape or dtype while the call runs.
    char *data
    cnp.npy_intp shape[MAX_RANK]
    cnp.npy_intp strides[MAX_RANK]


cdef inline Axes places(str name, str axes, str allowed) except *:
    """The places of axis letters, such as "TNI" or "NDTH"; the last of those allowed is the contiguous one."""
    cdef Axes result
    if axes is None or len(set(axes)) != len(axes) or not set(axes) <= set(allowed) or "N" not in axes:
        raise ValueError(f"axes of {name} are {axes!r}; expected some of {allowed}, N among them")
    if not axes.endswith(allowed[len(allowed) - 1]):
        raise ValueError(f"axes of {name} are {axes!r}; expected the last of {allowed} at the end")
    result.rank = len(axes)
    result.t, result.n, result.d, result.last = axes.find("T"), axes.find("N"), axes.find("D"), len(axes) - 1
    return result


cdef inline bint take(a, const Axes *axes, cnp.dtype dtype, Taken *taken) noexcept:
    """Whether an object is an array that can be read as it is, and if so, where and what it is."""
    cdef:
        int k
        bint empty = False  # then its strides mean nothing
    if not (cnp.PyArray_CheckExact(a) and cnp.PyArray_NDIM(a) == axes.rank
            and <void *> cnp.PyArray_DESCR(a) == <void *> dtype):
        return False
    taken.data = cnp.PyArray_BYTES(a)
    for k in range(axes.rank):
        taken.shape[k], taken.strides[k] = cnp.PyArray_DIM(a, k), cnp.PyArray_STRIDE(a, k)
        empty = empty or taken.shape[k] == 0
    return empty or taken.strides[axes.last] == dtype.itemsize or taken.shape[axes.last] == 1


cdef inline Array arranged(const Taken *taken, const Axes *axes) noexcept:
    """An array as the loop sees it."""
    cdef Array result
    result.data = taken.data
    result.t = 0 if axes.t < 0 else taken.strides[axes.t]
    result.d = 0 if axes.d < 0 else taken.strides[axes.d]
    result.n = taken.strides[axes.n]
    return result


cdef inline Array written(cnp.ndarray a, const Axes *axes) noexcept:
    """A new array, known to nobody else, as the loop sees it."""
    cdef:
        Taken taken
        int k
    taken.data = cnp.PyArray_BYTES(a)
    for k in range(axes.rank):
        taken.strides[k] = cnp.PyArray_STRIDE(a, k)
    return arranged(&taken, axes)
