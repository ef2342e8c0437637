/* Which instruction sets there are, and which of them the processor has. */
#include "simd.h"

#include <string.h>

#if defined(__GNUC__)

static const pyrnnx_kernels *const TABLES[] = {
#if PYRNNX_HAVE_X86
    &pyrnnx_avx512_float,   &pyrnnx_avx512_double,   &pyrnnx_avx2_float, &pyrnnx_avx2_double,
#endif
    &pyrnnx_baseline_float, &pyrnnx_baseline_double,
};

const pyrnnx_kernels *pyrnnx_simd_kernels(const char *isa, int itemsize) {
    for (size_t k = 0; k < sizeof TABLES / sizeof *TABLES; k++)
        if (TABLES[k]->itemsize == itemsize && strcmp(TABLES[k]->isa, isa) == 0) return TABLES[k];
    return NULL;
}

int pyrnnx_simd_supported(const char *isa) {
    if (pyrnnx_simd_kernels(isa, 4) == NULL) return 0;
#if PYRNNX_HAVE_X86
    __builtin_cpu_init();
    if (strcmp(isa, "avx512") == 0)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("fma");
    if (strcmp(isa, "avx2") == 0) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
    return 1;
}

#else /* no vector extensions (MSVC): the BLAS engine alone */

const pyrnnx_kernels *pyrnnx_simd_kernels(const char *isa, int itemsize) {
    (void)isa, (void)itemsize;
    return NULL;
}

int pyrnnx_simd_supported(const char *isa) {
    (void)isa;
    return 0;
}

#endif
