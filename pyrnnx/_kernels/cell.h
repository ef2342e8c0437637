/* What every engine reads of a layer, and what the time loop asks of an engine.

   Shapes: T time steps, N rows of the batch, I input_size, H hidden_size, G gates of the cell (RNN 1, GRU 3, LSTM 4).
 */
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

/* Of an LSTM with input_forget: the gate that is 1 - the other one, its own weights unused. */
enum pyrnnx_coupling { PYRNNX_UNCOUPLED, PYRNNX_COUPLED_FORGET /* f = 1 - i */, PYRNNX_COUPLED_INPUT /* i = 1 - f */ };

/* How W and R are packed: as the element, or (float only) as bfloat16, or as int8 with one scale per gate row. */
enum pyrnnx_weights { PYRNNX_WEIGHTS_FULL, PYRNNX_WEIGHTS_BFLOAT16, PYRNNX_WEIGHTS_INT8 };

typedef struct {
    int kind;
    double alpha, beta;
} pyrnnx_activation;

/* One direction of one layer; constant while a call runs. */
typedef struct {
    int cell;
    int linear_before_reset;
    int coupling; /* PYRNNX_UNCOUPLED, PYRNNX_COUPLED_* */
    int weights;  /* PYRNNX_WEIGHTS_* of both W and R */
    double clip;  /* every gate pre-activation stays in [-clip, clip]; INFINITY: no clipping; NaN stays NaN */
    pyrnnx_activation f, g, h; /* RNN f; GRU f for z and r, g for h; LSTM f for i, o, f, g for c, h for the output */
    ptrdiff_t input_size, hidden_size;
    /* All packed by the engine. */
    const void *W, *R;
    const void *bias;           /* what the projection starts from: Wb + Rb */
    const void *recurrent_bias; /* GRU with linear_before_reset: Rb of gate h, which r multiplies; else NULL */
    const void *peepholes;      /* LSTM: P of gates i, o, f; or NULL */
} pyrnnx_cell;

#endif
