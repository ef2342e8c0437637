/* What every engine reads of a layer, and what the time loop asks of an engine.

   Shapes: T time steps, N rows of the batch, I input_size, H hidden_size, G gates of the cell (RNN 1, GRU 3, LSTM 4). */
#ifndef PYRNNX_CELL_H
#define PYRNNX_CELL_H

#include <stddef.h>

/* The order is the one of the table in pyrnnx/op.py. */
enum pyrnnx_function {
    PYRNNX_RELU,
    PYRNNX_TANH,
    PYRNNX_SIGMOID,
    PYRNNX_AFFINE,
    PYRNNX_LEAKY_RELU,
    PYRNNX_THRESHOLDED_RELU,
    PYRNNX_SCALED_TANH,
    PYRNNX_HARD_SIGMOID,
    PYRNNX_ELU,
    PYRNNX_SOFTSIGN,
    PYRNNX_SOFTPLUS
};

enum pyrnnx_cell_type { PYRNNX_RNN, PYRNNX_GRU, PYRNNX_LSTM };

typedef struct {
    int kind;
    double alpha, beta;
} pyrnnx_activation;

/* One direction of one layer; constant while a call runs. */
typedef struct {
    int cell;
    int linear_before_reset, input_forget;
    double clip; /* INFINITY: no clipping */
    pyrnnx_activation f, g, h;
    ptrdiff_t input_size, hidden_size;
    const void *W, *R;           /* in the engine's form */
    const void *bias;            /* what the projection starts from: Wb + Rb, in the engine's column order */
    const void *recurrent_bias;  /* GRU with linear_before_reset: Rb of gate h, which r multiplies; else NULL */
    const void *peepholes;       /* LSTM: P of gates i, o, f; or NULL */
} pyrnnx_cell;

#endif
