/* A digest of memory that somebody else may change: it shows whether the bytes are those of an earlier call.

   Lanes l of 64 bits read the words w in turns:

       l := rotate(xor(l, w) * FACTOR, TURN)

   Each step is a bijection of l and of w, so a change of one word always changes the digest. Changes of several words
   cancel with a probability of about 2**-64: the rotation moves the high bits, which a product never moves down. */
#ifndef PYRNNX_DIGEST_H
#define PYRNNX_DIGEST_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define DIGEST_FACTOR 0x9E3779B97F4A7C15u
#define DIGEST_TURN 29
#define DIGEST_LANES 32
#define DIGEST_BYTES (8 * DIGEST_LANES)

static inline uint64_t digest_step(uint64_t lane, uint64_t word) {
    lane = (lane ^ word) * DIGEST_FACTOR;
    return lane << DIGEST_TURN | lane >> (64 - DIGEST_TURN);
}

/* Eight lanes at a time, which fit the registers of a processor that multiplies one word per cycle. */
static void digest_portable(uint64_t *lanes, const char *bytes, size_t blocks) {
    for (int k = 0; k < DIGEST_LANES; k += 8) {
        uint64_t *l = lanes + k, w[8];
        uint64_t l0 = l[0], l1 = l[1], l2 = l[2], l3 = l[3], l4 = l[4], l5 = l[5], l6 = l[6], l7 = l[7];
        for (size_t block = 0; block < blocks; block++) {
            memcpy(w, bytes + block * DIGEST_BYTES + 8 * k, sizeof w);
            l0 = digest_step(l0, w[0]), l1 = digest_step(l1, w[1]), l2 = digest_step(l2, w[2]);
            l3 = digest_step(l3, w[3]), l4 = digest_step(l4, w[4]), l5 = digest_step(l5, w[5]);
            l6 = digest_step(l6, w[6]), l7 = digest_step(l7, w[7]);
        }
        l[0] = l0, l[1] = l1, l[2] = l2, l[3] = l3, l[4] = l4, l[5] = l5, l[6] = l6, l[7] = l7;
    }
}

#if defined(__GNUC__) && defined(__x86_64__)
/* Six times as fast: AVX-512 multiplies words of 64 bits. */
typedef uint64_t digest_vector __attribute__((vector_size(64)));

__attribute__((target("avx512f,avx512dq"), optimize("O3"))) static void
digest_avx512(uint64_t *lanes, const char *bytes, size_t blocks) {
    digest_vector l[4], w[4];
    memcpy(l, lanes, DIGEST_BYTES);
    for (; blocks; blocks--, bytes += DIGEST_BYTES) {
        memcpy(w, bytes, DIGEST_BYTES);
        for (int k = 0; k < 4; k++) {
            l[k] = (l[k] ^ w[k]) * DIGEST_FACTOR;
            l[k] = l[k] << DIGEST_TURN | l[k] >> (64 - DIGEST_TURN);
        }
    }
    memcpy(lanes, l, DIGEST_BYTES);
}

static int digest_has_avx512(void) {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq");
}
#else
#define digest_avx512 digest_portable

static int digest_has_avx512(void) { return 0; }
#endif

/* Return the digest of `size` bytes; `start` is that of the memory before them. */
static uint64_t digest_of(const char *bytes, size_t size, uint64_t start, int avx512) {
    uint64_t lanes[DIGEST_LANES];
    char rest[DIGEST_BYTES] = {0};
    size_t blocks = size / DIGEST_BYTES;
    for (int k = 0; k < DIGEST_LANES; k++) lanes[k] = start + (uint64_t)k;
    (avx512 ? digest_avx512 : digest_portable)(lanes, bytes, blocks);
    if (size % DIGEST_BYTES) {
        memcpy(rest, bytes + blocks * DIGEST_BYTES, size % DIGEST_BYTES);
        digest_portable(lanes, rest, 1);
    }
    start = size;
    for (int k = 0; k < DIGEST_LANES; k++) start = digest_step(start, lanes[k]);
    return start;
}

#endif
