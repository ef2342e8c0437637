"""One operator with its weights packed for an engine, and the plan of a call: memory, threads, blocks of rows."""

cimport numpy as cnp
from cpython.ref cimport Py_INCREF
from libc.stdlib cimport free, malloc

import numpy as np

from pyrnnx._kernels.cell cimport (
    PYRNNX_COUPLED_FORGET,
    PYRNNX_COUPLED_INPUT,
    PYRNNX_LSTM,
    PYRNNX_UNCOUPLED,
    Activation,
    Cell,
)
from pyrnnx._kernels.engine cimport Kernels
from pyrnnx._kernels.engines cimport find_kernels
from pyrnnx._kernels.storage cimport NATIVE
from pyrnnx._kernels.threads cimport Barrier, barrier_init, team_release, team_run, team_take
from pyrnnx._kernels.timeloop cimport Array, Block, Call, run_block

cdef extern from "numpy/arrayobject.h":
    cnp.ndarray PyArray_Empty(int rank, const cnp.npy_intp *shape, cnp.dtype dtype, int fortran)

cnp.import_array()

cdef enum:
    ALIGNMENT = 64
    MAX_TEAMS = 128
    STATE_BYTES = 1 << 21       # of a block of rows: h, c and one step's gates
    CHUNK_BYTES = 1 << 18       # of a chunk of time steps: X and gates; stays in the second level of cache
    TASK_MACS = 1 << 20         # multiply-adds below which another thread does not pay: some 30 us
    STEP_MACS = 1 << 14         # the same for sharing one time step: a barrier costs some 0.2 us


cdef struct Plan:
    # How a call is shared: `teams` work on different directions or rows, the threads of a team on different units.
    const Call *call
    const Cell *cells
    bint *reverse
    Py_ssize_t steps                        # of all rows together
    Py_ssize_t directions, row_parts, teams, team_size
    Py_ssize_t rows, chunk_rows             # of a block
    Py_ssize_t state_bytes, x_bytes, team_bytes
    char *scratch
    Barrier barriers[MAX_TEAMS]


cdef inline Py_ssize_t round_up(Py_ssize_t n, Py_ssize_t multiple) noexcept nogil:
    return (n + multiple - 1) // multiple * multiple


cdef Py_ssize_t total_steps(const Call *call) noexcept nogil:
    """Time steps of all rows together."""
    cdef Py_ssize_t total = 0, place
    if call.lengths == NULL:
        return call.seq_length * call.batch_size
    for place in range(call.batch_size):
        total += call.lengths[place]
    return total


