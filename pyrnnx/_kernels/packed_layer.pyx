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
    as_output,
    is_disjoint,
    is_writable,
    overlap,
    parse_axes,
    read_array,
)
from pyrnnx._kernels.blocks cimport ELEMENT_WORK, ROW_WORK, Call
from pyrnnx._kernels.calls cimport (
    DONE,
    NO_SCRATCH_MEMORY,
    NO_SPLIT_MEMORY,
    Status,
    begin_call,
    choose_matrices,
    free_split,
    set_inputs,
    set_lengths,
)
from pyrnnx._kernels.engine cimport Kernels, Matrices
from pyrnnx._kernels.engines cimport find_kernels, find_matrices
from pyrnnx._kernels.operands cimport ROUNDING
from pyrnnx._kernels.parameters cimport (
    PYRNNX_DOT_COUNT,
    PYRNNX_WEIGHTS_CODES,
    Activation,
    Parameters,
    QuantizedWeights,
)
from pyrnnx._kernels.plan cimport (
    ALIGNMENT,
    can_be_interrupted,
    is_short,
    keeps_gil,
    round_up,
    run_call,
    watch_signals,
)
from pyrnnx._kernels.storage cimport NATIVE
from pyrnnx._kernels.tables cimport (
    CELL_ROWS,
    PYRNNX_COUPLED_FORGET,
    PYRNNX_COUPLED_INPUT,
    PYRNNX_LINEAR_BEFORE_RESET,
    PYRNNX_PLAIN,
)
from pyrnnx._kernels.threads cimport Interrupt

cdef extern from "numpy/arrayobject.h":
    cnp.ndarray PyArray_Empty(int rank, const cnp.npy_intp *shape, cnp.dtype dtype, int fortran)

cnp.import_array()

cdef dict COUPLED = {"f": PYRNNX_COUPLED_FORGET, "i": PYRNNX_COUPLED_INPUT}


cdef int variant_of(bint linear_before_reset, str coupled_gate) except -1:
    if linear_before_reset:
        return PYRNNX_LINEAR_BEFORE_RESET
    return PYRNNX_PLAIN if coupled_gate is None else COUPLED[coupled_gate]


cdef cnp.dtype native_dtype(dtype):
    return np.dtype(dtype.type)


