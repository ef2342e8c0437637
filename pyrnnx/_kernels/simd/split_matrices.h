/* Products of split rows with split weights (split.h) by the processor's matrices, in float32:
 *
 *   out[r][column] = init[r][column] + sum_k x[r][k] w[column][k]        16 columns are a gate of a unit block
 *
 * Of the nine products of x = h + m + l and w = h + m + l, the six that affect float's last bits are added, in blocks
 * of 32 k and from small to large:
 *
 *   l h    m h    m m    h m    h l    h h
 *
 * A row's bits depend only on the row and the weights. Matrices:
 *
 *   0 1   sums of rows r to r + 15, columns c and c + 1        4   these rows, one part of 32 k
 *   2 3   sums of rows r + 16 to r + 31                        5
 *   6 7   weights of columns c and c + 1, one part
 *
 * If the includer defines MATRIX_MODEL, matrix_model.h replaces the processor.
 */
#ifdef MATRIX_MODEL
#define UNIT matrix_unit
#define SPLIT_TARGET
#define SHAPE(unit, new_shapes) ((unit)->shapes = (new_shapes))
#define LOAD_MATRIX(unit, n, from, stride) model_load(unit, n, from, stride)
#define STORE_MATRIX(unit, n, to, stride) model_store(unit, n, to, stride)
#define DOT(unit, c, a, b) model_dot(unit, c, a, b)
#define RELEASE(unit) (void)(unit)
#else
typedef struct {
    matrix_shapes shapes;
} NAME(unit);
#define UNIT NAME(unit)
#define SPLIT_TARGET MATRICES
#define SHAPE(unit, new_shapes) \
    do { \
        (unit)->shapes = (new_shapes); \
        SEES_MEMORY; \
        _tile_loadconfig(&(unit)->shapes); \
    } while (0)
#define LOAD_MATRIX(unit, n, from, stride) _tile_loadd(n, from, stride)
#define STORE_MATRIX(unit, n, to, stride) _tile_stored(n, to, stride)
#define DOT(unit, c, a, b) _tile_dpbf16ps(c, a, b)
#define RELEASE(unit) _tile_release()
#endif

/* Distances of x and w are in bytes; those of init and out in elements, as in tile_args. */
typedef struct {
    int parts;
    ptrdiff_t blocks;    /* of 32 k */
    const char *x;       /* split rows, at the first row: [block][part][row] */
    ptrdiff_t x_part;    /* from part to part */
    const char *w;       /* split weights of the first column, followed by the next */
    ptrdiff_t w_column;  /* from column to column */
    ptrdiff_t per_block; /* columns of a unit block */
    const REAL *init;    /* [unit block][row][column] */
    ptrdiff_t ld_init, init_block;
    REAL *out;
    ptrdiff_t ld_out, out_block;
} NAME(split_args);

#define COLUMN(t, array, c) ((t)->array + (c) / (t)->per_block * (t)->array##_block + (c) % (t)->per_block * LANES)

/* Compute the sums of the first rows (as shaped: 16 or fewer; with `lower`, 17 to 32) and of one or two columns from c
 * on. */
