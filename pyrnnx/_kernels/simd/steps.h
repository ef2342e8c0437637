/* Many time steps of one row in one call, for layers with few unit blocks. There the chain of operations from state to
 * state takes the time, not the products. So sums, states and gates stay in registers from step to step, and each small
 * number of unit blocks has its own loop.
 *
 * Only for cells with their usual activations and full weights, without clip and peepholes. Results are bit for bit
 * those of step, because they come from the same operations.
 */
#ifndef PYRNNX_STEPS
#define PYRNNX_STEPS
enum {
    MAX_FIXED_BLOCKS = 4, /* unit blocks with their own loop; 0 is the loop for all others */
    MAX_STEPS_BLOCKS = 16,
    MAX_PART_SUMS = 12,       /* more would leave too few parts */
    MAX_STEPS_BYTES = 1 << 18 /* of R: reading a larger one from the caches dominates */
};
enum pyrnnx_usual { NOT_USUAL, USUAL_RNN, USUAL_GRU, USUAL_LINEAR_GRU, USUAL_LSTM };
#endif

typedef struct {
    const pyrnnx_parameters *parameters;
    ptrdiff_t count;
    REAL *projected, *h, *c;
    char *y;
    ptrdiff_t y_time;
} NAME(steps_args);

/* Add the products of one k: R points to its weights, a is x[k] in every lane. */
INLINE void NAME(row_step)(const int nv, const int nb, V a, const REAL *R, ptrdiff_t R_block, V *sum) {
#pragma GCC unroll 16
    for (int j = 0; j < nb * nv; j++) sum[j] = FMA(a, LOAD(R + j / nv * R_block + j % nv * LANES), sum[j]);
}

/* Compute sums[b][v] = init[b][v] + sum_k x[k] R[b][k][v] of nb unit blocks. `first` is the vector at x, stored last
 * and still in a register: its first elements need not wait for that store. */
INLINE void NAME(row_product)(const int nv, const int nb, ptrdiff_t depth, V first, const REAL *x, const REAL *R,
                              ptrdiff_t R_block, const REAL *init, ptrdiff_t init_block, REAL *sums) {
    enum { IN_REGISTER = LANES < 4 ? LANES : 4 };
    V sum[MAX_PART_SUMS];
#pragma GCC unroll 16
    for (int j = 0; j < nb * nv; j++) sum[j] = LOAD(init + j / nv * init_block + j % nv * LANES);
#pragma GCC unroll 4
    for (int k = 0; k < IN_REGISTER; k++)
        if (k < depth) NAME(row_step)(nv, nb, SET1(first[k]), R + k * nv * LANES, R_block, sum);
#pragma GCC unroll 4
    for (ptrdiff_t k = IN_REGISTER; k < depth; k++)
        NAME(row_step)(nv, nb, SET1(x[k]), R + k * nv * LANES, R_block, sum);
#pragma GCC unroll 16
    for (int j = 0; j < nb * nv; j++) STORE(sums + j * LANES, sum[j]);
}

/* Compute the sums of all unit blocks, in parts that fit the registers. Every second step begins with the last part,
 * which may still be in L1 if R is larger. */
INLINE void NAME(steps_product)(const NAME(group) *g, const int fixed, int first_gate, V first, const REAL *x,
                                const REAL *init, ptrdiff_t init_block) {
    const int nv = g->nv;
    const int widest = nv == 1 ? 8 : nv == 4 || (nv == 3 && TILE_SUMS < 24) ? 2 : 4;
    const int part = fixed && fixed * nv <= MAX_PART_SUMS ? fixed : widest;
    const ptrdiff_t H = g->parameters->hidden_size, R_block = NAME(variant_of)(g->parameters)->gate_count * H * LANES;
    const REAL *R = (const REAL *)g->parameters->R + first_gate * H * LANES;
#define PART(nb) \
    NAME(row_product)(nv, nb, H, first, x, R + b * R_block, R_block, init + b * init_block, init_block, \
                      g->sums + b * nv * LANES)
    ptrdiff_t b;
    for (ptrdiff_t done = 0, whole = g->blocks / part; done < whole; done++) {
        b = (g->backwards ? whole - 1 - done : done) * part;
        PART(part);
    }
    if (fixed && fixed % part == 0) return;
    b = g->blocks / part * part;
    for (; b + 2 <= g->blocks; b += 2) PART(2);
    if (b < g->blocks) PART(1);
#undef PART
}

/* Run one time step: from the states in g, whose first vector is `first`, to h_next and c. */
INLINE void NAME(usual_step)(const enum pyrnnx_usual usual, const int fixed, NAME(group) *g, V first) {
    const REAL *init = g->projected;
    if (usual == USUAL_GRU) {
        g->nv = 2;
        NAME(steps_product)(g, fixed, 0, first, g->h_prev, init, 3 * LANES);
        NAME(gru_usual_reset)(g, 0);
        g->nv = 1;
        NAME(steps_product)(g, fixed, 2, LOAD(g->work), g->work, init + 2 * LANES, 3 * LANES);
        NAME(gru_usual)(g, 0, 0);
        return;
    }
    if (usual == USUAL_LINEAR_GRU) {
        NAME(gru_start)(g);
        init = g->sums;
    }
    NAME(steps_product)(g, fixed, 0, first, g->h_prev, init, g->nv * LANES);
    if (usual == USUAL_LINEAR_GRU) NAME(gru_usual)(g, 1, 0);
    if (usual == USUAL_LSTM) NAME(lstm_usual)(g, 0, 0, PYRNNX_PLAIN);
    if (usual == USUAL_RNN) NAME(rnn_usual)(g, 0);
}

