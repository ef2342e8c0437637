"""A pipeline of layers, each of which reads the results of the one before, for small batches and several threads.

Each layer is a stage. A thread takes a stage, runs some time steps of it, and returns it. A stage is ready
when the stage before it is further by that many steps:

    thread 0   | layer 0, steps 0-9 | layer 0, 10-19 | layer 1, 10-19 | layer 2, 10-19 | ...
    thread 1                        | layer 1, 0-9   | layer 2, 0-9   | layer 0, 20-29 | ...

Threads then need no barrier in each step, unlike those that share its units. Results are the same, bit for bit.
"""

from libc.limits cimport INT_MAX
from libc.stdlib cimport free, malloc

cimport numpy as cnp

from pyrnnx._kernels.arrays cimport overlap
from pyrnnx._kernels.blocks cimport ROW_WORK, STEP_WORK, Block, Call, Team
from pyrnnx._kernels.calls cimport begin_call
from pyrnnx._kernels.engine cimport PYRNNX_MATRIX_ROWS
from pyrnnx._kernels.packed_layer cimport PackedLayer
from pyrnnx._kernels.plan cimport ALIGNMENT, Plan, plan_alone, round_up, run_team, set_block, watch_signals
from pyrnnx._kernels.threads cimport (
    SPINS,
    Interrupt,
    barrier_close,
    barrier_late,
    barrier_open,
    barrier_waited,
    barrier_watch,
    interrupt_poll,
    load_flag,
    now,
    spin,
    store_flag,
    take_flag,
)
from pyrnnx._kernels.timeloop cimport begin_block, run_steps

cnp.import_array()

cdef enum:
    CACHE_LINE = 64
    MAX_THREAD_ROWS = 4     # of the batch for each thread; more fill the tiles of products, and need no pipeline
    MAX_BYTES = 1 << 20     # of a layer's weights, which each thread reads; of more, it should read only a share
    MAX_Y_BYTES = 1 << 28   # of all Y, which a pipeline needs at once; layer after layer needs two of them
    TURN_WORK = 1 << 18     # least work of a turn (see blocks): about 5 us
    MIN_TURNS = 5           # of each layer: in the first and the last, threads wait for each other
    MOST_TURNS = 16


cdef struct Stage:
    # A layer of a pipeline. The thread that took it may use `block`.
    Block block
    char gap[CACHE_LINE]
    int taken
    int done    # time steps of Y that are written
    char end[CACHE_LINE]


cdef struct Pipeline:
    Stage *stages
    int count
    int seq_length, steps   # time steps of the call, of a turn
    Interrupt *interrupt
    Team team   # closed while the caller runs alone


cdef inline bint is_ready(const Pipeline *p, int k) noexcept nogil:
    """Return whether the steps of a stage's next turn can run."""
    cdef:
        int done = load_flag(&p.stages[k].done)
        int there = load_flag(&p.stages[k - 1].done) if k else p.seq_length
    return done < there and (there - done >= p.steps or there == p.seq_length)


cdef int take_stage(const Pipeline *p) noexcept nogil:
    """Take the last stage that is ready and that no thread has; return its number, or -1.

    While the caller is alone, take the first: then it reads the weights of one layer at a time.
    """
    cdef:
        bint alone = load_flag(&p.team.barrier.closed)
        int place, k
    for place in range(p.count):
        k = place if alone else p.count - 1 - place
        if is_ready(p, k) and take_flag(&p.stages[k].taken):
            if is_ready(p, k):
                return k
            store_flag(&p.stages[k].taken, 0)
    return -1


cdef bint run_stage(const Pipeline *p, Stage *stage, bint is_caller) noexcept nogil:
    """Run a turn of a stage; return False if the call was interrupted."""
    cdef Block *b = &stage.block
    b.is_caller = is_caller
    if stage.done == 0 and not begin_block(b):
        return False
    b.limit = min(b.step + p.steps, p.seq_length)
    if not run_steps(b):
        return False
    store_flag(&stage.done, <int> b.step if b.active else p.seq_length)
    store_flag(&stage.taken, 0)
    return True


cdef void close_if_late(Team *team) noexcept nogil:
    """Allow the caller to close the team after long waits, and rest."""
    cdef long long late = barrier_late(&team.barrier)
    if late:
        barrier_close(&team.barrier)
        team.rest(late)


cdef bint stays(Team *team, bint is_caller) noexcept nogil:
    """Return whether a thread stays in the team; the caller closes it after long waits, and opens it after a rest."""
    if not is_caller:
        return not load_flag(&team.barrier.closed)
    if not load_flag(&team.barrier.closed):
        close_if_late(team)
    elif team.may_call(team.threads):
        barrier_open(&team.barrier)
        barrier_watch(&team.barrier)
        team.call(team.threads)
    return True


cdef int wait_for_stage(Pipeline *p, bint is_caller) noexcept nogil:
    """Take a stage as soon as one is ready; return its number, or -1 if the thread must leave."""
    cdef:
        long long begin = 0
        int spins = 0, k = -1
    while load_flag(&p.stages[p.count - 1].done) < p.seq_length and stays(&p.team, is_caller):
        k = take_stage(p)
        if k >= 0:
            break
        if spins == SPINS:
            begin = now()
        spin(spins)
        spins += 1
        if p.interrupt != NULL and interrupt_poll(p.interrupt, is_caller):
            break
    if begin:
        barrier_waited(&p.team.barrier, begin)
        if is_caller:
            close_if_late(&p.team)
    return k


cdef void run_stages(void *argument, int rank) noexcept nogil:
    """Run turns in one thread until the last stage is done."""
    cdef:
        Pipeline *p = <Pipeline *> argument
        int k = wait_for_stage(p, rank == 0)
    while k >= 0 and run_stage(p, &p.stages[k], rank == 0):
        k = wait_for_stage(p, rank == 0)


