/* Tiles of instruction sets whose FMAs take one element of a register for all lanes, and which load two adjacent
 * vectors by one instruction: eight k at a time, as many unit blocks in turns as there are registers, so that no FMA
 * waits for the one before. Each sum has a register of its own: gcc moves sums between registers otherwise. */
// clang-format off
/* X(j, register) for each sum; the first 16 need not be saved for the caller. */
#define REPEAT_SUMS(X) \
    X(0, 16) X(1, 17) X(2, 18) X(3, 19) X(4, 20) X(5, 21) X(6, 22) X(7, 23) \
    X(8, 24) X(9, 25) X(10, 26) X(11, 27) X(12, 28) X(13, 29) X(14, 30) X(15, 31) \
    X(16, 8) X(17, 9) X(18, 10) X(19, 11) X(20, 12) X(21, 13) X(22, 14) X(23, 15)
// clang-format on
#define DECLARE_SUM(j, number) register V s##j __asm__("v" #number);
#define LOAD_SUM(j, number) \
    if (j < mr * width) \
        s##j = weight_dtype == PYRNNX_WEIGHTS_INT8 ? SET1(0) : LOAD(TILE_VECTOR(t, init, j / width, j % width));
#define STORE_SUM(j, number) \
    if (j < mr * width) { \
        if (weight_dtype == PYRNNX_WEIGHTS_INT8) { \
            const char *scales = (const char *)t->scales + j % width / nv * t->w_block; \
            const V scale = NAME(load_scales)(scales + j % width % nv * LANES * sizeof(float)); \
            s##j = FMA(scale, s##j, LOAD(TILE_VECTOR(t, init, j / width, j % width))); \
        } \
        STORE(TILE_VECTOR(t, out, j / width, j % width), s##j); \
    }
#define ADD_LANE(j, lane) \
    case 4 * j + lane: __asm__("fmla %0.4s, %1.4s, %2.s[" #lane "]" : "+w"(s##j) : "w"(b), "w"(a)); break;
#define ADD_TO_SUM(j, number) ADD_LANE(j, 0) ADD_LANE(j, 1) ADD_LANE(j, 2) ADD_LANE(j, 3)
#define ADD_PRODUCT(j, lane) \
    switch (4 * (j) + (lane)) { REPEAT_SUMS(ADD_TO_SUM) }

INLINE void NAME(tile)(const int mr, const int nv, const int nb, const int weight_dtype,
                       const NAME(tile_args) *arguments) {
    __asm__ volatile("" : : : "memory"); /* stores before this come before ISA_LOAD_NEXT_TWO */
    enum { STEPS = 2 * LANES };
    const NAME(tile_args) copy = *arguments, *const t = &copy; /* not changed by stores */
    const int width = nv * nb, rest = 32 - mr * width, x_vectors = rest >= 2 * mr + 2 ? 2 : 1;
    const int pairs = (rest - x_vectors * mr) / 2, bytes = LANES * NAME(weight_size)(weight_dtype);
    const char *x[MAX_TILE_ROWS], *w[MAX_TILE_BLOCKS];
    V elements[MAX_TILE_ROWS][2], weights[MAX_TILE_BLOCKS][2];
    REPEAT_SUMS(DECLARE_SUM)
    REPEAT_SUMS(LOAD_SUM)
#pragma GCC unroll 16
    for (int r = 0; r < mr; r++) x[r] = (const char *)(t->x + r * t->ldx);
#pragma GCC unroll 16
    for (int b = 0; b < nb; b++) w[b] = t->w + b * t->w_block;
    ptrdiff_t depth = t->depth;
    for (; depth >= STEPS; depth -= STEPS) {
#pragma GCC unroll 48
        for (int v = 0; v < STEPS * nv; v += 2) {
            const int loads = v % (x_vectors * LANES * nv) == 0 ? mr : 0;
#pragma GCC unroll 16
            for (int r = 0; r < loads; r++)
                if (x_vectors == 2)
                    ISA_LOAD_NEXT_TWO(&x[r], elements[r]);
                else {
                    elements[r][0] = LOAD((const REAL *)(const void *)x[r]);
                    x[r] += sizeof(V);
                }
#pragma GCC unroll 16
            for (int first = 0; first < nb; first += pairs) {
                const int end = first + pairs < nb ? first + pairs : nb;
#pragma GCC unroll 16
                for (int c = first; c < end; c++) ISA_LOAD_TWO(weight_dtype, w[c] + v * bytes, weights[c]);
#pragma GCC unroll 2
                for (int e = 0; e < 2; e++)
#pragma GCC unroll 16
                    for (int c = first; c < end; c++)
#pragma GCC unroll 16
                        for (int r = 0; r < mr; r++) {
                            const int k = (v + e) / nv;
                            const V a = elements[r][k / LANES % x_vectors], b = weights[c][e];
                            ADD_PRODUCT(r * width + c * nv + (v + e) % nv, k % LANES)
                        }
            }
        }
#pragma GCC unroll 16
        for (int c = 0; c < nb; c++) w[c] += STEPS * nv * bytes;
    }
    for (; depth > 0; depth--) {
#pragma GCC unroll 16
        for (int r = 0; r < mr; r++) {
            elements[r][0] = SET1(*(const REAL *)(const void *)x[r]);
            x[r] += sizeof(REAL);
        }
#pragma GCC unroll 16
        for (int v = 0; v < width; v++) {
            const V b = NAME(load_weights)(weight_dtype, w[v / nv] + v % nv * bytes);
#pragma GCC unroll 16
            for (int r = 0; r < mr; r++) {
                const V a = elements[r][0];
                ADD_PRODUCT(r * width + v, 0)
            }
        }
#pragma GCC unroll 16
        for (int c = 0; c < nb; c++) w[c] += nv * bytes;
    }
    REPEAT_SUMS(STORE_SUM)
}
