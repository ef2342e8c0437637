/* The tiles of code_tiles.h for every dot product of this instruction set, and the product of any number of coded rows
 * with nb unit blocks, cut into tiles by rows. A panel is a quarter of one of floats: it has one k block. */
#ifndef PYRNNX_CODE_PRODUCTS
#define PYRNNX_CODE_PRODUCTS
// clang-format off
#define CODE_TILE_SHAPES(X) \
    TILE_ROWS(X, 3, 1) TILE_ROWS(X, 3, 2) TILE_ROWS(X, 3, 4) \
    TILE_ROWS(X, 4, 1) TILE_ROWS(X, 4, 2) TILE_ROWS(X, 4, 3)
// clang-format on
#define PX_CAT_2_(a, b) a##_##b
#define PX_CAT_2(a, b) PX_CAT_2_(a, b)
#endif

#define DOT_NAME pairs
#define DOT_TARGET
#include "code_tiles.h"

#ifdef ISA_DOT
#define DOT_NAME bytes
#define DOT_TARGET __attribute__((target(ISA_DOT_TARGET)))
#include "code_tiles.h"
#endif

static void NAME(code_product)(int byte_dot, int nv, int nb, ptrdiff_t rows, NAME(tile_args) t) {
    NAME(tile_function) *const *tiles = NAME(code_tiles_pairs)[nv][nb];
    const NAME(tile_args) first = t;
#ifdef ISA_DOT
    if (byte_dot) tiles = NAME(code_tiles_bytes)[nv][nb];
#endif
    (void)byte_dot;
    assert(rows > 0 && TILE_FITS(nv, nb, 1) && tiles[1] != NULL);
    const ptrdiff_t most_rows = TILE_SUMS / (nv * nb) < MAX_TILE_ROWS ? TILE_SUMS / (nv * nb) : MAX_TILE_ROWS;
    const ptrdiff_t row_tiles = (rows + most_rows - 1) / most_rows;
    for (ptrdiff_t tile = 0, r = 0, mr; tile < row_tiles; tile++, r += mr) {
        mr = (rows - r + row_tiles - tile - 1) / (row_tiles - tile);
        t.x = (const REAL *)(const void *)((const char *)first.x + r * t.ldx);
        t.out = first.out + r * t.ld_out;
        t.init = first.init + r * first.ld_init;
        tiles[mr](&t);
    }
}
