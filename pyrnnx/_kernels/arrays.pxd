"""Access to the caller's arrays: the order of their axes, checks, and one read of their shape and strides."""

cimport numpy as cnp

from pyrnnx._kernels.blocks cimport Array

cdef enum:
    MAX_RANK = 4


cdef struct Axes:
    # The index of each axis in a caller's array, -1 for a missing axis; `last` is the contiguous axis.
    int rank, t, n, d, last


cdef struct Taken:
    # Data, shape and strides of a caller's array, read once with the GIL: other threads may change the array's shape
    # or dtype during the call. Without the GIL they may not: NumPy sets them without a lock that could be taken here.
    char *data
    cnp.npy_intp shape[MAX_RANK]
    cnp.npy_intp strides[MAX_RANK]


cdef inline Axes parse_axes(str name, str axes, str allowed) except *:
    """Return the indices of axis letters, such as "TNI" or "NDTH"; the last allowed letter is the contiguous axis."""
    cdef Axes result
    if axes is None or len(set(axes)) != len(axes) or not set(axes) <= set(allowed) or "N" not in axes:
        raise ValueError(f"axes of {name} are {axes!r}; expected different letters of {allowed}, including N")
    if not axes.endswith(allowed[len(allowed) - 1]):
        raise ValueError(f"axes of {name} are {axes!r}; expected {allowed[len(allowed) - 1]} at the end")
    result.rank = len(axes)
    result.t, result.n, result.d, result.last = axes.find("T"), axes.find("N"), axes.find("D"), len(axes) - 1
    return result


cdef inline bint read_array(a, const Axes *axes, cnp.dtype dtype, Taken *taken) noexcept:
    """Set `taken` and return True if an object is an array that can be read in place."""
    cdef:
        int k
        bint empty = False  # strides of an empty array are arbitrary
    if not (cnp.PyArray_CheckExact(a) and cnp.PyArray_NDIM(a) == axes.rank
            and <void *> cnp.PyArray_DESCR(a) == <void *> dtype):
        return False
    taken.data = cnp.PyArray_BYTES(a)
    for k in range(axes.rank):
        taken.shape[k], taken.strides[k] = cnp.PyArray_DIM(a, k), cnp.PyArray_STRIDE(a, k)
        empty = empty or taken.shape[k] == 0
    return empty or taken.strides[axes.last] == dtype.itemsize or taken.shape[axes.last] == 1


cdef inline Array arranged(const Taken *taken, const Axes *axes) noexcept nogil:
    """Return an array for the time loop."""
    cdef Array result
    result.data = taken.data
    result.t = 0 if axes.t < 0 else taken.strides[axes.t]
    result.d = 0 if axes.d < 0 else taken.strides[axes.d]
    result.n = taken.strides[axes.n]
    return result


cdef inline bint is_disjoint(cnp.ndarray a, cnp.ndarray b) noexcept:
    """Return whether the packed array a and any array b share no memory."""
    cdef:
        char *low = cnp.PyArray_BYTES(b)
        char *high = low + cnp.PyArray_ITEMSIZE(b)
        cnp.npy_intp reach, size = cnp.PyArray_ITEMSIZE(a)
        int k
    for k in range(cnp.PyArray_NDIM(a)):
        size *= cnp.PyArray_DIM(a, k)
    for k in range(cnp.PyArray_NDIM(b)):
        if cnp.PyArray_DIM(b, k) == 0:
            return True
        reach = (cnp.PyArray_DIM(b, k) - 1) * cnp.PyArray_STRIDE(b, k)
        if reach < 0:
            low += reach
        else:
            high += reach
    return size == 0 or high <= cnp.PyArray_BYTES(a) or cnp.PyArray_BYTES(a) + size <= low


cdef inline bint is_packed(cnp.ndarray a) noexcept:
    """Return whether an array's elements fill one block of memory, with the last axis innermost."""
    cdef:
        int rank = cnp.PyArray_NDIM(a), k, done = 0
        cnp.npy_intp stride = cnp.PyArray_ITEMSIZE(a)
    if cnp.PyArray_IS_C_CONTIGUOUS(a):
        return True
    if cnp.PyArray_DIM(a, rank - 1) != 1 and cnp.PyArray_STRIDE(a, rank - 1) != stride:
        return False
    k = rank - 1
    while k >= 0:  # from the innermost axis to the outermost
        if not done >> k & 1 and (cnp.PyArray_DIM(a, k) == 1 or cnp.PyArray_STRIDE(a, k) == stride):
            done |= 1 << k
            stride *= cnp.PyArray_DIM(a, k)
            k = rank - 1
        else:
            k -= 1
    return done == (1 << rank) - 1


cdef inline bint is_writable(a, int rank, const cnp.npy_intp *shape, cnp.dtype dtype) noexcept:
    """Return whether an object is an array of that shape and dtype that can be written in place."""
    cdef int k
    if not (cnp.PyArray_CheckExact(a) and cnp.PyArray_NDIM(a) == rank
            and <void *> cnp.PyArray_DESCR(a) == <void *> dtype and cnp.PyArray_ISBEHAVED(a) and is_packed(a)):
        return False
    for k in range(rank):
        if cnp.PyArray_DIM(a, k) != shape[k]:
            return False
    return True


cdef inline Array as_output(cnp.ndarray a, const Axes *axes) noexcept:
    """Return an array of results for the time loop."""
    cdef:
        Taken taken
        int k
    taken.data = cnp.PyArray_BYTES(a)
    for k in range(axes.rank):
        taken.strides[k] = cnp.PyArray_STRIDE(a, k)
    return arranged(&taken, axes)


cdef inline bint overlap(tuple outs, tuple inputs):
    """Return whether writing an output may change another, or an input that is not the state it replaces."""
    cdef Py_ssize_t k, j
    for k in range(len(outs)):
        if outs[k] is None:
            continue
        if not (cnp.PyArray_CheckExact(outs[k]) and cnp.PyArray_NDIM(outs[k]) and cnp.PyArray_NDIM(outs[k]) <= MAX_RANK
                and cnp.PyArray_ISBEHAVED(outs[k]) and is_packed(outs[k])):
            return True
        for j in range(k):
            if outs[j] is not None and not is_disjoint(outs[k], outs[j]):
                return True
        for j in range(len(inputs)):
            if inputs[j] is None or j == k > 0 and outs[k] is inputs[j]:
                continue
            if not is_disjoint(outs[k], inputs[j]):
                return True
    return False


ctypedef fused Real:
    float
    double


cdef inline bint below_large(const Real *numbers, Py_ssize_t count) noexcept nogil:
    cdef:
        Real large = 2.0 ** 127
        Py_ssize_t k
        int below = True
    for k in range(count):
        below &= (numbers[k] < large) & (numbers[k] > -large)  # without a branch, so that the compiler vectorizes it
    return below


cdef inline bint all_below_large(const char *numbers, Py_ssize_t count, int itemsize) noexcept nogil:
    """Return whether all numbers are finite, even rounded to bfloat16."""
    return below_large(<const float *> numbers, count) if itemsize == 4 else below_large(<const double *> numbers, count)
