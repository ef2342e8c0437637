/* HAVE_RUNS: products of three rows or more by tiles of some rows and a run of adjacent vectors, included by tiles.h. A
 * run may begin and end at any gate of any unit block, so nearly every tile has 9 to 12 sums:
 *
 *   rows of a tile      3  4  5  6                    unit block       0         1         2
 *   vectors of a run    4  3  2  2                    gates            i o f c   i o f c   i o f c
 *                                                     runs of 4 rows   0 0 0 1   1 1 2 2   2 3 3 3
 *
 * More than MOST_ROWS rows have tiles of whole panels instead, if the weights are full: those beyond L2 are best read
 * front to back, and prefetched; and half a panel is every second cache line, for which L1 has half of its places.
 * Reduced weights, which are smaller, keep runs for any number of rows.
 */
#ifndef PYRNNX_RUN_TILES
#define PYRNNX_RUN_TILES
enum {
    MAX_RUN = 4,
    MOST_ROWS = 7,  /* of a product of full weights with runs of parts of panels */
    FEW_TILES = 3,  /* row tiles, too few to prefetch most of the weights that follow */
    LEAST_SUMS = 9, /* of the smallest row tile, if there is such a division of the rows */
    AHEAD = 24      /* k from the weights that are multiplied to those that are prefetched */
};
// clang-format off
#define RUN_SHAPES(X, weight_dtype) \
    X(weight_dtype, 3, 1) X(weight_dtype, 3, 2) X(weight_dtype, 3, 3) X(weight_dtype, 3, 4) \
    X(weight_dtype, 4, 1) X(weight_dtype, 4, 2) X(weight_dtype, 4, 3) \
    X(weight_dtype, 5, 1) X(weight_dtype, 5, 2) \
    X(weight_dtype, 6, 1) X(weight_dtype, 6, 2)
#define FULL_RUN_SHAPES(X) RUN_SHAPES(X, 0) X(0, 2, 4) /* more than MOST_ROWS rows of four gates: also two rows */
// clang-format on

/* A division of rows into tiles of nearly equal size, and of vectors into runs. */
typedef struct {
    ptrdiff_t tiles; /* of rows */
    int width;       /* most vectors of a run */
    int blocks;      /* fewest unit blocks of whole runs */
} run_division;

static run_division divide_into_runs(int weight_dtype, int nv, ptrdiff_t rows) {
    const int many = weight_dtype == PYRNNX_WEIGHTS_FULL && rows > MOST_ROWS;
    const int whole = TILE_SUMS / nv < MAX_TILE_ROWS ? TILE_SUMS / nv : MAX_TILE_ROWS; /* rows, with whole panels */
    run_division d = {0, 0, 1};
    for (int most = many ? whole : MAX_TILE_ROWS; most >= 3; most--) {
        d.tiles = (rows + most - 1) / most;
        d.width = (int)(TILE_SUMS / ((rows + d.tiles - 1) / d.tiles));
        if (many || rows / d.tiles * d.width >= LEAST_SUMS) break;
    }
    while (d.blocks * nv % d.width) d.blocks++;
    return d;
}

/* Return the number of unit blocks for a product, of those that remain: whole runs, if enough remain, whose panels, of
 * block_bytes each, stay in L2, if one run of them does. */
static int run_blocks(int weight_dtype, int nv, ptrdiff_t rows, ptrdiff_t blocks, ptrdiff_t block_bytes) {
    const run_division d = divide_into_runs(weight_dtype, nv, rows);
    ptrdiff_t most = PANEL_BYTES / (block_bytes + 1);
    if (most > MAX_TILE_VECTORS / nv) most = MAX_TILE_VECTORS / nv;
    most = most < d.blocks ? d.blocks : most - most % d.blocks;
    return (int)(blocks < most ? blocks : most);
}
#endif

/* Multiply mr rows with the run of `width` vectors that begins at a gate of a unit block; nv: gates of a unit block.
 * Full weights are prefetched: those of this run, `ahead` bytes before they are multiplied (0: they are cached), unless
 * mr is 3 or less; and a cache line at t->next for every four k. */
INLINE void NAME(run_tile)(const int mr, const int width, const int weight_dtype, const NAME(tile_args) *t, int nv,
                           ptrdiff_t block, int gate, ptrdiff_t ahead) {
    const int int8 = weight_dtype == PYRNNX_WEIGHTS_INT8, full = weight_dtype == PYRNNX_WEIGHTS_FULL;
    const int bytes = LANES * NAME(weight_size)(weight_dtype);
    const ptrdiff_t depth = t->depth, k_bytes = nv * bytes;
    V sum[MAX_TILE_ROWS][MAX_TILE_VECTORS];
    const REAL *x[MAX_TILE_ROWS], *init[MAX_RUN], *scales[MAX_RUN];
    const char *w[MAX_RUN];
    REAL *out[MAX_RUN];
#pragma GCC unroll 16
    for (int v = 0; v < width; v++) {
        w[v] = t->w + block * t->w_block + gate * bytes;
        init[v] = t->init + block * t->init_block + gate * LANES;
        out[v] = t->out + block * t->out_block + gate * LANES;
        if (int8) scales[v] = (const REAL *)(const void *)((const char *)t->scales + block * t->w_block) + gate * LANES;
        if (++gate == nv) gate = 0, block++;
    }
#pragma GCC unroll 16
    for (int r = 0; r < mr; r++) {
        x[r] = t->x + r * t->ldx;
#pragma GCC unroll 16
        for (int v = 0; v < width; v++) sum[r][v] = int8 ? SET1(0) : LOAD(init[v] + r * t->ld_init);
    }
#pragma GCC unroll 16
    for (int r = 0; r < mr; r++) /* init of the next row tile */
#pragma GCC unroll 16
        for (int v = 0; v < width; v += 2) __builtin_prefetch(init[v] + (mr + r) * t->ld_init);
    const char *next = t->next;
    ptrdiff_t k = 0;
    for (; k + 4 <= depth; k += 4, next += 64) {
        if (full) __builtin_prefetch(next, 0, 3);
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) {
            if (full && mr > 3) __builtin_prefetch(w[0] + ahead, 0, 3);
            if (full && mr > 3 && width > 2) __builtin_prefetch(w[width - 1] + ahead, 0, 3); /* another cache line */
            NAME(tile_step)(mr, width, weight_dtype, sum, x, w, k + j);
#pragma GCC unroll 16
            for (int v = 0; v < width; v++) w[v] += k_bytes;
        }
    }
