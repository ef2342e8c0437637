/* A barrier that spins, yields the processor when the others are late, and disbands the team when they stay so.

   A member that waits for a thread without a processor loses milliseconds at a time. When such waits are a good part of
   the time since the team began, the barrier tells all members, at the same round, to leave the work to rank 0. */
#ifndef PYRNNX_BARRIER_H
#define PYRNNX_BARRIER_H

typedef struct {
    int size, waiting;
    int disbanded; /* written by the last to arrive, read by all after the round */
    unsigned round;
    long long begin, late; /* nanoseconds: when the team began; sum of the waits of more than a millisecond */
} pyrnnx_barrier;

#ifdef _WIN32 /* every team has one member: see threads.c */

static inline void pyrnnx_barrier_init(pyrnnx_barrier *barrier, int size) { *barrier = (pyrnnx_barrier){.size = size}; }

static inline int pyrnnx_barrier_wait(pyrnnx_barrier *barrier) { return barrier->disbanded; }

#else

#include <sched.h>
#include <time.h>

enum { PYRNNX_SPINS = 2000 /* some 20 to 100 us */, PYRNNX_MILLISECOND = 1000000 };

static inline void pyrnnx_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

static inline long long pyrnnx_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static inline void pyrnnx_barrier_init(pyrnnx_barrier *barrier, int size) {
    *barrier = (pyrnnx_barrier){.size = size, .begin = size > 1 ? pyrnnx_now() : 0};
}

static inline void pyrnnx_barrier_wait_for(pyrnnx_barrier *barrier, unsigned round) {
    for (int spin = 0; spin < PYRNNX_SPINS; spin++) {
        if (__atomic_load_n(&barrier->round, __ATOMIC_ACQUIRE) != round) return;
        pyrnnx_pause();
    }
    long long begin = pyrnnx_now();
    while (__atomic_load_n(&barrier->round, __ATOMIC_ACQUIRE) == round) sched_yield();
    long long waited = pyrnnx_now() - begin;
    if (waited > PYRNNX_MILLISECOND) __atomic_add_fetch(&barrier->late, waited, __ATOMIC_RELAXED);
}

/* Returns whether the team is disbanded. */
static inline int pyrnnx_barrier_wait(pyrnnx_barrier *barrier) {
    if (barrier->size <= 1) return 0;
    unsigned round = __atomic_load_n(&barrier->round, __ATOMIC_RELAXED);
    if (__atomic_add_fetch(&barrier->waiting, 1, __ATOMIC_ACQ_REL) == barrier->size) {
        barrier->waiting = 0;
        long long late = __atomic_load_n(&barrier->late, __ATOMIC_RELAXED);
        barrier->disbanded = late > 2 * PYRNNX_MILLISECOND && 4 * late > pyrnnx_now() - barrier->begin;
        __atomic_store_n(&barrier->round, round + 1, __ATOMIC_RELEASE);
    } else {
        pyrnnx_barrier_wait_for(barrier, round);
    }
    return barrier->disbanded;
}

#endif
#endif
