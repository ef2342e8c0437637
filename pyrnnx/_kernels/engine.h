/* The interface between the time loop and an engine: two products and the gate arithmetic of one time step.

   The loop owns every buffer; rows of a buffer are contiguous and padded: H to Hp, a multiple of `lanes`.
   Units are handed out in blocks of `lanes`, so that threads can share one step; blocks [u0, u1) of different callers
   write different elements. An engine that cannot split a step has `lanes` 0 and is always given all units. */
#ifndef PYRNNX_ENGINE_H
#define PYRNNX_ENGINE_H

#include "cell.h"

typedef struct {
    const char *isa;
    int itemsize;
    int lanes;

    /* gates[rows][G*Hp] = bias + x[rows][I] . W^T; rows of x are ldx elements apart */
    void (*project)(const pyrnnx_cell *cell, ptrdiff_t rows, const void *x, ptrdiff_t ldx, void *gates, ptrdiff_t u0,
                    ptrdiff_t u1);

    /* How many calls of step make one time step; all units pass a phase before any enters the next. */
    int (*phases)(const pyrnnx_cell *cell);

    /* One phase of one time step: h_prev, h_next, c, work [rows][Hp]; h_next is never h_prev. */
    void (*step)(const pyrnnx_cell *cell, int phase, ptrdiff_t rows, void *gates, const void *h_prev, void *c,
                 void *h_next, void *work, ptrdiff_t u0, ptrdiff_t u1);
} pyrnnx_kernels;

#endif
