/* The tiles of code_tiles.h by instructions that multiply two rows with two units over eight k (SMMLA), for panels with
 * CODE_STEP 8. Each pair of rows has two vectors of sums for a vector v of units; an odd last row is its own partner:
 *
 *   sum[pair][2 v]        row 0: units 0, 1    row 1: units 0, 1
 *   sum[pair][2 v + 1]    row 0: units 2, 3    row 1: units 2, 3
 *
 * One row takes dot products instead, with even quads of k in the first element of a unit and odd ones in the second.
 */
#define SQUARES MAY_USE(ISA_SQUARES_TARGET)
#define SQUARES_FIT(nv, nb, mr) TILE_FITS(nv, nb, (mr) + (mr) % 2)
#define SQUARE_TILE(nv, nb, mr) NAME(square_tile_##nv##_##nb##_##mr)

SQUARES INLINE void NAME(square_tile)(const int mr, const int nv, const int nb, const NAME(tile_args) *t) {
    const int pairs = (mr + 1) / 2, width = nv * nb;
    I sum[MAX_TILE_ROWS / 2][2 * MAX_TILE_VECTORS];
    const char *x[MAX_TILE_ROWS], *w[MAX_TILE_BLOCKS];
#pragma GCC unroll 16
    for (int b = 0; b < nb; b++) w[b] = t->w + b * t->w_block + nv * LANES * CODE_PANEL_HEADER;
#pragma GCC unroll 16
    for (int r = 0; r < 2 * pairs; r++)
        x[r] = (const char *)t->x + (r < mr ? r : mr - 1) * t->ldx + sizeof(code_header);
#pragma GCC unroll 16
    for (int p = 0; p < pairs; p++)
#pragma GCC unroll 32
        for (int v = 0; v < 2 * width; v++) sum[p][v] = (I){0};
    for (ptrdiff_t k = 0; k < t->depth; k += 8) {
        I a[MAX_TILE_ROWS / 2];
#pragma GCC unroll 16
        for (int p = 0; p < pairs; p++) a[p] = (I)ISA_LOAD_EIGHTS(x[2 * p] + k, x[2 * p + 1] + k);
#pragma GCC unroll 32
        for (int v = 0; v < 2 * width; v++) {
            const I b = LOAD_I(w[v / (2 * nv)] + k * nv * LANES + v % (2 * nv) * sizeof(V));
#pragma GCC unroll 16
            for (int p = 0; p < pairs; p++)
                sum[p][v] = mr > 1 ? (I)ISA_SQUARES(sum[p][v], a[p], b) : (I)ISA_DOT(sum[p][v], a[p], b);
        }
    }
#pragma GCC unroll 16
    for (int v = 0; v < width; v++) {
        const NAME(gate_factors) factors = NAME(load_factors)(t->w + v / nv * t->w_block, nv, v % nv);
#pragma GCC unroll 16
        for (int r = 0; r < mr; r++) {
            const I *s = &sum[r / 2][2 * v];
            const I row = mr > 1 ? (I)ISA_SQUARES_ROW(s[0], s[1], r % 2) : (I)ISA_ADD_ADJACENT(s[0], s[1]);
            STORE(TILE_VECTOR(t, out, r, v),
                  NAME(scaled_sum)(LOAD(TILE_VECTOR(t, init, r, v)), row,
                                   (const code_header *)(const void *)(x[r] - sizeof(code_header)), factors));
        }
    }
}

#define DEFINE_SQUARE_TILE(nv, nb, mr) \
    SQUARES static void SQUARE_TILE(nv, nb, mr)(const NAME(tile_args) *t) { \
        if (SQUARES_FIT(nv, nb, mr)) NAME(square_tile)(mr, nv, nb, t); \
    }
#define LIST_SQUARE_TILE(nv, nb, mr) [nv][nb][mr] = SQUARE_TILE(nv, nb, mr),
CODE_TILE_SHAPES(DEFINE_SQUARE_TILE)
static NAME(tile_function) *const NAME(square_tiles)[5][MAX_TILE_BLOCKS + 1][MAX_TILE_ROWS + 1] = {
    CODE_TILE_SHAPES(LIST_SQUARE_TILE)};
