/* A barrier that spins, yields the processor if other members are late, and disbands a team that is often late.

   Waiting for a thread without a processor costs milliseconds. If long waits exceed a quarter of the team's time, the
   verdict of the same round asks all members to leave the work to rank 0. If the call is interrupted, it asks all to
   stop. */
#ifndef PYRNNX_BARRIER_H
#define PYRNNX_BARRIER_H

#include <stddef.h>

#include "interrupt.h"

/* The action of a team's members after a round. */
typedef enum {
    PYRNNX_GO_ON,
    PYRNNX_DISBANDED, /* all but rank 0 leave */
    PYRNNX_STOPPED    /* all leave */
} pyrnnx_verdict;

typedef struct {
    int size, waiting;
    pyrnnx_verdict verdict; /* written by the last to arrive, read by all after the round */
    unsigned round;
    long long begin, late;             /* nanoseconds: start of the team; sum of waits longer than a millisecond */
    const pyrnnx_interrupt *interrupt; /* NULL: the call is never stopped */
} pyrnnx_barrier;

#if !PYRNNX_HAVE_THREADS /* every team has one member */

static inline void pyrnnx_barrier_init(pyrnnx_barrier *barrier, int size, const pyrnnx_interrupt *interrupt) {
    *barrier = (pyrnnx_barrier){.size = size, .interrupt = interrupt};
}

static inline pyrnnx_verdict pyrnnx_barrier_wait(pyrnnx_barrier *barrier) { return barrier->verdict; }

#else

enum { PYRNNX_SPINS = 2000 /* about 20 to 100 us */ };

static inline void pyrnnx_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

static inline void pyrnnx_barrier_init(pyrnnx_barrier *barrier, int size, const pyrnnx_interrupt *interrupt) {
    *barrier = (pyrnnx_barrier){.size = size, .begin = size > 1 ? pyrnnx_now() : 0, .interrupt = interrupt};
}

static inline void pyrnnx_barrier_wait_for(pyrnnx_barrier *barrier, unsigned round) {
    for (int spin = 0; spin < PYRNNX_SPINS; spin++) {
        if (__atomic_load_n(&barrier->round, __ATOMIC_ACQUIRE) != round) return;
        pyrnnx_pause();
    }
    long long begin = pyrnnx_now();
    while (__atomic_load_n(&barrier->round, __ATOMIC_ACQUIRE) == round) pyrnnx_yield();
    long long waited = pyrnnx_now() - begin;
    if (waited > PYRNNX_MILLISECOND) __atomic_add_fetch(&barrier->late, waited, __ATOMIC_RELAXED);
}

static inline pyrnnx_verdict pyrnnx_barrier_verdict(const pyrnnx_barrier *barrier) {
    if (barrier->interrupt != NULL && PYRNNX_LOAD(&barrier->interrupt->stop)) return PYRNNX_STOPPED;
    long long late = __atomic_load_n(&barrier->late, __ATOMIC_RELAXED);
    if (late > 2 * PYRNNX_MILLISECOND && 4 * late > pyrnnx_now() - barrier->begin) return PYRNNX_DISBANDED;
    return PYRNNX_GO_ON;
}

static inline pyrnnx_verdict pyrnnx_barrier_wait(pyrnnx_barrier *barrier) {
    if (barrier->size <= 1) return PYRNNX_GO_ON;
    unsigned round = __atomic_load_n(&barrier->round, __ATOMIC_RELAXED);
    if (__atomic_add_fetch(&barrier->waiting, 1, __ATOMIC_ACQ_REL) == barrier->size) {
        barrier->waiting = 0;
        barrier->verdict = pyrnnx_barrier_verdict(barrier);
        __atomic_store_n(&barrier->round, round + 1, __ATOMIC_RELEASE);
    } else {
        pyrnnx_barrier_wait_for(barrier, round);
    }
    return barrier->verdict;
}

#endif
#endif
