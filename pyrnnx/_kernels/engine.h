/* The interface between the time loop and an engine: weights packed once, the projection of X, and one time step.

   The loop owns every buffer. L is the engine's `lanes`. The hidden units that one vector holds, L of them, are a unit
   block; Hp is H rounded up to whole unit blocks. Rows of a buffer are contiguous: states [rows][Hp], projected
   [rows][G*Hp]. Padded units hold numbers of no meaning that nothing reads.

   Threads share a step by its unit blocks: each computes the half-open range [u0, u1) of them. Every output element is
   the same sum in the same order whatever the number of rows and the ranges. (pyrnnx_matrices sum in another.) */
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

/* One time step of some rows, for the unit blocks [u0, u1). */
typedef struct {
    ptrdiff_t number, rows; /* number: how many steps of these rows went before */
    void *projected;        /* used up */
    const void *h_prev;
    void *c, *h_next; /* never h_next == h_prev */
    void *work;       /* carries a GRU from phase to phase */
    ptrdiff_t u0, u1;
    int h_is_zero; /* all of h_prev, and R is finite: then the product with R is zero, too */
} pyrnnx_step;

/* Products of many rows by the processor's matrices. Rows of x, or states, are first split into parts that the matrices
   take: by all threads that share a product, each some of the rows, before any of them multiplies. A row's bits depend
   on no other row, but differ from those of project and step of the kernels. */
typedef struct {
    int (*pays)(const pyrnnx_parameters *); /* whether that is faster than without, from PYRNNX_MATRIX_ROWS rows on */

    /* The weights for it, made of those already packed; recurrent and size as of the kernels. pack_weights returns
       whether they can be: all are finite and not huge. */
    size_t (*packed_size)(const pyrnnx_parameters *, int recurrent);
    int (*pack_weights)(const pyrnnx_parameters *, int recurrent, void *packed);

    size_t (*split_size)(const pyrnnx_parameters *, ptrdiff_t rows, ptrdiff_t depth); /* bytes of so many rows */
    void (*split)(const pyrnnx_parameters *, ptrdiff_t rows, ptrdiff_t begin, ptrdiff_t end, ptrdiff_t depth,
                  const float *x, ptrdiff_t ldx, void *split); /* the rows [begin, end) of so many */

    /* As those of the kernels, with x, or the states of the phase, split, too. */
    void (*project)(const pyrnnx_parameters *, ptrdiff_t rows, const void *x, ptrdiff_t ldx, const void *split,
                    void *projected, ptrdiff_t u0, ptrdiff_t u1);
    void (*step)(const pyrnnx_parameters *, int phase, const pyrnnx_step *, const void *split);
} pyrnnx_matrices;

/* Rows of the whole call from which on matrices multiply: of all time steps for X, of a time step for its states. */
enum { PYRNNX_MATRIX_ROWS = 16 };

/* One table per engine, instruction set and element. */
typedef struct {
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

    const pyrnnx_coding *coding;     /* of an engine that has PYRNNX_WEIGHTS_CODES; else NULL */
    const pyrnnx_matrices *matrices; /* or NULL; to be used of instruction sets that are named for them alone */

    /* projected[rows][G*Hp] = bias + x[rows][I] . W^T for unit blocks [u0, u1); rows of x are ldx elements apart. */
    void (*project)(const pyrnnx_parameters *, ptrdiff_t rows, const void *x, ptrdiff_t ldx, void *projected,
                    ptrdiff_t u0, ptrdiff_t u1);

    /* One phase of a time step: from h_prev, c and projected to h_next and c. */
    void (*step)(const pyrnnx_parameters *, int phase, const pyrnnx_step *);

    /* storage.h as this instruction set compiles it. */
    void (*widen)(int storage, size_t itemsize, const char *source, void *row, ptrdiff_t n);
    void (*narrow)(int storage, size_t itemsize, const void *row, char *target, ptrdiff_t n);
    /* Time steps of one row, all unit blocks and phases of each: from projected [count][G*Hp] (used up), h and c to h
       and c; each Ht goes to y, too, y_time bytes from step to step and without padding. Returns 0, with nothing done,
       for a layer that is better taken by step; NULL: every layer is. */
    int (*steps)(const pyrnnx_parameters *, ptrdiff_t count, void *projected, void *h, void *c, void *y,
                 ptrdiff_t y_time);

    /* y = f(x) for the first of the functions, x clipped before, by the formulas that the gates use; y may be x. */
    void (*activate)(const pyrnnx_parameters *, const void *x, void *y, ptrdiff_t count);

    int whole;         /* whether a step is always taken whole; else threads share it by unit blocks */
    ptrdiff_t max_ldx; /* the largest ldx that project takes; 0: any */
} pyrnnx_kernels;

#endif
