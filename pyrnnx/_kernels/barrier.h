/* A barrier that spins, yields the processor when the others are late, and disbands the team when they stay so.

   A member that waits for a thread without a processor loses milliseconds at every time step; after two such waits the
   barrier tells all members, at the same round, to leave the work to rank 0. */
#ifndef PYRNNX_BARRIER_H
#define PYRNNX_BARRIER_H

typedef struct {
    int size, waiting;
    int late;      /* waits of more than a millisecond */
    int disbanded; /* written by the last to arrive, read by all after the round */
    unsigned round;
} pyrnnx_barrier;

static inline void pyrnnx_barrier_init(pyrnnx_barrier *barrier, int size) {
    barrier->size = size;
    barrier->waiting = barrier->late = barrier->disbanded = 0;
    barrier->round = 0;
}

#ifdef _WIN32 /* every team has one member: see threads.c */

static inline int pyrnnx_barrier_wait(pyrnnx_barrier *barrier) { return barrier->disbanded; }

#else

#include <sched.h>
#include <time.h>

enum { PYRNNX_SPINS = 2000 /* some 20 to 100 us */, PYRNNX_LATE_NS = 1000000, PYRNNX_LATE_WAITS = 2 };

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

static inline void pyrnnx_barrier_linger(pyrnnx_barrier *barrier, unsigned round) {
    for (int spin = 0; spin < PYRNNX_SPINS; spin++) {
        if (__atomic_load_n(&barrier->round, __ATOMIC_ACQUIRE) != round) return;
        pyrnnx_pause();
    }
    long long begin = pyrnnx_now();
    while (__atomic_load_n(&barrier->round, __ATOMIC_ACQUIRE) == round) sched_yield();
    if (pyrnnx_now() - begin > PYRNNX_LATE_NS) __atomic_add_fetch(&barrier->late, 1, __ATOMIC_RELAXED);
}

/* Returns whether the team is disbanded. */
static inline int pyrnnx_barrier_wait(pyrnnx_barrier *barrier) {
    if (barrier->size <= 1) return 0;
    unsigned round = __atomic_load_n(&barrier->round, __ATOMIC_RELAXED);
    if (__atomic_add_fetch(&barrier->waiting, 1, __ATOMIC_ACQ_REL) == barrier->size) {
        barrier->waiting = 0;
        barrier->disbanded = __atomic_load_n(&barrier->late, __ATOMIC_RELAXED) >= PYRNNX_LATE_WAITS;
        __atomic_store_n(&barrier->round, round + 1, __ATOMIC_RELEASE);
    } else {
        pyrnnx_barrier_linger(barrier, round);
    }
    return barrier->disbanded;
}

#endif
#endif
