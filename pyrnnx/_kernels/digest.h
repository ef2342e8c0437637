/* A digest of memory that somebody else may change: it shows whether the bytes are those of an earlier call.

   Lanes read the words w in turns. Lanes l of 64 bits, or of 128 on processors with instructions for AES:

       l := rotate(xor(l, w) * FACTOR, TURN)        l := xor(round(round(l)), w), rounds of AES without their keys

   Each step is a bijection of l and of w, so a change of one word always changes its lane. Random changes of several
   words cancel with a probability of about 2**-64. Chosen ones may cancel: two of them with 2**-30 at most after two
   rounds, and always if one is of the highest bit of a word of 64 bits, which a product leaves alone. */
#ifndef PYRNNX_DIGEST_H
#define PYRNNX_DIGEST_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define DIGEST_FACTOR 0x9E3779B97F4A7C15u
#define DIGEST_TURN 29
#define DIGEST_LANES 16
#define DIGEST_BYTES (8 * DIGEST_LANES)

static inline uint64_t digest_step(uint64_t lane, uint64_t word) {
    lane = (lane ^ word) * DIGEST_FACTOR;
    return lane << DIGEST_TURN | lane >> (64 - DIGEST_TURN);
}

/* Eight lanes at a time, which fit the registers. */
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
#include <immintrin.h>

/* Three times as fast. Two rounds more, of zeros, let each bit of a lane depend on all of its last word. */
__attribute__((target("aes"), optimize("O3"))) static void digest_aes(uint64_t *lanes, const char *bytes,
                                                                      size_t blocks) {
    static const char zeros[DIGEST_BYTES];
    enum { VECTORS = DIGEST_BYTES / sizeof(__m128i) };
    const __m128i no_key = _mm_setzero_si128();
    __m128i l[VECTORS];
    memcpy(l, lanes, DIGEST_BYTES);
    for (size_t block = 0; block <= blocks; block++) {
        const char *words = block < blocks ? bytes + block * DIGEST_BYTES : zeros;
#pragma GCC unroll 8
        for (int k = 0; k < (int)VECTORS; k++)
            l[k] = _mm_aesenc_si128(_mm_aesenc_si128(l[k], no_key),
                                    _mm_loadu_si128((const __m128i *)(const void *)words + k));
    }
    memcpy(lanes, l, DIGEST_BYTES);
}

static int digest_has_aes(void) {
    __builtin_cpu_init();
    return __builtin_cpu_supports("aes");
}
#else
#define digest_aes digest_portable

static int digest_has_aes(void) { return 0; }
#endif

/* Return the digest of `size` bytes; `start` is that of the memory before them. */
static uint64_t digest_of(const char *bytes, size_t size, uint64_t start, int aes) {
    uint64_t lanes[DIGEST_LANES];
    char rest[DIGEST_BYTES] = {0};
    size_t blocks = size / DIGEST_BYTES;
    for (int k = 0; k < DIGEST_LANES; k++) lanes[k] = start + (uint64_t)k;
    (aes ? digest_aes : digest_portable)(lanes, bytes, blocks);
    if (size % DIGEST_BYTES) {
        memcpy(rest, bytes + blocks * DIGEST_BYTES, size % DIGEST_BYTES);
        digest_portable(lanes, rest, 1);
    }
    start = size;
    for (int k = 0; k < DIGEST_LANES; k++) start = digest_step(start, lanes[k]);
    return start;
}

#endif
