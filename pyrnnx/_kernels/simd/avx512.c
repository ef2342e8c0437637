/* The kernels of AVX-512 for float. */
#include "simd.h"
#if PYRNNX_HAVE_X86
#define REAL float
#define PACKED ps
#define INTEGER int
#define LANES 16
#define HAVE_REDUCED_WEIGHTS 1
#define ISA_SELECT_LESS(x, y, a, b) _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, y, _CMP_LT_OQ), b, a)
#define ISA_SELECT_NEGATIVE(x, a, b) _mm512_mask_blend_ps(_mm512_movepi32_mask(_mm512_castps_si512(x)), b, a)
#define ISA_LOAD_BFLOAT16(p) \
    _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(p))), 16))
#define ISA_LOAD_INT8(p) _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(p))))
#define HAVE_CODES 1
#define ISA_LIMITED_DOT(x, w) _mm512_madd_epi16(_mm512_maddubs_epi16((__m512i)(x), (__m512i)(w)), _mm512_set1_epi16(1))
#define ISA_DOT(sum, x, w) _mm512_dpbusd_epi32((__m512i)(sum), (__m512i)(x), (__m512i)(w))
#define ISA_DOT_TARGET "avx512vnni"
#ifdef PYRNNX_HAVE_AMX
#define ISA_MATRICES "amx-tile,amx-int8,amx-bf16"
#define HAVE_SPLIT 1
#define ISA_BFLOAT16 "avx512bf16"
#else
#define HAVE_SPLIT 0
#endif
#include "avx512.h"
#endif
