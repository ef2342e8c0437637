/* The products of code_tiles.h for many rows, by the processor's eight matrices (AMX) of 16 rows of 64 bytes.
 *
 *   0 1   sums of rows r to r + 15, gates v and v + 1        4   codes of those rows: [row][64 codes]
 *   2 3   sums of rows r + 16 to r + 31                      5
 *   6 7   weights of gates v and v + 1, as in a panel: [quad][L][4]
 *
 * The last matrices of codes end in zeros. Their weights do not matter: they belong to the next panel or to CODE_SLACK.
 */
#ifdef ISA_MATRICES
#define MATRICES MAY_USE(ISA_MATRICES)
/* Compute sums[row][gate][L] of at most 32 rows and of one gate or two adjacent gates. */
MATRICES static void matrix_sums(const matrix_shapes *shapes, ptrdiff_t depth, int two, const char *x, ptrdiff_t ldx,
                                 const char *w, ptrdiff_t w_row, int (*sums)[2][16]) {
    const int lower = shapes->rows[5] > 0;
    _tile_zero(0);
    _tile_zero(1);
    if (lower) {
        _tile_zero(2);
        _tile_zero(3);
    }
    for (ptrdiff_t k = 0; k < depth; k += MATRIX_BYTES, x += MATRIX_BYTES, w += MATRIX_ROWS * w_row) {
        _tile_loadd(4, x, ldx);
        _tile_loadd(6, w, w_row);
        _tile_dpbusd(0, 4, 6);
        if (two) {
            _tile_loadd(7, w + MATRIX_BYTES, w_row);
            _tile_dpbusd(1, 4, 7);
        }
        if (lower) {
            _tile_loadd(5, x + MATRIX_ROWS * ldx, ldx);
            _tile_dpbusd(2, 5, 6);
            if (two) _tile_dpbusd(3, 5, 7);
        }
    }
    SEES_MEMORY;
    _tile_stored(0, sums[0][0], sizeof *sums);
    _tile_stored(1, sums[0][1], sizeof *sums);
    if (lower) {
        _tile_stored(2, sums[MATRIX_ROWS][0], sizeof *sums);
        _tile_stored(3, sums[MATRIX_ROWS][1], sizeof *sums);
    }
    SEES_MEMORY;
}

MATRICES static void NAME(matrix_product)(int nv, int nb, ptrdiff_t rows, const NAME(tile_args) *t) {
    int sums[2 * MATRIX_ROWS][2][16] __attribute__((aligned(64)));
    for (ptrdiff_t r = 0, count; r < rows; r += count) {
        count = rows - r < 2 * MATRIX_ROWS ? rows - r : 2 * MATRIX_ROWS;
        const matrix_shapes shapes = shapes_of(count);
        const char *x = (const char *)t->x + r * t->ldx;
        SEES_MEMORY;
        _tile_loadconfig(&shapes);
        for (int v = 0; v < nv * nb; v++) {
            const int gate = v % nv, second = gate % 2;
            const char *panel = t->w + v / nv * t->w_block, *w = panel + nv * LANES * CODE_PANEL_HEADER;
            if (!second)
                matrix_sums(&shapes, t->depth, gate + 1 < nv, x + sizeof(code_header), t->ldx, w + gate * LANES * 4,
                            nv * LANES * 4, sums);
            const NAME(gate_factors) factors = NAME(load_factors)(panel, nv, gate);
            for (ptrdiff_t k = 0; k < count; k++)
                STORE(TILE_VECTOR(t, out, r + k, v),
                      NAME(scaled_sum)(LOAD(TILE_VECTOR(t, init, r + k, v)), LOAD_I(sums[k][second]),
                                       (const code_header *)(const void *)(x + k * t->ldx), factors));
        }
    }
    _tile_release();
}
#endif
