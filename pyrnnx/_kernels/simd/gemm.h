/* The register tile, and the product of a block of rows with a few unit blocks.
 *
 *   out[r][b][v] = init[r][b][v] + sum_k x[r][k] w[b][k][v]        r < mr rows, b < nb unit blocks, v < nv gates, each
 * a vector V
 *
 * The sum runs over k in order, one FMA each, in every tile shape: results do not depend on the shape. A panel w[b] is
 * [K][nv][L], read once from front to back. Large products run k block by k block so that a panel stays in L1 for all
 * row tiles, the sums resting in `out` between blocks; a single row takes several unit blocks at once, which hides the
 * latency of the FMAs. An int8 panel opens with the scales [nv][L] of its gate rows: out = init + scale * sum.
 */
#ifndef PYRNNX_GEMM_TILES
#define PYRNNX_GEMM_TILES
#if TILE_SUMS >= 24 /* 32 registers: sums, and the smaller side of the tile */
#define MAX_TILE_ROWS 8
#define TILE_ROWS(X, nv, nb) \
    X(nv, nb, 1) X(nv, nb, 2) X(nv, nb, 3) X(nv, nb, 4) X(nv, nb, 5) X(nv, nb, 6) X(nv, nb, 7) X(nv, nb, 8)
#else /* 16 registers */
#define MAX_TILE_ROWS 6
#define TILE_ROWS(X, nv, nb) X(nv, nb, 1) X(nv, nb, 2) X(nv, nb, 3) X(nv, nb, 4) X(nv, nb, 5) X(nv, nb, 6)
#endif
#define MAX_TILE_VECTORS 12
#define MAX_TILE_BLOCKS 8
/* A tile exists for the unit blocks listed here and all rows with mr * nv * nb <= TILE_SUMS. */
// clang-format off
#define TILE_SHAPES(X) \
    TILE_ROWS(X, 1, 1) TILE_ROWS(X, 1, 2) TILE_ROWS(X, 1, 4) TILE_ROWS(X, 1, 8) \
    TILE_ROWS(X, 2, 1) TILE_ROWS(X, 2, 2) TILE_ROWS(X, 2, 4) \
    TILE_ROWS(X, 3, 1) TILE_ROWS(X, 3, 2) TILE_ROWS(X, 3, 4) \
    TILE_ROWS(X, 4, 1) TILE_ROWS(X, 4, 2) TILE_ROWS(X, 4, 3)
// clang-format on
/* gcc makes a load that two FMAs share an operand in memory of each, and loads then bound a tile of two rows. */
#if PYRNNX_HAVE_X86
#define KEEP_IN_REGISTER(x) __asm__("" : "+v"(x))
#else
#define KEEP_IN_REGISTER(x) (void)(x)
#endif
#define TILE_FITS(nv, nb, mr) ((mr) <= MAX_TILE_ROWS && (mr) * (nv) * (nb) <= TILE_SUMS)

/* The most unit blocks side by side for so many rows. */
static int tile_blocks(int nv, ptrdiff_t rows, ptrdiff_t blocks) {
    static const signed char widths[5][3] = {{1, 1, 1}, {8, 4, 2}, {4, 2, 2}, {4, 2, 2}, {3, 2, 2}};
    for (int j = 0; j < 3; j++) {
        const int nb = widths[nv][j], few = rows < MAX_TILE_ROWS ? (int)rows : MAX_TILE_ROWS;
        if (nb <= blocks && TILE_FITS(nv, nb, few) && !(nv == 4 && nb == 3 && blocks == 4)) return nb;
    }
    return 1;
}
#endif

typedef struct {
    ptrdiff_t depth; /* K */
    const REAL *x;
    ptrdiff_t ldx;
    const char *w;
    const char *ahead;   /* several rows: the weights of later, to bring near meanwhile */
    ptrdiff_t w_block;   /* bytes from one unit block's panel to the next */
    const float *scales; /* int8: of the first unit block */
    const REAL *init;
    ptrdiff_t ld_init, init_block; /* elements from row to row, from block to block */
    REAL *out;
    ptrdiff_t ld_out, out_block;
} NAME(tile_args);

