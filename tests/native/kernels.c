/* Run the kernels of every instruction set of this processor, and teams of threads, without Python, and compare with a
 * plain reference in double. `.ci/native` builds and runs it for several systems. Prints what ran; returns 1 on a
 * mistake. */
#include <Python.h> /* .ci/native's: declares how a thread starts */

#include <stdio.h>

#include "layers.h"
#include "threads/barrier.h"
#include "threads/once.h"
#include "threads/threads.h"

enum { CALLERS = 3, CALLS = 20 };
static const char *const ISAS[] = {"amx", "avx512", "avx2", "neon"};
/* Of sums of 70 numbers in four steps; the reference has the weights as they are stored. */
static const double FLOAT_TOLERANCE = 4e-6, DOUBLE_TOLERANCE = 1e-13;
static int mistakes, teams;

static void fail(const char *isa, const char *what, double difference) {
    printf("MISTAKE: %s: %s: %g\n", isa, what, difference);
    mistakes++;
}

typedef struct {
    void (*run)(void *);
    void *argument;
} thread;

#ifdef _WIN32
static DWORD WINAPI run_thread(void *started) {
#else
static void *run_thread(void *started) {
#endif
    const thread copy = *(thread *)started;
    free(started);
    copy.run(copy.argument);
    return 0;
}

unsigned long PyThread_start_new_thread(void (*run)(void *), void *argument) {
    thread *started = malloc(sizeof *started);
    *started = (thread){run, argument};
#ifdef _WIN32
    return CreateThread(NULL, 0, run_thread, started, 0, NULL) ? 1 : PYTHREAD_INVALID_THREAD_ID;
#else
    pthread_t id;
    if (pthread_create(&id, NULL, run_thread, started)) return PYTHREAD_INVALID_THREAD_ID;
    pthread_detach(id);
    return 1;
#endif
}

/* Results of a call: states after it. */
typedef struct {
    char *h, *c;
} states;

/* A call that the ranks of a team share by unit blocks, as the time loop does. */
typedef struct {
    const layer *l;
    ptrdiff_t rows, steps;
    char *projected, *buffer[2], *c, *work;
    const void *coded_x, *coded_h;
    pyrnnx_barrier barrier;
    ptrdiff_t begin; /* published by the leader: the time step at which its followers begin */
} call;

/* A thread's place in the team of a call, and its next time step. */
typedef struct {
    ptrdiff_t t;
    int rank, size;
} member;

static void project(const call *s) {
    const layer *l = s->l;
    const ptrdiff_t blocks = l->Hp / l->kernels->lanes;
    if (s->coded_x != NULL)
        l->kernels->project(&l->p, s->rows, s->coded_x, (ptrdiff_t)l->kernels->coding->row_size(&l->p, l->I),
                            s->projected, 0, blocks);
    else
        l->kernels->project(&l->p, s->rows * s->steps, l->x, l->I, s->projected, 0, blocks);
}

/* As in the time loop: the leader, while it is alone, admits the threads that joined. */
static void admit(call *s, member *leader) {
    if (PYRNNX_LOAD(&s->barrier.closed)) {
        if (!pyrnnx_team_may_call(s->barrier.limit)) return;
        pyrnnx_barrier_open(&s->barrier);
        pyrnnx_team_call(s->barrier.limit);
    }
    const int joined = pyrnnx_barrier_joined(&s->barrier, leader->t == 0 ? s->barrier.limit - 1 : 0);
    if (joined == 0) return;
    __atomic_add_fetch(&teams, 1, __ATOMIC_RELAXED);
    s->begin = leader->t, leader->size = joined + 1;
    pyrnnx_barrier_admit(&s->barrier, joined);
}

/* Before the last round of a time step, let the leader regroup: if others joined or are late, and every third step. */
static void watch(call *s, const member *leader) {
    const long long late = pyrnnx_barrier_late(&s->barrier);
    if (late) {
        pyrnnx_barrier_close(&s->barrier);
        pyrnnx_team_rest(late);
    }
    if (late || leader->t % 3 == 2 || pyrnnx_barrier_joined(&s->barrier, 0) + 1 > leader->size) s->barrier.regroup = 1;
}

static void run_steps(call *s, member m) {
    const layer *l = s->l;
    const ptrdiff_t blocks = l->Hp / l->kernels->lanes, G = l->kernels->gate_count(&l->p);
    const int phases = l->kernels->phases(&l->p);
    for (; m.t < s->steps; m.t++) {
        if (m.size == 1) admit(s, &m);
        const pyrnnx_step step = {.number = m.t,
                                  .rows = s->rows,
                                  .projected = s->projected + m.t * s->rows * G * l->Hp * l->p.itemsize,
                                  .h_prev = s->coded_h ? s->coded_h : s->buffer[m.t % 2],
                                  .c = s->c,
                                  .h_next = s->buffer[1 - m.t % 2],
                                  .work = s->work,
                                  .u0 = blocks * m.rank / m.size,
                                  .u1 = blocks * (m.rank + 1) / m.size};
        pyrnnx_verdict verdict = PYRNNX_GO_ON;
        for (int phase = 0; phase < phases; phase++) {
            l->kernels->step(&l->p, phase, &step);
            if (m.size == 1) continue;
            if (m.rank == 0 && phase == phases - 1) watch(s, &m);
            verdict = pyrnnx_barrier_wait(&s->barrier);
        }
        if (verdict == PYRNNX_GO_ON) continue;
        if (m.rank != 0) return;
        m.size = 1;
    }
}

static void run_rank(void *argument, int rank) {
    call *s = argument;
    if (rank == 0) {
        pyrnnx_barrier_begin(&s->barrier);
        project(s);
        run_steps(s, (member){.size = 1});
        pyrnnx_barrier_close(&s->barrier);
        return;
    }
    if (!pyrnnx_barrier_begun(&s->barrier)) return;
    const int place = pyrnnx_barrier_join(&s->barrier);
    unsigned seen = 0;
    while (pyrnnx_barrier_enter(&s->barrier, place, &seen)) run_steps(s, (member){s->begin, place, s->barrier.size});
}

/* Return the codes of rows as the engine makes them, and replace the numbers by what the codes mean. */
static void *coded_rows(const layer *l, ptrdiff_t rows, ptrdiff_t depth, float *x, ptrdiff_t ldx) {
    float range[2] = {0, 0};
    const size_t size = l->kernels->coding->row_size(&l->p, depth);
    char *coded = room(size * (size_t)rows);
    l->kernels->coding->widen_range(rows, depth, x, ldx, range);
    l->kernels->coding->encode(&l->p, rows, depth, x, ldx, range, coded, size);
    const float scale = (range[1] - range[0]) / 255, zero = rintf(-range[0] / scale);
    for (ptrdiff_t r = 0; r < rows; r++)
        for (ptrdiff_t k = 0; k < depth; k++)
            x[r * ldx + k] = fminf(fmaxf(rintf(x[r * ldx + k] / scale), -zero), 255 - zero) * scale;
    return coded;
}

/* Run a call with a team of at most `threads`. */
static states run_call(const layer *l, ptrdiff_t rows, ptrdiff_t steps, int threads, const void *coded_x,
                       const void *coded_h) {
    const size_t state_bytes = (size_t)(rows * l->Hp * l->p.itemsize);
    const size_t G = (size_t)l->kernels->gate_count(&l->p);
    call s = {.l = l, .rows = rows, .steps = steps, .coded_x = coded_x, .coded_h = coded_h};
    s.projected = room((size_t)steps * state_bytes * G), s.work = room(state_bytes * 2), s.c = room(state_bytes);
    s.buffer[0] = room(state_bytes), s.buffer[1] = room(state_bytes);
    memcpy(s.buffer[0], l->h, state_bytes), memcpy(s.c, l->c, state_bytes);
    const int size = pyrnnx_team_take(threads);
    pyrnnx_barrier_init(&s.barrier, size, NULL);
    pyrnnx_team_run(size, 1, run_rank, &s, NULL);
    if (size > 1) pyrnnx_team_release();
    return (states){s.buffer[steps % 2], s.c};
}

static double difference(const layer *l, states s, ptrdiff_t rows, ptrdiff_t steps) {
    double most = 0;
    for (ptrdiff_t r = 0; r < rows; r++) {
        double x[MAX_I], h[MAX_H], c[MAX_H];
        for (ptrdiff_t j = 0; j < l->H; j++) h[j] = get(l, l->h, r * l->Hp + j), c[j] = get(l, l->c, r * l->Hp + j);
        for (ptrdiff_t t = 0; t < steps; t++) {
            for (ptrdiff_t k = 0; k < l->I; k++) x[k] = get(l, l->x, (t * rows + r) * l->I + k);
            reference_step(l, x, h, c);
        }
        for (ptrdiff_t j = 0; j < l->H; j++) {
            double error = fabs(get(l, s.h, r * l->Hp + j) - h[j]);
            if (PYRNNX_CELL_ROWS[l->p.cell].has_cell_state) error += fabs(get(l, s.c, r * l->Hp + j) - c[j]);
            most = error <= most ? most : error; /* a NaN is a mistake */
        }
    }
    return most;
}

static int same(const layer *l, states a, states b, ptrdiff_t rows) {
    int is_same = 1;
    for (ptrdiff_t r = 0; r < rows; r++) {
        const size_t row = (size_t)(r * l->Hp * l->p.itemsize), size = (size_t)(l->H * l->p.itemsize);
        is_same &= !memcmp(a.h + row, b.h + row, size);
        if (PYRNNX_CELL_ROWS[l->p.cell].has_cell_state) is_same &= !memcmp(a.c + row, b.c + row, size);
    }
    return is_same;
}

/* Codes: one step, so that the rounding of h is that of the reference; every dot product has the same bits. */
static void check_codes(const char *isa, const pyrnnx_kernels *kernels, ptrdiff_t I, ptrdiff_t H) {
    layer l = make_layer(kernels, PYRNNX_LSTM, PYRNNX_PLAIN, PYRNNX_WEIGHTS_CODES, I, H);
    const layer first = l;
    states before[MAX_ROWS + 1] = {{0}};
    for (l.p.dot = kernels->coding->best_dot(); l.p.dot >= 0; l.p.dot--) {
        pack_both(&l);
        for (ptrdiff_t rows = 1; rows <= MAX_ROWS; rows++) {
            const size_t x_bytes = (size_t)(rows * I) * 4, h_bytes = (size_t)(rows * l.Hp) * 4;
            l.x = memcpy(room(x_bytes), first.x, x_bytes), l.h = memcpy(room(h_bytes), first.h, h_bytes);
            const void *x = coded_rows(&l, rows, I, l.x, I), *h = coded_rows(&l, rows, H, l.h, l.Hp);
            const states s = run_call(&l, rows, 1, 1, x, h);
            const double error = difference(&l, s, rows, 1);
            if (!(error <= FLOAT_TOLERANCE)) fail(isa, "codes", error);
            if (before[rows].h != NULL && !same(&l, s, before[rows], rows)) fail(isa, "dot products differ", l.p.dot);
            before[rows] = s;
        }
    }
}

static void check_kernels(const char *isa, int itemsize) {
    static const ptrdiff_t shapes[][2] = {{1, 1}, {5, 3}, {16, 16}, {37, 50}, {MAX_I, MAX_H}}; /* I, H */
    const pyrnnx_kernels *kernels = pyrnnx_simd_kernels(isa, itemsize);
    const double tolerance = itemsize == 4 ? FLOAT_TOLERANCE : DOUBLE_TOLERANCE;
    double most = 0;
    for (int cell = 0; cell < PYRNNX_CELL_COUNT; cell++)
        for (int variant = 0; variant < PYRNNX_VARIANT_COUNT; variant++)
            for (int stored = 0; stored < PYRNNX_WEIGHTS_CODES; stored++)
                for (size_t shape = 0; shape < sizeof shapes / sizeof *shapes; shape++) {
                    if (!(PYRNNX_CELL_ROWS[cell].variants >> variant & kernels->weight_dtypes >> stored & 1)) continue;
                    const layer l = make_layer(kernels, cell, variant, stored, shapes[shape][0], shapes[shape][1]);
                    for (ptrdiff_t rows = 1; rows <= MAX_ROWS; rows += rows < 8 ? 1 : 5) {
                        const double error = difference(&l, run_call(&l, rows, STEPS, 1, NULL, NULL), rows, STEPS);
                        if (!(error <= tolerance)) fail(isa, PYRNNX_CELL_ROWS[cell].name, error);
                        most = error > most ? error : most;
                    }
                }
    if (kernels->coding != NULL)
        for (size_t shape = 1; shape < sizeof shapes / sizeof *shapes; shape++)
            check_codes(isa, kernels, shapes[shape][0], shapes[shape][1]);
    printf("%s, %d bytes: largest error %.1e", isa, itemsize, most);
    printf(kernels->coding ? ", dot products up to number %d\n" : "\n",
           kernels->coding ? kernels->coding->best_dot() : 0);
}

/* All float16, and floats around every float16 and between, against arithmetic in double. */
static void check_float16(const char *isa, const pyrnnx_kernels *kernels) {
    enum { COUNT = 1 << 16 };
    uint16_t *halves = room(2 * COUNT), *back = room(2 * COUNT);
    float *wide = room(4 * COUNT), *between = room(4 * COUNT);
    for (int k = 0; k < COUNT; k++) halves[k] = (uint16_t)k;
    for (int at = 0; at < COUNT; at += 64 + at % 13) /* also tails of vectors */
        kernels->widen(PYRNNX_FLOAT16, 4, (char *)&halves[at], &wide[at], COUNT - at < 77 ? COUNT - at : 77);
    for (int k = 0; k < COUNT; k++) {
        const int exponent = k >> 10 & 31, fraction = k & 1023;
        const double size = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
        const uint32_t special = (uint32_t)(k & 0x8000) << 16 | 0x7f800000 | (uint32_t)fraction << 13;
        if (pyrnnx_bits(wide[k]) != (exponent == 31 ? special : pyrnnx_bits((float)(k >> 15 ? -size : size))))
            fail(isa, "from float16", k);
    }
    for (int shift = -4; shift <= 4; shift += 2) {
        for (int k = 0; k < COUNT; k++) /* NaN and infinity keep their bits; ties at shift 0 */
            between[k] =
                pyrnnx_from_bits(pyrnnx_bits(wide[k]) + (k % 0x8000 < 0x7c00 ? 0x1000u + (uint32_t)shift * 1019 : 0));
        for (int at = 0; at < COUNT; at += 64 + at % 13)
            kernels->narrow(PYRNNX_FLOAT16, 4, &between[at], (char *)&back[at], COUNT - at < 77 ? COUNT - at : 77);
        for (int k = 0; k < COUNT; k++) {
            const double size = fabs((double)between[k]);
            const int power = size >= 0x1p-14 ? ilogb(size) : -14;
            const double rounded = ldexp(rint(ldexp(size, 10 - power)), power - 10); /* the value of a half */
            int half = rounded < 0x1p-14 ? (int)ldexp(rounded, 24)
                                         : (int)ldexp(rounded, 10 - ilogb(rounded)) + ((ilogb(rounded) + 14) << 10);
            if (!(rounded < 65520)) half = size != size ? 0x7e00 : 0x7c00;
            if (back[k] != (half | (pyrnnx_bits(between[k]) >> 16 & 0x8000))) fail(isa, "to float16", k);
        }
    }
}

/* Threads: several callers at once, each with a call whose result is known. */
static layer shared;
static states expected;
static pyrnnx_once once;
static int once_runs, running, differences;

static void caller(void *unused) {
    (void)unused;
    if (pyrnnx_once_begin(&once)) {
        once_runs++;
        pyrnnx_once_end(&once, 1);
    }
    for (int k = 0; k < CALLS; k++)
        if (!same(&shared, run_call(&shared, MAX_ROWS, STEPS, 2 + k % 3, NULL, NULL), expected, MAX_ROWS))
            __atomic_add_fetch(&differences, 1, __ATOMIC_RELAXED);
    __atomic_sub_fetch(&running, 1, __ATOMIC_RELEASE);
}

static void check_threads(const char *isa, int itemsize) {
    shared =
        make_layer(pyrnnx_simd_kernels(isa, itemsize), PYRNNX_GRU, PYRNNX_PLAIN, PYRNNX_WEIGHTS_FULL, MAX_I, MAX_H);
    expected = run_call(&shared, MAX_ROWS, STEPS, 1, NULL, NULL);
    PYRNNX_STORE(&running, CALLERS);
    for (int k = 1; k < CALLERS; k++)
        if (PyThread_start_new_thread(caller, NULL) == PYTHREAD_INVALID_THREAD_ID) fail(isa, "no thread", k);
    caller(NULL);
    while (PYRNNX_LOAD(&running) != 0) pyrnnx_nap();
    if (differences || once_runs != 1) fail(isa, "results of threads", differences);
}

static int always(void) { return 1; }

static void wait_for_stop(void *argument, int rank) {
    pyrnnx_barrier *barrier = argument;
    pyrnnx_interrupt *interrupt = (pyrnnx_interrupt *)barrier->interrupt;
    unsigned seen = 0;
    if (rank == 0) {
        const int joined = pyrnnx_barrier_joined(barrier, barrier->limit - 1);
        if (joined) pyrnnx_barrier_admit(barrier, joined);
    } else if (!pyrnnx_barrier_enter(barrier, pyrnnx_barrier_join(barrier), &seen)) {
        return;
    }
    if (barrier->size > 1) {
        do pyrnnx_interrupt_poll(interrupt, rank == 0);
        while (pyrnnx_barrier_wait(barrier) == PYRNNX_GO_ON);
    }
    if (rank == 0) pyrnnx_barrier_close(barrier);
}

static void check_interrupt(void) {
    const long long end = pyrnnx_now() + 2000LL * PYRNNX_MILLISECOND;
    pyrnnx_verdict verdict = PYRNNX_GO_ON;
    while (verdict != PYRNNX_STOPPED && pyrnnx_now() < end) { /* on a busy machine no thread may join in time */
        const int size = pyrnnx_team_take(3);
        pyrnnx_interrupt interrupt;
        pyrnnx_barrier barrier;
        pyrnnx_interrupt_init(&interrupt, always);
        pyrnnx_barrier_init(&barrier, size, &interrupt);
        pyrnnx_team_run(size, 1, wait_for_stop, &barrier, &interrupt);
        verdict = barrier.verdict;
        if (size > 1) pyrnnx_team_release();
    }
    if (verdict != PYRNNX_STOPPED) printf("not tested: an interrupt of a team, for the machine was busy\n");
}

int main(void) {
    int found = 0;
    setvbuf(stdout, NULL, _IONBF, 0);
    for (size_t k = 0; k < sizeof ISAS / sizeof *ISAS; k++) {
        if (!pyrnnx_simd_supported(ISAS[k])) continue;
        found++;
        for (int itemsize = 4; itemsize <= 8; itemsize += 4) {
            check_kernels(ISAS[k], itemsize);
            check_threads(ISAS[k], itemsize);
        }
        check_float16(ISAS[k], pyrnnx_simd_kernels(ISAS[k], 4));
    }
    check_interrupt();
    printf("%d instruction sets, %d teams, %d mistakes\n", found, teams, mistakes);
    return found == 0 || teams == 0 || mistakes != 0;
}
