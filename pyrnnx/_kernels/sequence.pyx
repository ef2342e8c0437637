"""One operator with its weights packed for an engine, ready to run on the caller's arrays."""

cimport numpy as cnp
from cpython.ref cimport Py_INCREF
from libc.limits cimport INT_MAX

import numpy as np

from pyrnnx._kernels.cell cimport (
    PYRNNX_COUPLED_FORGET,
    PYRNNX_COUPLED_INPUT,
    PYRNNX_GRU,
    PYRNNX_LSTM,
    PYRNNX_RNN,
    PYRNNX_SOFTPLUS,
    PYRNNX_UNCOUPLED,
    Activation,
    Cell,
)
from pyrnnx._kernels.engine cimport Kernels
from pyrnnx._kernels.engines cimport find_kernels
from pyrnnx._kernels.plan cimport ALIGNMENT, round_up, run_call
from pyrnnx._kernels.storage cimport BFLOAT16, FLOAT16, NATIVE
from pyrnnx._kernels.timeloop cimport Array, Call

cdef extern from "numpy/arrayobject.h":
    cnp.ndarray PyArray_Empty(int rank, const cnp.npy_intp *shape, cnp.dtype dtype, int fortran)

cnp.import_array()

cdef enum:
    MAX_RANK = 4

cdef dict FUNCTIONS = {PYRNNX_RNN: 1, PYRNNX_GRU: 2, PYRNNX_LSTM: 3}  # activation functions of a direction
cdef dict GATES = {PYRNNX_RNN: 1, PYRNNX_GRU: 3, PYRNNX_LSTM: 4}
cdef dict STORED = {NATIVE: ("float32", "float64"), FLOAT16: ("float16",), BFLOAT16: ("bfloat16",)}


cdef struct Axes:
    # The place of each axis in an array of the caller's, -1 where it has none; `last` is the contiguous one.
    int rank, t, n, d, last


cdef struct Taken:
    # What the call knows of an array of the caller's. All of it is read at once, under the GIL, and never again: another
    # thread may give the array another shape or dtype while the call runs.
    char *data
    cnp.npy_intp shape[MAX_RANK]
    cnp.npy_intp strides[MAX_RANK]


cdef Axes places(str name, str axes, str allowed) except *:
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


cdef Activation activation(function) except *:
    cdef Activation result
    result.kind, result.alpha, result.beta = function
    if not 0 <= result.kind <= PYRNNX_SOFTPLUS:
        raise ValueError(f"activation function {result.kind} is not in the table")
    return result


cdef cnp.dtype native_dtype(dtype):
    return np.dtype(dtype.type)


cdef int check_weights(str name, a, tuple shape, cnp.dtype dtype) except -1:
    if not (cnp.PyArray_CheckExact(a) and a.dtype == dtype and a.flags.c_contiguous and a.shape == shape):
        raise ValueError(f"{name} is not a C-contiguous array of {dtype} and shape {shape}")
    return 0


cdef const void *slice_of(cnp.ndarray a, Py_ssize_t direction):
    return cnp.PyArray_BYTES(a) + direction * cnp.PyArray_STRIDE(a, 0)


