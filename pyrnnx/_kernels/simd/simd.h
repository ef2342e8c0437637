/* The SIMD engine: one table of kernels for each instruction set and element, compiled from one template.

   Gates in buffers and panels have the order [unit block][gate][lane], with gates in ONNX order: RNN i; GRU z, r, h;
   LSTM i, o, f, c, or i, o, c with a coupled forget gate, or f, o, c with a coupled input gate. */
#ifndef PYRNNX_SIMD_H
#define PYRNNX_SIMD_H

#include "../engine.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define PYRNNX_HAVE_X86 1
#if defined(__linux__) && (defined(__clang__) ? __clang_major__ : __GNUC__ + 8) >= 19 /* see avx2.c */
#define PYRNNX_HAVE_AMX 1
#endif
extern const pyrnnx_kernels pyrnnx_avx512_float, pyrnnx_avx512_double, pyrnnx_avx2_float, pyrnnx_avx2_double;
#else
#define PYRNNX_HAVE_X86 0
#endif
#if defined(__aarch64__) && defined(__GNUC__)
#define PYRNNX_HAVE_NEON 1
#else
#define PYRNNX_HAVE_NEON 0
#endif
extern const pyrnnx_kernels pyrnnx_neon_float, pyrnnx_neon_double, pyrnnx_amx_model_float;

/* Return the kernels for an instruction set and element; NULL if this build has none. */
const pyrnnx_kernels *pyrnnx_simd_kernels(const char *isa, int itemsize);

/* Return whether both this build and this processor support an instruction set. */
int pyrnnx_simd_supported(const char *isa);

#endif
