/* RNN   H = f(a) */
static void NAME(rnn)(const NAME(group) *g) {
    NAME(clip_gate)(g, 0);
    NAME(activate_gate)(g, &g->parameters->functions[0], 0);
    FOR_EACH_VECTOR(g) STORE(STATE(g, h_next), LOAD(SUM(g, 0)));
}

/* For Tanh without clip. */
INLINE void NAME(rnn_usual)(const NAME(group) *g) {
    FOR_EACH_VECTOR(g) STORE(STATE(g, h_next), NAME(tanh)(LOAD(SUM(g, 0))));
}

static const NAME(variant) NAME(RNN_variants)[PYRNNX_VARIANT_COUNT] = {
    [PYRNNX_PLAIN] = {1, {0}, 1, {{1, NULL, NAME(rnn)}}},
};
