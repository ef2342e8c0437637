/* A team whose members share every step of a task, and the barrier at which they meet.

   The leader begins alone. Followers join when they run, and wait; the leader admits them between two steps, and
   publishes its state for them before. A round of the barrier ends with a verdict. PYRNNX_REGROUP leaves the leader
   alone, and it admits all who joined again, or closes the team: a wait for a thread without a processor costs
   milliseconds.

       leader       alone | admits | step | step, late | closes, alone ...
       follower     joins |        | step | step       | regroup, leaves
 */
#ifndef PYRNNX_BARRIER_H
#define PYRNNX_BARRIER_H

#include <stddef.h>

#include "interrupt.h"

/* The action of a team's members after a round. */
typedef enum {
    PYRNNX_GO_ON,
    PYRNNX_REGROUP, /* followers wait until they are admitted again, or the team is closed */
    PYRNNX_STOPPED  /* all leave */
} pyrnnx_verdict;

typedef struct {
    int size, limit; /* members of a round, and the most of them */
    int waiting;
    unsigned round;
    pyrnnx_verdict verdict;            /* written by the last to arrive, read by all after the round */
    int regroup;                       /* written by the leader: whether the next verdict is PYRNNX_REGROUP */
    int begun;                         /* whether there is a leader, which closes the team at the end */
    int joined, closed;                /* followers that joined; whether they must leave */
    unsigned admission;                /* of the followers below `size`: a count and the size, in one word */
    long long begin, late;             /* nanoseconds: when long waits were last begun to count; their sum */
    const pyrnnx_interrupt *interrupt; /* NULL: the call is never stopped */
} pyrnnx_barrier;

enum {
    PYRNNX_LATE = PYRNNX_MILLISECOND / 4,       /* a long wait */
    PYRNNX_PATIENCE = 20 * PYRNNX_MILLISECOND,  /* after which earlier waits no longer count */
    PYRNNX_JOIN_TIME = PYRNNX_MILLISECOND / 20, /* that a leader waits for workers to wake up */
    PYRNNX_SIZES = 256
};

#if !PYRNNX_HAVE_THREADS /* every team has one member */

enum { PYRNNX_SPINS = 1 };

static inline void pyrnnx_barrier_init(pyrnnx_barrier *barrier, int limit, const pyrnnx_interrupt *interrupt) {
    *barrier = (pyrnnx_barrier){.size = 1, .limit = limit, .interrupt = interrupt};
}
static inline int pyrnnx_barrier_enter(pyrnnx_barrier *barrier, int place, unsigned *seen) {
    (void)barrier, (void)place, (void)seen;
    return 0;
}
static inline void pyrnnx_spin(int spins) { (void)spins; }
static inline void pyrnnx_barrier_begin(pyrnnx_barrier *barrier) { barrier->begun = 1; }
static inline int pyrnnx_barrier_begun(pyrnnx_barrier *barrier) { return barrier->begun; }
static inline int pyrnnx_barrier_joined(pyrnnx_barrier *barrier, int expected) {
    (void)barrier, (void)expected;
    return 0;
}
static inline void pyrnnx_barrier_admit(pyrnnx_barrier *barrier, int joined) { (void)barrier, (void)joined; }
static inline void pyrnnx_barrier_close(pyrnnx_barrier *barrier) { barrier->closed = 1; }
static inline void pyrnnx_barrier_open(pyrnnx_barrier *barrier) { barrier->closed = 0; }
static inline int pyrnnx_barrier_join(pyrnnx_barrier *barrier) { return barrier->limit; }
static inline void pyrnnx_barrier_watch(pyrnnx_barrier *barrier) { (void)barrier; }
static inline void pyrnnx_barrier_waited(pyrnnx_barrier *barrier, long long begin) { (void)barrier, (void)begin; }
static inline long long pyrnnx_barrier_late(pyrnnx_barrier *barrier) {
    (void)barrier;
    return 0;
}
static inline pyrnnx_verdict pyrnnx_barrier_wait(pyrnnx_barrier *barrier) { return barrier->verdict; }

#else

enum { PYRNNX_SPINS = 2000 /* about 20 to 100 us */, PYRNNX_LEADER_SPINS = 10 * PYRNNX_SPINS };

static inline void pyrnnx_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

/* Pause in a loop that waits; from PYRNNX_SPINS repetitions on, let other threads run. */
static inline void pyrnnx_spin(int spins) {
    if (spins < PYRNNX_SPINS)
        pyrnnx_pause();
    else
        pyrnnx_yield();
}

static inline void pyrnnx_barrier_init(pyrnnx_barrier *barrier, int limit, const pyrnnx_interrupt *interrupt) {
    *barrier = (pyrnnx_barrier){.size = 1, .limit = limit, .interrupt = interrupt};
}

/* Let followers join. */
static inline void pyrnnx_barrier_begin(pyrnnx_barrier *barrier) { PYRNNX_STORE(&barrier->begun, 1); }

/* Return whether there is a leader; wait for it, but not long: its thread may have to run this one's task first. */
static inline int pyrnnx_barrier_begun(pyrnnx_barrier *barrier) {
    for (int spin = 0; spin < PYRNNX_LEADER_SPINS && !PYRNNX_LOAD(&barrier->begun); spin++) pyrnnx_spin(spin);
    return PYRNNX_LOAD(&barrier->begun);
}

