/* The table of instruction sets, and the check whether the processor supports one. */
#include "simd.h"

#include <string.h>

#if PYRNNX_HAVE_X86 || PYRNNX_HAVE_NEON
#include "matrices.h"

typedef struct {
    const char *isa;
    const pyrnnx_kernels *kernels[2]; /* float, double */
} row;

static const row TABLE[] = {
#if PYRNNX_HAVE_X86
#ifdef PYRNNX_HAVE_AMX
    {"amx", {&pyrnnx_avx512_float, &pyrnnx_avx512_double}}, /* the only row that uses their matrices */
#endif
    {"avx512", {&pyrnnx_avx512_float, &pyrnnx_avx512_double}},
    {"avx2", {&pyrnnx_avx2_float, &pyrnnx_avx2_double}},
#define MODEL_DOUBLE pyrnnx_avx2_double
#else
    {"neon", {&pyrnnx_neon_float, &pyrnnx_neon_double}},
#define MODEL_DOUBLE pyrnnx_neon_double
#endif
#ifdef PYRNNX_BUILD_MODEL
    {"amx_model", {&pyrnnx_amx_model_float, &MODEL_DOUBLE}}, /* the matrices multiply float only */
#endif
};

const pyrnnx_kernels *pyrnnx_simd_kernels(const char *isa, int itemsize) {
    for (size_t k = 0; k < sizeof TABLE / sizeof *TABLE; k++)
        if (strcmp(TABLE[k].isa, isa) == 0)
            for (int j = 0; j < 2; j++)
                if (TABLE[k].kernels[j]->itemsize == itemsize) return TABLE[k].kernels[j];
    return NULL;
}

int pyrnnx_simd_supported(const char *isa) {
    if (pyrnnx_simd_kernels(isa, 4) == NULL) return 0;
#if PYRNNX_HAVE_X86
    __builtin_cpu_init();
#ifdef PYRNNX_HAVE_AMX
    if (strcmp(isa, "amx") == 0)
        return pyrnnx_simd_supported("avx512") && __builtin_cpu_supports("amx-tile") &&
               __builtin_cpu_supports("amx-bf16") && __builtin_cpu_supports("avx512bf16") && matrices_allowed();
#endif
    if (strcmp(isa, "avx512") == 0)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("fma");
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return 1;
#endif
}

#else /* no kernels for this processor or compiler (MSVC): only the BLAS engine */

const pyrnnx_kernels *pyrnnx_simd_kernels(const char *isa, int itemsize) {
    (void)isa, (void)itemsize;
    return NULL;
}

int pyrnnx_simd_supported(const char *isa) {
    (void)isa;
    return 0;
}

#endif
