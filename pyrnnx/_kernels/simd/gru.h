/* GRU   H = (1 - z) h + z H'        z, r = f(a_z), f(a_r)       a = projection + H' R^T
 *       h = g(projection_h + (r H') R_h^T)                      plain: two phases, because the last product needs r
 *       h = g(projection_h + r (H' R_h^T + Rb_h))               linear_before_reset: one phase
 *
 * The usual activations, sigmoid and tanh, have short chains of operations. h waits for one division, and with
 * linear_before_reset only for the denominator of r = N/D:
 *   h = g(projection_h + N_r (sum / D_r))
 * All others go through activate(), gate by gate over the whole group.
 */
#define PROJECTED(g, gate) ((g)->projected + r * (g)->ld_projected + (b * 3 + (gate)) * LANES)

INLINE int NAME(gru_is_usual)(const pyrnnx_parameters *p) {
    const pyrnnx_activation *f = p->functions;
    return f[0].number == PYRNNX_Sigmoid && f[1].number == PYRNNX_Tanh;
}

/* Plain, phase 0, sums [z, r]: work = r H'. `projected` passes z to phase 1. */
INLINE void NAME(gru_usual_reset)(const NAME(group) *g, const int clips) {
    const V clip = SET1((REAL)g->parameters->clip);
    FOR_EACH_VECTOR(g) {
        STORE(PROJECTED(g, 0), NAME(sigmoid_quotient)(NAME(clipped)(clips, clip, LOAD(SUM(g, 0)))));
        /* not a fraction, which is never 0: r h must vanish for any h */
        const V reset = NAME(sigmoid)(NAME(clipped)(clips, clip, LOAD(SUM(g, 1))));
        STORE(STATE(g, work), reset * LOAD(STATE(g, h_prev)));
    }
}

static void NAME(gru_reset)(const NAME(group) *g) {
    const pyrnnx_activation *f = &g->parameters->functions[0];
    if (NAME(gru_is_usual)(g->parameters)) {
        NAME(gru_usual_reset)(g, 1);
        return;
    }
    NAME(clip_gate)(g, 0);
    NAME(clip_gate)(g, 1);
    NAME(activate_gate)(g, f, 0);
    NAME(activate_gate)(g, f, 1);
    FOR_EACH_VECTOR(g) {
        STORE(PROJECTED(g, 0), LOAD(SUM(g, 0)));
        STORE(STATE(g, work), LOAD(SUM(g, 1)) * LOAD(STATE(g, h_prev)));
    }
}

/* linear_before_reset: sums [z, r, H' R_h^T + Rb_h]; the last excludes its projection. */
INLINE void NAME(gru_start)(const NAME(group) *g) {
    FOR_EACH_VECTOR(g) {
        STORE(SUM(g, 0), LOAD(PROJECTED(g, 0)));
        STORE(SUM(g, 1), LOAD(PROJECTED(g, 1)));
        STORE(SUM(g, 2), LOAD(UNITS(g, recurrent_bias, 0)));
    }
}

/* Compute the next state for f = sigmoid and g = tanh: phase 1 of plain, sums [h]; or linear_before_reset. */
INLINE void NAME(gru_usual)(const NAME(group) *g, const int linear, const int clips) {
    const V clip = SET1((REAL)g->parameters->clip);
    const int h = linear ? 2 : 0;
    if (linear)
        FOR_EACH_VECTOR(g) {
            V D, N = NAME(sigmoid_fraction)(NAME(clipped)(clips, clip, LOAD(SUM(g, 1))), &D);
            STORE(SUM(g, 2), FMA(N, LOAD(SUM(g, 2)) / D, LOAD(PROJECTED(g, 2))));
            STORE(SUM(g, 0), NAME(sigmoid_quotient)(NAME(clipped)(clips, clip, LOAD(SUM(g, 0)))));
        }
    FOR_EACH_VECTOR(g) {
        const V z = LOAD(linear ? SUM(g, 0) : PROJECTED(g, 0));
        const V candidate = NAME(tanh_quotient)(NAME(clipped)(clips, clip, LOAD(SUM(g, h))));
        STORE(STATE(g, h_next), FMA(SET1(1) - z, candidate, z * LOAD(STATE(g, h_prev))));
    }
}

/* Compute the next state for any f and g. */
static void NAME(gru_general)(const NAME(group) *g, const int linear) {
    const pyrnnx_activation *f = g->parameters->functions;
    const int h = linear ? 2 : 0;
    if (linear) {
        NAME(clip_gate)(g, 0);
        NAME(clip_gate)(g, 1);
        NAME(activate_gate)(g, &f[0], 0);
        NAME(activate_gate)(g, &f[0], 1);
        FOR_EACH_VECTOR(g) STORE(SUM(g, 2), FMA(LOAD(SUM(g, 1)), LOAD(SUM(g, 2)), LOAD(PROJECTED(g, 2))));
    }
    NAME(clip_gate)(g, h);
    NAME(activate_gate)(g, &f[1], h);
    FOR_EACH_VECTOR(g) {
        const V z = LOAD(linear ? SUM(g, 0) : PROJECTED(g, 0));
        STORE(STATE(g, h_next), FMA(z, LOAD(STATE(g, h_prev)), (SET1(1) - z) * LOAD(SUM(g, h))));
    }
}

static void NAME(gru_update)(const NAME(group) *g) {
    NAME(gru_is_usual)(g->parameters) ? NAME(gru_usual)(g, 0, 1) : NAME(gru_general)(g, 0);
}

static void NAME(gru_linear)(const NAME(group) *g) {
    NAME(gru_is_usual)(g->parameters) ? NAME(gru_usual)(g, 1, 1) : NAME(gru_general)(g, 1);
}

static const NAME(variant) NAME(GRU_variants)[PYRNNX_VARIANT_COUNT] = {
    [PYRNNX_PLAIN] = {3, {0, 1, 2}, 2, {{2, NULL, NAME(gru_reset)}, {1, NULL, NAME(gru_update)}}},
    [PYRNNX_LINEAR_BEFORE_RESET] = {3, {0, 1, 2}, 1, {{3, NAME(gru_start), NAME(gru_linear)}}},
};
