/* Products of coded rows with panels of quantized weights, as tiles.h does those of floats:
 *
 *   sum = S - zx total - zw X              S = sum_k code_x code_w, X = sum of the row's code_x, all in int32
 *       = sum_k (code_x - zx) (code_w - zw)
 *   out = init + sx sw sum                 float
 *
 * Integers wrap, so the sum is exact where it fits itself: K <= PYRNNX_MAX_CODES. The includer defines DOT_NAME, one of
 * code_dots.h, and DOT_TARGET, the attribute of functions with its instruction. A tile's arguments are those of a float
 * tile, but x is coded rows, ldx bytes apart.
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
#pragma GCC unroll 16
    for (int v = 0; v < nv * nb; v++) {
        const char *header = t->w + v / nv * t->w_block + v % nv * LANES * 4;
        const NAME(wrapping) total = (NAME(wrapping))LOAD_I(header);
        const NAME(wrapping) zero = (NAME(wrapping))LOAD_I(header + nv * LANES * 4);
        const V scale = LOAD((const REAL *)(header + nv * LANES * 8));
#pragma GCC unroll 16
        for (int r = 0; r < mr; r++) {
            const code_header *h = (const code_header *)(x[r] - sizeof *h);
            const I exact = (I)((NAME(wrapping))sum[r][v] - total * (unsigned)h->zero_point - zero * (unsigned)h->sum);
            const V init = LOAD(t->init + r * t->ld_init + v / nv * t->init_block + v % nv * LANES);
            STORE(t->out + r * t->ld_out + v / nv * t->out_block + v % nv * LANES,
                  FMA(__builtin_convertvector(exact, V), SET1(h->scale) * scale, init));
        }
    }
}

#define DEFINE_CODE_TILE(nv, nb, mr) \
    DOT_TARGET static void CODE_TILE(nv, nb, mr)(const NAME(tile_args) *t) { \
        DOTTED(code_tile)(TILE_FITS(nv, nb, mr) ? mr : 0, nv, nb, t); \
    }
#define LIST_CODE_TILE(nv, nb, mr) [nv][nb][mr] = CODE_TILE(nv, nb, mr),
CODE_TILE_SHAPES(DEFINE_CODE_TILE)
static NAME(tile_function) *const DOTTED(code_tiles)[5][MAX_TILE_BLOCKS + 1][MAX_TILE_ROWS + 1] = {
    CODE_TILE_SHAPES(LIST_CODE_TILE)};
#undef DOT_NAME
#undef DOT_TARGET
