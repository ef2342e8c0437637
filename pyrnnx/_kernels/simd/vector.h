/* V, a vector of LANES numbers REAL, and its operations: ISA_x of the instruction set, or else GENERIC_x, written with
 * the compiler's vector extensions. */
#define PX_CAT_(a, b, c) a##_##b##_##c
#define PX_CAT(a, b, c) PX_CAT_(a, b, c)
#define INLINE static inline __attribute__((always_inline, unused))
/* For functions with more instructions than their file: clang replaces the file's target by this, gcc adds it. */
#ifdef ISA_TARGET
#define MAY_USE(more) __attribute__((target(ISA_TARGET "," more)))
#else
#define MAY_USE(more) __attribute__((target(more)))
#endif

#define GENERIC_SELECT(mask, a, b) ((V)(((mask) & (I)(a)) | (~(mask) & (I)(b))))
#define GENERIC_SET1(x) ((REAL)(x) - (V){0})
#define GENERIC_FMA(a, b, c) ((a) * (b) + (c))
#define GENERIC_SELECT_LESS(x, y, a, b) GENERIC_SELECT((I)((x) < (y)), a, b)
#define GENERIC_SELECT_NEGATIVE(x, a, b) GENERIC_SELECT((I)(x) < 0, a, b)
/* Bounds that do not change NaN. */
#define GENERIC_AT_LEAST(bound, x) GENERIC_SELECT((I)((x) < (bound)), bound, x)
#define GENERIC_AT_MOST(bound, x) GENERIC_SELECT((I)((x) > (bound)), bound, x)

#define NAME(x) PX_CAT(x, REAL, ISA)
typedef REAL NAME(vector) __attribute__((vector_size(LANES * sizeof(REAL))));
typedef INTEGER NAME(integers) __attribute__((vector_size(LANES * sizeof(REAL))));
typedef REAL NAME(unaligned) __attribute__((vector_size(LANES * sizeof(REAL)), aligned(sizeof(REAL)), may_alias));
#define V NAME(vector)
#define I NAME(integers)
#define LOAD(p) ((V)(*(const NAME(unaligned) *)(p)))
#define STORE(p, x) (*(NAME(unaligned) *)(p) = (x))

#ifndef ISA_SET1
#define ISA_SET1 GENERIC_SET1
#endif
#ifdef ISA_FMA
#define ROUNDS_PRODUCTS 0 /* of FMA */
#else
#define ISA_FMA GENERIC_FMA
#define ROUNDS_PRODUCTS 1
#endif
#ifndef ISA_AT_LEAST
#define ISA_AT_LEAST GENERIC_AT_LEAST
#endif
#ifndef ISA_AT_MOST
#define ISA_AT_MOST GENERIC_AT_MOST
#endif
#ifndef ISA_SELECT_LESS
#define ISA_SELECT_LESS GENERIC_SELECT_LESS
#endif
#ifndef ISA_SELECT_NEGATIVE
#define ISA_SELECT_NEGATIVE GENERIC_SELECT_NEGATIVE
#endif
#define SET1(x) ((V)ISA_SET1(x))
#define FMA(a, b, c) ((V)ISA_FMA(a, b, c))
#ifdef ISA_ACCUMULATE /* sum += a b, in the register of sum */
#define ACCUMULATE ISA_ACCUMULATE
#else
#define ACCUMULATE(sum, a, b) ((sum) = FMA(a, b, sum))
#endif
#define AT_LEAST(bound, x) ((V)ISA_AT_LEAST(bound, x))
#define AT_MOST(bound, x) ((V)ISA_AT_MOST(bound, x))
#define SELECT_LESS(x, y, a, b) ((V)ISA_SELECT_LESS(x, y, a, b))
#define SELECT_NEGATIVE(x, a, b) ((V)ISA_SELECT_NEGATIVE(x, a, b))
