/* Storage types of the caller's arrays, and conversions of rows to and from the kernels' float or double.

   Each instruction set compiles these loops. Their bodies have no branches, so that the compiler vectorizes them. */
#ifndef PYRNNX_STORAGE_H
#define PYRNNX_STORAGE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

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

static inline float pyrnnx_from_float16(uint16_t half) {
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16, magnitude = (uint32_t)(half & 0x7fff) << 13;
    /* * 2**112 changes the exponent's bias from 15 to 127 without rounding, even of subnormals */
    const uint32_t moved = pyrnnx_bits(pyrnnx_from_bits(magnitude) * 0x1p112f);
    /* infinity and NaN have an exponent of ones in both formats */
    return pyrnnx_from_bits(sign | moved | (magnitude >= 0x0f800000 ? 0x7f800000 : 0));
}

/* Round to nearest, ties to even. */
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
    else if (storage == PYRNNX_FLOAT16)
        for (ptrdiff_t i = 0; i < n; i++) {
            half = pyrnnx_to_float16(in[i]);
            memcpy(target + 2 * i, &half, 2);
        }
    else
        for (ptrdiff_t i = 0; i < n; i++) {
            half = pyrnnx_to_bfloat16(in[i]);
            memcpy(target + 2 * i, &half, 2);
        }
}

#endif
