/* 16-byte vectors that every processor of the architecture supports: SSE2, NEON, or generic code of the compiler. */
#include "simd.h"
#ifdef __GNUC__ /* or a compiler with GCC's vector extensions */
#ifdef __aarch64__
#include <arm_neon.h>
#elif defined __SSE2__
#include <emmintrin.h>
#endif

#define ISA baseline
#ifdef __aarch64__
#define TILE_SUMS 24
#else
#define TILE_SUMS 12
#endif

#define REAL float
#define INTEGER int
#define LANES 4
#define HAVE_REDUCED_WEIGHTS 0
#ifdef __aarch64__
#define ISA_FMA(a, b, c) vfmaq_f32((float32x4_t)(c), (float32x4_t)(a), (float32x4_t)(b))
#endif
#define HAVE_CODES 1
#define HAVE_SPLIT 0
#ifdef __SSE2__
#define ISA_MADD(a, b) _mm_madd_epi16((__m128i)(a), (__m128i)(b))
#endif
#include "template.h"

#define REAL double
#define INTEGER long long
#define LANES 2
#define HAVE_REDUCED_WEIGHTS 0
#ifdef __aarch64__
#define ISA_FMA(a, b, c) vfmaq_f64((float64x2_t)(c), (float64x2_t)(a), (float64x2_t)(b))
#endif
#define HAVE_CODES 0
#define HAVE_SPLIT 0
#include "template.h"
#endif
