/* The gate functions of one group of unit blocks, on the sums that gemm.h left in a small contiguous tile
 * [block][row][gate][L].
 *
 *   RNN   H = f(a)
 *   GRU   H = (1 - z) h + z H'       z, r = f(a_z), f(a_r)    h = g(a_h), a_h with r inside as linear_before_reset says
 *   LSTM  C = f C' + i g             i, f = f(a + P C')       g = g(a_c)
 *         H = o h(C)                 o = f(a_o + P C)
 *
 * The usual activations (sigmoid, tanh) stay fractions, N/D with D in [1/4, 2], and share one division per state:
 *   LSTM  C = (N_f C' D_i D_g + N_i N_g D_f) / (D_f D_i D_g)      H = N_o N_c / (D_o D_c)
 *   GRU   H = ((D_z - N_z) N_h + N_z H' D_h) / (D_z D_h)
 * All others go through activate(), one loop per gate over the whole tile.
 */
typedef struct {
    const pyrnnx_cell *cell;
    ptrdiff_t rows, blocks, Hp, unit; /* unit: first unit of the group */
    int nv;
    REAL *sums;  /* [block][row][nv][L] */
    REAL *gates; /* [row][G*Hp], at the first row and the group's first column; two vectors of it are GRU's */
    ptrdiff_t ld_gates;
    const REAL *h_prev; /* these at the first row and the group's first unit, Hp from row to row */
    REAL *c, *h_next, *work;
} NAME(group);

#define FOR_EACH_VECTOR(p) \
    for (ptrdiff_t b = 0; b < (p)->blocks; b++) \
        for (ptrdiff_t r = 0; r < (p)->rows; r++)
#define SUMS(p) ((p)->sums + (b * (p)->rows + r) * (p)->nv * LANES)
#define STATE(p, s) ((p)->s + r * (p)->Hp + b * LANES)
#define PEEPHOLE(p, gate) ((const REAL *)(p)->cell->peepholes + (gate) * (p)->Hp + (p)->unit + b * LANES)

INLINE V NAME(bounded)(const int clips, V clip, V x) { return clips ? AT_MOST(clip, AT_LEAST(-clip, x)) : x; }

/* a <- f(a) for count vectors, stride elements apart */
static void NAME(activate)(const pyrnnx_activation *f, REAL *a, ptrdiff_t stride, ptrdiff_t count) {
    const V alpha = SET1((REAL)f->alpha), beta = SET1((REAL)f->beta);
#define ACTIVATE(kind) \
    case kind: \
        for (ptrdiff_t j = 0; j < count; j++) \
            STORE(a + j * stride, NAME(activation)(kind, alpha, beta, LOAD(a + j * stride))); \
        break;
    switch (f->kind) {
        ACTIVATE(PYRNNX_RELU)
        ACTIVATE(PYRNNX_TANH)
        ACTIVATE(PYRNNX_SIGMOID)
        ACTIVATE(PYRNNX_AFFINE)
        ACTIVATE(PYRNNX_LEAKY_RELU)
        ACTIVATE(PYRNNX_THRESHOLDED_RELU)
        ACTIVATE(PYRNNX_SCALED_TANH)
        ACTIVATE(PYRNNX_HARD_SIGMOID)
        ACTIVATE(PYRNNX_ELU)
        ACTIVATE(PYRNNX_SOFTSIGN)
        ACTIVATE(PYRNNX_SOFTPLUS)
    }
}

INLINE void NAME(activate_gate)(const NAME(group) *p, const pyrnnx_activation *f, int gate) {
    NAME(activate)(f, p->sums + gate * LANES, p->nv * LANES, p->blocks * p->rows);
}

static void NAME(rnn_gates)(const NAME(group) *p) {
    const int clips = p->cell->clip < INFINITY;
    const V clip = SET1((REAL)p->cell->clip);
    if (clips)
        FOR_EACH_VECTOR(p) STORE(SUMS(p), NAME(bounded)(1, clip, LOAD(SUMS(p))));
    NAME(activate_gate)(p, &p->cell->f, 0);
    FOR_EACH_VECTOR(p) STORE(STATE(p, h_next), LOAD(SUMS(p)));
}

/* ---- LSTM: gates i, o, f, c ----
 * Coupled: the gate that is computed, i or f, then o and c; the other is 1 minus it. */

