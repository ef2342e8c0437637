/* Parameters of one direction of a layer, for every engine; constant during a call.

   Shapes: T time steps, N rows of the batch, I input_size, H hidden_size, G gates of the cell (RNN 1, GRU 3, LSTM 4).
 */
#ifndef PYRNNX_PARAMETERS_H
#define PYRNNX_PARAMETERS_H

#include <stddef.h>

#include "tables.h"

/* The types of packed W and R: the element type; or for float also bfloat16, int8 with one scale per gate row, or codes
   of quantized weights, which are multiplied with coded rows. */
enum pyrnnx_weights {
    PYRNNX_WEIGHTS_FULL,
    PYRNNX_WEIGHTS_BFLOAT16,
    PYRNNX_WEIGHTS_INT8,
    PYRNNX_WEIGHTS_CODES,
    PYRNNX_WEIGHTS_COUNT
};

/* The most products of codes, each at most 255 * 255 in magnitude, whose sum is exact in 32 bits. */
enum { PYRNNX_MAX_CODES = 33025 };

/* The ways to multiply codes. A processor that supports one supports those before it; all give the same bits. */
enum pyrnnx_dot { PYRNNX_DOT_PLAIN, PYRNNX_DOT_BYTES, PYRNNX_DOT_MATRICES, PYRNNX_DOT_COUNT };

/* The source of PYRNNX_WEIGHTS_CODES: w = scale (code - zero_point); uint8 codes and zero points are shifted by -128.
 */
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
    int dot;          /* PYRNNX_DOT_*, which also decides the order of coded rows */
    double clip;      /* bounds gate pre-activations to [-clip, clip]; INFINITY: no clipping; NaN stays NaN */
    /* RNN f; GRU f for z and r, g for h; LSTM f for i, o, f, g for c, h for the output */
    pyrnnx_activation functions[PYRNNX_MAX_FUNCTIONS];
    ptrdiff_t input_size, hidden_size;
    /* Arrays packed by the engine. */
    const void *W, *R;
    int finite_R;               /* whether the packed R is known to be finite */
    const void *bias;           /* Wb + Rb, added to the projection */
    const void *recurrent_bias; /* GRU with linear_before_reset: Rb of gate h, which r multiplies; else NULL */
    const void *peepholes;      /* LSTM: P of gates i, o, f; or NULL */
    const void *split_W;        /* W and R for pyrnnx_matrices; NULL until a call needs them */
    const void *split_R;
} pyrnnx_parameters;

#endif
