/* Products of rows with a few unit blocks, cut into tiles whose sums stay in registers:
 *
 *   out[r][b][v] = init[r][b][v] + sum_k x[r][k] w[b][k][v]        r < mr rows, b < nb unit blocks, v < nv gates,
 *                                                                  each element a vector V
 *
 * Every tile shape sums over k in order, with one FMA each (or, without FMA, a product and a sum), so results do not
 * depend on the shape. A panel w[b] is [K][nv][L], and each tile reads its part of it from front to back. An int8 panel
 * begins with the scales [nv][L] of its gate rows; for it, out = init + scale * sum.
 */
#ifndef PYRNNX_TILES
#define PYRNNX_TILES
#if TILE_SUMS >= 24 && !defined ISA_FMA_BY_LANE /* 32 registers: sums and the smaller side of the tile */
#define MAX_TILE_ROWS 8
#define TILE_ROWS(X, nv, nb) \
    X(nv, nb, 1) X(nv, nb, 2) X(nv, nb, 3) X(nv, nb, 4) X(nv, nb, 5) X(nv, nb, 6) X(nv, nb, 7) X(nv, nb, 8)
#else /* 16 registers; or 24 sums, a register for each row, and two of weights */
#define MAX_TILE_ROWS 6
#define TILE_ROWS(X, nv, nb) X(nv, nb, 1) X(nv, nb, 2) X(nv, nb, 3) X(nv, nb, 4) X(nv, nb, 5) X(nv, nb, 6)
#endif
#define MAX_TILE_VECTORS 12
#define MAX_TILE_BLOCKS 8
#ifdef HAVE_RUNS /* products of three rows or more are cut into runs, see run_tiles.h */
#define IN_RUNS(rows) ((rows) > 2)
#define WHOLE_ROWS(X, nv, nb) X(nv, nb, 1) X(nv, nb, 2)
#else
#define IN_RUNS(rows) 0
#define WHOLE_ROWS TILE_ROWS
#endif
/* Tiles of whole unit blocks exist for these nv and nb, and those rows of WHOLE_ROWS with mr * nv * nb <= TILE_SUMS. */
// clang-format off
#define TILE_SHAPES(X) \
    WHOLE_ROWS(X, 1, 1) WHOLE_ROWS(X, 1, 2) WHOLE_ROWS(X, 1, 4) WHOLE_ROWS(X, 1, 8) \
    WHOLE_ROWS(X, 2, 1) WHOLE_ROWS(X, 2, 2) WHOLE_ROWS(X, 2, 4) \
    WHOLE_ROWS(X, 3, 1) WHOLE_ROWS(X, 3, 2) WHOLE_ROWS(X, 3, 4) \
    WHOLE_ROWS(X, 4, 1) WHOLE_ROWS(X, 4, 2) WHOLE_ROWS(X, 4, 3)
// clang-format on
/* gcc folds a load shared by two FMAs into both and so loads twice, which slows a tile of two rows. */
#if PYRNNX_HAVE_X86 && !defined MATRIX_MODEL
#define KEEP_IN_REGISTER(x) __asm__("" : "+v"(x))
#else
#define KEEP_IN_REGISTER(x) (void)(x)
#endif
enum { NEXT_BYTES = 16 };       /* that a tile of several rows prefetches in each k, of those read next */
enum { PANEL_BYTES = 3 << 15 }; /* of panels that row tiles read again: from L2, fast enough for FMAs */
#define TILE_FITS(nv, nb, mr) ((mr) <= MAX_TILE_ROWS && (mr) * (nv) * (nb) <= TILE_SUMS)

/* Rows of the tiles that nb is chosen for: all of them with FMAs by lane, else the fullest, as measured. */
#ifdef ISA_FMA_BY_LANE
#define ROWS_OF_TILES(rows) ((int)(((rows) - 1) / (((rows) + MAX_TILE_ROWS - 1) / MAX_TILE_ROWS) + 1))
#else
#define ROWS_OF_TILES(rows) ((rows) < MAX_TILE_ROWS ? (int)(rows) : MAX_TILE_ROWS)
#endif

/* Return nb of the widest tile that fits the remaining unit blocks. Few rows need several blocks: each sum is a chain
 * of FMAs, and few chains leave the processor waiting. Four blocks of four gates are cut 2 + 2, because 3 + 1 would
 * leave a narrow tile. */
static int tile_blocks(int nv, ptrdiff_t rows, ptrdiff_t blocks) {
    static const signed char widths[5][3] = {{0}, {8, 4, 2}, {4, 2}, {4, 2}, {3, 2}}; /* by nv, as in TILE_SHAPES */
    const int mr = ROWS_OF_TILES(rows);
    for (int j = 0; j < 3 && widths[nv][j] > 1; j++) {
        const int nb = widths[nv][j];
        if (nb <= blocks && TILE_FITS(nv, nb, mr) && !(nv == 4 && nb == 3 && blocks == 4)) return nb;
    }
    return 1;
}
#endif

