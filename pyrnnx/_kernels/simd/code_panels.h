/* Panels of quantized weights w = scale (code - zero_point), with a scale and a zero point for each gate row. They are
 * packed from row-major [G*H, K], one panel for each unit block, with S = CODE_STEP k of a unit contiguous:
 *
 *   [gate][L] of int32    total: the sum over k of code - zero_point
 *   [gate][L] of int32    zero_point
 *   [gate][L] of float    scale
 *   [K/S][gate][L][S]     codes; zeros after the last k
 *
 * For limited dot products (code_dots.h), the codes of adjacent k, a and b, are stored as a/2 and b/2 if the sum of two
 * products could exceed 16 bits: |a + b| > 128. A list of the quads that have such codes follows, and their rests:
 *
 *   [1 + K/4] of int32, padded to 64 bytes    number of quads of excess, and the k/4 of each
 *   [quad of excess][gate][L][4]              a - a/2 and b - b/2; zeros for all other codes
 */
#ifndef PYRNNX_CODE_PANELS
#define PYRNNX_CODE_PANELS
enum { CODE_PANEL_HEADER = 12 }; /* bytes before the codes, for each gate row */
enum { CODE_SLACK = 15 };        /* quads after the last panel, which matrices read and ignore */
enum { LARGEST_PAIR = 128 };     /* 255 * 128 fits 16 bits */

static ptrdiff_t excess_list_size(ptrdiff_t quads) { return (4 * (1 + quads) + 63) / 64 * 64; }

/* Halve pairs of codes that exceed LARGEST_PAIR; write the list of their quads, of `row` codes each, and the rests. */
static void move_excess(ptrdiff_t quads, ptrdiff_t row, signed char *codes, int *list) {
    signed char *rests = (signed char *)list + excess_list_size(quads);
    list[0] = 0;
    for (ptrdiff_t k = 0; k < quads; k++, codes += row) {
        int exceeds = 0;
        memset(rests, 0, (size_t)row);
        for (ptrdiff_t j = 0; j < row; j += 2) {
            const int a = codes[j], b = codes[j + 1];
            if (a + b <= LARGEST_PAIR && a + b >= -LARGEST_PAIR) continue;
            codes[j] = (signed char)(a / 2), codes[j + 1] = (signed char)(b / 2);
            rests[j] = (signed char)(a - a / 2), rests[j + 1] = (signed char)(b - b / 2);
            exceeds = 1;
        }
        if (exceeds) list[++list[0]] = (int)k, rests += row;
    }
}
#endif

#ifdef ISA_LIMITED_DOT
#define IS_LIMITED(p) ((p)->dot == PYRNNX_DOT_PLAIN)
#else
#define IS_LIMITED(p) 0
#endif

#ifdef ISA_SQUARES
#define CODE_STEP(p) ((p)->dot == PYRNNX_DOT_MATRICES ? 8 : 4)
#else
#define CODE_STEP(p) 4
#endif

INLINE ptrdiff_t NAME(code_panel_size)(const pyrnnx_parameters *p, ptrdiff_t depth, int gates) {
    const ptrdiff_t steps = (depth + CODE_STEP(p) - 1) / CODE_STEP(p), codes = gates * LANES * CODE_STEP(p) * steps;
    const ptrdiff_t excess = IS_LIMITED(p) && gates ? excess_list_size(steps) + codes : 0;
    return gates * LANES * CODE_PANEL_HEADER + codes + excess;
}

/* Pack all gates of the units from `unit` on; return the end of their panel. */
static char *NAME(pack_code_panel)(const pyrnnx_parameters *p, ptrdiff_t depth, const pyrnnx_quantized_weights *source,
                                   ptrdiff_t unit, char *panel) {
    const NAME(variant) *variant = NAME(variant_of)(p);
    const int gates = variant->gate_count;
    const ptrdiff_t step = CODE_STEP(p), steps = (depth + step - 1) / step, H = p->hidden_size,
                    units = H - unit < LANES ? H - unit : LANES;
    int *total = (int *)panel, *zero_point = total + gates * LANES;
    float *scale = (float *)(zero_point + gates * LANES);
    signed char *codes = (signed char *)(scale + gates * LANES);
    assert(variant->phases == 1 && depth <= PYRNNX_MAX_CODES);
    memset(panel, 0, (size_t)(gates * LANES * (CODE_PANEL_HEADER + step * steps)));
    for (int v = 0; v < gates; v++)
        for (ptrdiff_t j = 0; j < units; j++) {
            const ptrdiff_t row = variant->source[v] * H + unit + j, lane = v * LANES + j;
            zero_point[lane] = source->zero_point[row];
            scale[lane] = source->scale[row];
            for (ptrdiff_t k = 0; k < depth; k++) {
                const signed char code = source->codes[row * depth + k];
                codes[(k / step * gates * LANES + lane) * step + k % step] = code;
                total[lane] += code - zero_point[lane];
            }
        }
    if (IS_LIMITED(p)) {
        signed char *list = codes + steps * gates * LANES * step;
        move_excess(steps, gates * LANES * step, codes, (int *)(void *)list);
    }
    return panel + NAME(code_panel_size)(p, depth, gates);
}

typedef INTEGER NAME(unaligned_integers) __attribute__((vector_size(LANES * sizeof(REAL)), aligned(4), may_alias));
typedef unsigned NAME(wrapping) __attribute__((vector_size(LANES * sizeof(REAL))));
#define LOAD_I(p) ((I)(*(const NAME(unaligned_integers) *)(p)))

/* The header of one gate of a panel. */
typedef struct {
    NAME(wrapping) total, zero_point;
    V scale;
} NAME(gate_factors);

INLINE NAME(gate_factors) NAME(load_factors)(const char *panel, int gates, int v) {
    const char *at = panel + v * LANES * 4;
    return (NAME(gate_factors)){.total = (NAME(wrapping))LOAD_I(at),
                                .zero_point = (NAME(wrapping))LOAD_I(at + gates * LANES * 4),
                                .scale = LOAD((const float *)(const void *)(at + gates * LANES * 8))};
}

/* Return init + sx sw (S - zx total - zw X), with S = sum_k code_x code_w and X the sum of the row's codes. Integers
 * wrap: terms may overflow, but the difference is exact for depth <= PYRNNX_MAX_CODES. */
INLINE V NAME(scaled_sum)(V init, I sum, const code_header *x, NAME(gate_factors) w) {
    const I exact = (I)((NAME(wrapping))sum - w.total * (unsigned)x->zero_point - w.zero_point * (unsigned)x->sum);
    return FMA(__builtin_convertvector(exact, V), SET1(x->scale) * w.scale, init);
}
