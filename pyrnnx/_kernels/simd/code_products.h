/* Products of any number of coded rows with nb unit blocks. The processor's matrices, if any, multiply many rows; the
 * tiles of code_tiles.h the others. A panel is a quarter of a float panel, so it needs only one k block. */
#ifndef PYRNNX_CODE_PRODUCTS
#define PYRNNX_CODE_PRODUCTS
// clang-format off
#define CODE_TILE_SHAPES(X) \
    TILE_ROWS(X, 3, 1) TILE_ROWS(X, 3, 2) TILE_ROWS(X, 3, 4) \
    TILE_ROWS(X, 4, 1) TILE_ROWS(X, 4, 2) TILE_ROWS(X, 4, 3)
// clang-format on
#define PX_CAT_2_(a, b) a##_##b
#define PX_CAT_2(a, b) PX_CAT_2_(a, b)
enum { LEAST_MATRIX_ROWS = 8 }; /* tiles are faster for fewer rows */
#endif

#ifdef ISA_LIMITED_DOT
#define DOT_NAME limited
#define HAS_EXCESS 1
#define PLAIN_TILES NAME(code_tiles_limited)
#else
#define DOT_NAME pairs
#define HAS_EXCESS 0
#define PLAIN_TILES NAME(code_tiles_pairs)
#endif
#define DOT_TARGET
#include "code_tiles.h"

#ifdef ISA_DOT
#ifndef ISA_HAS_DOT
#define ISA_HAS_DOT __builtin_cpu_supports(ISA_DOT_TARGET)
#endif
#define DOT_NAME bytes
#define HAS_EXCESS 0
#define DOT_TARGET MAY_USE(ISA_DOT_TARGET)
#include "code_tiles.h"
#endif

#ifdef ISA_SQUARES
#include "code_squares.h"
#endif

/* Return the last PYRNNX_DOT_* that this processor supports. */
static int NAME(best_dot)(void) {
#ifdef ISA_DOT
    if (!ISA_HAS_DOT) return PYRNNX_DOT_PLAIN;
#ifdef ISA_MATRICES
    if (__builtin_cpu_supports("amx-int8") && matrices_allowed()) return PYRNNX_DOT_MATRICES;
#endif
#ifdef ISA_SQUARES
    if (ISA_HAS_SQUARES) return PYRNNX_DOT_MATRICES;
#endif
    return PYRNNX_DOT_BYTES;
#else
    return PYRNNX_DOT_PLAIN;
#endif
}

static void NAME(code_product)(int dot, int nv, int nb, ptrdiff_t rows, NAME(tile_args) *t) {
    NAME(tile_function) *const *tiles = PLAIN_TILES[nv][nb];
#ifdef ISA_DOT
    if (dot >= PYRNNX_DOT_BYTES) tiles = NAME(code_tiles_bytes)[nv][nb];
#endif
#ifdef ISA_MATRICES
    if (dot == PYRNNX_DOT_MATRICES && rows >= LEAST_MATRIX_ROWS) {
        NAME(matrix_product)(nv, nb, rows, t);
        return;
    }
#endif
    ptrdiff_t most_rows = TILE_SUMS / (nv * nb) < MAX_TILE_ROWS ? TILE_SUMS / (nv * nb) : MAX_TILE_ROWS;
#ifdef ISA_SQUARES
    if (dot == PYRNNX_DOT_MATRICES) {
        tiles = NAME(square_tiles)[nv][nb];
        most_rows -= most_rows % 2;
    }
#endif
    (void)dot;
    assert(rows > 0 && TILE_FITS(nv, nb, 1) && tiles[1] != NULL);
    const ptrdiff_t row_tiles = (rows + most_rows - 1) / most_rows;
    for (ptrdiff_t tile = 0, r = 0, mr; tile < row_tiles; tile++, r += mr) {
        mr = (rows - r + row_tiles - tile - 1) / (row_tiles - tile);
        tiles[mr](t);
        t->x = (const REAL *)(const void *)((const char *)t->x + mr * t->ldx);
        t->out += mr * t->ld_out;
        t->init += mr * t->ld_init;
    }
}
