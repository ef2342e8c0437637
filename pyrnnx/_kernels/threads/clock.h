/* A clock in nanoseconds, monotonic on POSIX. */
#ifndef PYRNNX_CLOCK_H
#define PYRNNX_CLOCK_H

#include <time.h>

enum { PYRNNX_MILLISECOND = 1000000 };

static inline long long pyrnnx_now(void) {
    struct timespec t;
#ifdef _WIN32
    timespec_get(&t, TIME_UTC); /* the C library of Windows has no other clock */
#else
    clock_gettime(CLOCK_MONOTONIC, &t);
#endif
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

#endif
