/* The interface between the time loop and an engine: weights packed once, the projection of X, and one time step.

   The loop owns every buffer. L is the engine's `lanes`; hidden units come in blocks of L, Hp is H rounded up to whole
   blocks, and rows of a buffer are contiguous: states [rows][Hp], gates [rows][G*Hp]. Padded units hold numbers of no
   meaning that nothing reads. Every output element is the same sum in the same order whatever the number of rows and
   the split of units. */
#ifndef PYRNNX_ENGINE_H
#define PYRNNX_ENGINE_H

#include "cell.h"

/* One table per engine, instruction set and element. */
typedef struct {
    const char *isa;
    int itemsize, lanes;
    int formats; /* bit PYRNNX_WEIGHTS_x is set where weights can be packed so */

    int (*gates)(const pyrnnx_cell *); /* G of the gates buffer */
    int (*phases)(
        const pyrnnx_cell *); /* calls of step in one time step; all units pass one before any enters the next */

    /* From contiguous row-major ONNX arrays: W [G*H, I], R [G*H, H], bias [G*H], units [count*H].
       recurrent: 0 for W, 1 for R. Sizes are in bytes. */
    size_t (*packed_size)(const pyrnnx_cell *, int recurrent);
    void (*pack_weights)(const pyrnnx_cell *, int recurrent, const void *source, void *packed);
    void (*pack_bias)(const pyrnnx_cell *, const void *source, void *packed);
    void (*pack_units)(const pyrnnx_cell *, ptrdiff_t count, const void *source, void *packed);

    /* gates[rows][G*Hp] = bias + x[rows][I] . W^T for the blocks u0 <= u < u1; rows of x are ldx elements apart. */
    void (*project)(const pyrnnx_cell *, ptrdiff_t rows, const void *x, ptrdiff_t ldx, void *gates, ptrdiff_t u0,
                    ptrdiff_t u1);

    /* One phase of one time step: from h_prev, c and the projected gates (used up) to h_next and c; never h_next ==
       h_prev. work carries a GRU from phase to phase. */
    void (*step)(const pyrnnx_cell *, int phase, ptrdiff_t rows, void *gates, const void *h_prev, void *c, void *h_next,
                 void *work, ptrdiff_t u0, ptrdiff_t u1);

    /* y = f(x), bounded before to [-clip, clip], by the formulas that gates use; y may be x. */
    void (*activate)(const pyrnnx_activation *f, double clip, const void *x, void *y, ptrdiff_t count);

    int whole; /* whether a step is always taken whole; else threads share it, each with its own blocks [u0, u1) */
    ptrdiff_t max_ldx; /* the largest ldx that project takes; 0: any */
} pyrnnx_kernels;

#endif