/* One k of the tile. The smaller side of the tile stays in registers, the other passes through one. */
INLINE void NAME(tile_step)(const int mr, const int nv, const int nb, const int format,
                            V sum[MAX_TILE_ROWS][MAX_TILE_VECTORS], const REAL *const *x, const char *const *w,
                            ptrdiff_t k) {
    const int bytes = LANES * NAME(weight_size)(format);
    if (mr <= nv * nb) {
        V a[MAX_TILE_ROWS];
#pragma GCC unroll 16
        for (int r = 0; r < mr; r++) a[r] = SET1(x[r][k]);
#pragma GCC unroll 16
        for (int v = 0; v < nv * nb; v++) {
            V b = NAME(load_weights)(format, w[v / nv] + (k * nv + v % nv) * bytes);
            if (mr == 2) KEEP_IN_REGISTER(b);
#pragma GCC unroll 16
            for (int r = 0; r < mr; r++) sum[r][v] = FMA(a[r], b, sum[r][v]);
        }
    } else {
        V b[MAX_TILE_VECTORS];
#pragma GCC unroll 16
        for (int v = 0; v < nv * nb; v++) b[v] = NAME(load_weights)(format, w[v / nv] + (k * nv + v % nv) * bytes);
#pragma GCC unroll 16
        for (int r = 0; r < mr; r++) {
            const V a = SET1(x[r][k]);
#pragma GCC unroll 16
            for (int v = 0; v < nv * nb; v++) sum[r][v] = FMA(a, b[v], sum[r][v]);
        }
    }
}

INLINE void NAME(tile)(const int mr, const int nv, const int nb, const int format, const NAME(tile_args) *t) {
    V sum[MAX_TILE_ROWS][MAX_TILE_VECTORS];
    const REAL *x[MAX_TILE_ROWS];
    const char *w[MAX_TILE_BLOCKS];
    const ptrdiff_t depth = t->depth;
#pragma GCC unroll 16
    for (int b = 0; b < nb; b++) w[b] = t->w + b * t->w_block;
#pragma GCC unroll 16
    for (int r = 0; r < mr; r++) {
        x[r] = t->x + r * t->ldx;
#pragma GCC unroll 16
        for (int v = 0; v < nv * nb; v++)
            sum[r][v] = format == PYRNNX_WEIGHTS_INT8
                            ? SET1(0)
                            : LOAD(t->init + r * t->ld_init + v / nv * t->init_block + v % nv * LANES);
    }
    ptrdiff_t k = 0;
    const char *ahead = t->ahead;
    if (mr > 1) /* and what the next row tile starts from */
#pragma GCC unroll 16
        for (int r = 0; r < mr; r++)
#pragma GCC unroll 16
            for (int v = 0; v < nv; v += sizeof(V) < 64 ? 64 / (int)sizeof(V) : 1)
                __builtin_prefetch(t->init + (mr + r) * t->ld_init + v * LANES);
    for (; k + 4 <= depth; k += 4) {
        if (mr > 1) {
            __builtin_prefetch(ahead, 0, 3);
            ahead += 64;
        }
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) NAME(tile_step)(mr, nv, nb, format, sum, x, w, k + j);
    }
    for (; k < depth; k++) NAME(tile_step)(mr, nv, nb, format, sum, x, w, k);
#pragma GCC unroll 16
    for (int r = 0; r < mr; r++)
#pragma GCC unroll 16
        for (int v = 0; v < nv * nb; v++) {
            if (format == PYRNNX_WEIGHTS_INT8) {
                const V scale =
                    NAME(load_scales)((const char *)t->scales + v / nv * t->w_block + v % nv * LANES * sizeof(float));
                sum[r][v] =
                    FMA(scale, sum[r][v], LOAD(t->init + r * t->ld_init + v / nv * t->init_block + v % nv * LANES));
            }
            STORE(t->out + r * t->ld_out + v / nv * t->out_block + v % nv * LANES, sum[r][v]);
        }
}

