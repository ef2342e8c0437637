/* The template for AVX-512 F, DQ, BW and VL: 32 registers of 64 bytes.

   The includer defines the rest of what template.h needs, and PACKED, the suffix of intrinsics. Each element type is a
   file of its own, so that they compile in parallel. */
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
#define ISA_SET1 PX_CAT(_mm512, set1, PACKED)
#define ISA_FMA PX_CAT(_mm512, fmadd, PACKED)
#define ISA_AT_LEAST PX_CAT(_mm512, max, PACKED) /* returns the second operand if either is NaN */
#define ISA_AT_MOST PX_CAT(_mm512, min, PACKED)
#include "template.h"

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
