/* clang-format off */
/* Exact dot products in each 32-bit lane: sum += x0 w0 + x1 w1 + x2 w2 + x3 w3. x is a quad of a coded row (codes.h),
 * the same in all lanes; w are signed bytes.
 *
 *   bytes     VNNI's instruction
 *   limited   vpmaddubsw, whose sums of two products saturate at 16 bits, and vpmaddwd by ones; panels store what would
 *             exceed 16 bits in quads of excess (code_panels.h)
 *   pairs     16-bit products added in pairs of even and of odd w; 32-bit products without ISA_MADD
 *
 * Each has a type `form` of its operands, and
 *   load_x(p, k): quad k of a coded row        load_w(p, rows): one vector of a panel        dot(sum, x, w)
 */
/* clang-format on */
typedef int NAME(any_int) __attribute__((aligned(4), may_alias));
#define SET1_I(p) (*(const NAME(any_int) *)(p) - (I){0})

INLINE I NAME(load_x_bytes)(const char *p, ptrdiff_t k) { return SET1_I(p + 4 * k); }
INLINE I NAME(load_w_bytes)(const char *p, const int rows) {
    I w = LOAD_I(p);
    if (rows > 1) KEEP_IN_REGISTER(w);
    return w;
}

#ifdef ISA_DOT
typedef I PX_CAT(form_bytes, REAL, ISA);
MAY_USE(ISA_DOT_TARGET) INLINE I NAME(dot_bytes)(I sum, I x, I w) { return (I)ISA_DOT(sum, x, w); }
#endif

#ifdef ISA_LIMITED_DOT
typedef I PX_CAT(form_limited, REAL, ISA);
INLINE I NAME(load_x_limited)(const char *p, ptrdiff_t k) { return NAME(load_x_bytes)(p, k); }
INLINE I NAME(load_w_limited)(const char *p, const int rows) { return NAME(load_w_bytes)(p, rows); }
INLINE I NAME(dot_limited)(I sum, I x, I w) { return sum + (I)ISA_LIMITED_DOT(x, w); }
#else
typedef short NAME(shorts) __attribute__((vector_size(LANES * 4)));
typedef struct {
    I even, odd;
} PX_CAT(form_pairs, REAL, ISA);

INLINE PX_CAT(form_pairs, REAL, ISA) NAME(load_x_pairs)(const char *p, ptrdiff_t k) {
    return (PX_CAT(form_pairs, REAL, ISA)){SET1_I(p + 8 * k), SET1_I(p + 8 * k + 4)};
}

INLINE PX_CAT(form_pairs, REAL, ISA) NAME(load_w_pairs)(const char *p, const int rows) {
    (void)rows;
    const NAME(shorts) w = (NAME(shorts))LOAD_I(p);
    return (PX_CAT(form_pairs, REAL, ISA)){(I)((w << 8) >> 8), (I)(w >> 8)};
}

INLINE I NAME(dot_pairs)(I sum, PX_CAT(form_pairs, REAL, ISA) x, PX_CAT(form_pairs, REAL, ISA) w) {
#ifdef ISA_MADD
    return sum + ((I)ISA_MADD(x.even, w.even) + (I)ISA_MADD(x.odd, w.odd));
#else
    sum += (x.even & 0xffff) * (w.even << 16 >> 16) + (x.even >> 16) * (w.even >> 16);
    return sum + (x.odd & 0xffff) * (w.odd << 16 >> 16) + (x.odd >> 16) * (w.odd >> 16);
#endif
}
#endif
