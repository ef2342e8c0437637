/* NEON, which every 64-bit Arm processor has: 32 registers of 16 bytes. */
#include "simd.h"
#if PYRNNX_HAVE_NEON
#ifndef __clang__ /* else gcc has too few registers for tiles, and copies pointers */
#pragma GCC optimize("no-schedule-insns", "no-tree-coalesce-vars")
#endif
#include <arm_neon.h>
#include <string.h>
#ifdef __linux__
#include <sys/auxv.h>
#elif defined __APPLE__
#include <sys/sysctl.h>
#endif

/* True if the processor has a feature: a bit of Linux's auxiliary vector, or its name in macOS. */
#ifdef __linux__
#define HAS_FEATURE(type, bit, name) (getauxval(type) >> (bit) & 1)
#elif defined __APPLE__
#define HAS_FEATURE(type, bit, name) has_feature("hw.optional.arm.FEAT_" name)
static int has_feature(const char *name) {
    int is_there = 0;
    size_t size = sizeof is_there;
    return sysctlbyname(name, &is_there, &size, NULL, 0) == 0 && is_there;
}
#else
#define HAS_FEATURE(type, bit, name) 0
#endif

static inline float32x4_t load_int8(const char *p) {
    int32_t four;
    memcpy(&four, p, sizeof four);
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_s32(vdup_n_s32(four))))));
}

#ifndef __clang__ /* which does not unroll tiles by lane far enough */
#define ISA_FMA_BY_LANE
#define ISA_LOAD_TWO load_two
#define ISA_LOAD_NEXT_TWO load_next_two
typedef float vector __attribute__((vector_size(16), aligned(4), may_alias));

/* Load two vectors of weights by one instruction; gcc seldom joins two loads. */
static inline __attribute__((always_inline)) void load_two(int weight_dtype, const char *p, vector two[2]) {
    if (weight_dtype == PYRNNX_WEIGHTS_BFLOAT16) {
        const uint16x8_t w = vld1q_u16((const uint16_t *)(const void *)p);
        two[0] = (vector)vshll_n_u16(vget_low_u16(w), 16);
        two[1] = (vector)vshll_high_n_u16(w, 16);
    } else if (weight_dtype == PYRNNX_WEIGHTS_INT8) {
        const int16x8_t w = vmovl_s8(vld1_s8((const signed char *)p));
        two[0] = (vector)vcvtq_f32_s32(vmovl_s16(vget_low_s16(w)));
        two[1] = (vector)vcvtq_f32_s32(vmovl_high_s16(w));
    } else {
        const vector *from = (const vector *)(const void *)p;
        __asm__("ldp %q0, %q1, %2" : "=w"(two[0]), "=w"(two[1]) : "Ump"(from[0]), "m"(from[1]));
    }
}

/* Load two vectors of a row, and advance `p` behind them; tile() declares that this reads memory. */
static inline __attribute__((always_inline)) void load_next_two(const char **p, vector two[2]) {
    __asm__("ldp %q0, %q1, [%2], 32" : "=w"(two[0]), "=w"(two[1]), "+r"(*p));
}
#endif

#define ISA neon
#define TILE_SUMS 24

#define REAL float
#define INTEGER int
#define LANES 4
#define HAVE_REDUCED_WEIGHTS 1
#define ISA_FMA(a, b, c) vfmaq_f32((float32x4_t)(c), (float32x4_t)(a), (float32x4_t)(b))
#define ISA_LOAD_BFLOAT16(p) vreinterpretq_f32_u32(vshll_n_u16(vld1_u16((const uint16_t *)(const void *)(p)), 16))
#define ISA_LOAD_INT8(p) load_int8(p)
#define HAVE_CODES 1
#define HAVE_SPLIT 0
#define ISA_MADD(a, b) \
    vpaddq_s32(vmull_s16(vget_low_s16((int16x8_t)(a)), vget_low_s16((int16x8_t)(b))), \
               vmull_high_s16((int16x8_t)(a), (int16x8_t)(b)))
#if (defined __clang__ ? __clang_major__ : __GNUC__ + 6) >= 16 /* whose intrinsics heed the target of a function */
#define ISA_DOT(sum, x, w) vdotq_s32((int32x4_t)(sum), (int8x16_t)(x), (int8x16_t)(w))
#define ISA_DOT_TARGET "arch=armv8.2-a+dotprod"
#define ISA_HAS_DOT HAS_FEATURE(AT_HWCAP, 20, "DotProd")
#define ISA_SQUARES(sum, x, w) vmmlaq_s32((int32x4_t)(sum), (int8x16_t)(x), (int8x16_t)(w))
#define ISA_SQUARES_TARGET "arch=armv8.2-a+dotprod+i8mm"
#define ISA_HAS_SQUARES HAS_FEATURE(AT_HWCAP2, 13, "I8MM")
#define ISA_LOAD_EIGHTS(p, q) vcombine_s8(vld1_s8((const signed char *)(p)), vld1_s8((const signed char *)(q)))
#define ISA_SQUARES_ROW(a, b, second) \
    ((second) ? vzip2q_s64((int64x2_t)(a), (int64x2_t)(b)) : vzip1q_s64((int64x2_t)(a), (int64x2_t)(b)))
#define ISA_ADD_ADJACENT(a, b) vpaddq_s32((int32x4_t)(a), (int32x4_t)(b))
#endif
#define ISA_CODE_OFFSET 128 /* both factors are signed */
#include "template.h"

#define REAL double
#define INTEGER long long
#define LANES 2
#define HAVE_REDUCED_WEIGHTS 0
#define ISA_FMA(a, b, c) vfmaq_f64((float64x2_t)(c), (float64x2_t)(a), (float64x2_t)(b))
#define HAVE_CODES 0
#define HAVE_SPLIT 0
#include "template.h"
#endif