/* Join as a follower; return its place, from 1 on, and from the team's limit on if there is none. */
static inline int pyrnnx_barrier_join(pyrnnx_barrier *barrier) {
    return __atomic_add_fetch(&barrier->joined, 1, __ATOMIC_ACQ_REL);
}

/* Wait until the leader admits the follower; return 0 if the follower must leave. `seen` is its last admission, or 0.
 */
static inline int pyrnnx_barrier_enter(pyrnnx_barrier *barrier, int place, unsigned *seen) {
    for (int spin = 0; place < barrier->limit; spin++) {
        int closed = PYRNNX_LOAD(&barrier->closed); /* before the admission: the leader waits for all it admitted */
        unsigned admission = __atomic_load_n(&barrier->admission, __ATOMIC_ACQUIRE);
        if (admission != *seen && place < (int)(admission % PYRNNX_SIZES)) {
            *seen = admission;
            return 1;
        }
        if (closed) return 0;
        pyrnnx_spin(spin);
    }
    return 0;
}

/* Begin to count long waits. */
static inline void pyrnnx_barrier_watch(pyrnnx_barrier *barrier) {
    barrier->begin = pyrnnx_now();
    __atomic_store_n(&barrier->late, 0, __ATOMIC_RELAXED); /* a late member may still add to it */
}

/* Count the wait of a member since `begin` if it was long. */
static inline void pyrnnx_barrier_waited(pyrnnx_barrier *barrier, long long begin) {
    long long waited = pyrnnx_now() - begin;
    if (waited > PYRNNX_LATE) __atomic_add_fetch(&barrier->late, waited, __ATOMIC_RELAXED);
}

/* Return how many followers there are; wait for more, but not long, while they are fewer than expected. */
static inline int pyrnnx_barrier_joined(pyrnnx_barrier *barrier, int expected) {
    int joined = PYRNNX_LOAD(&barrier->joined);
    for (long long end = expected ? pyrnnx_now() + PYRNNX_JOIN_TIME : 0; joined < expected && pyrnnx_now() < end;) {
        pyrnnx_pause();
        joined = PYRNNX_LOAD(&barrier->joined);
    }
    return joined < barrier->limit ? joined : barrier->limit - 1;
}

/* Admit the first followers to the next step of the leader, which is alone and has published its state. */
static inline void pyrnnx_barrier_admit(pyrnnx_barrier *barrier, int joined) {
    unsigned count = barrier->admission / PYRNNX_SIZES + 1;
    barrier->size = joined + 1;
    barrier->regroup = 0;
    pyrnnx_barrier_watch(barrier);
    __atomic_store_n(&barrier->admission, count * PYRNNX_SIZES + (unsigned)barrier->size, __ATOMIC_RELEASE);
}

static inline void pyrnnx_barrier_close(pyrnnx_barrier *barrier) { PYRNNX_STORE(&barrier->closed, 1); }

/* Open a closed team again, which all followers have left. */
static inline void pyrnnx_barrier_open(pyrnnx_barrier *barrier) {
    barrier->joined = 0;
    barrier->admission -= barrier->admission % PYRNNX_SIZES;
    PYRNNX_STORE(&barrier->closed, 0);
}

/* Return the nanoseconds of long waits since they are counted if these are much of the time, else 0. */
static inline long long pyrnnx_barrier_late(pyrnnx_barrier *barrier) {
    long long late = __atomic_load_n(&barrier->late, __ATOMIC_RELAXED);
    if (late == 0) return 0;
    long long time = pyrnnx_now() - barrier->begin;
    if (4 * late > time) return late;
    if (time > PYRNNX_PATIENCE) {
        barrier->begin += time;
        __atomic_store_n(&barrier->late, 0, __ATOMIC_RELAXED);
    }
    return 0;
}

static inline void pyrnnx_barrier_wait_for(pyrnnx_barrier *barrier, unsigned round) {
    for (int spin = 0; spin < PYRNNX_SPINS; spin++) {
        if (__atomic_load_n(&barrier->round, __ATOMIC_ACQUIRE) != round) return;
        pyrnnx_pause();
    }
    long long begin = pyrnnx_now();
    while (__atomic_load_n(&barrier->round, __ATOMIC_ACQUIRE) == round) pyrnnx_yield();
    pyrnnx_barrier_waited(barrier, begin);
}

static inline pyrnnx_verdict pyrnnx_barrier_verdict(const pyrnnx_barrier *barrier) {
    if (barrier->interrupt != NULL && PYRNNX_LOAD(&barrier->interrupt->stop)) return PYRNNX_STOPPED;
    return barrier->regroup ? PYRNNX_REGROUP : PYRNNX_GO_ON;
}

static inline pyrnnx_verdict pyrnnx_barrier_wait(pyrnnx_barrier *barrier) {
    unsigned round = __atomic_load_n(&barrier->round, __ATOMIC_RELAXED);
    int size = barrier->size; /* which may change once all have arrived */
    if (__atomic_add_fetch(&barrier->waiting, 1, __ATOMIC_ACQ_REL) == size) {
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
