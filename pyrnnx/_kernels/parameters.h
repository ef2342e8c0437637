/* What every engine reads of one direction of a layer; constant while a call runs.

   Shapes: T time steps, N rows of the batch, I input_size, H hidden_size, G gates of the cell (RNN 1, GRU 3, LSTM 4).
 */
#ifndef PYRNNX_PARAMETERS_H
#define PYRNNX_PARAMETERS_H

#include <stddef.h>

#include "tables.h"

/* How W and R are packed: as the element, or (float only) as bfloat16, or as int8 with one scale per gate row. */
enum pyrnnx_weights { PYRNNX_WEIGHTS_FULL, PYRNNX_WEIGHTS_BFLOAT16, PYRNNX_WEIGHTS_INT8, PYRNNX_WEIGHTS_COUNT };

typedef struct {
    int number; /* of its row in tables.h */
    double alpha, beta;
} pyrnnx_activation;

typedef struct {
    int cell, variant;
    int itemsize;     /* of an element: 4 (float) or 8 (double) */
    int weight_dtype; /* PYRNNX_WEIGHTS_* of both W and R */
    double clip;      /* every gate pre-activation stays in [-clip, clip]; INFINITY: no clipping; NaN stays NaN */
    /* RNN f; GRU f for z and r, g for h; LSTM f for i, o, f, g for c, h for the output */
    pyrnnx_activation functions[PYRNNX_MAX_FUNCTIONS];
    ptrdiff_t input_size, hidden_size;
    /* All packed by the engine. */
    const void *W, *R;
    const void *bias;           /* what the projection starts from: Wb + Rb */
    const void *recurrent_bias; /* GRU with linear_before_reset: Rb of gate h, which r multiplies; else NULL */
    const void *peepholes;      /* LSTM: P of gates i, o, f; or NULL */
} pyrnnx_parameters;

#endif