SPLIT_TARGET static inline
    __attribute__((always_inline)) void NAME(split_block)(UNIT *unit, const int parts, const int lower, const int two,
                                                          const NAME(split_args) *t, ptrdiff_t c) {
    const ptrdiff_t ld_init = t->ld_init * (ptrdiff_t)sizeof(REAL), ld_out = t->ld_out * (ptrdiff_t)sizeof(REAL);
    const ptrdiff_t x_part = t->x_part, second = t->w_column;
    const REAL *init[2] = {COLUMN(t, init, c), COLUMN(t, init, c + 1)};
    REAL *out[2] = {COLUMN(t, out, c), COLUMN(t, out, c + 1)};
    const char *x = t->x, *w = t->w + c * t->w_column;
    (void)unit;
#define LOAD_X(part) \
    LOAD_MATRIX(unit, 4, x + (part) * x_part, SPLIT_LINE); \
    if (lower) LOAD_MATRIX(unit, 5, x + (part) * x_part + MATRIX_ROWS * SPLIT_LINE, SPLIT_LINE)
#define LOAD_W(part) \
    LOAD_MATRIX(unit, 6, w + (part) * MATRIX_ROWS * SPLIT_LINE, SPLIT_LINE); \
    if (two) LOAD_MATRIX(unit, 7, w + second + (part) * MATRIX_ROWS * SPLIT_LINE, SPLIT_LINE)
#define DOTS() \
    DOT(unit, 0, 4, 6); \
    if (two) DOT(unit, 1, 4, 7); \
    if (lower) DOT(unit, 2, 5, 6); \
    if (lower && two) DOT(unit, 3, 5, 7)
    LOAD_MATRIX(unit, 0, init[0], ld_init);
    if (two) LOAD_MATRIX(unit, 1, init[1], ld_init);
    if (lower) LOAD_MATRIX(unit, 2, init[0] + MATRIX_ROWS * t->ld_init, ld_init);
    if (lower && two) LOAD_MATRIX(unit, 3, init[1] + MATRIX_ROWS * t->ld_init, ld_init);
    for (ptrdiff_t block = 0; block < t->blocks; block++) {
        if (parts == SPLIT_PARTS) {
            LOAD_X(2);
            LOAD_W(0);
            DOTS();
            LOAD_X(1);
            DOTS();
            LOAD_W(1);
            DOTS();
            LOAD_X(0);
            DOTS();
            LOAD_W(2);
            DOTS();
            LOAD_W(0);
            DOTS();
        } else {
            LOAD_X(0);
            LOAD_W(0);
            DOTS();
        }
        x += parts * x_part;
        w += parts * MATRIX_ROWS * SPLIT_LINE;
    }
    STORE_MATRIX(unit, 0, out[0], ld_out);
    if (two) STORE_MATRIX(unit, 1, out[1], ld_out);
    if (lower) STORE_MATRIX(unit, 2, out[0] + MATRIX_ROWS * t->ld_out, ld_out);
    if (lower && two) STORE_MATRIX(unit, 3, out[1] + MATRIX_ROWS * t->ld_out, ld_out);
#undef LOAD_X
#undef LOAD_W
#undef DOTS
}

/* Compute one or two columns of the first rows, at most 32 and as shaped. */
SPLIT_TARGET static void NAME(split_pair)(UNIT *unit, ptrdiff_t rows, const NAME(split_args) *t, ptrdiff_t c, int two) {
    const int full = t->parts == SPLIT_PARTS;
    if (rows > MATRIX_ROWS) {
        if (two) {
            full ? NAME(split_block)(unit, SPLIT_PARTS, 1, 1, t, c) : NAME(split_block)(unit, 1, 1, 1, t, c);
        } else {
            full ? NAME(split_block)(unit, SPLIT_PARTS, 1, 0, t, c) : NAME(split_block)(unit, 1, 1, 0, t, c);
        }
    } else if (two) {
        full ? NAME(split_block)(unit, SPLIT_PARTS, 0, 1, t, c) : NAME(split_block)(unit, 1, 0, 1, t, c);
    } else {
        full ? NAME(split_block)(unit, SPLIT_PARTS, 0, 0, t, c) : NAME(split_block)(unit, 1, 0, 0, t, c);
    }
}

/* Compute any number of rows and columns. Full blocks of 32 rows come first, pair of columns by pair, so that weights
 * are read once for all of them. The remaining rows need other shapes. */
SPLIT_TARGET static void NAME(split_product)(UNIT *unit, ptrdiff_t rows, ptrdiff_t columns,
                                             const NAME(split_args) *first) {
    enum { BLOCK = 2 * MATRIX_ROWS };
    for (ptrdiff_t begin = 0, end; begin < rows; begin = end) {
        const ptrdiff_t count = rows - begin < BLOCK ? rows - begin : BLOCK;
        end = count == BLOCK ? rows / BLOCK * BLOCK : rows;
        const matrix_shapes shapes = shapes_of(count);
        if (memcmp(&shapes, &unit->shapes, sizeof shapes) != 0) SHAPE(unit, shapes);
        for (ptrdiff_t c = 0; c < columns; c += 2)
            for (ptrdiff_t r = begin; r < end; r += BLOCK) {
                NAME(split_args) t = *first;
                t.x += r * SPLIT_LINE;
                t.init += r * t.ld_init;
                t.out += r * t.ld_out;
                NAME(split_pair)(unit, count, &t, c, c + 1 < columns);
            }
    }
#ifndef MATRIX_MODEL
    SEES_MEMORY;
#endif
}
