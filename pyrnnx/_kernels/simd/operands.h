/* Operands of project and step: rows of elements and panels of weights, or coded rows and panels of codes. */
#if HAVE_CODES
#define CODED(p) ((p)->weight_dtype == PYRNNX_WEIGHTS_CODES)
#else
#define CODED(p) 0
#endif

/* Return row r of x or of states: elements, ldx elements apart, or coded, ldx bytes apart. */
INLINE const REAL *NAME(row_of)(const pyrnnx_parameters *p, const void *x, ptrdiff_t r, ptrdiff_t ldx) {
    return (const REAL *)(const void *)((const char *)x + r * ldx * (CODED(p) ? 1 : (ptrdiff_t)sizeof(REAL)));
}

INLINE ptrdiff_t NAME(state_stride)(const pyrnnx_parameters *p, ptrdiff_t Hp) {
#if HAVE_CODES
    if (CODED(p)) return (ptrdiff_t)coded_size(p, p->hidden_size);
#endif
    (void)p;
    return Hp;
}

/* Return the number of unit blocks for the next product, of those that remain. */
INLINE int NAME(blocks_of_product)(const pyrnnx_parameters *p, int nv, ptrdiff_t rows, ptrdiff_t blocks,
                                   ptrdiff_t depth) {
#if IN_RUNS(3)
    if (IN_RUNS(rows) && !CODED(p))
        return run_blocks(p->weight_dtype, nv, rows, blocks, depth * nv * LANES * NAME(weight_size)(p->weight_dtype));
#endif
    (void)p, (void)depth;
    return tile_blocks(nv, rows, blocks);
}

INLINE void NAME(any_product)(const pyrnnx_parameters *p, int nv, int nb, ptrdiff_t rows, NAME(tile_args) *t) {
#if HAVE_CODES
    if (CODED(p)) {
        NAME(code_product)(p->dot, nv, nb, rows, t);
        return;
    }
#endif
    NAME(product)(p->weight_dtype, nv, nb, rows, t);
}
