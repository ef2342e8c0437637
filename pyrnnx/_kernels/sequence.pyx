"""The time loop: directions, lengths and layouts, over the kernels of an engine.

Rows of the batch are ordered by falling length, so that the rows still running are always the first ones. The loop
gathers a chunk of time steps of X (in any layout, reversed within each row's length where the direction says so),
projects it by one product, and steps through it; h and c stay in scratch, h is written to Y after each step. Scratch
memory does not grow with T: rows and time steps are cut to fit it.
"""

cimport numpy as cnp
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from pyrnnx._kernels.blas_engine cimport blas_kernels
from pyrnnx._kernels.cell cimport Activation, Cell
from pyrnnx._kernels.engine cimport Kernels
from pyrnnx._kernels.storage cimport FLOAT16, NATIVE, read_row, write_row

cnp.import_array()

cdef enum:
    STATE_BYTES = 1 << 21   # h, c and one step's gates of a block of rows
    CHUNK_BYTES = 1 << 20   # X and gates of a chunk of time steps
    ALIGNMENT = 64


cdef struct Array:
    # A caller's array: its bytes and its strides in bytes; the innermost axis is contiguous. NULL: not there.
    char *data
    Py_ssize_t t, d, n


cdef struct Call:
    const Kernels *kernels
    int storage, itemsize
    Py_ssize_t seq_length, batch_size, input_size, hidden_size
    Py_ssize_t padded_size      # hidden_size rounded up to whole units of the engine
    Py_ssize_t units, gates     # blocks of units, elements of gates in a row
    Array X, initial_h, initial_c, Y, Y_h, Y_c
    Py_ssize_t *order     # row of the caller's arrays at each place; NULL: as they come
    Py_ssize_t *lengths   # length of the row at each place, falling; NULL: T


cdef struct Block:
    # A block of rows of one direction on its way through time.
    const Call *call
    const Cell *cell
    int direction
    bint reverse
    Py_ssize_t first, rows, active, chunk_rows
    char *x
    char *gates
    char *h
    char *h_next
    char *c
    char *work


cdef inline Py_ssize_t row_at(const Block *b, Py_ssize_t place) noexcept nogil:
    return b.first + place if b.call.order == NULL else b.call.order[b.first + place]


cdef inline Py_ssize_t length_at(const Block *b, Py_ssize_t place) noexcept nogil:
    return b.call.seq_length if b.call.lengths == NULL else b.call.lengths[b.first + place]


cdef inline Py_ssize_t time_at(const Block *b, Py_ssize_t place, Py_ssize_t step) noexcept nogil:
    return length_at(b, place) - 1 - step if b.reverse else step


cdef inline char *state_row(const Array *a, int direction, Py_ssize_t row) noexcept nogil:
    return a.data + direction * a.d + row * a.n


cdef inline Py_ssize_t round_up(Py_ssize_t n, Py_ssize_t multiple) noexcept nogil:
    return (n + multiple - 1) // multiple * multiple


cdef void load_state(const Block *b, const Array *initial, char *state) noexcept nogil:
    cdef:
        const Call *call = b.call
        Py_ssize_t place, size = call.padded_size * call.itemsize
    memset(state, 0, b.rows * size)
    if initial.data != NULL:
        for place in range(b.rows):
            read_row(call.storage, call.itemsize, state_row(initial, b.direction, row_at(b, place)),
                     state + place * size, call.hidden_size)


cdef void store_state(const Block *b, const Array *last, const char *state, Py_ssize_t place) noexcept nogil:
    """The last state of a row; zero for a row that never ran."""
    cdef:
        const Call *call = b.call
        char *target
    if last.data == NULL:
        return
    target = state_row(last, b.direction, row_at(b, place))
    if length_at(b, place) == 0:
        memset(target, 0, call.hidden_size * (call.itemsize if call.storage == NATIVE else 2))
    else:
        write_row(call.storage, call.itemsize, state + place * call.padded_size * call.itemsize, target, call.hidden_size)


cdef Py_ssize_t running(const Block *b, Py_ssize_t step, Py_ssize_t rows) noexcept nogil:
    """How many of the first `rows` rows are longer than `step`."""
    while rows > 0 and length_at(b, rows - 1) <= step:
        rows -= 1
    return rows


cdef void retire(Block *b, Py_ssize_t step) noexcept nogil:
    """Store the states of the rows that end before `step`."""
    cdef Py_ssize_t active = running(b, step, b.active), place
    for place in range(active, b.active):
        store_state(b, &b.call.Y_h, b.h, place)
        store_state(b, &b.call.Y_c, b.c, place)
    b.active = active


cdef Py_ssize_t plan_chunk(const Block *b, Py_ssize_t step, Py_ssize_t *total) noexcept nogil:
    """The number of time steps from `step` on that fit a chunk, and the rows of them all."""
    cdef Py_ssize_t steps = 0, active = b.active
    total[0] = 0
    while True:
        active = running(b, step + steps, active)
        if active == 0 or total[0] + active > b.chunk_rows:
            return steps
        total[0] += active
        steps += 1