/* Two loops, C and then H: their chains are short enough that the processor works on several vectors at once. */
INLINE void NAME(lstm_usual)(const NAME(group) *p, const int peeps, const int clips, const int coupling) {
    const V clip = SET1((REAL)p->cell->clip), one = SET1(1);
    const int candidate = coupling ? 2 : 3, input_coupled = coupling == PYRNNX_COUPLED_INPUT;
    FOR_EACH_VECTOR(p) {
        const REAL *a = SUMS(p);
        V c = LOAD(STATE(p, c)), first = LOAD(a), Di, Df = one, Dg, complement, unused;
        if (peeps) first = FMA(LOAD(PEEPHOLE(p, input_coupled ? 2 : 0)), c, first);
        V N = NAME(sigmoid_fraction)(NAME(bounded)(clips, clip, first), &complement, &Di);
        V Ni = input_coupled ? complement : N, Nf = input_coupled ? N : complement;
        V Ng = NAME(tanh_fraction)((REAL)0.25, NAME(bounded)(clips, clip, LOAD(a + candidate * LANES)), &Dg);
        V Dig = Di * Dg, kept = Dg;
        if (!coupling) {
            V af = LOAD(a + 2 * LANES);
            if (peeps) af = FMA(LOAD(PEEPHOLE(p, 2)), c, af);
            Nf = NAME(sigmoid_fraction)(NAME(bounded)(clips, clip, af), &unused, &Df);
            kept = Dig;
        }
        STORE(STATE(p, c), FMA(Nf * c, kept, Ni * Ng * Df) / (Df * Dig));
    }
    FOR_EACH_VECTOR(p) {
        V c = LOAD(STATE(p, c)), ao = LOAD(SUMS(p) + LANES), Do, Dc, unused;
        if (peeps) ao = FMA(LOAD(PEEPHOLE(p, 1)), c, ao);
        V No = NAME(sigmoid_fraction)(NAME(bounded)(clips, clip, ao), &unused, &Do);
        V Nc = NAME(tanh_fraction)((REAL)0.25, c, &Dc);
        STORE(STATE(p, h_next), No * Nc / (Do * Dc));
    }
}

static void NAME(lstm_general)(const NAME(group) *p) {
    const pyrnnx_cell *cell = p->cell;
    const int clips = cell->clip < INFINITY, coupling = cell->coupling, peeps = cell->peepholes != NULL;
    const int candidate = coupling ? 2 : 3, input_coupled = coupling == PYRNNX_COUPLED_INPUT;
    const V clip = SET1((REAL)cell->clip), one = SET1(1);
    if (clips || peeps)
        FOR_EACH_VECTOR(p) {
            REAL *a = SUMS(p);
            const V c = LOAD(STATE(p, c));
            const int first = input_coupled ? 2 : 0;
            STORE(a, NAME(bounded)(clips, clip, peeps ? FMA(LOAD(PEEPHOLE(p, first)), c, LOAD(a)) : LOAD(a)));
            if (!coupling)
                STORE(a + 2 * LANES,
                      NAME(bounded)(clips, clip,
                                    peeps ? FMA(LOAD(PEEPHOLE(p, 2)), c, LOAD(a + 2 * LANES)) : LOAD(a + 2 * LANES)));
            STORE(a + candidate * LANES, NAME(bounded)(clips, clip, LOAD(a + candidate * LANES)));
        }
    NAME(activate_gate)(p, &cell->f, 0);
    if (!coupling) NAME(activate_gate)(p, &cell->f, 2);
    NAME(activate_gate)(p, &cell->g, candidate);
    FOR_EACH_VECTOR(p) {
        REAL *a = SUMS(p);
        const V first = LOAD(a), i = input_coupled ? one - first : first;
        const V f = input_coupled ? first : coupling ? one - i : LOAD(a + 2 * LANES);
        const V c = FMA(f, LOAD(STATE(p, c)), i * LOAD(a + candidate * LANES));
        STORE(STATE(p, c), c);
        STORE(a + candidate * LANES, c);
        STORE(a + LANES,
              NAME(bounded)(clips, clip, peeps ? FMA(LOAD(PEEPHOLE(p, 1)), c, LOAD(a + LANES)) : LOAD(a + LANES)));
    }
    NAME(activate_gate)(p, &cell->f, 1);
    NAME(activate_gate)(p, &cell->h, candidate);
    FOR_EACH_VECTOR(p) STORE(STATE(p, h_next), LOAD(SUMS(p) + LANES) * LOAD(SUMS(p) + candidate * LANES));
}

static void NAME(lstm_gates)(const NAME(group) *p) {
    const pyrnnx_cell *cell = p->cell;
    const int usual = cell->f.kind == PYRNNX_SIGMOID && cell->g.kind == PYRNNX_TANH && cell->h.kind == PYRNNX_TANH;
    const int options = (cell->peepholes != NULL) + 2 * (cell->clip < INFINITY) + 4 * cell->coupling;
    if (!usual)
        NAME(lstm_general)(p);
    else
        switch (options) {
        case 0: NAME(lstm_usual)(p, 0, 0, 0); break;
        case 1: NAME(lstm_usual)(p, 1, 0, 0); break;
        case 2: NAME(lstm_usual)(p, 0, 1, 0); break;
        case 3: NAME(lstm_usual)(p, 1, 1, 0); break;
        case 4: NAME(lstm_usual)(p, 0, 0, 1); break;
        case 5: NAME(lstm_usual)(p, 1, 0, 1); break;
        case 6: NAME(lstm_usual)(p, 0, 1, 1); break;
        case 7: NAME(lstm_usual)(p, 1, 1, 1); break;
        case 8: NAME(lstm_usual)(p, 0, 0, 2); break;
        case 9: NAME(lstm_usual)(p, 1, 0, 2); break;
        case 10: NAME(lstm_usual)(p, 0, 1, 2); break;
        default: NAME(lstm_usual)(p, 1, 1, 2); break;
        }
}

