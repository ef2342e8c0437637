/* y := f(clip(x)) on arrays of float and of double, one loop for each row of tables.h. */
#ifndef PYRNNX_BLAS_ACTIVATIONS_H
#define PYRNNX_BLAS_ACTIVATIONS_H

#include <math.h>

#include "../parameters.h"

#define PX_CAT_(a, b) a##_##b
#define PX_CAT(a, b) PX_CAT_(a, b)
#define NAME(x) PX_CAT(x, REAL)

/* The pointer turns a missing formula into an error of the compiler instead of the linker. */
#define LOOP(function, ...) \
    static void NAME(loop_##function)(REAL alpha, REAL beta, REAL clip, const REAL *x, REAL *y, ptrdiff_t count) { \
        REAL (*const formula)(REAL, REAL, REAL) = NAME(function); \
        for (ptrdiff_t k = 0; k < count; k++) \
            y[k] = formula(x[k] > clip ? clip : x[k] < -clip ? -clip : x[k], alpha, beta); \
    }
#define LIST_LOOP(function, ...) NAME(loop_##function),
#define DEFINE_ACTIVATE \
    PYRNNX_ACTIVATIONS(LOOP) \
    static void (*const NAME(LOOPS)[])(REAL, REAL, REAL, const REAL *, REAL *, \
                                       ptrdiff_t) = {PYRNNX_ACTIVATIONS(LIST_LOOP)}; \
    static inline void NAME(activate)(const pyrnnx_activation *f, double clip, const REAL *x, REAL *y, \
                                      ptrdiff_t count) { \
        NAME(LOOPS)[f->number]((REAL)f->alpha, (REAL)f->beta, (REAL)clip, x, y, count); \
    }

#define REAL float
#define MATH(function) function##f
#include "formulas.h"
DEFINE_ACTIVATE
#undef REAL
#undef MATH

#define REAL double
#define MATH(function) function
#include "formulas.h"
DEFINE_ACTIVATE
#undef REAL
#undef MATH

#undef NAME
#endif
