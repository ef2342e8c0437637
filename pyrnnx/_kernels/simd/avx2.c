/* AVX2 and FMA: 16 registers of 32 bytes. */
#include "simd.h"
#if PYRNNX_HAVE_X86
#include <immintrin.h>
#define ISA_TARGET "avx2,fma"
#ifdef __clang__
#pragma clang attribute push(__attribute__((target(ISA_TARGET))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif

#define ISA avx2
#define TILE_SUMS 12
#define HAVE_RUNS 1
/* gcc would choose among the three forms of the instruction, and spill sums that change registers. */
#define ADD_IN_PLACE(name, sum, a, b) /* in AT&T's syntax or, with -masm=intel, Intel's */ \
    __asm__("{" name " %2, %1, %0|" name " %0, %1, %2}" : "+x"(sum) : "x"(a), "x"(b))

#define REAL float
#define INTEGER int
#define LANES 8
#define HAVE_REDUCED_WEIGHTS 1
#define ISA_SET1(x) _mm256_set1_ps(x)
#define ISA_FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define ISA_ACCUMULATE(sum, a, b) ADD_IN_PLACE("vfmadd231ps", sum, a, b)
#define ISA_AT_LEAST(bound, x) _mm256_max_ps(bound, x) /* returns the second operand if either is NaN */
#define ISA_AT_MOST(bound, x) _mm256_min_ps(bound, x)
#define ISA_SELECT_LESS(x, y, a, b) _mm256_blendv_ps(b, a, _mm256_cmp_ps(x, y, _CMP_LT_OQ))
#define ISA_SELECT_NEGATIVE(x, a, b) _mm256_blendv_ps(b, a, x)
#define ISA_LOAD_BFLOAT16(p) \
    _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(p))), 16))
#define ISA_LOAD_INT8(p) _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(p))))
#define HAVE_CODES 1
#define HAVE_SPLIT 0
#define ISA_STORE_BYTES(p, codes) /* of 0 to 255; gcc would narrow them one by one */ \
    _mm_storel_epi64((__m128i *)(void *)(p), \
                     _mm_packus_epi16(_mm_packs_epi32(_mm256_castsi256_si128((__m256i)(codes)), \
                                                      _mm256_extracti128_si256((__m256i)(codes), 1)), \
                                      _mm_setzero_si128()))
#define ISA_LIMITED_DOT(x, w) _mm256_madd_epi16(_mm256_maddubs_epi16((__m256i)(x), (__m256i)(w)), _mm256_set1_epi16(1))
#if (defined(__clang__) ? __clang_major__ : __GNUC__ + 8) >= 19 /* gcc 11, clang 19: cpu_supports accepts the name */
#define ISA_DOT(sum, x, w) _mm256_dpbusd_avx_epi32((__m256i)(sum), (__m256i)(x), (__m256i)(w))
#define ISA_DOT_TARGET "avxvnni"
#endif
#include "template.h"

#define REAL double
#define INTEGER long long
#define LANES 4
#define HAVE_REDUCED_WEIGHTS 0
#define ISA_SET1(x) _mm256_set1_pd(x)
#define ISA_FMA(a, b, c) _mm256_fmadd_pd(a, b, c)
#define ISA_ACCUMULATE(sum, a, b) ADD_IN_PLACE("vfmadd231pd", sum, a, b)
#define ISA_AT_LEAST(bound, x) _mm256_max_pd(bound, x)
#define ISA_AT_MOST(bound, x) _mm256_min_pd(bound, x)
#define ISA_SELECT_LESS(x, y, a, b) _mm256_blendv_pd(b, a, _mm256_cmp_pd(x, y, _CMP_LT_OQ))
#define ISA_SELECT_NEGATIVE(x, a, b) _mm256_blendv_pd(b, a, x)
#define HAVE_CODES 0
#define HAVE_SPLIT 0
#include "template.h"

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
