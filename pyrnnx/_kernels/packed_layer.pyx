"""One operator with its weights packed for an engine, ready to run on the caller's arrays."""

cimport numpy as cnp
from cpython.ref cimport Py_INCREF
from libc.limits cimport INT_MAX

import numpy as np

from pyrnnx._kernels.arrays cimport (
    MAX_RANK,
    Axes,
    Taken,
    all_below_large,
    apart,
    arranged,
    can_be_written,
    meet,
    places,
    take,
    written,
)
from pyrnnx._kernels.coding cimport ROUNDING
from pyrnnx._kernels.engine cimport PYRNNX_MATRIX_ROWS, Kernels, Matrices
from pyrnnx._kernels.engines cimport find_kernels, find_matrices, packs_as
from pyrnnx._kernels.matrices cimport SplitWeights, split_weights
from pyrnnx._kernels.parameters cimport (
    PYRNNX_DOT_COUNT,
    PYRNNX_MAX_CODES,
    PYRNNX_WEIGHTS_CODES,
    Activation,
    Parameters,
    QuantizedWeights,
)
from pyrnnx._kernels.plan cimport ALIGNMENT, by_falling_length, checked_lengths, round_up, run_call, takes_one_thread
from pyrnnx._kernels.storage cimport BFLOAT16, FLOAT16, NATIVE
from pyrnnx._kernels.tables cimport (
    CELL_ROWS,
    PYRNNX_ACTIVATION_COUNT,
    PYRNNX_CELL_COUNT,
    PYRNNX_COUPLED_FORGET,
    PYRNNX_COUPLED_INPUT,
    PYRNNX_LINEAR_BEFORE_RESET,
    PYRNNX_LSTM,
    PYRNNX_PLAIN,
)
from pyrnnx._kernels.timeloop cimport Array, Call

cdef extern from "numpy/arrayobject.h":
    cnp.ndarray PyArray_Empty(int rank, const cnp.npy_intp *shape, cnp.dtype dtype, int fortran)

cnp.import_array()

cdef dict STORED = {NATIVE: ("float32", "float64"), FLOAT16: ("float16",), BFLOAT16: ("bfloat16",)}
cdef dict COUPLED = {"f": PYRNNX_COUPLED_FORGET, "i": PYRNNX_COUPLED_INPUT}
cdef bint batch_invariant = False

cdef enum:
    ONE_CALL_ROWS = 1024    # of all time steps, below which splitting W and R takes longer than it saves


def set_batch_invariant(bint value) -> None:
    """Whether every row's bits are to be those of a batch of that row alone, in all calls that begin from now on."""
    global batch_invariant
    batch_invariant = value


cdef Activation activation(function) except *:
    cdef Activation result
    result.number, result.alpha, result.beta = function
    if not 0 <= result.number < PYRNNX_ACTIVATION_COUNT:
        raise ValueError(f"activation function {result.number} is not in the table")
    return result


cdef int variant_of(int cell, bint linear_before_reset, str coupled_gate) except -1:
    cdef int variant = PYRNNX_PLAIN
    if not 0 <= cell < PYRNNX_CELL_COUNT:
        raise ValueError(f"cell {cell} is not in the table")
    if linear_before_reset:
        variant = PYRNNX_LINEAR_BEFORE_RESET
    elif coupled_gate is not None:
        if coupled_gate not in COUPLED:
            raise ValueError(f"coupled_gate is {coupled_gate!r}; expected None or one of {', '.join(COUPLED)}")
        variant = COUPLED[coupled_gate]
    if (linear_before_reset and coupled_gate is not None) or not CELL_ROWS[cell].variants >> variant & 1:
        raise ValueError(f"cell {cell} does not have linear_before_reset or coupled_gate as given")
    return variant


cdef cnp.dtype native_dtype(dtype):
    return np.dtype(dtype.type)