/* Copy h_next to the states, and to y without padding. */
INLINE void NAME(copy_states)(const NAME(group) *g, REAL *states, char *y) {
    const ptrdiff_t rest = g->parameters->hidden_size - (g->blocks - 1) * LANES; /* units of the last block */
    for (ptrdiff_t b = 0; b < g->blocks; b++) {
        const V h = LOAD(g->h_next + b * LANES);
        STORE(states + b * LANES, h);
        if (b < g->blocks - 1 || rest == LANES)
            STORE((REAL *)(void *)y + b * LANES, h);
        else
            memcpy((REAL *)(void *)y + b * LANES, g->h_next + b * LANES, (size_t)rest * sizeof(REAL));
    }
}

INLINE void NAME(usual_steps)(const enum pyrnnx_usual usual, const int fixed, const NAME(steps_args) *a) {
    const int G = usual == USUAL_LSTM ? 4 : usual == USUAL_RNN ? 1 : 3;
    const ptrdiff_t nb = fixed ? fixed : (a->parameters->hidden_size + LANES - 1) / LANES;
    const size_t size = (size_t)nb * LANES * sizeof(REAL);
    enum { MOST = MAX_STEPS_BLOCKS * LANES };
    /* local copies: the compiler can keep them in registers */
    REAL sums[PYRNNX_MAX_GATES * MOST] __attribute__((aligned(64)));
    REAL h[MOST] __attribute__((aligned(64))), h_next[MOST] __attribute__((aligned(64)));
    REAL c[MOST] __attribute__((aligned(64))), work[MOST] __attribute__((aligned(64)));
    memcpy(h, a->h, size);
    if (usual == USUAL_LSTM) memcpy(c, a->c, size);
    V first = LOAD(h);
    for (ptrdiff_t s = 0; s < a->count; s++) {
        NAME(group)
        g = {.parameters = a->parameters,
             .rows = 1,
             .blocks = nb,
             .backwards = s % 2,
             .Hp = nb * LANES,
             .nv = G,
             .sums = sums,
             .projected = a->projected + s * nb * G * LANES,
             .h_prev = h,
             .c = c,
             .h_next = h_next,
             .work = work};
        NAME(usual_step)(usual, fixed, &g, first);
        first = LOAD(h_next);
        NAME(copy_states)(&g, h, a->y + s * a->y_time);
    }
    memcpy(a->h, h, size);
    if (usual == USUAL_LSTM) memcpy(a->c, c, size);
}

/* steps_table[usual][fixed] */
#define STEPS_NAME(usual, fixed) PX_CAT(steps_##usual##_##fixed, REAL, ISA)
#define DEFINE_STEPS(usual, fixed) \
    static void STEPS_NAME(usual, fixed)(const NAME(steps_args) *a) { NAME(usual_steps)(usual, fixed, a); }
#define LIST_STEPS(usual, fixed) [usual][fixed] = STEPS_NAME(usual, fixed),
#if HAVE_CODES && !defined MATRIX_MODEL /* float */
#define STEPS_BLOCKS(X, usual) X(usual, 0) X(usual, 1) X(usual, 2) X(usual, 3) X(usual, 4)
#else /* fewer, for the size of the library, and to compile faster */
#define STEPS_BLOCKS(X, usual) X(usual, 0) X(usual, 1)
#endif
#define STEPS_SHAPES(X) \
    STEPS_BLOCKS(X, USUAL_RNN) STEPS_BLOCKS(X, USUAL_GRU) STEPS_BLOCKS(X, USUAL_LINEAR_GRU) STEPS_BLOCKS(X, USUAL_LSTM)
STEPS_SHAPES(DEFINE_STEPS)
static void (*const NAME(steps_table)[][MAX_FIXED_BLOCKS + 1])(const NAME(steps_args) *) = {STEPS_SHAPES(LIST_STEPS)};

static enum pyrnnx_usual NAME(usual)(const pyrnnx_parameters *p) {
    if (p->clip < INFINITY || p->peepholes != NULL || p->weight_dtype != PYRNNX_WEIGHTS_FULL) return NOT_USUAL;
    if (p->cell == PYRNNX_RNN && p->functions[0].number == PYRNNX_Tanh) return USUAL_RNN;
    if (p->cell == PYRNNX_GRU && NAME(gru_is_usual)(p))
        return p->variant == PYRNNX_PLAIN ? USUAL_GRU : USUAL_LINEAR_GRU;
    if (p->cell == PYRNNX_LSTM && NAME(lstm_is_usual)(p) && p->variant == PYRNNX_PLAIN) return USUAL_LSTM;
    return NOT_USUAL;
}

static int NAME(steps)(const pyrnnx_parameters *p, ptrdiff_t count, void *projected, void *h, void *c, void *y,
                       ptrdiff_t y_time) {
    const enum pyrnnx_usual usual = NAME(usual)(p);
    const ptrdiff_t nb = NAME(padded)(p) / LANES;
    if (usual == NOT_USUAL || nb > MAX_STEPS_BLOCKS || NAME(packed_size)(p, 1) > MAX_STEPS_BYTES) return 0;
    NAME(steps_table)[usual][nb <= MAX_FIXED_BLOCKS && NAME(steps_table)[usual][nb] != NULL ? nb : 0](
        &(NAME(steps_args)){p, count, projected, h, c, y, y_time});
    return 1;
}