/* tiles[nv][nb][mr] of each format */
typedef void NAME(tile_function)(const NAME(tile_args) *);
#define TILE_NAME(format, nv, nb, mr) PX_CAT(tile_##format##_##nv##_##nb##_##mr, REAL, t)
#define DEFINE_TILE(format, nv, nb, mr) \
    static void TILE_NAME(format, nv, nb, mr)(const NAME(tile_args) *t) { \
        NAME(tile)(TILE_FITS(nv, nb, mr) ? mr : 0, nv, nb, format, t); \
    }
#define DEFINE_TILE_0(nv, nb, mr) DEFINE_TILE(0, nv, nb, mr)
#define DEFINE_TILE_1(nv, nb, mr) DEFINE_TILE(1, nv, nb, mr)
#define DEFINE_TILE_2(nv, nb, mr) DEFINE_TILE(2, nv, nb, mr)
#define LIST_TILE_0(nv, nb, mr) [nv][nb][mr] = TILE_NAME(0, nv, nb, mr),
#define LIST_TILE_1(nv, nb, mr) [nv][nb][mr] = TILE_NAME(1, nv, nb, mr),
#define LIST_TILE_2(nv, nb, mr) [nv][nb][mr] = TILE_NAME(2, nv, nb, mr),
TILE_SHAPES(DEFINE_TILE_0)
#if HAVE_FORMATS
TILE_SHAPES(DEFINE_TILE_1)
TILE_SHAPES(DEFINE_TILE_2)
#endif
static NAME(tile_function) *const NAME(tiles)[][5][MAX_TILE_BLOCKS + 1][MAX_TILE_ROWS + 1] = {
    {TILE_SHAPES(LIST_TILE_0)},
#if HAVE_FORMATS
    {TILE_SHAPES(LIST_TILE_1)},
    {TILE_SHAPES(LIST_TILE_2)},
#endif
};

/* The product for nb unit blocks and any number of rows; t holds the first row. Row tiles and k blocks are balanced. */
static void NAME(product)(int format, int nv, int nb, ptrdiff_t rows, NAME(tile_args) t) {
    NAME(tile_function) *const *const tiles = NAME(tiles)[format][nv][nb];
    assert(rows >= 0 && TILE_FITS(nv, nb, 1) && (rows == 0 || tiles[1] != NULL));
    if (TILE_FITS(nv, nb, rows) && format != PYRNNX_WEIGHTS_INT8) {
        tiles[rows](&t);
        return;
    }
    const ptrdiff_t most_rows = TILE_SUMS / (nv * nb) < MAX_TILE_ROWS ? TILE_SUMS / (nv * nb) : MAX_TILE_ROWS;
    const ptrdiff_t row_tiles = (rows + most_rows - 1) / most_rows, step = nv * LANES * NAME(weight_size)(format),
                    depth = t.depth;
    ptrdiff_t k_blocks = 1;
    if (format == PYRNNX_WEIGHTS_INT8) {
        t.scales = (const float *)t.w;
        t.w += nv * LANES * sizeof(float);
    } else if (row_tiles > 1) {
        k_blocks = (depth * step * nb + PANEL_BYTES - 1) / PANEL_BYTES;
        k_blocks += k_blocks == 0;
    }
    const REAL *const x = t.x, *init = t.init;
    REAL *const out = t.out;
    for (ptrdiff_t kb = 0, k = 0; kb < k_blocks; kb++) {
        t.depth = (depth - k) / (k_blocks - kb);
        t.ahead = t.w + t.depth * step;
        for (ptrdiff_t tile = 0, r = 0; tile < row_tiles; tile++) {
            const ptrdiff_t mr = (rows - r + row_tiles - tile - 1) / (row_tiles - tile);
            t.x = x + r * t.ldx + k;
            t.init = init + r * t.ld_init;
            t.out = out + r * t.ld_out;
            tiles[mr](&t);
            t.ahead += t.depth / 4 * 64;
            r += mr;
        }
        k += t.depth;
        t.w += t.depth * step;
        init = out;
        t.ld_init = t.ld_out;
        t.init_block = t.out_block;
    }
}
