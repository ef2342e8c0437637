/* 16-byte vectors: SSE2, or generic code of the compiler. */
#include "simd.h"
#if PYRNNX_HAVE_BASELINE
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define ISA baseline
#define TILE_SUMS 12

#define REAL float
#define INTEGER int
#define LANES 4
#define HAVE_REDUCED_WEIGHTS 0
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
#define HAVE_CODES 0
#define HAVE_SPLIT 0
#include "template.h"
#endif
