/* The tables of activation functions and cells, one row each.

   The enums, the dispatch of every engine and Python's tables (engines.pyx) are generated from these rows. A row
   without a formula in simd/functions.h and blas/formulas.h, or without its cell's file in simd/, does not compile. A
   cell without a step in blas/ fails when that engine is loaded. */
#ifndef PYRNNX_TABLES_H
#define PYRNNX_TABLES_H

#include <math.h>

/* Defaults of alpha or beta that are no numbers: the parameter is required, or the function has no such parameter. */
#define PYRNNX_REQUIRED NAN
#define PYRNNX_ABSENT INFINITY

/* ROW(name, formula as in the operator texts, defaults of alpha and beta as in the ONNX operator of that name) */
#define PYRNNX_ACTIVATIONS(ROW) \
    ROW(Relu, "max(0, x)", PYRNNX_ABSENT, PYRNNX_ABSENT) \
    ROW(Tanh, "(1 - e^{-2x})/(1 + e^{-2x})", PYRNNX_ABSENT, PYRNNX_ABSENT) \
    ROW(Sigmoid, "1/(1 + e^{-x})", PYRNNX_ABSENT, PYRNNX_ABSENT) \
    ROW(Affine, "alpha*x + beta", 1.0, 0.0) \
    ROW(LeakyRelu, "x if x >= 0 else alpha*x", 0.01, PYRNNX_ABSENT) \
    ROW(ThresholdedRelu, "x if x >= alpha else 0", 1.0, PYRNNX_ABSENT) \
    ROW(ScaledTanh, "alpha*Tanh(beta*x)", PYRNNX_REQUIRED, PYRNNX_REQUIRED) \
    ROW(HardSigmoid, "min(max(alpha*x + beta, 0), 1)", 0.2, 0.5) \
    ROW(Elu, "x if x >= 0 else alpha*(e^x - 1)", 1.0, PYRNNX_ABSENT) \
    ROW(Softsign, "x/(1 + |x|)", PYRNNX_ABSENT, PYRNNX_ABSENT) \
    ROW(Softplus, "log(1 + e^x)", PYRNNX_ABSENT, PYRNNX_ABSENT)

/* The variant of its cell's equations that a layer computes. */
enum pyrnnx_variant {
    PYRNNX_PLAIN,
    PYRNNX_LINEAR_BEFORE_RESET, /* GRU: r multiplies Ht-1.Rh^T + Rbh, not Ht-1 */
    PYRNNX_COUPLED_FORGET,      /* LSTM: f = 1 - i, weights of f unused */
    PYRNNX_COUPLED_INPUT,       /* LSTM: i = 1 - f, weights of i unused */
    PYRNNX_VARIANT_COUNT
};
#define PYRNNX_HAS(variant) (1 << PYRNNX_##variant)

/* ROW(name, gates in ONNX order, bits of its variants, whether it has a cell state, default activations f, g, h...) */
#define PYRNNX_CELLS(ROW) \
    ROW(RNN, "i", PYRNNX_HAS(PLAIN), 0, PYRNNX_Tanh) \
    ROW(GRU, "zrh", PYRNNX_HAS(PLAIN) | PYRNNX_HAS(LINEAR_BEFORE_RESET), 0, PYRNNX_Sigmoid, PYRNNX_Tanh) \
    ROW(LSTM, "iofc", PYRNNX_HAS(PLAIN) | PYRNNX_HAS(COUPLED_FORGET) | PYRNNX_HAS(COUPLED_INPUT), 1, PYRNNX_Sigmoid, \
        PYRNNX_Tanh, PYRNNX_Tanh)

enum { PYRNNX_MAX_GATES = 4, PYRNNX_MAX_FUNCTIONS = 3 /* activations of one direction */ };

#define PYRNNX_NUMBER(name, ...) PYRNNX_##name,
enum pyrnnx_activation_number { PYRNNX_ACTIVATIONS(PYRNNX_NUMBER) PYRNNX_ACTIVATION_COUNT };
enum pyrnnx_cell { PYRNNX_CELLS(PYRNNX_NUMBER) PYRNNX_CELL_COUNT };

typedef struct {
    const char *name, *formula;
    double alpha, beta;
} pyrnnx_activation_row;

typedef struct {
    const char *name, *gates;
    int gate_count, variants, has_cell_state;
    int function_count, functions[PYRNNX_MAX_FUNCTIONS];
} pyrnnx_cell_row;

#define PYRNNX_ACTIVATION_ROW(name, formula, alpha, beta) {#name, formula, alpha, beta},
static const pyrnnx_activation_row PYRNNX_ACTIVATION_ROWS[] = {PYRNNX_ACTIVATIONS(PYRNNX_ACTIVATION_ROW)};

#define PYRNNX_CELL_ROW(name, gates, variants, has_cell_state, ...) \
    {#name,        gates, sizeof gates - 1, variants, has_cell_state, sizeof((int[]){__VA_ARGS__}) / sizeof(int), \
     {__VA_ARGS__}},
static const pyrnnx_cell_row PYRNNX_CELL_ROWS[] = {PYRNNX_CELLS(PYRNNX_CELL_ROW)};

#endif
