/* Products of coded rows with panels of quantized weights; tiles.h multiplies floats.
 *
 *   sum = S - zx total - zw X              S = sum_k code_x code_w, X = sum of the row's code_x, all in int32
 *       = sum_k (code_x - zx) (code_w - zw)
 *   out = init + sx sw sum                 float
 *
 * The includer defines DOT_NAME, a dot product of code_dots.h, HAS_EXCESS, whether its panels have quads of excess, and
 * DOT_TARGET, the attribute of functions that use its instruction. Arguments are as for a float tile, but x points to
 * coded rows, ldx bytes apart.
 */
#define DOTTED(x) PX_CAT(PX_CAT_2(x, DOT_NAME), REAL, ISA)
#define FORM DOTTED(form)
#define CODE_TILE(nv, nb, mr) DOTTED(code_tile_##nv##_##nb##_##mr)

DOT_TARGET INLINE void DOTTED(code_tile)(const int mr, const int nv, const int nb, const NAME(tile_args) *t) {
    I sum[MAX_TILE_ROWS][MAX_TILE_VECTORS];
    const char *x[MAX_TILE_ROWS], *w[MAX_TILE_BLOCKS];
    const ptrdiff_t quads = code_quads(t->depth);
#pragma GCC unroll 16
    for (int b = 0; b < nb; b++) w[b] = t->w + b * t->w_block + nv * LANES * CODE_PANEL_HEADER;
#pragma GCC unroll 16
    for (int r = 0; r < mr; r++) {
        x[r] = (const char *)t->x + r * t->ldx + sizeof(code_header);
#pragma GCC unroll 16
        for (int v = 0; v < nv * nb; v++) sum[r][v] = (I){0};
    }
#pragma GCC unroll 2
    for (ptrdiff_t k = 0; k < quads; k++) {
        if (HAS_EXCESS && TILE_SUMS < 24 && mr > 2) { /* ones take a register: w comes from memory for each row */
            const char *at = w[0] + k * nv * LANES * 4;
#pragma GCC unroll 16
            for (int r = 0; r < mr; r++) {
                const FORM a = DOTTED(load_x)(x[r], k);
                __asm__("" : "+r"(at)); /* else the compiler would keep all w in registers, and spill sums */
#pragma GCC unroll 16
                for (int v = 0; v < nv; v++)
                    sum[r][v] = DOTTED(dot)(sum[r][v], a, DOTTED(load_w)(at + v * LANES * 4, 1));
            }
            continue;
        }
        FORM a[MAX_TILE_ROWS];
#pragma GCC unroll 16
        for (int r = 0; r < mr; r++) a[r] = DOTTED(load_x)(x[r], k);
#pragma GCC unroll 16
        for (int v = 0; v < nv * nb; v++) {
            const FORM b = DOTTED(load_w)(w[v / nv] + (k * nv + v % nv) * LANES * 4, mr);
#pragma GCC unroll 16
            for (int r = 0; r < mr; r++) sum[r][v] = DOTTED(dot)(sum[r][v], a[r], b);
        }
    }
#if HAS_EXCESS
#pragma GCC unroll 16
    for (int b = 0; b < nb; b++) {
        const NAME(any_int) *list = (const NAME(any_int) *)(w[b] + quads * nv * LANES * 4);
        const char *excess = (const char *)list + excess_list_size(quads);
        for (int e = 0; e < list[0]; e++)
#pragma GCC unroll 16
            for (int v = 0; v < nv; v++)
#pragma GCC unroll 16
                for (int r = 0; r < mr; r++) {
                    I *s = &sum[r][b * nv + v];
                    *s = DOTTED(dot)(*s, DOTTED(load_x)(x[r], list[1 + e]),
                                     DOTTED(load_w)(excess + (e * nv + v) * LANES * 4, mr));
                }
    }
#endif
#pragma GCC unroll 16
    for (int v = 0; v < nv * nb; v++) {
        const NAME(gate_factors) factors = NAME(load_factors)(t->w + v / nv * t->w_block, nv, v % nv);
#pragma GCC unroll 16
        for (int r = 0; r < mr; r++)
            STORE(TILE_VECTOR(t, out, r, v),
                  NAME(scaled_sum)(LOAD(TILE_VECTOR(t, init, r, v)), sum[r][v],
                                   (const code_header *)(const void *)(x[r] - sizeof(code_header)), factors));
    }
}

#define DEFINE_CODE_TILE(nv, nb, mr) \
    DOT_TARGET static void CODE_TILE(nv, nb, mr)(const NAME(tile_args) *t) { \
        if (TILE_FITS(nv, nb, mr)) DOTTED(code_tile)(mr, nv, nb, t); \
    }
#define LIST_CODE_TILE(nv, nb, mr) [nv][nb][mr] = CODE_TILE(nv, nb, mr),
CODE_TILE_SHAPES(DEFINE_CODE_TILE)
static NAME(tile_function) *const DOTTED(code_tiles)[5][MAX_TILE_BLOCKS + 1][MAX_TILE_ROWS + 1] = {
    CODE_TILE_SHAPES(LIST_CODE_TILE)};
#undef DOT_NAME
#undef HAS_EXCESS
#undef DOT_TARGET
