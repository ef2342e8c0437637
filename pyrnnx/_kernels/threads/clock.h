/* A monotonic clock in nanoseconds. */
#ifndef PYRNNX_CLOCK_H
#define PYRNNX_CLOCK_H

#include "system.h"

enum { PYRNNX_MILLISECOND = 1000000 };

static inline long long pyrnnx_now(void) {
#ifdef _WIN32
    LARGE_INTEGER count, per_second;
    QueryPerformanceCounter(&count);
    QueryPerformanceFrequency(&per_second);
    return (long long)((double)count.QuadPart / (double)per_second.QuadPart * 1e9);
#else
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
#endif
}

#endif
