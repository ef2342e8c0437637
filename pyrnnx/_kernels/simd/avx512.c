/* AVX-512 F, DQ, BW and VL: 32 registers of 64 bytes. */
#include "simd.h"
#if PYRNNX_HAVE_X86
#include <immintrin.h>
#define ISA_TARGET "avx512f,avx512dq,avx512bw,avx512vl,fma"
#ifdef __clang__
#pragma clang attribute push(__attribute__((target(ISA_TARGET))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,fma")
#endif

#define ISA avx512
#define TILE_SUMS 24

#define REAL float
#define INTEGER int
#define LANES 16
#define HAVE_REDUCED_WEIGHTS 1
#define ISA_SET1(x) _mm512_set1_ps(x)
#define ISA_FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define ISA_AT_LEAST(bound, x) _mm512_max_ps(bound, x) /* the second operand where one is NaN */
#define ISA_AT_MOST(bound, x) _mm512_min_ps(bound, x)
#define ISA_SELECT_LESS(x, y, a, b) _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, y, _CMP_LT_OQ), b, a)
#define ISA_SELECT_NEGATIVE(x, a, b) _mm512_mask_blend_ps(_mm512_movepi32_mask(_mm512_castps_si512(x)), b, a)
#define ISA_LOAD_BFLOAT16(p) \
    _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(p))), 16))
#define ISA_LOAD_INT8(p) _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(p))))
#define HAVE_CODES 1
#define ISA_MADD(a, b) _mm512_madd_epi16((__m512i)(a), (__m512i)(b))
#define ISA_DOT(sum, x, w) _mm512_dpbusd_epi32((__m512i)(sum), (__m512i)(x), (__m512i)(w))
#define ISA_DOT_TARGET "avx512vnni"
#ifdef PYRNNX_HAVE_AMX
#define ISA_MATRICES "amx-tile,amx-int8,amx-bf16"
#define HAVE_SPLIT 1
#define ISA_BFLOAT16 "avx512bf16"
#else
#define HAVE_SPLIT 0
#endif
#include "template.h"

#define REAL double
#define INTEGER long long
#define LANES 8
#define HAVE_REDUCED_WEIGHTS 0
#define ISA_SET1(x) _mm512_set1_pd(x)
#define ISA_FMA(a, b, c) _mm512_fmadd_pd(a, b, c)
#define ISA_AT_LEAST(bound, x) _mm512_max_pd(bound, x)
#define ISA_AT_MOST(bound, x) _mm512_min_pd(bound, x)
#define ISA_SELECT_LESS(x, y, a, b) _mm512_mask_blend_pd(_mm512_cmp_pd_mask(x, y, _CMP_LT_OQ), b, a)
#define ISA_SELECT_NEGATIVE(x, a, b) _mm512_mask_blend_pd(_mm512_movepi64_mask(_mm512_castpd_si512(x)), b, a)
#define HAVE_CODES 0
#define HAVE_SPLIT 0
#include "template.h"

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