def turn_steps(tuple layers, int threads, Py_ssize_t seq_length, Py_ssize_t batch_size):
    """Return the time steps of a turn; 0 if the layers must run one after another, or are faster so.

    Parameters
    ----------
    layers : tuple of PackedLayer
    threads : int
        Maximum number of threads.
    seq_length, batch_size : int
        Time steps and rows of the call.
    """
    cdef:
        PackedLayer layer
        Call call
        Plan plan
        Py_ssize_t steps
        double work = 0, Y_bytes = 0
    if (threads < 2 or len(layers) < 2 or not MIN_TURNS <= seq_length <= INT_MAX
            or not 0 < batch_size <= min(MAX_THREAD_ROWS * threads, PYRNNX_MATRIX_ROWS - 1)):
        return 0
    for layer in layers:
        begin_call(&layer.packed, &call)
        call.seq_length, call.batch_size, call.lengths, call.matrices = seq_length, batch_size, NULL, NULL
        if (layer.packed.directions != 1 or layer.packed.reverse[0] or call.coding != NULL or call.kernels.whole
                or call.projected_size * (call.input_size + call.hidden_size) * call.itemsize > MAX_BYTES):
            return 0
        plan_alone(&plan, &call, layer.packed.parameters, layer.packed.reverse)
        if plan.rows < batch_size:
            return 0  # a stage has one row block
        Y_bytes += <double> seq_length * batch_size * call.hidden_size * call.outer_itemsize
        work += STEP_WORK + batch_size * (ROW_WORK + call.projected_size * call.input_size + call.step_work)
    if Y_bytes > MAX_Y_BYTES:
        return 0
    steps = max(1 + <Py_ssize_t> (TURN_WORK * len(layers) / work), seq_length // MOST_TURNS)
    return steps if steps * MIN_TURNS <= seq_length else 0


def run_pipeline(tuple layers, int threads, int steps, list arguments):
    """Run layers as a pipeline, and return the last states of each.

    Parameters
    ----------
    layers : tuple of PackedLayer
    threads : int
        Maximum number of threads.
    steps : int
        Time steps of a turn, from `turn_steps`.
    arguments : list of tuple
        Arguments of each layer's `PackedLayer.run` after the threads, without wide states. X of a layer views the
        memory of the previous layer's Y in `out`.

    Returns
    -------
    list of tuple, or None
        Y_h and, for an LSTM, Y_c of each layer. None if an array cannot be read or written in place.

    Raises
    ------
    MemoryError
        The results or the scratch memory exceed memory.
    """
    cdef:
        PackedLayer layer
        int k, count = <int> len(layers)
        Interrupt interrupt
        Pipeline pipeline
        Call *calls = <Call *> malloc(count * sizeof(Call))
        Stage *stages = <Stage *> malloc(count * sizeof(Stage))
        char *memory = NULL
        list states = [], rows = []
        tuple results
    try:
        if calls == NULL or stages == NULL:
            raise MemoryError("the scratch buffers exceed memory")
        for k, layer in enumerate(layers):
            X, lengths, initial_h, initial_c, _, out = arguments[k]
            results = set_call(layer, &calls[k], rows, X, lengths, initial_h, initial_c, out)
            if results is None or calls[k].seq_length != calls[0].seq_length:
                return None
            states.append(results[1:])
        interrupt.stop = False
        pipeline.stages, pipeline.count, pipeline.steps = stages, count, steps
        pipeline.seq_length, pipeline.interrupt = <int> calls[0].seq_length, NULL
        if watch_signals(&interrupt):
            pipeline.interrupt = &interrupt
        memory = set_stages(layers, calls, &pipeline)
        with nogil:
            run_team(min(threads, count), run_stages, &pipeline, &pipeline.team, pipeline.interrupt)
        stop_if(interrupt.stop)
        return states
    finally:
        free(calls)
        free(stages)
        free(memory)


cdef int stop_if(bint interrupted) except -1:
    """Raise the error that a signal handler has set if the call was interrupted."""
    return -1 if interrupted else 0


cdef tuple set_call(PackedLayer layer, Call *call, list rows, X, lengths, initial_h, initial_c, tuple out):
    """Set a call of one layer; return its results, or None if an array cannot be used in place."""
    begin_call(&layer.packed, call)
    if (not layer.read_inputs(call, X, initial_h, initial_c, layer.dtype)
            or overlap(out, (X, initial_h, initial_c))):
        return None
    if lengths is not None:
        rows.append(layer.read_lengths(lengths, call))
        if rows[len(rows) - 1] is None:
            return None
    call.matrices = NULL
    return layer.set_outputs(call, out, layer.dtype)


cdef char *set_stages(tuple layers, Call *calls, Pipeline *pipeline) except NULL:
    """Set the stages of a pipeline, and return their memory."""
    cdef:
        PackedLayer layer
        Py_ssize_t size = ALIGNMENT
        char *memory
        Plan plan
        int k
    for k, layer in enumerate(layers):
        calls[k].interrupt = pipeline.interrupt
        plan_alone(&plan, &calls[k], layer.packed.parameters, layer.packed.reverse)
        size += plan.block_bytes
    memory = <char *> malloc(size)
    if memory == NULL:
        raise MemoryError("the scratch buffers exceed memory")
    plan.scratch = <char *> round_up(<Py_ssize_t> memory, ALIGNMENT)
    for k, layer in enumerate(layers):
        plan_alone(&plan, &calls[k], layer.packed.parameters, layer.packed.reverse)
        set_block(&pipeline.stages[k].block, &plan, 0)
        pipeline.stages[k].taken = pipeline.stages[k].done = 0
        plan.scratch += plan.block_bytes
    return memory