typedef struct {
    ptrdiff_t depth; /* K */
    const REAL *x;
    ptrdiff_t ldx;
    const char *w;
    const char *next;    /* the weights read next, which a tile of several rows prefetches in part */
    ptrdiff_t w_block;   /* bytes from panel to panel */
    const float *scales; /* int8: of the first unit block */
    const REAL *init;
    ptrdiff_t ld_init, init_block; /* elements from row to row, from block to block */
    REAL *out;
    ptrdiff_t ld_out, out_block;
} NAME(tile_args);

/* Row r, vector v of an array of a tile: gate v % nv of unit block v / nv. */
#define TILE_VECTOR(t, array, r, v) \
    ((t)->array + (r) * (t)->ld_##array + (v) / nv * (t)->array##_block + (v) % nv * LANES)

#ifdef ISA_FMA_BY_LANE
#include "lane_tiles.h"
#else
/* Add the products of one k, whose weights are at w, a pointer for each vector. The smaller side of the tile stays in
 * registers, the other is loaded vector by vector. */
INLINE void NAME(tile_step)(const int mr, const int width, const int weight_dtype,
                            V sum[MAX_TILE_ROWS][MAX_TILE_VECTORS], const REAL *const *x, const char *const *w,
                            ptrdiff_t k) {
    if (mr <= width) {
        V a[MAX_TILE_ROWS];
#pragma GCC unroll 16
        for (int r = 0; r < mr; r++) a[r] = SET1(x[r][k]);
#pragma GCC unroll 16
        for (int v = 0; v < width; v++) {
            V b = NAME(load_weights)(weight_dtype, w[v]);
            if (mr == 1) {
                sum[0][v] = FMA(a[0], b, sum[0][v]); /* may read b from memory */
                continue;
            }
            if (mr == 2) KEEP_IN_REGISTER(b);
#pragma GCC unroll 16
            for (int r = 0; r < mr; r++) ACCUMULATE(sum[r][v], a[r], b);
        }
    } else {
        V b[MAX_TILE_VECTORS];
#pragma GCC unroll 16
        for (int v = 0; v < width; v++) b[v] = NAME(load_weights)(weight_dtype, w[v]);
#pragma GCC unroll 16
        for (int r = 0; r < mr; r++) {
            const V a = SET1(x[r][k]);
#pragma GCC unroll 16
            for (int v = 0; v < width; v++) ACCUMULATE(sum[r][v], a, b[v]);
        }
    }
}

/* Add the products of one k of nb whole unit blocks, whose panels are at w. */
INLINE void NAME(blocks_step)(const int mr, const int nv, const int nb, const int weight_dtype,
                              V sum[MAX_TILE_ROWS][MAX_TILE_VECTORS], const REAL *const *x, const char *const *w,
                              ptrdiff_t k) {
    const char *at[MAX_TILE_VECTORS];
#pragma GCC unroll 16
    for (int v = 0; v < nv * nb; v++) at[v] = w[v / nv] + (k * nv + v % nv) * (LANES * NAME(weight_size)(weight_dtype));
    NAME(tile_step)(mr, nv * nb, weight_dtype, sum, x, at, k);
}

INLINE void NAME(tile)(const int mr, const int nv, const int nb, const int weight_dtype, const NAME(tile_args) *t) {
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
            sum[r][v] = weight_dtype == PYRNNX_WEIGHTS_INT8 ? SET1(0) : LOAD(TILE_VECTOR(t, init, r, v));
    }
    ptrdiff_t k = 0;
    if (mr > 1) /* init of the next row tile */
#pragma GCC unroll 16
        for (int r = 0; r < mr; r++)
#pragma GCC unroll 16
            for (int v = 0; v < nv; v += sizeof(V) < 64 ? 64 / (int)sizeof(V) : 1)
                __builtin_prefetch(t->init + (mr + r) * t->ld_init + v * LANES);
    for (; mr == 1 && k + 4 <= depth; k += 4) /* a row has few operations in one k */
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) NAME(blocks_step)(mr, nv, nb, weight_dtype, sum, x, w, k + j);
#pragma GCC unroll 1 /* not peeled, to compile faster */
    for (; k < depth; k++) {
        if (mr > 1) __builtin_prefetch(t->next + NEXT_BYTES * k, 0, 3);
        NAME(blocks_step)(mr, nv, nb, weight_dtype, sum, x, w, k);
    }
#pragma GCC unroll 16
    for (int r = 0; r < mr; r++)
#pragma GCC unroll 16
        for (int v = 0; v < nv * nb; v++) {
            if (weight_dtype == PYRNNX_WEIGHTS_INT8) {
                const char *scales = (const char *)t->scales + v / nv * t->w_block; /* before each panel */
                const V scale = NAME(load_scales)(scales + v % nv * LANES * sizeof(float));
                sum[r][v] = FMA(scale, sum[r][v], LOAD(TILE_VECTOR(t, init, r, v)));
            }
            STORE(TILE_VECTOR(t, out, r, v), sum[r][v]);
        }
}

#endif