cdef class PackedLayer:
    """One operator with its weights packed, ready to run; safe to call from several threads at once.

    Parameters, in terms of the kernels: the engine's `isa`; `cell` (its number); `reverse` (for each direction);
    `activations` (for each direction (number, alpha, beta) of f, g, h); `clip` (inf: none); `linear_before_reset`;
    `coupled_gate` (input_forget: "f" for f = 1 - i, "i" for i = 1 - f; else None); the weights in the kernels' dtype,
    C-contiguous: W [D, G*H, I], R [D, G*H, H], bias [D, G*H], recurrent_bias [D, H] or None, peepholes [D, 3*H] or
    None; `weight_dtype`, the number of the type that W and R are packed in; the `dtype` of the caller's arrays and its
    `storage` (0 the weights' own, 1 float16, 2 bfloat16); and the axis letters of X, Y and the states.

    With `coded`, for an LSTM in float32, X and h are rounded to 8 bits before products (simd/codes.h). W and R can then
    be int8 codes of weight_dtype PYRNNX_WEIGHTS_CODES, with `factors` W_scale, W_zero_point, R_scale, R_zero_point,
    each [D, G*H], float32 scales and int32 zero points. `dot` is the last PYRNNX_DOT_* to use if the processor supports
    it; it does not change results.

    `layers.prepare` has checked all values; only the arrays whose memory the kernels read are checked again.
    """

    @property
    def one_call(self):
        """Whether the layer is called only once, so that splitting W and R must pay in one call."""
        return self.packed.one_call

    @one_call.setter
    def one_call(self, bint value):
        self.packed.one_call = value

    def __dealloc__(self):
        free_split(&self.packed.split)

    def __cinit__(self, *, str isa not None, int cell, tuple reverse not None, tuple activations not None, double clip,
                  bint linear_before_reset, str coupled_gate, cnp.ndarray W not None, cnp.ndarray R not None,
                  cnp.ndarray bias not None, cnp.ndarray recurrent_bias, cnp.ndarray peepholes, int weight_dtype,
                  cnp.dtype dtype not None, int storage, str X_axes, str Y_axes, str state_axes, bint coded=False,
                  tuple factors=None, int dot=PYRNNX_DOT_COUNT - 1):
        cdef:
            int variant = variant_of(linear_before_reset, coupled_gate), d, k
            Py_ssize_t G = CELL_ROWS[cell].gate_count, H = R.shape[2], I = W.shape[2]
            Parameters *p
            const Matrices *matrices
        self.memory = []
        self.packed.directions = len(reverse)
        # Dtypes are compared by identity. Equal dtypes may be different objects, for example of unpickled arrays.
        self.dtype, self.kernel_dtype, self.storage = native_dtype(dtype), native_dtype(bias.dtype), storage
        self.itemsize = self.kernel_dtype.itemsize
        if max(G * H, I) > INT_MAX:
            raise ValueError(f"gates * hidden_size is {G * H} and input_size {I}; expected sizes that fit a C int")
        self.packed.X, self.packed.Y, self.packed.state = (
            parse_axes("X", X_axes, "TNI"), parse_axes("Y", Y_axes, "TNDH"), parse_axes("states", state_axes, "NDH"))
        self.kernels = find_kernels(isa, self.itemsize)
        for d in range(self.packed.directions):
            self.packed.reverse[d] = reverse[d]
            p = &self.packed.parameters[d]
            p.cell, p.variant, p.itemsize, p.weight_dtype, p.clip = cell, variant, self.itemsize, weight_dtype, clip
            p.input_size, p.hidden_size = I, H
            if factors is not None:
                p.dot = max(0, min(dot, self.kernels.coding.best_dot()))
            for k, (number, alpha, beta) in enumerate(activations[d]):
                p.functions[k] = Activation(number, alpha, beta)
            if factors is not None:
                p.W = self.pack_codes(p, 0, "W", W, (G * H, I), d, factors[0], factors[1])
                p.R = self.pack_codes(p, 1, "R", R, (G * H, H), d, factors[2], factors[3])
            else:
                p.W = self.pack_weights(p, 0, self.checked_data("W", W, (G * H, I), d))
                p.R = self.pack_weights(p, 1, self.checked_data("R", R, (G * H, H), d))
            p.finite_R = factors is None and all_below_large(cnp.PyArray_BYTES(R[d]), G * H * H, self.itemsize)
            p.bias = self.pack_bias(p, self.checked_data("bias", bias, (G * H,), d))
            p.recurrent_bias = p.peepholes = NULL
            if recurrent_bias is not None:
                p.recurrent_bias = self.pack_units(p, 1, self.checked_data("recurrent_bias", recurrent_bias, (H,), d))
            if peepholes is not None:
                p.peepholes = self.pack_units(p, 3, self.checked_data("peepholes", peepholes, (3 * H,), d))
        self.prepare_call(coded)
        matrices = find_matrices(isa, self.itemsize)
        if matrices != NULL and not coded and matrices.pays(&self.packed.parameters[0]):
            self.packed.split.matrices = matrices
            self.packed.split.parameters, self.packed.split.directions = self.packed.parameters, self.packed.directions

    cdef const void *checked_data(self, str name, a, tuple shape, int direction, dtype=None) except NULL:
        """Check an array of weights and return the data of a direction; nothing else accesses their memory."""
        dtype = self.kernel_dtype if dtype is None else dtype
        if not (cnp.PyArray_CheckExact(a) and a.dtype == dtype and a.flags.c_contiguous
                and a.flags.aligned and a.shape == (self.packed.directions, *shape)):
            expected = f"C-contiguous, aligned array of {dtype} and shape {(self.packed.directions, *shape)}"
            raise ValueError(f"{name} is not a {expected}")
        return cnp.PyArray_BYTES(a) + direction * cnp.PyArray_STRIDE(a, 0)

    cdef void prepare_call(self, bint coded):
        cdef:
            Call *call = &self.packed.call
            const Parameters *p = &self.packed.parameters[0]
        call.kernels, call.storage, call.itemsize = self.kernels, self.storage, self.itemsize
        call.outer_itemsize = self.dtype.itemsize
        call.input_size, call.hidden_size = p.input_size, p.hidden_size
        call.padded_size = self.padded(p)
        call.unit_blocks = call.padded_size // self.kernels.lanes
        call.state_storage, call.state_itemsize = self.storage, self.dtype.itemsize
        call.projected_size = self.kernels.gate_count(p) * call.padded_size
        call.phases = self.kernels.phases(p)
        call.step_work = ROW_WORK + <double> call.projected_size * (p.hidden_size + ELEMENT_WORK)
        call.x_size, call.ldx = p.input_size * self.itemsize, p.input_size
        if not coded:
            return
        call.coding, call.coded_size = &ROUNDING, call.padded_size * self.itemsize
        if p.weight_dtype == PYRNNX_WEIGHTS_CODES:
            call.coding = self.kernels.coding
            call.x_size = call.ldx = call.coding.row_size(p, p.input_size)
            call.coded_size = call.coding.row_size(p, p.hidden_size)

    cdef void *allocate(self, Py_ssize_t size):
        """Return memory for packed weights, which this object owns."""
        memory = np.zeros(size + ALIGNMENT, np.uint8)
        self.memory.append(memory)
        return <void *> round_up(<Py_ssize_t> cnp.PyArray_DATA(memory), ALIGNMENT)

    cdef Py_ssize_t padded(self, const Parameters *p):
        return round_up(p.hidden_size, self.kernels.lanes)

    cdef const void *pack_weights(self, const Parameters *p, int recurrent, const void *source):
        cdef void *packed = self.allocate(self.kernels.packed_size(p, recurrent))
        self.kernels.pack_weights(p, recurrent, source, packed)
        return packed

    cdef const void *pack_codes(self, const Parameters *p, int recurrent, str name, codes, tuple shape, int direction,
                                scale, zero_point) except NULL:
        cdef QuantizedWeights source
        source.codes = <const signed char *> self.checked_data(name, codes, shape, direction, np.dtype(np.int8))
        source.scale = <const float *> self.checked_data(f"{name}_scale", scale, shape[:1], direction)
        source.zero_point = <const int *> self.checked_data(
            f"{name}_zero_point", zero_point, shape[:1], direction, np.dtype(np.int32))
        return self.pack_weights(p, recurrent, &source)

    cdef const void *pack_bias(self, const Parameters *p, const void *source):
        cdef void *packed = self.allocate(self.kernels.gate_count(p) * self.padded(p) * self.itemsize)
        self.kernels.pack_bias(p, source, packed)
        return packed

    cdef const void *pack_units(self, const Parameters *p, Py_ssize_t count, const void *source):
        cdef void *packed = self.allocate(count * self.padded(p) * self.itemsize)
        self.kernels.pack_units(p, count, source, packed)
        return packed

    cdef Status run_prepared(self, Call *call, int threads) noexcept nogil:
        cdef Status status = choose_matrices(&self.packed, call)
        if status != DONE or call.batch_size == 0:
            return status
        if run_call(call, self.packed.parameters, self.packed.reverse, self.packed.directions, threads, NULL):
            return DONE
        return NO_SCRATCH_MEMORY

    cdef int compute(self, Call *call, int threads) except -1:
        """Run a call whose arrays are set; raise MemoryError, or the error of a signal handler."""
        cdef:
            bint keeps
            Status status
            int directions = self.packed.directions
            Interrupt interrupt
        interrupt.stop = False
        call.interrupt = NULL
        keeps = keeps_gil(call, directions)
        if not keeps and can_be_interrupted(call, directions) and watch_signals(&interrupt):
            call.interrupt = &interrupt
        if keeps:
            status = self.run_prepared(call, threads)
        else:
            with nogil:
                status = self.run_prepared(call, threads)
        if status != DONE:
            buffers = "split weights" if status == NO_SPLIT_MEMORY else "scratch buffers"
            raise MemoryError(f"the {buffers} exceed memory")
        return -1 if interrupt.stop else 0

    cdef cnp.ndarray result(self, out, const Axes *axes, const Call *call, cnp.dtype dtype):
        """Return the array for a result, `out` or a new one; None if `out` cannot be written in place."""
        cdef cnp.npy_intp shape[MAX_RANK]
        shape[axes.last] = call.hidden_size
        shape[axes.n] = call.batch_size
        if axes.t >= 0:
            shape[axes.t] = call.seq_length
        if axes.d >= 0:
            shape[axes.d] = self.packed.directions
        if out is not None:
            return out if is_writable(out, axes.rank, shape, dtype) else None
        Py_INCREF(dtype)  # PyArray_Empty takes a reference
        return PyArray_Empty(axes.rank, shape, dtype, 0)

    cdef bint read_inputs(self, Call *call, X, initial_h, initial_c, cnp.dtype state_dtype):
        """Set X and the initial states, and their sizes, in the call; return False if one cannot be read in place."""
        cdef Taken x, h, c
        if (not read_array(X, &self.packed.X, self.dtype, &x)
                or (initial_h is not None and not read_array(initial_h, &self.packed.state, state_dtype, &h))
                or (initial_c is not None and not read_array(initial_c, &self.packed.state, state_dtype, &c))):
            return False
        return set_inputs(&self.packed, call, &x, NULL if initial_h is None else &h, NULL if initial_c is None else &c)

    cdef cnp.ndarray read_lengths(self, lengths, Call *call):
        """Set the lengths of the rows of a call and return their memory; None if they do not match the rows."""
        cdef:
            cnp.npy_intp shape[2]
            cnp.ndarray source = np.asarray(lengths), memory
        shape[0], shape[1] = 3, call.batch_size
        if cnp.PyArray_NDIM(source) == 1 and cnp.PyArray_DIM(source, 0) == call.batch_size:
            memory = cnp.PyArray_EMPTY(2, shape, cnp.NPY_INTP, 0)
            cnp.PyArray_CopyInto(memory[0], source)  # other threads may write to the caller's array
            if set_lengths(call, <Py_ssize_t *> cnp.PyArray_DATA(memory),
                           <Py_ssize_t *> cnp.PyArray_DATA(memory) + call.batch_size):
                return memory
        return None

    cdef tuple set_outputs(self, Call *call, tuple out, cnp.dtype state_dtype):
        """Set the results of a call, arrays of `out` or new ones, and return them; None if one cannot be written in place."""
        cdef:
            bint has_cell_state = CELL_ROWS[self.packed.parameters[0].cell].has_cell_state
            cnp.ndarray Y, Y_h, Y_c = None
        if out is not None and len(out) != 2 + has_cell_state:
            return None
        try:
            Y = self.result(None if out is None else out[0], &self.packed.Y, call, self.dtype)
            Y_h = self.result(None if out is None else out[1], &self.packed.state, call, state_dtype)
            if has_cell_state:
                Y_c = self.result(None if out is None else out[2], &self.packed.state, call, state_dtype)
        except (ValueError, MemoryError) as error:  # NumPy raises ValueError for sizes that overflow
            raise MemoryError(f"the outputs exceed memory ({error})") from error
        if Y is None or Y_h is None or (Y_c is None and has_cell_state):
            return None
        call.Y, call.Y_h = as_output(Y, &self.packed.Y), as_output(Y_h, &self.packed.state)
        call.Y_c.data = NULL
        if has_cell_state:
            call.Y_c = as_output(Y_c, &self.packed.state)
        return (Y, Y_h, Y_c) if has_cell_state else (Y, Y_h)

    cpdef tuple run(self, int threads, X, lengths, initial_h, initial_c, bint wide_states=False, tuple out=None):
        """Return Y, Y_h and, for an LSTM, Y_c, in the caller's arrangement.

        Return None if X, a state or an array of `out` cannot be read or written in place, or if `lengths` do not match
        X: the caller then checks its arguments. `lengths` None means T for every row. With `wide_states`, initial and
        returned states have the kernels' dtype. `out` has an array or None for each result; the array of a last state
        may be the initial state. At most `threads` threads work, and results do not depend on their number.

        MemoryError names what exceeds memory. An error of a signal handler can leave arrays of `out` partly written.
        """
        cdef:
            Call call
            cnp.dtype state_dtype = self.kernel_dtype if wide_states else self.dtype
            cnp.ndarray rows = None
            tuple outputs
        begin_call(&self.packed, &call)
        if wide_states:
            call.state_storage, call.state_itemsize = NATIVE, self.itemsize
        if not self.read_inputs(&call, X, initial_h, initial_c, state_dtype):
            return None
        if out is not None and overlap(out, (X, initial_h, initial_c)):
            return None
        if lengths is not None:
            rows = self.read_lengths(lengths, &call)
            if rows is None:
                return None
        outputs = self.set_outputs(&call, out, state_dtype)
        if outputs is not None:
            self.compute(&call, threads)
        return outputs

    cdef bint is_like_state(self, cnp.ndarray a, cnp.ndarray state):
        """Return whether the kernels can write the next value of `state` to an array."""
        return a.dtype is self.kernel_dtype and cnp.PyArray_ISCARRAY(a) and cnp.PyArray_SAMESHAPE(a, state)

    cpdef cnp.ndarray push(self, X, cnp.ndarray h, cnp.ndarray c, out=None, cnp.ndarray h_next=None,
                           cnp.ndarray c_next=None):
        """Return Y of the next time steps of every row, and update h and c (LSTM only) in place.

        h, c and the optional h_next and c_next have the kernels' dtype, are contiguous, and belong to the caller. With
        h_next and c_next, h and c do not change. Do nothing and return None if `run` must handle the call: arrays
        that cannot be read or written in place, no steps or rows, enough work for several threads or an interrupt, or
        too little memory.
        """
        cdef:
            Call call
            cnp.ndarray Y
        begin_call(&self.packed, &call)
        if (h is None or not self.read_inputs(&call, X, h, c, self.kernel_dtype)
                or call.seq_length == 0 or call.batch_size == 0
                or not is_short(&call, self.packed.directions)
                or not cnp.PyArray_ISCARRAY(h) or (c is not None and not cnp.PyArray_ISCARRAY(c))):
            return None
        call.state_storage, call.state_itemsize = NATIVE, self.itemsize
        call.Y_h, call.Y_c = call.initial_h, call.initial_c
        if h_next is not None:
            if not self.is_like_state(h_next, h) or (c is not None and (c_next is None
                                                                        or not self.is_like_state(c_next, c))):
                return None
            call.Y_h.data = cnp.PyArray_BYTES(h_next)
            if c is not None:
                call.Y_c.data = cnp.PyArray_BYTES(c_next)
        try:
            Y = self.result(out, &self.packed.Y, &call, self.dtype)
            if Y is None or (out is not None and not is_disjoint(Y, X)):
                return None
            call.Y = as_output(Y, &self.packed.Y)
            self.compute(&call, 1)
        except MemoryError:  # `run` reports the details
            return None
        return Y