cdef const char *gather(const Block *b, Py_ssize_t step, Py_ssize_t steps, Py_ssize_t *ldx) noexcept nogil:
    """The rows of X for a chunk, one after the other: in place where they already lie so, else copied and widened."""
    cdef:
        const Call *call = b.call
        const Array *X = &call.X
        Py_ssize_t size = call.input_size * call.itemsize, s, place, active = b.active
        Py_ssize_t ld = X.t if call.batch_size == 1 else X.n
        char *row = b.x
    if (call.storage == NATIVE and not b.reverse and call.lengths == NULL and b.rows == call.batch_size
            and ld >= size and ld % call.itemsize == 0 and (X.t == call.batch_size * ld or steps == 1)
            and <size_t> X.data % <size_t> call.itemsize == 0):
        ldx[0] = ld // call.itemsize
        return X.data + step * X.t
    for s in range(step, step + steps):
        active = running(b, s, active)
        for place in range(active):
            read_row(call.storage, call.itemsize, X.data + time_at(b, place, s) * X.t + row_at(b, place) * X.n,
                     row, call.input_size)
            row += size
    ldx[0] = call.input_size
    return b.x


cdef void write_outputs(const Block *b, Py_ssize_t step) noexcept nogil:
    cdef:
        const Call *call = b.call
        Py_ssize_t place
    for place in range(b.active):
        write_row(call.storage, call.itemsize, b.h + place * call.padded_size * call.itemsize,
                  state_row(&call.Y, b.direction, row_at(b, place)) + time_at(b, place, step) * call.Y.t, call.hidden_size)


cdef void zero_padding(const Block *b) noexcept nogil:
    """Y beyond each row's length."""
    cdef:
        const Call *call = b.call
        Py_ssize_t place, t, size = call.hidden_size * (call.itemsize if call.storage == NATIVE else 2)
    for place in range(b.rows):
        for t in range(length_at(b, place), call.seq_length):
            memset(state_row(&call.Y, b.direction, row_at(b, place)) + t * call.Y.t, 0, size)


cdef void advance(Block *b, char *gates) noexcept nogil:
    """One time step of the running rows: Ht and Ct from Ht-1, Ct-1 and the projected Xt."""
    cdef:
        const Call *call = b.call
        int phase
    for phase in range(call.kernels.phases(b.cell)):
        call.kernels.step(b.cell, phase, b.active, gates, b.h, b.c, b.h_next, b.work, 0, call.units)
    b.h, b.h_next = b.h_next, b.h


cdef void run_block(Block *b) noexcept nogil:
    """All time steps of a block of rows in one direction."""
    cdef:
        const Call *call = b.call
        Py_ssize_t step = 0, steps, total, ldx, s
        const char *x
        char *gates
    load_state(b, &call.initial_h, b.h)
    load_state(b, &call.initial_c, b.c)
    memset(b.h_next, 0, b.rows * call.padded_size * call.itemsize)
    retire(b, 0)
    while b.active:
        steps = plan_chunk(b, step, &total)
        x = gather(b, step, steps, &ldx)
        call.kernels.project(b.cell, total, x, ldx, b.gates, 0, call.units)
        gates = b.gates
        for s in range(step, step + steps):
            retire(b, s)
            advance(b, gates)
            write_outputs(b, s)
            gates += b.active * call.gates * call.itemsize
        step += steps
        retire(b, step)
    zero_padding(b)


cdef Array view(cnp.ndarray a, int t, int d, int n):
    """An array as the loop sees it; t, d, n: the place of each axis, -1 where there is none."""
    cdef Array result
    result.data = NULL
    result.t = result.d = result.n = 0
    if a is not None:
        result.data = cnp.PyArray_BYTES(a)
        result.t = cnp.PyArray_STRIDE(a, t) if t >= 0 else 0
        result.d = cnp.PyArray_STRIDE(a, d) if d >= 0 else 0
        result.n = cnp.PyArray_STRIDE(a, n)
    return result


cdef Activation activation(tuple function):
    cdef Activation result
    result.kind, result.alpha, result.beta = function
    return result