/* tiles[weight_dtype][nv][nb][mr] */
typedef void NAME(tile_function)(const NAME(tile_args) *);
#define TILE_NAME(weight_dtype, nv, nb, mr) PX_CAT(tile_##weight_dtype##_##nv##_##nb##_##mr, REAL, t)
#define DEFINE_TILE(weight_dtype, nv, nb, mr) \
    static void TILE_NAME(weight_dtype, nv, nb, mr)(const NAME(tile_args) *t) { \
        if (TILE_FITS(nv, nb, mr)) NAME(tile)(mr, nv, nb, weight_dtype, t); /* else the compiler drops the body */ \
    }
#define DEFINE_TILE_0(nv, nb, mr) DEFINE_TILE(0, nv, nb, mr)
#define DEFINE_TILE_1(nv, nb, mr) DEFINE_TILE(1, nv, nb, mr)
#define DEFINE_TILE_2(nv, nb, mr) DEFINE_TILE(2, nv, nb, mr)
#define LIST_TILE_0(nv, nb, mr) [nv][nb][mr] = TILE_NAME(0, nv, nb, mr),
#define LIST_TILE_1(nv, nb, mr) [nv][nb][mr] = TILE_NAME(1, nv, nb, mr),
#define LIST_TILE_2(nv, nb, mr) [nv][nb][mr] = TILE_NAME(2, nv, nb, mr),
TILE_SHAPES(DEFINE_TILE_0)
#if HAVE_REDUCED_WEIGHTS
TILE_SHAPES(DEFINE_TILE_1)
TILE_SHAPES(DEFINE_TILE_2)
#endif
static NAME(tile_function) *const NAME(tiles)[][5][MAX_TILE_BLOCKS + 1][MAX_TILE_ROWS + 1] = {
    {TILE_SHAPES(LIST_TILE_0)},
#if HAVE_REDUCED_WEIGHTS
    {TILE_SHAPES(LIST_TILE_1)},
    {TILE_SHAPES(LIST_TILE_2)},
#endif
};

#if IN_RUNS(3)
#include "run_tiles.h"
#endif

/* Multiply any number of rows with nb unit blocks; t describes the first row and all k, and is changed. Rows and k are
 * cut into tiles of mr rows and blocks of k, of nearly equal size:
 *
 *              k block 0   k block 1           w:  k block 0 |==========|  the part of the nb panels that all row tiles
 *   x: tile 0 |    1     |     4     |             k block 1 |==========|  read before the next part: it stays cached
 *      tile 1 |    2     |     5     |
 *      tile 2 |    3     |     6     |
 *
 * Tiles run in the order of their numbers. Between k blocks the sums are in out. int8 has one k block, because its
 * tiles scale whole sums. */
static void NAME(product)(int weight_dtype, int nv, int nb, ptrdiff_t rows, NAME(tile_args) *t) {
    const ptrdiff_t k_bytes = nv * LANES * NAME(weight_size)(weight_dtype), depth = t->depth;
    const int int8 = weight_dtype == PYRNNX_WEIGHTS_INT8;
    assert(rows > 0);
    if (int8) {
        t->scales = (const float *)t->w;
        t->w += nv * LANES * sizeof(float);
    }
#if IN_RUNS(3)
    if (IN_RUNS(rows)) {
        NAME(run_product)(weight_dtype, nv, nb, rows, t);
        return;
    }
#endif
    NAME(tile_function) *const *const tiles = NAME(tiles)[weight_dtype][nv][nb];
    assert(TILE_FITS(nv, nb, 1) && tiles[1] != NULL);
    if (TILE_FITS(nv, nb, rows)) {
        t->next = t->w + depth * k_bytes;
        tiles[rows](t);
        return;
    }
    const ptrdiff_t most_rows = TILE_SUMS / (nv * nb) < MAX_TILE_ROWS ? TILE_SUMS / (nv * nb) : MAX_TILE_ROWS;
    const ptrdiff_t row_tiles = (rows + most_rows - 1) / most_rows;
    const ptrdiff_t k_blocks = int8 || depth == 0 ? 1 : (depth * k_bytes * nb + PANEL_BYTES - 1) / PANEL_BYTES;
    const NAME(tile_args) first = *t;
    for (ptrdiff_t k_block = 0, k = 0; k_block < k_blocks; k_block++) {
        t->depth = (depth - k) / (k_blocks - k_block);
        t->next = t->w + t->depth * k_bytes;
        for (ptrdiff_t tile = 0, r = 0, mr; tile < row_tiles; tile++, r += mr) {
            mr = (rows - r + row_tiles - tile - 1) / (row_tiles - tile);
            t->x = first.x + r * t->ldx + k;
            t->out = first.out + r * t->ld_out;
            t->init = k_block ? t->out : first.init + r * first.ld_init;
            tiles[mr](t);
            t->next += NEXT_BYTES * t->depth; /* the tile prefetched these */
        }
        k += t->depth;
        t->w += t->depth * k_bytes;
        t->ld_init = t->ld_out, t->init_block = t->out_block; /* from here on, sums start from out */
    }
}
