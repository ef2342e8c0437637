/* Interrupts of a call: the caller's thread polls a check, and all threads of the call read its result. */
#ifndef PYRNNX_INTERRUPT_H
#define PYRNNX_INTERRUPT_H

#include "clock.h"

enum { PYRNNX_CHECK_INTERVAL = 40 * PYRNNX_MILLISECOND };

typedef struct {
    int (*check)(void); /* returns whether to stop; called only by the caller's thread, once every CHECK_INTERVAL */
    long long due;      /* nanoseconds: time of the next check */
    int stop;           /* written by the caller's thread, read by all */
} pyrnnx_interrupt;

static inline void pyrnnx_interrupt_init(pyrnnx_interrupt *interrupt, int (*check)(void)) {
    *interrupt = (pyrnnx_interrupt){.check = check, .due = pyrnnx_now() + PYRNNX_CHECK_INTERVAL};
}

/* Return whether the call must stop. */
static inline int pyrnnx_interrupt_poll(pyrnnx_interrupt *interrupt, int is_caller) {
    if (is_caller && !interrupt->stop && pyrnnx_now() >= interrupt->due) {
        if (interrupt->check()) PYRNNX_STORE(&interrupt->stop, 1);
        interrupt->due = pyrnnx_now() + PYRNNX_CHECK_INTERVAL; /* after the check: it may have waited for the GIL */
    }
    return PYRNNX_LOAD(&interrupt->stop);
}

#endif
