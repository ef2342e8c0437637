/* The kernels of AVX-512 for double. */
#include "simd.h"
#if PYRNNX_HAVE_X86
#define REAL double
#define PACKED pd
#define INTEGER long long
#define LANES 8
#define HAVE_REDUCED_WEIGHTS 0
#define ISA_SELECT_LESS(x, y, a, b) _mm512_mask_blend_pd(_mm512_cmp_pd_mask(x, y, _CMP_LT_OQ), b, a)
#define ISA_SELECT_NEGATIVE(x, a, b) _mm512_mask_blend_pd(_mm512_movepi64_mask(_mm512_castpd_si512(x)), b, a)
#define HAVE_CODES 0
#define HAVE_SPLIT 0
#include "avx512.h"
#endif