cdef class PackedLayer:
    """One operator with its weights packed, ready to run; safe to call from several threads at once.

    Parameters, in terms of the kernels: the engine's `isa`; `cell` (its number); `reverse` (for each direction);
    `activations` (for each direction (number, alpha, beta) of f, g, h); `clip` (inf: none); `linear_before_reset`;
    `coupled_gate` (of input_forget: "f", f = 1 - i, or "i", i = 1 - f; else None); the weights in the kernels' dtype,
    C-contiguous: W [D, G*H, I], R [D, G*H, H], bias [D, G*H], recurrent_bias [D, H] or None, peepholes [D, 3*H] or
    None; the `weight_dtype` that W and R are packed in (its number); `dtype` of the caller's arrays and its `storage`
    (0 the weights' own, 1 float16, 2 bfloat16); and the axis letters of X, Y and the states.

    With `coded`, for an LSTM in float32, X and h are rounded to 8 bits before they are multiplied (simd/codes.h). Then W
    and R may be codes themselves, int8 and of weight_dtype PYRNNX_WEIGHTS_CODES, with their `factors`: W_scale,
    W_zero_point, R_scale, R_zero_point, each [D, G*H], of float32 and int32. `dot`: the last of PYRNNX_DOT_* to use, where
    the processor has it; the results are the same bits.

    ValueError: any of them does not fit the others. What it says is for developers: a layer checks before.
    """

    cdef:
        Parameters parameters[2]    # of each direction
        bint reverse[2]
        int directions, itemsize, storage
        Axes X, Y, state
        Call call                   # all of it that is the same for every call
        const Kernels *kernels
        cnp.dtype dtype, kernel_dtype
        list packed
        SplitWeights split          # for matrices; None: they do not pay

    cdef public bint one_call       # whether no call will follow the first, for whose sake alone W and R are split

    def __cinit__(self, *, str isa not None, int cell, tuple reverse not None, tuple activations not None, double clip,
                  bint linear_before_reset, str coupled_gate, cnp.ndarray W not None, cnp.ndarray R not None,
                  cnp.ndarray bias not None, cnp.ndarray recurrent_bias, cnp.ndarray peepholes, int weight_dtype,
                  cnp.dtype dtype not None, int storage, str X_axes, str Y_axes, str state_axes, bint coded=False,
                  tuple factors=None, int dot=PYRNNX_DOT_COUNT - 1):
        cdef:
            int variant = variant_of(cell, linear_before_reset, coupled_gate), d, k
            Py_ssize_t G = CELL_ROWS[cell].gate_count, H, I
            Parameters *p
            const Matrices *matrices
        self.packed = []
        self.directions = len(reverse)
        # A dtype is known by its object here, so of equal ones (an array that was pickled has another) it is NumPy's own.
        self.dtype, self.kernel_dtype, self.storage = native_dtype(dtype), native_dtype(bias.dtype), storage
        self.itemsize = self.kernel_dtype.itemsize
        self.check_dtypes_and_functions(cell, activations)
        if W.ndim != 3 or R.ndim != 3 or R.shape[2] < 1:
            raise ValueError("W and R do not have 3 axes and units")
        H, I = R.shape[2], W.shape[2]
        if max(G * H, I) > INT_MAX:
            raise ValueError("sizes of a product are beyond a C int")
        if linear_before_reset != (recurrent_bias is not None):
            raise ValueError("linear_before_reset and recurrent_bias go together")
        if peepholes is not None and not CELL_ROWS[cell].has_cell_state:
            raise ValueError("peepholes go with a cell state")
        self.X, self.Y, self.state = (
            places("X", X_axes, "TNI"), places("Y", Y_axes, "TNDH"), places("states", state_axes, "NDH"))
        if self.directions > 1 and (self.Y.d < 0 or self.state.d < 0):
            raise ValueError("axes of Y and of the states lack D, and there are two directions")
        self.kernels = find_kernels(isa, self.itemsize)
        if not (packs_as(self.kernels, weight_dtype)
                or weight_dtype == PYRNNX_WEIGHTS_CODES and self.kernels.coding != NULL):
            raise ValueError(f"weight_dtype {weight_dtype} is not one of {isa}")
        self.check_coding(cell, coded, weight_dtype, factors, max(H, I))
        for d in range(self.directions):
            self.reverse[d] = reverse[d]
            p = &self.parameters[d]
            p.cell, p.variant, p.itemsize, p.weight_dtype, p.clip = cell, variant, self.itemsize, weight_dtype, clip
            p.input_size, p.hidden_size = I, H
            if factors is not None:
                p.dot = max(0, min(dot, self.kernels.coding.best_dot()))
            if self.kernels.gate_count(p) < 1:
                raise ValueError(f"{isa} does not have variant {variant} of cell {cell}")
            for k, function in enumerate(activations[d]):
                p.functions[k] = activation(function)
            if factors is not None:
                p.W = self.pack_codes(p, 0, "W", W, (G * H, I), d, factors[0], factors[1])
                p.R = self.pack_codes(p, 1, "R", R, (G * H, H), d, factors[2], factors[3])
            else:
                p.W = self.pack_weights(p, 0, self.checked("W", W, (G * H, I), d))
                p.R = self.pack_weights(p, 1, self.checked("R", R, (G * H, H), d))
            p.finite_R = factors is None and all_below_large(cnp.PyArray_BYTES(R[d]), G * H * H, self.itemsize)
            p.bias = self.pack_bias(p, self.checked("bias", bias, (G * H,), d))
            p.recurrent_bias = p.peepholes = NULL
            if recurrent_bias is not None:
                p.recurrent_bias = self.pack_units(p, 1, self.checked("recurrent_bias", recurrent_bias, (H,), d))
            if peepholes is not None:
                p.peepholes = self.pack_units(p, 3, self.checked("peepholes", peepholes, (3 * H,), d))
        self.prepare_call(coded)
        matrices = find_matrices(isa, self.itemsize)
        if matrices != NULL and not coded and matrices.pays(&self.parameters[0]):
            self.split = split_weights(matrices, self.parameters, self.directions)

    cdef int check_coding(self, int cell, bint coded, int weight_dtype, tuple factors, Py_ssize_t depth) except -1:
        cdef bint codes = weight_dtype == PYRNNX_WEIGHTS_CODES, has_factors = factors is not None
        if codes != has_factors:
            raise ValueError("weights that are codes and factors go together")
        if codes and (not coded or len(factors) != 4 or depth > PYRNNX_MAX_CODES):
            raise ValueError(f"codes go with coded rows, with 4 factors, and in sums of at most {PYRNNX_MAX_CODES}")
        if coded and (cell != PYRNNX_LSTM or self.kernel_dtype.name != "float32"):
            raise ValueError("coded rows go with an LSTM in float32")
        return 0

    cdef int check_dtypes_and_functions(self, int cell, tuple activations) except -1:
        cdef int count = CELL_ROWS[cell].function_count
        if self.directions not in (1, 2) or [len(one) for one in activations] != [count] * self.directions:
            raise ValueError(f"expected 1 or 2 directions, and {count} activation functions for each")
        if self.dtype.name not in STORED.get(self.storage, ()):
            raise ValueError(f"dtype {self.dtype} is not that of storage {self.storage}")
        if self.kernel_dtype.name != (self.dtype.name if self.storage == NATIVE else "float32"):
            raise ValueError(f"weights of {self.kernel_dtype} do not go with arrays of {self.dtype}")
        return 0

    cdef const void *checked(self, str name, a, tuple shape, int direction, dtype=None) except NULL:
        """Where the numbers of a direction lie in weights that are as they should be: the one door to their memory."""
        dtype = self.kernel_dtype if dtype is None else dtype
        if not (cnp.PyArray_CheckExact(a) and a.dtype == dtype and a.flags.c_contiguous
                and a.flags.aligned and a.shape == (self.directions, *shape)):
            expected = f"C-contiguous, aligned array of {dtype} and shape {(self.directions, *shape)}"
            raise ValueError(f"{name} is not a {expected}")
        return cnp.PyArray_BYTES(a) + direction * cnp.PyArray_STRIDE(a, 0)

    cdef void prepare_call(self, bint coded):
        cdef:
            Call *call = &self.call
            const Parameters *p = &self.parameters[0]
        call.kernels, call.storage, call.itemsize = self.kernels, self.storage, self.itemsize
        call.outer_itemsize = self.dtype.itemsize
        call.input_size, call.hidden_size = p.input_size, p.hidden_size
        call.padded_size = self.padded(p)
        call.unit_blocks = call.padded_size // self.kernels.lanes
        call.state_storage, call.state_itemsize = self.storage, self.dtype.itemsize
        call.projected_size = self.kernels.gate_count(p) * call.padded_size
        call.phases = self.kernels.phases(p)
        call.x_size, call.ldx = p.input_size * self.itemsize, p.input_size
        if not coded:
            return
        call.coding, call.coded_size = &ROUNDING, call.padded_size * self.itemsize
        if p.weight_dtype == PYRNNX_WEIGHTS_CODES:
            call.coding = self.kernels.coding
            call.x_size = call.ldx = call.coding.row_size(p, p.input_size)
            call.coded_size = call.coding.row_size(p, p.hidden_size)

    cdef void *room(self, Py_ssize_t size):
        """Memory for packed weights that lives as long as this object."""
        memory = np.zeros(size + ALIGNMENT, np.uint8)
        self.packed.append(memory)
        return <void *> round_up(<Py_ssize_t> cnp.PyArray_DATA(memory), ALIGNMENT)

    cdef Py_ssize_t padded(self, const Parameters *p):
        return round_up(p.hidden_size, self.kernels.lanes)

    cdef const void *pack_weights(self, const Parameters *p, int recurrent, const void *source):
        cdef void *packed = self.room(self.kernels.packed_size(p, recurrent))
        self.kernels.pack_weights(p, recurrent, source, packed)
        return packed

    cdef const void *pack_codes(self, const Parameters *p, int recurrent, str name, codes, tuple shape, int direction,
                                scale, zero_point) except NULL:
        cdef QuantizedWeights source
        source.codes = <const signed char *> self.checked(name, codes, shape, direction, np.dtype(np.int8))
        source.scale = <const float *> self.checked(f"{name}_scale", scale, shape[:1], direction)
        source.zero_point = <const int *> self.checked(
            f"{name}_zero_point", zero_point, shape[:1], direction, np.dtype(np.int32))
        return self.pack_weights(p, recurrent, &source)

    cdef const void *pack_bias(self, const Parameters *p, const void *source):
        cdef void *packed = self.room(self.kernels.gate_count(p) * self.padded(p) * self.itemsize)
        self.kernels.pack_bias(p, source, packed)
        return packed

    cdef const void *pack_units(self, const Parameters *p, Py_ssize_t count, const void *source):
        cdef void *packed = self.room(count * self.padded(p) * self.itemsize)
        self.kernels.pack_units(p, count, source, packed)
        return packed

    cdef int choose_matrices(self, Call *call) except -1:
        """Whether matrices multiply, and in which time steps: by the rows of the whole call, however it is cut."""
        call.matrices = NULL
        if batch_invariant or self.split is None or call.batch_size < PYRNNX_MATRIX_ROWS:
            return 0
        if self.one_call and call.seq_length < (ONE_CALL_ROWS + call.batch_size - 1) // call.batch_size:
            return 0
        if self.split.ready():
            call.matrices = self.split.matrices
            call.matrix_steps = call.seq_length if call.lengths == NULL else call.lengths[PYRNNX_MATRIX_ROWS - 1]
        return 0

    cdef cnp.ndarray result(self, given, const Axes *axes, const Call *call, cnp.dtype dtype):
        """A new array for a result, or the one given for it; None if that cannot be written as it is."""
        cdef cnp.npy_intp shape[MAX_RANK]
        shape[axes.last] = call.hidden_size
        shape[axes.n] = call.batch_size
        if axes.t >= 0:
            shape[axes.t] = call.seq_length
        if axes.d >= 0:
            shape[axes.d] = self.directions
        if given is not None:
            return given if can_be_written(given, axes.rank, shape, dtype) else None
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

    cdef bint take_inputs(self, Call *call, X, initial_h, initial_c, cnp.dtype state_dtype):
        """Whether X and the initial states, or None, can be read as they are: then they and their sizes are the call's."""
        cdef Taken x
        if not take(X, &self.X, self.dtype, &x) or x.shape[self.X.last] != call.input_size:
            return False
        call.X = arranged(&x, &self.X)
        call.seq_length = 1 if self.X.t < 0 else x.shape[self.X.t]
        call.batch_size = x.shape[self.X.n]
        call.order = call.lengths = NULL
        return (self.take_state(initial_h, call, state_dtype, &call.initial_h)
                and self.take_state(initial_c, call, state_dtype, &call.initial_c)
                and (initial_c is None or CELL_ROWS[self.parameters[0].cell].has_cell_state))

    def run(self, int threads, X, lengths, initial_h, initial_c, bint wide_states=False, tuple out=None):
        """Y, Y_h and, of an LSTM, Y_c from X and the initial states (or None), all in the caller's arrangement.

        None where X, a state or an array of `out` is not an array that can be read or written as it is: they need a
        closer look. `lengths`: of the rows, None for all T. With `wide_states` the states, given and returned, are in
        the kernels' dtype. `out`: for each result the array to write it to, or None; an array for a last state may be
        the initial state. At most `threads` threads work; the results do not depend on it.

        MemoryError: what exceeds memory, as a sentence. ValueError: lengths that are none of X.
        """
        cdef:
            Call call = self.call
            bint has_cell_state = CELL_ROWS[self.parameters[0].cell].has_cell_state
            cnp.dtype state_dtype = self.kernel_dtype if wide_states else self.dtype
            cnp.ndarray order = None, falling = None, Y, Y_h, Y_c = None
        if wide_states:
            call.state_storage, call.state_itemsize = NATIVE, self.itemsize
        if not self.take_inputs(&call, X, initial_h, initial_c, state_dtype):
            return None
        if out is not None and (len(out) != 2 + has_cell_state or meet(out, (X, initial_h, initial_c))):
            return None
        if lengths is not None:
            falling = checked_lengths(lengths, &call)
            order = by_falling_length(falling, &call)
        try:
            Y = self.result(None if out is None else out[0], &self.Y, &call, self.dtype)
            Y_h = self.result(None if out is None else out[1], &self.state, &call, state_dtype)
            if has_cell_state:
                Y_c = self.result(None if out is None else out[2], &self.state, &call, state_dtype)
        except (ValueError, MemoryError) as error:  # NumPy's: more than it can count, or than there is
            raise MemoryError(f"the outputs exceed memory ({error})") from error
        if Y is None or Y_h is None or (Y_c is None and has_cell_state):
            return None
        call.Y, call.Y_h = written(Y, &self.Y), written(Y_h, &self.state)
        call.Y_c.data = NULL
        if has_cell_state:
            call.Y_c = written(Y_c, &self.state)
        self.choose_matrices(&call)
        if call.batch_size:
            run_call(&call, self.parameters, self.reverse, self.directions, threads)
        return (Y, Y_h, Y_c) if has_cell_state else (Y, Y_h)

    def push(self, X, cnp.ndarray h not None, cnp.ndarray c, out=None):
        """Y of the next time steps of every row; h and c (None but of an LSTM), in the kernels' dtype, move on.

        They are the caller's own, contiguous and known to nobody else. None, with nothing done, for what `run` has to
        look at: arrays that cannot be read or written as they are, nothing to compute, enough for several threads, or
        too much for the memory that there is.
        """
        cdef:
            Call call = self.call
            cnp.ndarray Y
        if (not self.take_inputs(&call, X, h, c, self.kernel_dtype) or call.seq_length == 0 or call.batch_size == 0
                or not takes_one_thread(&call, self.directions)
                or not cnp.PyArray_ISCARRAY(h) or (c is not None and not cnp.PyArray_ISCARRAY(c))):
            return None
        call.state_storage, call.state_itemsize = NATIVE, self.itemsize
        try:
            Y = self.result(out, &self.Y, &call, self.dtype)
            if Y is None or (out is not None and not apart(Y, X)):
                return None
            call.Y, call.Y_h, call.Y_c = written(Y, &self.Y), call.initial_h, call.initial_c
            self.choose_matrices(&call)
            run_call(&call, self.parameters, self.reverse, self.directions, 1)
        except MemoryError:  # `run` says of what
            return None
        return Y