cdef class Sequence:
    """One operator with its weights, ready to run; safe to call from several threads at once.

    Parameters, all checked before: `cell` (its kernel number), `gates` of the cell, `reverse` (for each direction),
    `activations` (for each direction (kind, alpha, beta) of f, g, h), `clip` (inf: none), the two flags, and the
    weights in the kernels' dtype, C-contiguous: W [D, G*H, I], R [D, G*H, H], bias [D, G*H], recurrent_bias [D, H] or
    None, peepholes [D, 3*H] or None.
    """

    cdef:
        Cell cells[2]
        bint reverse[2]
        int directions, gates, itemsize
        const Kernels *kernels
        tuple weights

    def __init__(self, int cell, int gates, tuple reverse, tuple activations, double clip, bint linear_before_reset,
                 bint input_forget, cnp.ndarray W, cnp.ndarray R, cnp.ndarray bias, cnp.ndarray recurrent_bias,
                 cnp.ndarray peepholes):
        cdef:
            int d, k
            Cell *c
        self.weights = (W, R, bias, recurrent_bias, peepholes)
        self.directions = len(reverse)
        self.gates = gates
        self.itemsize = W.itemsize
        self.kernels = blas_kernels(self.itemsize)
        for d in range(self.directions):
            self.reverse[d] = reverse[d]
            c = &self.cells[d]
            c.cell, c.linear_before_reset, c.input_forget, c.clip = cell, linear_before_reset, input_forget, clip
            for k, function in enumerate(activations[d]):
                (&c.f)[k] = activation(function)  # f, g, h lie side by side
            c.input_size, c.hidden_size = W.shape[2], R.shape[2]
            c.W, c.R, c.bias = weight(W, d), weight(R, d), weight(bias, d)
            c.recurrent_bias, c.peepholes = weight(recurrent_bias, d), weight(peepholes, d)

    def run(self, int storage, cnp.ndarray X, cnp.ndarray order, cnp.ndarray lengths, cnp.ndarray initial_h,
            cnp.ndarray initial_c, cnp.ndarray Y, cnp.ndarray Y_h, cnp.ndarray Y_c):
        """Fill Y [T, D, N, H], Y_h and Y_c [D, N, H] from X [T, N, I] and the initial states [D, N, H].

        The arrays may have any strides but on the last axis; all are of the dtype that `storage` says (0 the weights'
        own, 1 float16, 2 bfloat16). `lengths` [N], falling, are those of the rows that `order` names; None: all T.
        """
        cdef Call call
        call.kernels, call.storage, call.itemsize = self.kernels, storage, self.itemsize
        call.seq_length, call.batch_size, call.input_size = X.shape[0], X.shape[1], X.shape[2]
        call.hidden_size = self.cells[0].hidden_size
        call.units = 1 if self.kernels.lanes == 0 else (call.hidden_size + self.kernels.lanes - 1) // self.kernels.lanes
        call.padded_size = call.hidden_size if self.kernels.lanes == 0 else call.units * self.kernels.lanes
        call.gates = self.gates * call.padded_size
        call.X = view(X, 0, -1, 1)
        call.initial_h, call.initial_c = view(initial_h, -1, 0, 1), view(initial_c, -1, 0, 1)
        call.Y, call.Y_h, call.Y_c = view(Y, 0, 1, 2), view(Y_h, -1, 0, 1), view(Y_c, -1, 0, 1)
        call.order = NULL if order is None else <Py_ssize_t *> cnp.PyArray_DATA(order)
        call.lengths = NULL if lengths is None else <Py_ssize_t *> cnp.PyArray_DATA(lengths)
        if call.batch_size:
            self._run(&call)

    cdef int _run(self, const Call *call) except -1:
        """Cut the batch into blocks of rows that fit the scratch memory, and run each in each direction."""
        cdef:
            Py_ssize_t state = 4 * call.padded_size * call.itemsize
            Py_ssize_t step = (call.input_size + call.gates) * call.itemsize
            Py_ssize_t rows = min(max(STATE_BYTES // (state + step), 1), call.batch_size)
            Py_ssize_t chunk = min(max(CHUNK_BYTES // step, rows), rows * max(call.seq_length, 1))
            Py_ssize_t state_size = round_up(rows * call.padded_size * call.itemsize, ALIGNMENT)
            Py_ssize_t x_size = round_up(chunk * call.input_size * call.itemsize, ALIGNMENT)
            Py_ssize_t first, d, k
            char *scratch
            char *base
            Block b
        scratch = <char *> malloc(4 * state_size + x_size + chunk * call.gates * call.itemsize + ALIGNMENT)
        if scratch == NULL:
            raise MemoryError("scratch memory of a recurrent layer")
        base = <char *> round_up(<Py_ssize_t> scratch, ALIGNMENT)
        with nogil:
            for d in range(self.directions):
                for k in range((call.batch_size + rows - 1) // rows):
                    first = k * rows
                    b.call, b.cell, b.direction, b.reverse = call, &self.cells[d], <int> d, self.reverse[d]
                    b.first, b.rows, b.chunk_rows = first, min(rows, call.batch_size - first), chunk
                    b.active = b.rows
                    b.h, b.h_next = base, base + state_size
                    b.c, b.work = base + 2 * state_size, base + 3 * state_size
                    b.x, b.gates = base + 4 * state_size, base + 4 * state_size + x_size
                    run_block(&b)
            free(scratch)
        return 0


cdef const void *weight(cnp.ndarray a, int direction):
    return NULL if a is None else cnp.PyArray_BYTES(a) + direction * cnp.PyArray_STRIDE(a, 0)
