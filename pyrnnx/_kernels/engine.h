/* The interface between the time loop and an engine: packing of weights, the projection of X, and one time step.

   The loop owns every buffer. L is the engine's `lanes`. A unit block is L hidden units, one vector; Hp is H rounded up
   to whole unit blocks. Rows of a buffer are contiguous: states [rows][Hp], projected [rows][G*Hp]. Padded units are
   arbitrary and never read.

   Threads share a step by unit blocks: each computes the half-open range [u0, u1). The order of an element's sum
   depends neither on the number of rows nor on the ranges, but pyrnnx_matrices use another order. */
#ifndef PYRNNX_ENGINE_H
#define PYRNNX_ENGINE_H

#include "parameters.h"

/* Functions that round rows of float to coded rows of 8 bits, with one scale and zero point for all rows. With weights
   packed as PYRNNX_WEIGHTS_CODES, x (ldx in bytes) and h_prev of project and step are coded rows. */
typedef struct {
    int (*best_dot)(void); /* the last PYRNNX_DOT_* that parameters may have; parameters get it before anything else */
    size_t (*row_size)(const pyrnnx_parameters *, ptrdiff_t depth); /* bytes from one coded row to the next */

    /* range[0] := min(range[0], every finite x), range[1] := max(...); rows of x are ldx elements apart. */
    void (*widen_range)(ptrdiff_t rows, ptrdiff_t depth, const float *x, ptrdiff_t ldx, float *range);
    void (*encode)(const pyrnnx_parameters *, ptrdiff_t rows, ptrdiff_t depth, const float *x, ptrdiff_t ldx,
                   const float *range, void *coded, size_t row_size);
} pyrnnx_coding;

/* One time step of a row block, for the unit blocks [u0, u1). */
typedef struct {
    ptrdiff_t number, rows; /* number: how many steps of these rows were run before */
    void *projected;        /* overwritten */
    const void *h_prev;
    void *c, *h_next; /* never h_next == h_prev */
    void *work;       /* a GRU's values from phase to phase */
    ptrdiff_t u0, u1;
    int h_is_zero; /* h_prev is zero and R finite, so their product is zero */
} pyrnnx_step;

/* Products of many rows by the processor's matrices. Threads that share a product first split all rows of x or states
   into parts for the matrices, each thread a range of rows. A row's bits depend on no other row, but differ from the
   results of the kernels' project and step. */
typedef struct {
    int (*pays)(const pyrnnx_parameters *); /* whether matrices are faster, from PYRNNX_MATRIX_ROWS rows on */

    /* Pack weights again, from the packed ones; arguments and sizes as in pyrnnx_kernels. pack_weights returns 0 if a
       weight is huge or not finite. */
    size_t (*packed_size)(const pyrnnx_parameters *, int recurrent);
    int (*pack_weights)(const pyrnnx_parameters *, int recurrent, void *packed);

    size_t (*split_size)(const pyrnnx_parameters *, ptrdiff_t rows, ptrdiff_t depth); /* bytes of split rows */
    void (*split)(const pyrnnx_parameters *, ptrdiff_t rows, ptrdiff_t begin, ptrdiff_t end, ptrdiff_t depth,
                  const float *x, ptrdiff_t ldx, void *split); /* split the rows [begin, end) */

    /* project and step of the kernels, which also take x, or the states of the phase, as split rows. */
    void (*project)(const pyrnnx_parameters *, ptrdiff_t rows, const void *x, ptrdiff_t ldx, const void *split,
                    void *projected, ptrdiff_t u0, ptrdiff_t u1);
    void (*step)(const pyrnnx_parameters *, int phase, const pyrnnx_step *, const void *split);
} pyrnnx_matrices;

/* Matrices multiply X, or states, from this number of rows on: of the whole call for X, of a time step for states. */
enum { PYRNNX_MATRIX_ROWS = 16 };

/* One table per engine, instruction set and element. */
typedef struct {
    int itemsize, lanes;
    int weight_dtypes; /* bit PYRNNX_WEIGHTS_x: weights of the element type can be packed so */

    int (*gate_count)(const pyrnnx_parameters *); /* G of the buffer `projected`, which excludes coupled gates */
    int (*phases)(const pyrnnx_parameters *);     /* calls of step in one time step; all unit blocks complete a phase
                                                     before the next begins */

    /* Pack contiguous row-major ONNX arrays: W [G*H, I], R [G*H, H], bias [G*H], and [count, H] numbers of each unit.
       recurrent: 0 for W, 1 for R. Sizes are in bytes. */
    size_t (*packed_size)(const pyrnnx_parameters *, int recurrent);
    void (*pack_weights)(const pyrnnx_parameters *, int recurrent, const void *source, void *packed);
    void (*pack_bias)(const pyrnnx_parameters *, const void *source, void *packed);
    void (*pack_units)(const pyrnnx_parameters *, ptrdiff_t count, const void *source, void *packed);

    const pyrnnx_coding *coding;     /* NULL without PYRNNX_WEIGHTS_CODES */
    const pyrnnx_matrices *matrices; /* or NULL; used only by the instruction sets amx and amx_model */

    /* projected[rows][G*Hp] = bias + x[rows][I] . W^T for unit blocks [u0, u1); rows of x are ldx elements apart. */
    void (*project)(const pyrnnx_parameters *, ptrdiff_t rows, const void *x, ptrdiff_t ldx, void *projected,
                    ptrdiff_t u0, ptrdiff_t u1);

    /* One phase of a time step: from h_prev, c and projected to h_next and c. */
    void (*step)(const pyrnnx_parameters *, int phase, const pyrnnx_step *);

    /* storage.h, compiled for this instruction set. */
    void (*widen)(int storage, size_t itemsize, const char *source, void *row, ptrdiff_t n);
    void (*narrow)(int storage, size_t itemsize, const void *row, char *target, ptrdiff_t n);
    /* Run `count` time steps of one row, with all unit blocks and phases: overwrite projected [count][G*Hp], h and c,
       and write each Ht to y without padding, y_time bytes from step to step. Return 0 and do nothing if step is better
       for the layer; NULL: it always is. */
    int (*steps)(const pyrnnx_parameters *, ptrdiff_t count, void *projected, void *h, void *c, void *y,
                 ptrdiff_t y_time);

    int whole;         /* whether one thread runs a whole step; else threads share it by unit blocks */
    ptrdiff_t max_ldx; /* the largest ldx that project accepts; 0: any */
} pyrnnx_kernels;

#endif
