/* Slow kernels of "amx" for any machine: vectors of the same size, and a model of the matrices in C.
   PYRNNX_BUILD_MODEL=1 builds them, for tests only. */
#include "simd.h"
#ifdef __GNUC__ /* or a compiler with GCC's vector extensions */

typedef unsigned model_words __attribute__((vector_size(64)));
typedef unsigned short model_halves __attribute__((vector_size(32), aligned(1), may_alias));
typedef signed char model_codes __attribute__((vector_size(16), aligned(1), may_alias));

#define ISA amx_model
#define TILE_SUMS 4 /* few tile shapes, to compile faster */

#define REAL float
#define INTEGER int
#define LANES 16
#define HAVE_REDUCED_WEIGHTS 1
#define ISA_LOAD_BFLOAT16(p) (__builtin_convertvector(*(const model_halves *)(const void *)(p), model_words) << 16)
#define ISA_LOAD_INT8(p) __builtin_convertvector(*(const model_codes *)(const void *)(p), V)
#define HAVE_CODES 1
#define HAVE_SPLIT 1
#define MATRIX_MODEL 1
#include "template.h"
#endif
