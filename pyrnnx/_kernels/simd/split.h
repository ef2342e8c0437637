/* Rows of float split into bfloat16 parts, which the processor's matrices multiply. A float is the sum of three parts:
 *
 *   high = bfloat16(x)      middle = bfloat16(x - high)      low = x - high - middle      to nearest, ties to even
 *
 * With bfloat16 weights a row has only the part high. Split rows are
 *
 *   [rows] of char                      1: the row is left out, see below
 *   [K/32][part][rows][32] bfloat16     from the next multiple of 64 bytes on; zeros after the last k
 *
 * Two kinds of rows are left out and multiplied without splitting: rows with an element that is NaN, infinite or beyond
 * LARGEST, whose parts might not be finite, and rows with one below SMALLEST but not zero, whose parts might be
 * subnormal, which the matrices treat as zero.
 */
#ifndef PYRNNX_SPLIT
#define PYRNNX_SPLIT
enum { SPLIT_DEPTH = 32, SPLIT_PARTS = 3, SPLIT_LINE = 64 }; /* k of a matrix; bytes of its row */
enum { SMALLEST_BITS = 0x0d800000, LARGEST_BITS = 0x5d800000, LARGEST_WEIGHT_BITS = 0x53800000 }; /* 2^-100, 60, 40 */

static ptrdiff_t split_blocks(ptrdiff_t depth) { return (depth + SPLIT_DEPTH - 1) / SPLIT_DEPTH; }

static int split_parts(const pyrnnx_parameters *p) { return p->weight_dtype == PYRNNX_WEIGHTS_FULL ? SPLIT_PARTS : 1; }

static ptrdiff_t split_header(ptrdiff_t rows) { return (rows + SPLIT_LINE - 1) / SPLIT_LINE * SPLIT_LINE; }

static size_t split_size(const pyrnnx_parameters *p, ptrdiff_t rows, ptrdiff_t depth) {
    return (size_t)(split_header(rows) + split_blocks(depth) * split_parts(p) * rows * SPLIT_LINE);
}
#endif

typedef unsigned NAME(bits) __attribute__((vector_size(LANES * 4)));
typedef short NAME(halves) __attribute__((vector_size(LANES * 2)));

/* Return the finite x rounded to bfloat16, as a float. */
INLINE V NAME(to_bfloat16)(V x) {
    const NAME(bits) bits = (NAME(bits))x;
    return (V)((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u);
}

INLINE void NAME(split)(const int parts, V x, V *part) {
#pragma GCC unroll 3
    for (int k = 0; k < parts; k++, x -= part[k - 1]) part[k] = NAME(to_bfloat16)(x);
}

INLINE I NAME(magnitude)(V x) { return (I)x & 0x7fffffff; } /* bits, which are in the order of the numbers */

INLINE int NAME(any)(I mask) {
    int bits = 0;
    for (int j = 0; j < LANES; j++) bits |= mask[j];
    return bits != 0;
}

/* Split one row into 32 bfloat16 for each block and part; return whether it is left out. */
#ifdef ISA_BFLOAT16
/* Instructions for bfloat16 give the same bits as the code below. */
MAY_USE(ISA_BFLOAT16)
static inline __attribute__((always_inline)) int NAME(split_row)(const int parts, ptrdiff_t depth, const float *x,
                                                                 char *out, ptrdiff_t part_size) {
    __m512i most = _mm512_setzero_si512(), least = _mm512_set1_epi32(-1); /* magnitudes; magnitudes - 1: 0 is largest */
    for (ptrdiff_t k = 0; k < depth; k += SPLIT_DEPTH, out += parts * part_size) {
        const unsigned mask = depth - k < SPLIT_DEPTH ? (1u << (depth - k)) - 1 : ~0u;
        __m512 v[2] = {_mm512_maskz_loadu_ps((__mmask16)mask, x + k),
                       _mm512_maskz_loadu_ps((__mmask16)(mask >> 16), x + k + LANES)};
        for (int half = 0; half < 2; half++) {
            const __m512i size = _mm512_and_si512(_mm512_castps_si512(v[half]), _mm512_set1_epi32(0x7fffffff));
            most = _mm512_max_epu32(most, size);
            least = _mm512_min_epu32(least, _mm512_sub_epi32(size, _mm512_set1_epi32(1)));
        }
#pragma GCC unroll 3
        for (int s = 0; s < parts; s++) {
            const __m512i part = (__m512i)_mm512_cvtne2ps_pbh(v[1], v[0]);
            _mm512_storeu_si512(out + s * part_size, part);
            if (s == parts - 1) break;
            const __m512i low = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(part));
            const __m512i high = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(part, 1));
            v[0] -= _mm512_castsi512_ps(_mm512_slli_epi32(low, 16));
            v[1] -= _mm512_castsi512_ps(_mm512_slli_epi32(high, 16));
        }
    }
    return _mm512_reduce_max_epu32(most) > LARGEST_BITS || _mm512_reduce_min_epu32(least) < SMALLEST_BITS - 1;
}
#define SPLITS_ROWS MAY_USE(ISA_BFLOAT16)
#else
#define SPLITS_ROWS
INLINE int NAME(split_row)(const int parts, ptrdiff_t depth, const float *x, char *out, ptrdiff_t part_size) {
    I outside = {0};
    for (ptrdiff_t k = 0; k < depth; k += SPLIT_DEPTH, out += parts * part_size)
#pragma GCC unroll 2
        for (int half = 0; half < 2; half++) {
            const ptrdiff_t from = k + half * LANES, left = depth - from;
            const V v = left >= LANES ? LOAD(x + from) : left > 0 ? NAME(load_partial)(x + from, left) : SET1(0);
            const I size = NAME(magnitude)(v);
            V part[SPLIT_PARTS];
            outside |= (I)(size > LARGEST_BITS) | ((I)(size < SMALLEST_BITS) & (I)(size != 0));
            NAME(split)(parts, v, part);
            for (int s = 0; s < parts; s++) {
                const NAME(halves) upper = __builtin_convertvector((I)part[s] >> 16, NAME(halves));
                memcpy(out + s * part_size + half * (SPLIT_LINE / 2), &upper, sizeof upper);
            }
        }
    return NAME(any)(outside);
}
#endif

