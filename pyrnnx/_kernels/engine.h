/* The interface between the time loop and an engine: weights packed once, the projection of X, and one time step.

   The loop owns every buffer. L is the engine's `lanes`. The hidden units that one vector holds, L of them, are a unit
   block; Hp is H rounded up to whole unit blocks. Rows of a buffer are contiguous: states [rows][Hp], projected
   [rows][G*Hp]. Padded units hold numbers of no meaning that nothing reads.

   Threads share a step by its unit blocks: each computes the half-open range [u0, u1) of them. Every output element is
   the same sum in the same order whatever the number of rows and the ranges. */
#ifndef PYRNNX_ENGINE_H
#define PYRNNX_ENGINE_H

#include "parameters.h"

/* How rows of float become coded rows: rounded to 8 bits, with one scale and zero point for the range of them all.
   Of weights packed as PYRNNX_WEIGHTS_CODES, project and step take such rows for x (ldx in bytes) and for h_prev. */
typedef struct {
    int (*best_dot)(void); /* the last PYRNNX_DOT_* that the parameters may have; it stands in them before all else */
    size_t (*row_size)(const pyrnnx_parameters *, ptrdiff_t depth); /* bytes of a coded row, and all that project and
                                                                       step leave from one to the next */

    /* range[0] := min(range[0], every finite x), range[1] := max(...); rows of x are ldx elements apart. */
    void (*widen_range)(ptrdiff_t rows, ptrdiff_t depth, const float *x, ptrdiff_t ldx, float *range);
    void (*encode)(const pyrnnx_parameters *, ptrdiff_t rows, ptrdiff_t depth, const float *x, ptrdiff_t ldx,
                   const float *range, void *coded, size_t row_size);
} pyrnnx_coding;

/* One table per engine, instruction set and element. */
typedef struct {
    const char *isa;
    int itemsize, lanes;
    int weight_dtypes; /* bit PYRNNX_WEIGHTS_x is set where weights, given as elements, can be packed so */

    int (*gate_count)(const pyrnnx_parameters *); /* G of the buffer `projected`: without a gate that is computed from
                                                     another one */
    int (*phases)(const pyrnnx_parameters *);     /* calls of step in one time step; all unit blocks pass one before any
                                                     enters the next */

    /* From contiguous row-major ONNX arrays: W [G*H, I], R [G*H, H], bias [G*H], and [count, H] numbers of each unit.
       recurrent: 0 for W, 1 for R. Sizes are in bytes. */
    size_t (*packed_size)(const pyrnnx_parameters *, int recurrent);
    void (*pack_weights)(const pyrnnx_parameters *, int recurrent, const void *source, void *packed);
    void (*pack_bias)(const pyrnnx_parameters *, const void *source, void *packed);
    void (*pack_units)(const pyrnnx_parameters *, ptrdiff_t count, const void *source, void *packed);

    const pyrnnx_coding *coding; /* of an engine that has PYRNNX_WEIGHTS_CODES; else NULL */

    /* projected[rows][G*Hp] = bias + x[rows][I] . W^T for unit blocks [u0, u1); rows of x are ldx elements apart. */
    void (*project)(const pyrnnx_parameters *, ptrdiff_t rows, const void *x, ptrdiff_t ldx, void *projected,
                    ptrdiff_t u0, ptrdiff_t u1);

    /* One phase of one time step for unit blocks [u0, u1): from h_prev, c and projected (used up) to h_next and c;
       never h_next == h_prev. work carries a GRU from phase to phase. */
    void (*step)(const pyrnnx_parameters *, int phase, ptrdiff_t rows, void *projected, const void *h_prev, void *c,
                 void *h_next, void *work, ptrdiff_t u0, ptrdiff_t u1);

    /* y = f(x) for the first of the functions, x clipped before, by the formulas that the gates use; y may be x. */
    void (*activate)(const pyrnnx_parameters *, const void *x, void *y, ptrdiff_t count);

    int whole;         /* whether a step is always taken whole; else threads share it by unit blocks */
    ptrdiff_t max_ldx; /* the largest ldx that project takes; 0: any */
} pyrnnx_kernels;

#endif
