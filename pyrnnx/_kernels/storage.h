/* Storage types of the caller's arrays, and conversions of rows to and from the kernels' float or double.

   Each instruction set compiles these loops. Their bodies have no branches, so that the compiler vectorizes them. */
#ifndef PYRNNX_STORAGE_H
#define PYRNNX_STORAGE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __aarch64__
#include <arm_neon.h>
#endif

enum pyrnnx_storage {
    PYRNNX_NATIVE,  /* the kernels' own float32 or float64 */
    PYRNNX_FLOAT16, /* IEEE binary16 */
    PYRNNX_BFLOAT16 /* the upper half of a float32 */
};

static inline float pyrnnx_from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

static inline uint32_t pyrnnx_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return bits;
}

/* Conversions of float16 round to nearest, ties to even. Every NaN becomes 0x7e00 with its sign; back it keeps its
 * bits. */
#ifdef __aarch64__
static inline float pyrnnx_from_float16(uint16_t half) {
    __fp16 value;
    memcpy(&value, &half, 2);
    const uint32_t signalling = (uint16_t)((half & 0x7fff) - 0x7c01) < 0x1ff; /* a NaN that the processor changes */
    return pyrnnx_from_bits(pyrnnx_bits((float)value) & ~(signalling << 22));
}

static inline uint16_t pyrnnx_to_float16(float value) {
    const __fp16 rounded = (__fp16)value;
    uint16_t half;
    memcpy(&half, &rounded, 2);
    return (half & 0x7fff) > 0x7c00 ? (half & 0x8000) | 0x7e00 : half;
}

/* Convert eight elements; gcc 12 has no vectors of the function above. */
static inline void pyrnnx_to_eight_float16(const float *in, char *target) {
    const float16x4_t lower = vcvt_f16_f32(vld1q_f32(in));
    const uint16x8_t halves = vreinterpretq_u16_f16(vcvt_high_f16_f32(lower, vld1q_f32(in + 4)));
    const uint16x8_t sign = vandq_u16(halves, vdupq_n_u16(0x8000));
    const uint16x8_t is_nan = vcgtq_u16(veorq_u16(halves, sign), vdupq_n_u16(0x7c00));
    vst1q_u8((uint8_t *)target, vreinterpretq_u8_u16(vbslq_u16(is_nan, vorrq_u16(sign, vdupq_n_u16(0x7e00)), halves)));
}
#else
static inline float pyrnnx_from_float16(uint16_t half) {
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16, magnitude = (uint32_t)(half & 0x7fff) << 13;
    /* * 2**112 changes the exponent's bias from 15 to 127 without rounding, even of subnormals */
    const uint32_t moved = pyrnnx_bits(pyrnnx_from_bits(magnitude) * 0x1p112f);
    /* infinity and NaN have an exponent of ones in both formats */
    return pyrnnx_from_bits(sign | moved | (magnitude >= 0x0f800000 ? 0x7f800000 : 0));
}

static inline uint16_t pyrnnx_to_float16(float value) {
    const uint32_t bits = pyrnnx_bits(value), sign = (bits >> 16) & 0x8000, magnitude = bits & 0x7fffffff;
    /* below 2**-14: adding 0.5 rounds to a multiple of 2**-24, the subnormal step */
    const uint32_t subnormal = pyrnnx_bits(pyrnnx_from_bits(magnitude) + 0.5f) - 0x3f000000;
    const uint32_t normal = (magnitude - 0x38000000 + 0xfff + ((magnitude >> 13) & 1)) >> 13;
    uint32_t half = magnitude < 0x38800000 ? subnormal : normal;
    half = magnitude >= 0x477ff000 ? 0x7c00 : half; /* 65520 and above round to infinity */
    half = magnitude > 0x7f800000 ? 0x7e00 : half;
    return (uint16_t)(sign | half);
}
#endif

static inline float pyrnnx_from_bfloat16(uint16_t half) { return pyrnnx_from_bits((uint32_t)half << 16); }

/* Round to nearest, ties to even. */
static inline uint16_t pyrnnx_to_bfloat16(float value) {
    const uint32_t bits = pyrnnx_bits(value), rounded = bits + 0x7fff + ((bits >> 16) & 1);
    return (uint16_t)(((bits & 0x7fffffff) > 0x7f800000 ? bits | 0x400000 : rounded) >> 16);
}

/* Convert n elements of the caller to the kernels' type, of size itemsize. */
static inline void pyrnnx_widen(int storage, size_t itemsize, const char *source, void *row, ptrdiff_t n) {
    float *out = (float *)row;
    uint16_t half;
    if (storage == PYRNNX_NATIVE)
        memcpy(row, source, (size_t)n * itemsize);
    else if (storage == PYRNNX_FLOAT16)
        for (ptrdiff_t i = 0; i < n; i++) {
            memcpy(&half, source + 2 * i, 2);
            out[i] = pyrnnx_from_float16(half);
        }
    else
        for (ptrdiff_t i = 0; i < n; i++) {
            memcpy(&half, source + 2 * i, 2);
            out[i] = pyrnnx_from_bfloat16(half);
        }
}

/* Convert n elements to the caller's type, rounded once. */
static inline void pyrnnx_narrow(int storage, size_t itemsize, const void *row, char *target, ptrdiff_t n) {
    const float *in = (const float *)row;
    uint16_t half;
    if (storage == PYRNNX_NATIVE)
        memcpy(target, row, (size_t)n * itemsize);
    else if (storage == PYRNNX_FLOAT16) {
        ptrdiff_t i = 0;
#ifdef __aarch64__
        for (; i + 8 <= n; i += 8) pyrnnx_to_eight_float16(in + i, target + 2 * i);
#endif
        for (; i < n; i++) {
            half = pyrnnx_to_float16(in[i]);
            memcpy(target + 2 * i, &half, 2);
        }
    } else
        for (ptrdiff_t i = 0; i < n; i++) {
            half = pyrnnx_to_bfloat16(in[i]);
            memcpy(target + 2 * i, &half, 2);
        }
}

#endif