SPLITS_ROWS static void NAME(split_rows)(const pyrnnx_parameters *p, ptrdiff_t rows, ptrdiff_t begin, ptrdiff_t end,
                                         ptrdiff_t depth, const float *x, ptrdiff_t ldx, void *split) {
    char *left_out = split, *out = left_out + split_header(rows);
    for (ptrdiff_t r = begin; r < end; r++) {
        const float *row = x + r * ldx;
        char *at = out + r * SPLIT_LINE;
        left_out[r] = (char)(split_parts(p) == 1 ? NAME(split_row)(1, depth, row, at, rows * SPLIT_LINE)
                                                 : NAME(split_row)(SPLIT_PARTS, depth, row, at, rows * SPLIT_LINE));
    }
}

/* Split weights, computed from the panels of pack.h. Each packed gate of a unit block, in R phase by phase, is
 *
 *   [K/32][part][16][L][2] bfloat16     two k of a unit are adjacent; zeros after the last
 */
INLINE ptrdiff_t NAME(split_column)(const pyrnnx_parameters *p, ptrdiff_t depth) {
    return split_blocks(depth) * split_parts(p) * MATRIX_ROWS * SPLIT_LINE;
}

static size_t NAME(split_weights_size)(const pyrnnx_parameters *p, int recurrent) {
    return (size_t)(NAME(padded)(p) / LANES * NAME(gate_count)(p) * NAME(split_column)(p, NAME(depth)(p, recurrent)));
}

/* Split one gate of a panel of `gates`; return the end of the output. */
INLINE char *NAME(split_gate)(const pyrnnx_parameters *p, const int parts, ptrdiff_t depth, const char *panel,
                              int gates, char *out, I *outside) {
    const ptrdiff_t k_bytes = gates * LANES * NAME(weight_size)(p->weight_dtype);
    for (ptrdiff_t k = 0; k < split_blocks(depth) * SPLIT_DEPTH; k += SPLIT_DEPTH, out += parts * MATRIX_ROWS * 64)
        for (ptrdiff_t pair = 0; pair < MATRIX_ROWS; pair++) {
            V part[2][SPLIT_PARTS];
#pragma GCC unroll 2
            for (int j = 0; j < 2; j++) {
                const ptrdiff_t at = k + 2 * pair + j;
                const V w = at < depth ? NAME(load_weights)(p->weight_dtype, panel + at * k_bytes) : SET1(0);
                *outside |= (I)(NAME(magnitude)(w) > LARGEST_WEIGHT_BITS);
                NAME(split)(parts, w, part[j]);
            }
            for (int s = 0; s < parts; s++) {
                const NAME(bits) first = (NAME(bits))part[0][s] >> 16, second = (NAME(bits))part[1][s];
                STORE((float *)(void *)(out + (s * MATRIX_ROWS + pair) * SPLIT_LINE), (V)(first | second));
            }
        }
    return out;
}

/* Split the weights; return whether all could be split. If not, `split` is unusable. */
static int NAME(split_weights)(const pyrnnx_parameters *p, int recurrent, void *split) {
    const NAME(variant) *variant = NAME(variant_of)(p);
    const ptrdiff_t depth = NAME(depth)(p, recurrent), H = p->hidden_size;
    const char *packed = recurrent ? p->R : p->W;
    const int phases = recurrent ? variant->phases : 1, all = variant->gate_count;
    char *out = split;
    I outside = {0};
    for (int phase = 0, first = 0, gates; phase < phases; phase++, first += gates) {
        gates = recurrent ? variant->phase[phase].gates : all;
        for (ptrdiff_t unit = 0; unit < H; unit += LANES) {
            const char *panel =
                packed + unit / LANES * NAME(panel_size)(p, recurrent, all) + NAME(panel_size)(p, recurrent, first);
            for (int v = 0; v < gates; v++) {
                const char *gate = panel + v * LANES * NAME(weight_size)(p->weight_dtype);
                out = split_parts(p) == 1 ? NAME(split_gate)(p, 1, depth, gate, gates, out, &outside)
                                          : NAME(split_gate)(p, SPLIT_PARTS, depth, gate, gates, out, &outside);
            }
        }
    }
    return !NAME(any)(outside);
}