cdef void share(Plan *plan, int threads) noexcept nogil:
    """Directions first, for they need no barrier; then the units of a step where it is long enough; then rows."""
    cdef:
        const Call *call = plan.call
        Py_ssize_t per_row = call.gates * call.hidden_size
        Py_ssize_t per_direction = threads // plan.directions
    plan.row_parts = plan.team_size = 1
    plan.teams = plan.directions if per_direction >= 1 else 1
    if per_direction <= 1 or call.kernels.whole:
        return
    plan.team_size = min(per_direction, call.units, call.batch_size * per_row // STEP_MACS)
    if plan.team_size < 2:
        plan.team_size = 1
        plan.row_parts = min(per_direction, call.batch_size)
        plan.teams *= plan.row_parts


cdef void size_blocks(Plan *plan) noexcept nogil:
    """Rows and time steps that a team takes at once, cut so that its buffers stay small whatever the call."""
    cdef:
        const Call *call = plan.call
        Py_ssize_t state = 4 * call.padded_size * call.itemsize
        Py_ssize_t step = (call.input_size + call.gates) * call.itemsize
    plan.rows = min(max(STATE_BYTES // (state + step), 1), call.batch_size)
    plan.chunk_rows = min(max(CHUNK_BYTES // step, plan.rows), plan.rows * max(call.seq_length, 1))
    plan.state_bytes = round_up(plan.rows * call.padded_size * call.itemsize, ALIGNMENT)
    plan.x_bytes = round_up(plan.chunk_rows * call.input_size * call.itemsize, ALIGNMENT)
    plan.team_bytes = round_up(4 * plan.state_bytes + plan.x_bytes + plan.chunk_rows * call.gates * call.itemsize,
                               ALIGNMENT)


cdef Py_ssize_t first_row(const Plan *plan, Py_ssize_t part) noexcept nogil:
    """The place where a part of the rows begins; parts have about the same number of time steps."""
    cdef:
        const Call *call = plan.call
        Py_ssize_t place = 0, before = 0, wanted
    if call.lengths == NULL or part == plan.row_parts:
        return call.batch_size * part // plan.row_parts
    wanted = plan.steps * part // plan.row_parts
    while place < call.batch_size and before < wanted:
        before += call.lengths[place]
        place += 1
    return place


cdef void run_rows(const Plan *plan, Block *b, Py_ssize_t team, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """The rows from `begin` to `end` of one direction, block by block."""
    cdef:
        char *base = plan.scratch + team * plan.team_bytes
        Py_ssize_t k
    for k in range((end - begin + plan.rows - 1) // plan.rows):
        b.first = begin + k * plan.rows
        b.rows = b.active = min(plan.rows, end - b.first)
        b.chunk_rows = plan.chunk_rows
        b.h, b.h_next = base, base + plan.state_bytes
        b.c, b.work = base + 2 * plan.state_bytes, base + 3 * plan.state_bytes
        b.x, b.gates = base + 4 * plan.state_bytes, base + 4 * plan.state_bytes + plan.x_bytes
        run_block(b)
        if b.rank >= b.team_size:  # the team has disbanded, and rank 0 goes on alone
            return


cdef void run_member(void *argument, int rank) noexcept nogil:
    """What one thread of the call does: its share of its team's directions and rows."""
    cdef:
        const Plan *plan = <const Plan *> argument
        const Call *call = plan.call
        Py_ssize_t team = rank // plan.team_size, d
        Py_ssize_t part = team % plan.row_parts
        Py_ssize_t first = team // plan.row_parts, stride = plan.teams // plan.row_parts
        Block b
    b.call = call
    b.team_size, b.rank = <int> plan.team_size, rank % <int> plan.team_size
    b.barrier = <Barrier *> &plan.barriers[team]
    b.u0, b.u1 = call.units * b.rank // b.team_size, call.units * (b.rank + 1) // b.team_size
    for d in range(plan.directions):
        if d % stride == first and b.rank < b.team_size:
            b.direction, b.cell, b.reverse = <int> d, &plan.cells[d], plan.reverse[d]
            run_rows(plan, &b, team, first_row(plan, part), first_row(plan, part + 1))


cdef bint disbanded(const Plan *plan) noexcept nogil:
    cdef Py_ssize_t team
    for team in range(plan.teams):
        if plan.barriers[team].disbanded:
            return True
    return False


cdef int run_call(const Call *call, const Cell *cells, bint *reverse, int directions, int threads) except -1:
    """Take a team of threads, plan, and run."""
    cdef:
        Plan plan
        Py_ssize_t steps = total_steps(call), team
        double macs = <double> steps * directions * call.gates * (call.hidden_size + call.input_size)
        char *memory
    threads = team_take(min(threads, MAX_TEAMS, <int> min(macs / TASK_MACS, <double> MAX_TEAMS)))
    plan.call, plan.steps, plan.cells, plan.reverse, plan.directions = call, steps, cells, reverse, directions
    share(&plan, threads)
    size_blocks(&plan)
    memory = <char *> malloc(plan.teams * plan.team_bytes + ALIGNMENT)
    if memory == NULL:
        if threads > 1:
            team_release(False)
        raise MemoryError("scratch memory of a recurrent layer")
    with nogil:
        plan.scratch = <char *> round_up(<Py_ssize_t> memory, ALIGNMENT)
        for team in range(plan.teams):
            barrier_init(&plan.barriers[team], <int> plan.team_size)
        team_run(<int> (plan.teams * plan.team_size), run_member, &plan)
        if threads > 1:
            team_release(disbanded(&plan))
        free(memory)
    return 0


cdef struct Axes:
    # The place of each axis in an array of the caller's, -1 where it has none; `last` is the contiguous one.
    int rank, t, n, d, last


cdef Axes places(str axes):
    """The places of axis letters, such as "TNI" or "NDTH"."""
    cdef Axes result
    result.rank = len(axes)
    result.t, result.n, result.d, result.last = axes.find("T"), axes.find("N"), axes.find("D"), len(axes) - 1
    return result


cdef inline Py_ssize_t stride(cnp.ndarray a, int axis):
    return 0 if axis < 0 else cnp.PyArray_STRIDE(a, axis)


cdef Array view(a, const Axes *axes):
    """An array, or None, as the loop sees it."""
    cdef Array result
    result.data = NULL
    result.t = result.d = result.n = 0
    if a is None:
        return result
    result.data = cnp.PyArray_BYTES(a)
    result.t, result.d, result.n = stride(a, axes.t), stride(a, axes.d), stride(a, axes.n)
    return result


cdef Activation activation(tuple function):
    cdef Activation result
    result.kind, result.alpha, result.beta = function
    return result


cdef const void *slice_of(cnp.ndarray a, Py_ssize_t direction):
    return cnp.PyArray_BYTES(a) + direction * cnp.PyArray_STRIDE(a, 0)


cdef class Sequence:
    """One operator with its weights packed, ready to run; safe to call from several threads at once.

    Parameters, all checked before: the engine's `isa`; `cell` (its kernel number); `reverse` (for each direction);
    `activations` (for each direction (kind, alpha, beta) of f, g, h); `clip` (inf: none); the two flags; the weights in
    the kernels' dtype, C-contiguous: W [D, G*H, I], R [D, G*H, H], bias [D, G*H], recurrent_bias [D, H] or None,
    peepholes [D, 3*H] or None; the `format` that W and R are packed in; `dtype` of the caller's arrays and its `storage` (0 the weights' own, 1 float16,
    2 bfloat16); the axis letters of X, Y and the states; and the `coupled_gate` of input_forget, "f" (f = 1 - i) or "i" (i = 1 - f).
    """

    cdef:
        Cell cells[2]
        bint reverse[2]
        int directions, itemsize, storage
        Axes X, Y, state
        Call call                   # all of it that is the same for every call
        const Kernels *kernels
        cnp.dtype dtype
        list packed

    def __init__(self, str isa, int cell, tuple reverse, tuple activations, double clip, bint linear_before_reset,
                 bint input_forget, cnp.ndarray W, cnp.ndarray R, cnp.ndarray bias, cnp.ndarray recurrent_bias,
                 cnp.ndarray peepholes, int format, cnp.dtype dtype, int storage, str X_axes, str Y_axes, str state_axes,
                 str coupled_gate="f"):
        cdef:
            int d, k
            Cell *c
        self.directions = len(reverse)
        assert self.takes_weights(W, R, bias, recurrent_bias, peepholes)
        self.packed = []
        self.itemsize = W.itemsize
        self.kernels = find_kernels(isa, self.itemsize)
        self.dtype, self.storage = dtype, storage
        self.X, self.Y, self.state = places(X_axes), places(Y_axes), places(state_axes)
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

    cdef bint takes_weights(self, W, R, bias, recurrent_bias, peepholes):
        """Whether the weights are as `__init__` asks; for its assertion."""
        cdef Py_ssize_t D = self.directions, G = W.shape[1] // R.shape[2], H = R.shape[2]
        shapes = ((W, (D, G * H, W.shape[2])), (R, (D, G * H, H)), (bias, (D, G * H)), (recurrent_bias, (D, H)),
                  (peepholes, (D, 3 * H)))
        return 1 <= D <= 2 and W.dtype.type in (np.float32, np.float64) and all([
            a is None or (a.shape == shape and a.dtype == W.dtype and a.flags.c_contiguous) for a, shape in shapes])

    cdef bint takes_call(self, X, order, lengths, initial_h, initial_c):
        """Whether the arrays are as `run` asks; for its assertion."""
        cdef Py_ssize_t T = 1 if self.X.t < 0 else X.shape[self.X.t], N = X.shape[self.X.n]
        if not self.fits(X, initial_h, initial_c) or (order is None) != (lengths is None):
            return False
        return lengths is None or (
            all([a.shape == (N,) and a.dtype == np.intp and a.flags.c_contiguous for a in (order, lengths)])
            and np.array_equal(np.sort(order), np.arange(N))
            and bool(((lengths >= 0) & (lengths <= T)).all() and (np.diff(lengths) <= 0).all()))

    cdef void prepare_call(self):
        cdef Call *call = &self.call
        call.kernels, call.storage, call.itemsize = self.kernels, self.storage, self.itemsize
        call.outer_itemsize = self.itemsize if self.storage == NATIVE else 2
        call.input_size, call.hidden_size = self.cells[0].input_size, self.cells[0].hidden_size
        call.padded_size = self.padded(&self.cells[0])
        call.units = call.padded_size // self.kernels.lanes
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

    def fits(self, X, initial_h, initial_c):
        """Whether `run` can take these arguments of a call as they are; if not, they need a closer look."""
        if not self.readable(X, &self.X) or cnp.PyArray_DIM(X, self.X.last) != self.call.input_size:
            return False
        return self.fits_state(X, initial_h) and (
            initial_c is None or (self.cells[0].cell == PYRNNX_LSTM and self.fits_state(X, initial_c)))

    cdef bint readable(self, a, const Axes *axes):
        return (cnp.PyArray_CheckExact(a) and cnp.PyArray_NDIM(a) == axes.rank
                and <void *> cnp.PyArray_DESCR(a) == <void *> self.dtype
                and (cnp.PyArray_STRIDE(a, axes.last) == cnp.PyArray_ITEMSIZE(a)
                     or cnp.PyArray_DIM(a, axes.last) <= 1))

    cdef bint fits_state(self, X, a):
        cdef const Axes *axes = &self.state
        return a is None or (
            self.readable(a, axes)
            and cnp.PyArray_DIM(a, axes.last) == self.call.hidden_size
            and cnp.PyArray_DIM(a, axes.n) == cnp.PyArray_DIM(X, self.X.n)
            and (axes.d < 0 or cnp.PyArray_DIM(a, axes.d) == self.directions))

    cdef cnp.ndarray empty(self, const Axes *axes, const Call *call):
        cdef cnp.npy_intp shape[4]
        shape[axes.last] = call.hidden_size
        shape[axes.n] = call.batch_size
        if axes.t >= 0:
            shape[axes.t] = call.seq_length
        if axes.d >= 0:
            shape[axes.d] = self.directions
        Py_INCREF(self.dtype)  # PyArray_Empty takes a reference
        return PyArray_Empty(axes.rank, shape, self.dtype, 0)

    def run(self, int threads, cnp.ndarray X, cnp.ndarray order, cnp.ndarray lengths, initial_h, initial_c):
        """Y, Y_h and, of an LSTM, Y_c from X and the initial states (or None), all in the caller's arrangement.

        `lengths` [N], falling, are those of the rows that `order` names; None: all T. At most `threads` threads work;
        the results do not depend on it.
        """
        cdef:
            Call call = self.call
            bint has_cell_state = self.cells[0].cell == PYRNNX_LSTM
        assert self.takes_call(X, order, lengths, initial_h, initial_c)
        call.seq_length = 1 if self.X.t < 0 else cnp.PyArray_DIM(X, self.X.t)
        call.batch_size = cnp.PyArray_DIM(X, self.X.n)
        Y, Y_h = self.empty(&self.Y, &call), self.empty(&self.state, &call)
        Y_c = self.empty(&self.state, &call) if has_cell_state else None
        call.X, call.Y = view(X, &self.X), view(Y, &self.Y)
        call.initial_h, call.initial_c = view(initial_h, &self.state), view(initial_c, &self.state)
        call.Y_h, call.Y_c = view(Y_h, &self.state), view(Y_c, &self.state)
        call.order = NULL if order is None else <Py_ssize_t *> cnp.PyArray_DATA(order)
        call.lengths = NULL if lengths is None else <Py_ssize_t *> cnp.PyArray_DATA(lengths)
        if call.batch_size:
            run_call(&call, self.cells, self.reverse, self.directions, threads)
        return (Y, Y_h, Y_c) if has_cell_state else (Y, Y_h)