/* ---- GRU: gates z, r, h ----
 * Two phases: sums are [z, r], then [h], and a_z waits in gates. One phase: sums are [z, r, H' R_h + Rb_h]. */

#define GRU_COLUMN(p, gate) ((p)->gates + r * (p)->ld_gates + (b * 3 + (gate)) * LANES)

static void NAME(gru_reset)(const NAME(group) *p) /* phase 0 of 2: a_z to gates, r H' to work */
{
    const pyrnnx_cell *cell = p->cell;
    const int clips = cell->clip < INFINITY;
    const V clip = SET1((REAL)cell->clip);
    FOR_EACH_VECTOR(p) {
        STORE(GRU_COLUMN(p, 0), NAME(bounded)(1, clip, LOAD(SUMS(p))));
        if (clips) STORE(SUMS(p) + LANES, NAME(bounded)(1, clip, LOAD(SUMS(p) + LANES)));
    }
    NAME(activate_gate)(p, &cell->f, 1);
    FOR_EACH_VECTOR(p) STORE(STATE(p, work), LOAD(SUMS(p) + LANES) * LOAD(STATE(p, h_prev)));
}

INLINE void NAME(gru_usual)(const NAME(group) *p, const int before_reset) {
    const V clip = SET1((REAL)p->cell->clip);
    const int candidate = before_reset ? 2 : 0;
    V Dz, Dr, Dh, not_z, unused;
    if (before_reset)
        FOR_EACH_VECTOR(p) {
            REAL *a = SUMS(p);
            V Nr = NAME(sigmoid_fraction)(NAME(bounded)(1, clip, LOAD(a + LANES)), &unused, &Dr);
            STORE(a + 2 * LANES, LOAD(GRU_COLUMN(p, 2)) + Nr * LOAD(a + 2 * LANES) / Dr);
        }
    FOR_EACH_VECTOR(p) {
        const REAL *a = SUMS(p);
        V az = NAME(bounded)(1, clip, before_reset ? LOAD(a) : LOAD(GRU_COLUMN(p, 0)));
        V Nz = NAME(sigmoid_fraction)(az, &not_z, &Dz);
        V Nh = NAME(tanh_fraction)((REAL)0.5, NAME(bounded)(1, clip, LOAD(a + candidate * LANES)), &Dh);
        STORE(STATE(p, h_next), FMA(Nz * LOAD(STATE(p, h_prev)), Dh, not_z * Nh) / (Dz * Dh));
    }
}

static void NAME(gru_general)(const NAME(group) *p, const int before_reset) {
    const pyrnnx_cell *cell = p->cell;
    const int clips = cell->clip < INFINITY, candidate = before_reset ? 2 : 0;
    const V clip = SET1((REAL)cell->clip), one = SET1(1);
    const ptrdiff_t count = p->blocks * p->rows, stride = p->nv * LANES;
    REAL *const z = before_reset ? p->sums : p->sums + count * LANES; /* behind [h] there is room for as much again */
    if (before_reset) {
        if (clips)
            FOR_EACH_VECTOR(p) {
                STORE(SUMS(p), NAME(bounded)(1, clip, LOAD(SUMS(p))));
                STORE(SUMS(p) + LANES, NAME(bounded)(1, clip, LOAD(SUMS(p) + LANES)));
            }
        NAME(activate_gate)(p, &cell->f, 1);
    }
    FOR_EACH_VECTOR(p) {
        REAL *h = SUMS(p) + candidate * LANES;
        if (before_reset)
            STORE(h, FMA(LOAD(SUMS(p) + LANES), LOAD(h), LOAD(GRU_COLUMN(p, 2))));
        else
            STORE(z + (b * p->rows + r) * stride, LOAD(GRU_COLUMN(p, 0)));
        if (clips) STORE(h, NAME(bounded)(1, clip, LOAD(h)));
    }
    NAME(activate)(&cell->f, z, stride, count);
    NAME(activate_gate)(p, &cell->g, candidate);
    FOR_EACH_VECTOR(p) {
        const V kept = LOAD(z + (b * p->rows + r) * stride);
        STORE(STATE(p, h_next), FMA(kept, LOAD(STATE(p, h_prev)), (one - kept) * LOAD(SUMS(p) + candidate * LANES)));
    }
}

static void NAME(gru_gates)(const NAME(group) *p, int phase) {
    const pyrnnx_cell *cell = p->cell;
    const int usual = cell->f.kind == PYRNNX_SIGMOID && cell->g.kind == PYRNNX_TANH,
              before_reset = cell->linear_before_reset;
    if (!before_reset && phase == 0)
        NAME(gru_reset)(p);
    else if (!usual)
        NAME(gru_general)(p, before_reset);
    else if (before_reset)
        NAME(gru_usual)(p, 1);
    else
        NAME(gru_usual)(p, 0);
}
