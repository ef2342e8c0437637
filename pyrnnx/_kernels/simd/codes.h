/* clang-format off */
/* Coded rows: rows of float rounded to 8-bit codes, with one scale s and one zero point z for all rows.
 *
 *   low  = min(0, every x)     s = (high - low) / 255; 1 if that is 0     code = clip(rint(x / s), -z, 255 - z) + z
 *   high = max(0, every x)     z = rint(clip(-low / s, 0, 255))           x ~ s (code - z)
 *
 * rint rounds halves to even. low and high ignore elements that are not finite. A NaN makes its row's s, and so every
 * product of the row, NaN. An infinity becomes the nearest code.
 *
 * A coded row is a header and quads of codes, zero-padded to a multiple of 64 bytes:
 *
 *   products of bytes    header  x0 x1 x2 x3 ...    uint8, or int8 of codes and zero points less 128
 *   products of pairs    header  x0 x2 x1 x3 ...    int16, the order of code_dots.h
 */
/* clang-format on */
#ifndef PYRNNX_CODES
#define PYRNNX_CODES
typedef struct {
    float scale;
    int zero_point, sum; /* of the codes */
    int unused[13];
} code_header;

enum { CODED_ALIGNMENT = 64 }; /* also the size of a header, so that codes are aligned */

static ptrdiff_t code_quads(ptrdiff_t depth) { return (depth + 3) / 4; }

#ifdef ISA_LIMITED_DOT
#define CODES_ARE_BYTES(p) 1
#else
#define CODES_ARE_BYTES(p) ((p)->dot != PYRNNX_DOT_PLAIN)
#endif

static size_t coded_size(const pyrnnx_parameters *p, ptrdiff_t depth) {
    (void)p;
    const size_t bytes = sizeof(code_header) + (size_t)code_quads(depth) * (CODES_ARE_BYTES(p) ? 4 : 8);
    return (bytes + CODED_ALIGNMENT - 1) / CODED_ALIGNMENT * CODED_ALIGNMENT;
}

static code_header code_range(const float range[2]) {
    const float width = range[1] - range[0]; /* may overflow to infinity */
    const float step = width < INFINITY ? width / 255 : range[1] / 255 - range[0] / 255;
    const float scale = step > 0 ? step : 1, zero = -range[0] / scale;
    return (code_header){.scale = scale, .zero_point = (int)rintf(zero < 255 ? zero : 255)};
}

/* Convert the bytes at the end of a row to pairs, in place. */
static void split_quads(ptrdiff_t quads, char *codes) {
    for (ptrdiff_t q = 0; q < quads; q++) {
        unsigned quad, halves[2];
        memcpy(&quad, codes + 4 * (quads + q), 4);
        halves[0] = quad & 0x00ff00ff;
        halves[1] = quad >> 8 & 0x00ff00ff;
        memcpy(codes + 8 * q, halves, 8);
    }
}
#endif

#ifndef ISA_CODE_OFFSET /* what bytes are less than their codes */
#define ISA_CODE_OFFSET 0
#endif
typedef unsigned char NAME(bytes) __attribute__((vector_size(LANES)));

INLINE void NAME(store_bytes)(char *p, I codes) {
#ifdef ISA_STORE_BYTES
    ISA_STORE_BYTES(p, codes);
#else
    const NAME(bytes) narrow = __builtin_convertvector(codes, NAME(bytes));
    memcpy(p, &narrow, sizeof narrow);
#endif
}

INLINE V NAME(load_partial)(const float *x, ptrdiff_t count) {
    float padded[LANES] = {0};
    memcpy(padded, x, (size_t)count * sizeof(float));
    return LOAD(padded);
}

static void NAME(widen_range)(ptrdiff_t rows, ptrdiff_t depth, const float *x, ptrdiff_t ldx, float *range) {
    V low = SET1(range[0]), high = SET1(range[1]);
    for (ptrdiff_t r = 0; r < rows; r++)
        for (ptrdiff_t k = 0; k < depth; k += LANES) {
            const float *at = x + r * ldx + k;
            V v = depth - k >= LANES ? LOAD(at) : NAME(load_partial)(at, depth - k);
            v = (V)((I)v & (I)(v - v == SET1(0))); /* not finite: zero, which every range contains */
            low = AT_MOST(v, low);
            high = AT_LEAST(v, high);
        }
    for (int j = 0; j < LANES; j++) {
        range[0] = low[j] < range[0] ? low[j] : range[0];
        range[1] = high[j] > range[1] ? high[j] : range[1];
    }
}

/* Return the codes of one vector; the code of a NaN is arbitrary. */
INLINE I NAME(codes)(const code_header *h, V x) {
    const V magic = SET1(0x1.8p23f), z = SET1((float)h->zero_point); /* floats near magic are integers */
    const V bounded = AT_MOST(SET1(255) - z, AT_LEAST(-z, x / SET1(h->scale)));
    return (I)(bounded + magic) - (I)magic + (h->zero_point - (I){0}); /* z last: ties are those of x / s */
}

/* Write the codes, less offset, of the used lanes of one vector, and add them to sum; set the lanes of nan that are
 * NaN, whose codes are 0. */
INLINE void NAME(encode_vector)(const code_header *h, int offset, V x, I used, char *codes, I *sum, I *nan) {
    const I is_nan = (I)(x != x), vector = (NAME(codes)(h, x) - offset) & used & ~is_nan;
    NAME(store_bytes)(codes, vector);
    *sum += vector;
    *nan |= is_nan;
}

static void NAME(encode)(const pyrnnx_parameters *p, ptrdiff_t rows, ptrdiff_t depth, const float *x, ptrdiff_t ldx,
                         const float *range, void *coded, size_t row_size) {
    V lanes;
    for (int j = 0; j < LANES; j++) lanes[j] = (float)j;
    const code_header header = code_range(range);
    const ptrdiff_t quads = code_quads(depth);
    const int bytes = CODES_ARE_BYTES(p), offset = bytes ? ISA_CODE_OFFSET : 0;
    assert(row_size == coded_size(p, depth));
    for (ptrdiff_t r = 0; r < rows; r++) {
        char *out = (char *)coded + r * (ptrdiff_t)row_size, *codes = out + sizeof header + (bytes ? 0 : 4 * quads);
        code_header h = {.scale = header.scale, .zero_point = header.zero_point - offset};
        I sum = {0}, nan = {0};
        memset(out + row_size - CODED_ALIGNMENT, 0, CODED_ALIGNMENT);
        ptrdiff_t k = 0;
        for (; k + LANES <= depth; k += LANES)
            NAME(encode_vector)(&header, offset, LOAD(x + r * ldx + k), ~(I){0}, codes + k, &sum, &nan);
        if (k < depth) {
            const I used = (I)(lanes < SET1((float)(depth - k)));
            char last[LANES];
            NAME(encode_vector)(&header, offset, NAME(load_partial)(x + r * ldx + k, depth - k), used, last, &sum,
                                &nan);
            memcpy(codes + k, last, (size_t)(4 * quads - k));
        }
        for (int j = 0; j < LANES; j++) h.sum += sum[j], h.scale = nan[j] ? NAN : h.scale;
        if (!bytes) split_quads(quads, out + sizeof h);
        memcpy(out, &h, sizeof h);
    }
}