#pragma GCC unroll 1 /* not peeled, to compile faster */
    for (; k < depth; k++) {
        NAME(tile_step)(mr, width, weight_dtype, sum, x, w, k);
#pragma GCC unroll 16
        for (int v = 0; v < width; v++) w[v] += k_bytes;
    }
#pragma GCC unroll 16
    for (int v = 0; v < width; v++)
#pragma GCC unroll 16
        for (int r = 0; r < mr; r++) {
            if (int8)
                sum[r][v] = FMA(NAME(load_scales)((const char *)scales[v]), sum[r][v], LOAD(init[v] + r * t->ld_init));
            STORE(out[v] + r * t->ld_out, sum[r][v]);
        }
}

/* runs[weight_dtype][mr][width] */
typedef void NAME(run_function)(const NAME(tile_args) *, int, ptrdiff_t, int, ptrdiff_t);
#define RUN_NAME(weight_dtype, mr, width) PX_CAT(run_##weight_dtype##_##mr##_##width, REAL, t)
#define DEFINE_RUN(weight_dtype, mr, width) \
    static void RUN_NAME(weight_dtype, mr, width)(const NAME(tile_args) *t, int nv, ptrdiff_t block, int gate, \
                                                  ptrdiff_t ahead) { \
        NAME(run_tile)(mr, width, weight_dtype, t, nv, block, gate, ahead); \
    }
#define LIST_RUN(weight_dtype, mr, width) [mr][width] = RUN_NAME(weight_dtype, mr, width),
FULL_RUN_SHAPES(DEFINE_RUN)
#if HAVE_REDUCED_WEIGHTS
RUN_SHAPES(DEFINE_RUN, 1)
RUN_SHAPES(DEFINE_RUN, 2)
#endif
static NAME(run_function) *const NAME(runs)[][MAX_TILE_ROWS + 1][MAX_RUN + 1] = {
    {FULL_RUN_SHAPES(LIST_RUN)},
#if HAVE_REDUCED_WEIGHTS
    {RUN_SHAPES(LIST_RUN, 1)},
    {RUN_SHAPES(LIST_RUN, 2)},
#endif
};

/* Multiply three rows or more with nb unit blocks, as NAME(product) in tiles.h, which calls this: block of k by block
 * of k, run by run, row tile by row tile. Of full weights, the first row tile prefetches its run; more than FEW_TILES
 * row tiles together prefetch most of what follows, the next block of k or product; fewer prefetch t->w, which is
 * cached. */
static void NAME(run_product)(int weight_dtype, int nv, int nb, ptrdiff_t rows, NAME(tile_args) *t) {
    NAME(run_function) *const(*const tiles)[MAX_RUN + 1] = NAME(runs)[weight_dtype];
    const run_division d = divide_into_runs(weight_dtype, nv, rows);
    const int vectors = nv * nb, runs = (vectors + d.width - 1) / d.width, few = d.tiles <= FEW_TILES;
    const ptrdiff_t depth = t->depth, k_bytes = nv * LANES * NAME(weight_size)(weight_dtype);
    const ptrdiff_t k_blocks = weight_dtype == PYRNNX_WEIGHTS_INT8 || depth == 0 || d.tiles == 1
                                   ? 1
                                   : (depth * k_bytes * nb + PANEL_BYTES - 1) / PANEL_BYTES;
    const NAME(tile_args) first = *t;
    for (ptrdiff_t k_block = 0, k = 0; k_block < k_blocks; k_block++) {
        t->depth = (depth - k) / (k_blocks - k_block);
        const char *next = k_block + 1 < k_blocks ? t->w + t->depth * k_bytes : first.w + nb * t->w_block;
        for (int run = 0, v = 0, count; run < runs; run++, v += count) {
            count = (vectors - v + runs - run - 1) / (runs - run);
            for (ptrdiff_t tile = 0, r = 0, mr; tile < d.tiles; tile++, r += mr) {
                mr = (rows - r + d.tiles - tile - 1) / (d.tiles - tile);
                t->x = first.x + r * t->ldx + k;
                t->out = first.out + r * t->ld_out;
                t->init = k_block ? t->out : first.init + r * first.ld_init;
                t->next = few ? t->w : next;
                assert(tiles[mr][count] != NULL);
                tiles[mr][count](t, nv, v / nv, v % nv, tile ? 0 : AHEAD * k_bytes);
                next += t->depth / 4 * 64;
            }
        }
        k += t->depth;
        t->w += t->depth * k_bytes;
        t->ld_init = t->ld_out, t->init_block = t->out_block; /* from here on, sums start from out */
    }
}
