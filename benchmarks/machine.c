/* Measures two limits of one core: float32 multiply-adds per second, and bytes per second read from a block.
   Vectors have the target's width. Both functions return seconds; the caller takes the best of several tries. */

#include <stddef.h>
#include <time.h>

#if defined(__AVX512F__)
#define WIDTH 64
#define CHAINS 24
#elif defined(__AVX__)
#define WIDTH 32
#define CHAINS 12
#else
#define WIDTH 16
#define CHAINS 12
#endif
#define READS 8
#define PIECE 4096

typedef float vec __attribute__((vector_size(WIDTH)));

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static vec splat(float value) {
    vec v;
    for (size_t i = 0; i < WIDTH / sizeof(float); i++) v[i] = value;
    return v;
}

/* Operations of one pass of `multiply_add`: independent chains hide the latency; 2 for a multiply-add. */
size_t operations_per_pass(void) { return 2 * CHAINS * WIDTH / sizeof(float); }

double multiply_add(size_t passes, float *result) {
    vec a[CHAINS];
    const vec b = splat(0.999f), c = splat(0.001f);
    for (int j = 0; j < CHAINS; j++) a[j] = splat((float)j);
    const double start = now();
    for (size_t i = 0; i < passes; i++) {
#pragma GCC unroll 24
        for (int j = 0; j < CHAINS; j++) a[j] = a[j] * b + c;
    }
    const double elapsed = now() - start;
    for (int j = 0; j < CHAINS; j++) *result += a[j][0]; /* keeps the loop */
    return elapsed;
}

/* Reads a block `passes` times, always forward, or alternating forward and backward by pieces. Its size is a multiple
   of PIECE, and it is aligned to WIDTH. */
double read_block(const void *block, size_t bytes, size_t passes, int to_and_fro, float *result) {
    const size_t pieces = bytes / PIECE;
    vec sum[READS];
    for (int j = 0; j < READS; j++) sum[j] = splat(0.0f);
    const double start = now();
    for (size_t i = 0; i < passes; i++) {
        for (size_t piece = 0; piece < pieces; piece++) {
            const size_t at = to_and_fro && i % 2 ? pieces - 1 - piece : piece;
            const vec *p = (const vec *)((const char *)block + at * PIECE);
            for (size_t k = 0; k < PIECE / WIDTH; k += READS) {
#pragma GCC unroll 8
                for (int j = 0; j < READS; j++) sum[j] += p[k + j];
            }
        }
        __asm__ volatile("" ::: "memory"); /* the next pass reads again */
    }
    const double elapsed = now() - start;
    for (int j = 0; j < READS; j++) *result += sum[j][0];
    return elapsed;
}
