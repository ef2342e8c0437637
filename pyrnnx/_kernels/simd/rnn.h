/* RNN   H = f(a) */

/* For f = tanh. */
INLINE void NAME(rnn_usual)(const NAME(group) *g, const int clips) {
    const V clip = SET1((REAL)g->parameters->clip);
    FOR_EACH_VECTOR(g) STORE(STATE(g, h_next), NAME(tanh_quotient)(NAME(clipped)(clips, clip, LOAD(SUM(g, 0)))));
}

static void NAME(rnn)(const NAME(group) *g) {
    const pyrnnx_activation *f = &g->parameters->functions[0];
    if (f->number == PYRNNX_Tanh) {
        NAME(rnn_usual)(g, 1);
        return;
    }
    NAME(clip_gate)(g, 0);
    NAME(activate_gate)(g, f, 0);
    FOR_EACH_VECTOR(g) STORE(STATE(g, h_next), LOAD(SUM(g, 0)));
}

static const NAME(variant) NAME(RNN_variants)[PYRNNX_VARIANT_COUNT] = {
    [PYRNNX_PLAIN] = {1, {0}, 1, {{1, NULL, NAME(rnn)}}},
};
