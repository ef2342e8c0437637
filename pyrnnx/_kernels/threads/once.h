/* Work that one thread does once while others wait.

   A forked child may lack the parent's thread that was doing the work, so the child begins again. */
#ifndef PYRNNX_ONCE_H
#define PYRNNX_ONCE_H

#include "system.h"

typedef struct {
    long state; /* PYRNNX_ONCE_NEW or _DONE, or the id of the process doing the work */
} pyrnnx_once;

enum { PYRNNX_ONCE_NEW = 0, PYRNNX_ONCE_DONE = -1 };

#if !PYRNNX_HAVE_THREADS /* no engine there has such work */

static inline int pyrnnx_once_done(const pyrnnx_once *once) { return once->state == PYRNNX_ONCE_DONE; }
static inline int pyrnnx_once_begin(pyrnnx_once *once) { return !pyrnnx_once_done(once); }
static inline void pyrnnx_once_end(pyrnnx_once *once, int done) {
    once->state = done ? PYRNNX_ONCE_DONE : PYRNNX_ONCE_NEW;
}

#else

static inline int pyrnnx_once_done(const pyrnnx_once *once) {
    return __atomic_load_n(&once->state, __ATOMIC_ACQUIRE) == PYRNNX_ONCE_DONE;
}

/* Return 1 if the caller must do the work and then call pyrnnx_once_end; 0, possibly after waiting, if it is done. */
static inline int pyrnnx_once_begin(pyrnnx_once *once) {
    long process = pyrnnx_process();
    for (;;) {
        long state = __atomic_load_n(&once->state, __ATOMIC_ACQUIRE);
        if (state == PYRNNX_ONCE_DONE) return 0;
        if (state == process)
            pyrnnx_nap();
        else if (__atomic_compare_exchange_n(&once->state, &state, process, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return 1;
    }
}

/* End the work; if it is not done, the next thread begins it again. */
static inline void pyrnnx_once_end(pyrnnx_once *once, int done) {
    __atomic_store_n(&once->state, done ? PYRNNX_ONCE_DONE : PYRNNX_ONCE_NEW, __ATOMIC_RELEASE);
}

#endif
#endif