cdef class Sequence:
    """One operator with its weights packed, ready to run; safe to call from several threads at once.

    Parameters, in terms of the kernels: the engine's `isa`; `cell` (its kernel number); `reverse` (for each direction);
    `activations` (for each direction (kind, alpha, beta) of f, g, h); `clip` (inf: none); the two flags; the weights in
    the kernels' dtype, C-contiguous: W [D, G*H, I], R [D, G*H, H], bias [D, G*H], recurrent_bias [D, H] or None,
    peepholes [D, 3*H] or None; the `format` that W and R are packed in; `dtype` of the caller's arrays and its
    `storage` (0 the weights' own, 1 float16, 2 bfloat16); the axis letters of X, Y and the states; and the
    `coupled_gate` of input_forget, "f" (f = 1 - i) or "i" (i = 1 - f).

    ValueError: any of them does not fit the others. What it says is for developers: a layer checks before.
    """

    cdef:
        Cell cells[2]
        bint reverse[2]
        int directions, itemsize, storage
        Axes X, Y, state
        Call call                   # all of it that is the same for every call
        const Kernels *kernels
        cnp.dtype dtype, kernel_dtype
        list packed

    def __cinit__(self, str isa not None, int cell, tuple reverse not None, tuple activations not None, double clip,
                  bint linear_before_reset, bint input_forget, cnp.ndarray W not None, cnp.ndarray R not None,
                  cnp.ndarray bias not None, cnp.ndarray recurrent_bias, cnp.ndarray peepholes, int format,
                  cnp.dtype dtype not None, int storage, str X_axes, str Y_axes, str state_axes,
                  str coupled_gate not None="f"):
        cdef:
            int d, k
            Cell *c
        self.packed = []
        self.directions = len(reverse)
        # A dtype is known by its object here, so of equal ones (an array that was pickled has another) it is NumPy's own.
        self.dtype, self.kernel_dtype, self.storage = native_dtype(dtype), native_dtype(W.dtype), storage
        self.itemsize = self.kernel_dtype.itemsize
        self.check_kind(cell, activations)
        if coupled_gate not in ("f", "i"):
            raise ValueError(f"coupled_gate is {coupled_gate!r}; expected 'f' or 'i'")
        self.check_arrays(cell, linear_before_reset, W, R, bias, recurrent_bias, peepholes)
        self.X, self.Y, self.state = (
            places("X", X_axes, "TNI"), places("Y", Y_axes, "TNDH"), places("states", state_axes, "NDH"))
        if self.directions > 1 and (self.Y.d < 0 or self.state.d < 0):
            raise ValueError("axes of Y and of the states lack D, and there are two directions")
        self.kernels = find_kernels(isa, self.itemsize)
        if format < 0 or format > 2 or not self.kernels.formats >> format & 1:
            raise ValueError(f"format {format} of weights is not one of {isa}")
        for d in range(self.directions):
            self.reverse[d] = reverse[d]
            c = &self.cells[d]
            c.cell, c.linear_before_reset, c.clip = cell, linear_before_reset, clip
            c.coupling = PYRNNX_UNCOUPLED
            if input_forget:
                c.coupling = PYRNNX_COUPLED_INPUT if coupled_gate == "i" else PYRNNX_COUPLED_FORGET
            c.weights = format
            for k, function in enumerate(activations[d]):
                (&c.f)[k] = activation(function)  # f, g, h lie side by side
            c.input_size, c.hidden_size = W.shape[2], R.shape[2]
            c.W = self.pack_weights(c, 0, slice_of(W, d))
            c.R = self.pack_weights(c, 1, slice_of(R, d))
            c.bias = self.pack_bias(c, slice_of(bias, d))
            c.recurrent_bias = c.peepholes = NULL
            if recurrent_bias is not None:
                c.recurrent_bias = self.pack_units(c, 1, slice_of(recurrent_bias, d))
            if peepholes is not None:
                c.peepholes = self.pack_units(c, 3, slice_of(peepholes, d))
        self.prepare_call()

    cdef int check_kind(self, int cell, tuple activations) except -1:
        """What is not an array: the cell, its directions and functions, the dtype of the caller's arrays."""
        if cell not in FUNCTIONS:
            raise ValueError(f"cell {cell} is not in the table")
        if self.directions not in (1, 2) or [len(one) for one in activations] != [FUNCTIONS[cell]] * self.directions:
            raise ValueError(f"expected 1 or 2 directions, and {FUNCTIONS[cell]} activation functions for each")
        if self.dtype.name not in STORED.get(self.storage, ()):
            raise ValueError(f"dtype {self.dtype} is not that of storage {self.storage}")
        if self.kernel_dtype.name != (self.dtype.name if self.storage == NATIVE else "float32"):
            raise ValueError(f"weights of {self.kernel_dtype} do not go with arrays of {self.dtype}")
        return 0

    cdef int check_arrays(self, int cell, bint linear_before_reset, W, R, bias, recurrent_bias, peepholes) except -1:
        if W.ndim != 3 or R.ndim != 3 or R.shape[2] < 1:
            raise ValueError("W and R do not have 3 axes and units")
        D, G, H, I = self.directions, GATES[cell], R.shape[2], W.shape[2]
        if max(G * H, I) > INT_MAX:
            raise ValueError("sizes of a product are beyond a C int")
        check_weights("W", W, (D, G * H, I), self.kernel_dtype)
        check_weights("R", R, (D, G * H, H), self.kernel_dtype)
        check_weights("bias", bias, (D, G * H), self.kernel_dtype)
        if linear_before_reset != (recurrent_bias is not None) or (linear_before_reset and cell != PYRNNX_GRU):
            raise ValueError("linear_before_reset and recurrent_bias go together, with a GRU")
        if recurrent_bias is not None:
            check_weights("recurrent_bias", recurrent_bias, (D, H), self.kernel_dtype)
        if peepholes is not None:
            if cell != PYRNNX_LSTM:
                raise ValueError("peepholes go with an LSTM")
            check_weights("peepholes", peepholes, (D, 3 * H), self.kernel_dtype)
        return 0

    cdef void prepare_call(self):
        cdef Call *call = &self.call
        call.kernels, call.storage, call.itemsize = self.kernels, self.storage, self.itemsize
        call.outer_itemsize = self.dtype.itemsize
        call.input_size, call.hidden_size = self.cells[0].input_size, self.cells[0].hidden_size
        call.padded_size = self.padded(&self.cells[0])
        call.units = call.padded_size // self.kernels.lanes
        call.state_storage, call.state_itemsize = self.storage, self.dtype.itemsize
        call.gates = self.kernels.gates(&self.cells[0]) * call.padded_size

    cdef void *room(self, Py_ssize_t size):
        """Memory for packed weights that lives as long as this object."""
        memory = np.zeros(size + ALIGNMENT, np.uint8)
        self.packed.append(memory)
        return <void *> round_up(<Py_ssize_t> cnp.PyArray_DATA(memory), ALIGNMENT)

    cdef Py_ssize_t padded(self, const Cell *c):
        return round_up(c.hidden_size, self.kernels.lanes)

    cdef const void *pack_weights(self, const Cell *c, int recurrent, const void *source):
        cdef void *packed = self.room(self.kernels.packed_size(c, recurrent))
        self.kernels.pack_weights(c, recurrent, source, packed)
        return packed

    cdef const void *pack_bias(self, const Cell *c, const void *source):
        cdef void *packed = self.room(self.kernels.gates(c) * self.padded(c) * self.itemsize)
        self.kernels.pack_bias(c, source, packed)
        return packed

    cdef const void *pack_units(self, const Cell *c, Py_ssize_t count, const void *source):
        cdef void *packed = self.room(count * self.padded(c) * self.itemsize)
        self.kernels.pack_units(c, count, source, packed)
        return packed

    cdef cnp.ndarray empty(self, const Axes *axes, const Call *call, cnp.dtype dtype):
        cdef cnp.npy_intp shape[MAX_RANK]
        shape[axes.last] = call.hidden_size
        shape[axes.n] = call.batch_size
        if axes.t >= 0:
            shape[axes.t] = call.seq_length
        if axes.d >= 0:
            shape[axes.d] = self.directions
        Py_INCREF(dtype)  # PyArray_Empty takes a reference
        return PyArray_Empty(axes.rank, shape, dtype, 0)

    cdef bint take_state(self, a, const Call *call, cnp.dtype dtype, Array *state):
        """Whether an initial state, or None, can be read as it is."""
        cdef:
            Taken taken
            const Axes *axes = &self.state
        state.data = NULL
        state.t = state.d = state.n = 0
        if a is None:
            return True
        if not take(a, axes, dtype, &taken) or taken.shape[axes.last] != call.hidden_size:
            return False
        state[0] = arranged(&taken, axes)
        return taken.shape[axes.n] == call.batch_size and (axes.d < 0 or taken.shape[axes.d] == self.directions)

    def run(self, int threads, X, lengths, initial_h, initial_c, bint wide_states=False):
        """Y, Y_h and, of an LSTM, Y_c from X and the initial states (or None), all in the caller's arrangement.

        None where X or a state is not an array that can be read as it is: they need a closer look. `lengths`: of the
        rows, None for all T. With `wide_states` the states, given and returned, are in the kernels' dtype. At most
        `threads` threads work; the results do not depend on it.
        """
        cdef:
            Call call = self.call
            Taken x
            bint has_cell_state = self.cells[0].cell == PYRNNX_LSTM
            cnp.dtype state_dtype = self.dtype
            cnp.ndarray order = None, falling = None
        if wide_states:
            state_dtype = self.kernel_dtype
            call.state_storage, call.state_itemsize = NATIVE, self.itemsize
        if not take(X, &self.X, self.dtype, &x) or x.shape[self.X.last] != call.input_size:
            return None
        call.X = arranged(&x, &self.X)
        call.seq_length = 1 if self.X.t < 0 else x.shape[self.X.t]
        call.batch_size = x.shape[self.X.n]
        if not self.take_state(initial_h, &call, state_dtype, &call.initial_h):
            return None
        if not self.take_state(initial_c, &call, state_dtype, &call.initial_c) or (
                initial_c is not None and not has_cell_state):
            return None
        call.order = call.lengths = NULL
        if lengths is not None:
            order, falling = falling_lengths(lengths, call.batch_size, call.seq_length)
            call.order = <Py_ssize_t *> cnp.PyArray_DATA(order)
            call.lengths = <Py_ssize_t *> cnp.PyArray_DATA(falling)
        Y, Y_h = self.empty(&self.Y, &call, self.dtype), self.empty(&self.state, &call, state_dtype)
        Y_c = self.empty(&self.state, &call, state_dtype) if has_cell_state else None
        call.Y, call.Y_h = written(Y, &self.Y), written(Y_h, &self.state)
        call.Y_c.data = NULL
        if has_cell_state:
            call.Y_c = written(Y_c, &self.state)
        if call.batch_size:
            run_call(&call, self.cells, self.reverse, self.directions, threads)
        return (Y, Y_h, Y_c) if has_cell_state else (Y, Y_h)


cdef tuple falling_lengths(lengths, Py_ssize_t batch_size, Py_ssize_t seq_length):
    """The rows by falling length, and those lengths; checked on a copy, which nobody else can write to."""
    own = np.array(lengths, dtype=np.intp)
    if own.shape != (batch_size,) or (batch_size and not 0 <= own.min() <= own.max() <= seq_length):
        raise ValueError(f"lengths are not [batch_size={batch_size}] of 0 to seq_length={seq_length}")
    order = np.argsort(-own, kind="stable")
    return order, own[order]
