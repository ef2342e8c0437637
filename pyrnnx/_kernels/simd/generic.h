/* What template.h asks of a vector of REAL, in vector extensions alone. An instruction set overrides what it has an
 * instruction for. */
#define PX_CAT_(a, b, c) a##_##b##_##c
#define PX_CAT(a, b, c) PX_CAT_(a, b, c)
#define INLINE static inline __attribute__((always_inline, unused))

#define GENERIC_SELECT(mask, a, b) ((V)(((mask) & (I)(a)) | (~(mask) & (I)(b))))
#define GENERIC_SET1(x) ((REAL)(x) - (V){0})
#define GENERIC_FMA(a, b, c) ((a) * (b) + (c))
#define GENERIC_SELECT_LESS(x, y, a, b) GENERIC_SELECT((I)((x) < (y)), a, b)
#define GENERIC_SELECT_NEGATIVE(x, a, b) GENERIC_SELECT((I)(x) < 0, a, b)
/* bounds that leave NaN as it is */
#define GENERIC_AT_LEAST(bound, x) GENERIC_SELECT((I)((x) < (bound)), bound, x)
#define GENERIC_AT_MOST(bound, x) GENERIC_SELECT((I)((x) > (bound)), bound, x)
