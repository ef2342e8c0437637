/* What every engine reads of one direction of a layer; constant while a call runs.

   Shapes: T time steps, N rows of the batch, I input_size, H hidden_size, G gates of the cell (RNN 1, GRU 3, LSTM 4).
 */
#ifndef PYRNNX_PARAMETERS_H
#define PYRNNX_PARAMETERS_H

#include <stddef.h>

#include "tables.h"

/* How W and R are packed: as the element, or (float only) as bfloat16, or as int8 with one scale per gate row, or as
   the codes of quantized weights, which are multiplied with coded rows. */
enum pyrnnx_weights {
    PYRNNX_WEIGHTS_FULL,
    PYRNNX_WEIGHTS_BFLOAT16,
    PYRNNX_WEIGHTS_INT8,
    PYRNNX_WEIGHTS_CODES,
    PYRNNX_WEIGHTS_COUNT
};

/* Most terms of a sum of products of codes, each below 255 * 255 in magnitude, that is exact in 32 bits. */
enum { PYRNNX_MAX_CODES = 33025 };

/* The processor's ways to multiply codes; one that has a way has those before it. All give the same bits. */
enum pyrnnx_dot { PYRNNX_DOT_PAIRS, PYRNNX_DOT_BYTES, PYRNNX_DOT_MATRICES, PYRNNX_DOT_COUNT };

/* What is packed as PYRNNX_WEIGHTS_CODES: w = scale (code - zero_point), of uint8 both minus 128. */
typedef struct {
    const signed char *codes; /* [G*H, K] */
    const float *scale;       /* [G*H] */
    const int *zero_point;    /* [G*H], -128 to 127 */
} pyrnnx_quantized_weights;

typedef struct {
    int number; /* of its row in tables.h */
    double alpha, beta;
} pyrnnx_activation;

typedef struct {
    int cell, variant;
    int itemsize;     /* of an element: 4 (float) or 8 (double) */
    int weight_dtype; /* PYRNNX_WEIGHTS_* of both W and R */
    int dot;          /* PYRNNX_DOT_*: what multiplies codes, and so how rows are coded */
    double clip;      /* every gate pre-activation stays in [-clip, clip]; INFINITY: no clipping; NaN stays NaN */
    /* RNN f; GRU f for z and r, g for h; LSTM f for i, o, f, g for c, h for the output */
    pyrnnx_activation functions[PYRNNX_MAX_FUNCTIONS];
    ptrdiff_t input_size, hidden_size;
    /* All packed by the engine. */
    const void *W, *R;
    int finite_R;               /* whether R, as it is packed, is known to hold neither infinities nor NaNs */
    const void *bias;           /* what the projection starts from: Wb + Rb */
    const void *recurrent_bias; /* GRU with linear_before_reset: Rb of gate h, which r multiplies; else NULL */
    const void *peepholes;      /* LSTM: P of gates i, o, f; or NULL */
    const void *split_W;        /* W and R once more, for pyrnnx_matrices; NULL where no call has wanted them */
    const void *split_R;
} pyrnnx_parameters;

#endif
