/* LSTM  C = f C' + i g             i, f = f(a + P C')       g = g(a_c)
 *       H = o h(C)                 o = f(a_o + P C)
 *
 * Sums [i, o, f, c]. If i and f are coupled, [i or f, o, c], and the other gate is 1 minus the computed one.
 *
 * The usual activations, sigmoid and tanh, stay fractions N/D, but for f:
 *   C = f C' + N_i (N_g / (D_i D_g))                        H = N_o N_c / (D_o D_c)
 * All others go through activate(), gate by gate over the whole group.
 */

/* The clipped argument of a gate, x + P c; gate: its index in P, which is [i, o, f]. */
#define WITH_PEEPHOLE(g, x, gate, c) \
    NAME(clipped)(clips, clip, peeps ? FMA(LOAD(UNITS(g, peepholes, gate)), c, LOAD(x)) : LOAD(x))

/* Two loops, C and then H, have short chains, so that the processor works on several vectors at once. */
INLINE void NAME(lstm_usual)(const NAME(group) *g, const int peeps, const int clips, const int variant) {
    const V clip = SET1((REAL)g->parameters->clip), one = SET1(1);
    const int plain = variant == PYRNNX_PLAIN, from_f = variant == PYRNNX_COUPLED_INPUT, candidate = plain ? 3 : 2;
    FOR_EACH_VECTOR(g) {
        V c = LOAD(STATE(g, c)), Di, Dg;
        V Ng = NAME(tanh_fraction)(NAME(clipped)(clips, clip, LOAD(SUM(g, candidate))), &Dg);
        if (plain) {
            V Ni = NAME(sigmoid_fraction)(WITH_PEEPHOLE(g, SUM(g, 0), 0, c), &Di);
            V f = NAME(sigmoid_quotient)(WITH_PEEPHOLE(g, SUM(g, 2), 2, c));
            STORE(STATE(g, c), FMA(Ni, Ng / (Di * Dg), f * c));
        } else {
            V first = NAME(sigmoid_quotient)(WITH_PEEPHOLE(g, SUM(g, 0), from_f ? 2 : 0, c)), other = one - first;
            STORE(STATE(g, c), FMA(from_f ? first : other, c, (from_f ? other : first) * Ng / Dg));
        }
    }
    FOR_EACH_VECTOR(g) {
        V c = LOAD(STATE(g, c)), Do, Dc;
        V No = NAME(sigmoid_fraction)(WITH_PEEPHOLE(g, SUM(g, 1), 1, c), &Do);
        V Nc = NAME(tanh_fraction)(c, &Dc), h = No * Nc / (Do * Dc);
        STORE(STATE(g, h_next), NAME(at_most_one)(h));
    }
}

static void NAME(lstm_general)(const NAME(group) *g, const int variant) {
    const pyrnnx_parameters *p = g->parameters;
    const int clips = p->clip < INFINITY, peeps = p->peepholes != NULL;
    const int plain = variant == PYRNNX_PLAIN, from_f = variant == PYRNNX_COUPLED_INPUT, candidate = plain ? 3 : 2;
    const V clip = SET1((REAL)p->clip), one = SET1(1);
    if (clips || peeps)
        FOR_EACH_VECTOR(g) {
            const V c = LOAD(STATE(g, c));
            STORE(SUM(g, 0), WITH_PEEPHOLE(g, SUM(g, 0), from_f ? 2 : 0, c));
            if (plain) STORE(SUM(g, 2), WITH_PEEPHOLE(g, SUM(g, 2), 2, c));
        }
    NAME(clip_gate)(g, candidate);
    NAME(activate_gate)(g, &p->functions[0], 0);
    if (plain) NAME(activate_gate)(g, &p->functions[0], 2);
    NAME(activate_gate)(g, &p->functions[1], candidate);
    FOR_EACH_VECTOR(g) {
        const V first = LOAD(SUM(g, 0)), i = from_f ? one - first : first;
        const V f = from_f ? first : plain ? LOAD(SUM(g, 2)) : one - i;
        const V c = FMA(f, LOAD(STATE(g, c)), i * LOAD(SUM(g, candidate)));
        STORE(STATE(g, c), c);
        STORE(SUM(g, candidate), c);
        STORE(SUM(g, 1), WITH_PEEPHOLE(g, SUM(g, 1), 1, c));
    }
    NAME(activate_gate)(g, &p->functions[0], 1);
    NAME(activate_gate)(g, &p->functions[2], candidate);
    FOR_EACH_VECTOR(g) STORE(STATE(g, h_next), LOAD(SUM(g, 1)) * LOAD(SUM(g, candidate)));
}

INLINE int NAME(lstm_is_usual)(const pyrnnx_parameters *p) {
    const pyrnnx_activation *f = p->functions;
    return f[0].number == PYRNNX_Sigmoid && f[1].number == PYRNNX_Tanh && f[2].number == PYRNNX_Tanh;
}

INLINE void NAME(lstm)(const NAME(group) *g, const int variant) {
    const pyrnnx_parameters *p = g->parameters;
    const int peeps = p->peepholes != NULL, clips = p->clip < INFINITY;
    if (!NAME(lstm_is_usual)(p))
        NAME(lstm_general)(g, variant);
    else if (peeps)
        NAME(lstm_usual)(g, 1, 1, variant);
    else if (clips || variant != PYRNNX_PLAIN) /* fewer combinations, for the size of the library */
        NAME(lstm_usual)(g, 0, 1, variant);
    else
        NAME(lstm_usual)(g, 0, 0, variant);
}

static void NAME(lstm_plain)(const NAME(group) *g) { NAME(lstm)(g, PYRNNX_PLAIN); }
static void NAME(lstm_coupled_forget)(const NAME(group) *g) { NAME(lstm)(g, PYRNNX_COUPLED_FORGET); }
static void NAME(lstm_coupled_input)(const NAME(group) *g) { NAME(lstm)(g, PYRNNX_COUPLED_INPUT); }

static const NAME(variant) NAME(LSTM_variants)[PYRNNX_VARIANT_COUNT] = {
    [PYRNNX_PLAIN] = {4, {0, 1, 2, 3}, 1, {{4, NULL, NAME(lstm_plain)}}},
    [PYRNNX_COUPLED_FORGET] = {3, {0, 1, 3}, 1, {{3, NULL, NAME(lstm_coupled_forget)}}},
    [PYRNNX_COUPLED_INPUT] = {3, {2, 1, 3}, 1, {{3, NULL, NAME(lstm_coupled_input)}}},
};
