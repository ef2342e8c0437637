/* Random layers, packed by the kernels, and a plain reference in double. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "simd/simd.h"
#include "storage.h"

enum { STEPS = 4, MAX_H = 67, MAX_I = 70, MAX_ROWS = 13 };

static double uniform(double low, double high) {
    static unsigned long long state = 88172645463325252ULL; /* xorshift64 */
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return low + (high - low) * ((double)(state >> 11) * 0x1p-53);
}

static void *room(size_t size) { /* zeros, aligned as the kernels' buffers are; never freed */
    char *memory = calloc(size + 128, 1);
    return memory + (64 - (size_t)memory % 64) % 64;
}

/* A layer: its parameters, and its weights in double, as the reference sees them. */
typedef struct {
    const pyrnnx_kernels *kernels;
    pyrnnx_parameters p;
    ptrdiff_t G, H, I, Hp;
    double *W, *R, *bias, *recurrent_bias, *peepholes;
    pyrnnx_quantized_weights codes[2];
    void *x, *h, *c; /* [STEPS][rows][I], [rows][Hp] */
} layer;

static double get(const layer *l, const void *array, ptrdiff_t k) {
    return l->p.itemsize == 4 ? (double)((const float *)array)[k] : ((const double *)array)[k];
}

static void *narrowed(const layer *l, const double *source, ptrdiff_t count) {
    char *array = room((size_t)(count * l->p.itemsize));
    for (ptrdiff_t k = 0; k < count; k++)
        if (l->p.itemsize == 4)
            ((float *)(void *)array)[k] = (float)source[k];
        else
            ((double *)(void *)array)[k] = source[k];
    return array;
}

static double *numbers(ptrdiff_t count, double size) { /* floats */
    double *array = room((size_t)count * sizeof *array);
    for (ptrdiff_t k = 0; k < count; k++) array[k] = (float)uniform(-size, size);
    return array;
}

/* Round rows of weights to what the storage keeps, so that the reference has the same weights. */
static void round_weights(int weight_dtype, double *w, ptrdiff_t rows, ptrdiff_t depth) {
    for (ptrdiff_t r = 0; r < rows; r++) {
        double most = 0;
        for (ptrdiff_t k = 0; k < depth; k++) most = fmax(most, fabs(w[r * depth + k]));
        const float scale = (float)(most / 127);
        for (ptrdiff_t k = 0; k < depth; k++) {
            double *value = &w[r * depth + k];
            if (weight_dtype == PYRNNX_WEIGHTS_BFLOAT16)
                *value = pyrnnx_from_bfloat16(pyrnnx_to_bfloat16((float)*value));
            else if (weight_dtype == PYRNNX_WEIGHTS_INT8)
                *value = (k ? rint(*value / scale) : 127) * scale; /* 127: packing finds the same scale */
        }
    }
}

static const void *pack(const layer *l, int recurrent, const void *source) {
    void *packed = room(l->kernels->packed_size(&l->p, recurrent));
    l->kernels->pack_weights(&l->p, recurrent, source, packed);
    return packed;
}

/* Draw codes, and set the weights that they mean. */
static pyrnnx_quantized_weights quantized(double *weights, ptrdiff_t rows, ptrdiff_t depth) {
    signed char *codes = room((size_t)(rows * depth));
    float *scale = room((size_t)rows * sizeof *scale);
    int *zero_point = room((size_t)rows * sizeof *zero_point);
    for (ptrdiff_t r = 0; r < rows; r++) {
        scale[r] = (float)uniform(5e-4, 1e-3), zero_point[r] = (int)uniform(-128, 127);
        for (ptrdiff_t k = 0; k < depth; k++) {
            codes[r * depth + k] = (signed char)uniform(-128, 127.9);
            weights[r * depth + k] = (double)scale[r] * (codes[r * depth + k] - zero_point[r]);
        }
    }
    return (pyrnnx_quantized_weights){codes, scale, zero_point};
}

static void pack_both(layer *l) {
    const ptrdiff_t GH = l->G * l->H;
    const int codes = l->p.weight_dtype == PYRNNX_WEIGHTS_CODES;
    l->p.W = pack(l, 0, codes ? (const void *)&l->codes[0] : narrowed(l, l->W, GH * l->I));
    l->p.R = pack(l, 1, codes ? (const void *)&l->codes[1] : narrowed(l, l->R, GH * l->H));
}

static layer make_layer(const pyrnnx_kernels *kernels, int cell, int variant, int weight_dtype, ptrdiff_t I,
                        ptrdiff_t H) {
    const pyrnnx_cell_row *row = &PYRNNX_CELL_ROWS[cell];
    const ptrdiff_t G = row->gate_count, Hp = (H + kernels->lanes - 1) / kernels->lanes * kernels->lanes;
    layer l = {.kernels = kernels, .G = G, .H = H, .I = I, .Hp = Hp};
    l.p = (pyrnnx_parameters){.cell = cell,
                              .variant = variant,
                              .itemsize = kernels->itemsize,
                              .weight_dtype = weight_dtype,
                              .clip = INFINITY,
                              .input_size = I,
                              .hidden_size = H};
    if (weight_dtype == PYRNNX_WEIGHTS_CODES) l.p.dot = kernels->coding->best_dot();
    for (int k = 0; k < row->function_count; k++) l.p.functions[k].number = row->functions[k];
    const double size = 1 / sqrt((double)(I > H ? I : H));
    l.W = numbers(G * H * I, 2 * size), l.R = numbers(G * H * H, 2 * size), l.bias = numbers(G * H, 0.5);
    if (weight_dtype == PYRNNX_WEIGHTS_CODES) {
        l.codes[0] = quantized(l.W, G * H, I), l.codes[1] = quantized(l.R, G * H, H);
    } else {
        round_weights(weight_dtype, l.W, G * H, I), round_weights(weight_dtype, l.R, G * H, H);
    }
    pack_both(&l);
    void *bias = room((size_t)(G * Hp) * 8), *units = room((size_t)(3 * Hp) * 8);
    kernels->pack_bias(&l.p, narrowed(&l, l.bias, G * H), bias);
    l.p.bias = bias;
    if (variant == PYRNNX_LINEAR_BEFORE_RESET) {
        l.recurrent_bias = numbers(H, 0.5);
        kernels->pack_units(&l.p, 1, narrowed(&l, l.recurrent_bias, H), units);
        l.p.recurrent_bias = units;
    } else if (row->has_cell_state) {
        l.peepholes = numbers(3 * H, 0.5);
        kernels->pack_units(&l.p, 3, narrowed(&l, l.peepholes, 3 * H), units);
        l.p.peepholes = units;
    }
    l.x = narrowed(&l, numbers(STEPS * MAX_ROWS * I, 2), STEPS * MAX_ROWS * I);
    l.h = narrowed(&l, numbers(MAX_ROWS * Hp, 1), MAX_ROWS * Hp);
    l.c = narrowed(&l, numbers(MAX_ROWS * Hp, 1), MAX_ROWS * Hp);
    return l;
}

/* The reference: one step of one row, from h and c to themselves. */
static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static double dot(const double *w, const double *x, ptrdiff_t n) {
    double sum = 0;
    for (ptrdiff_t k = 0; k < n; k++) sum += w[k] * x[k];
    return sum;
}

static void reference_step(const layer *l, const double *x, double *h, double *c) {
    const ptrdiff_t H = l->H, I = l->I;
    double gates[4][MAX_H], recurrent[4][MAX_H], reset[MAX_H], *P = l->peepholes;
    for (ptrdiff_t g = 0; g < l->G; g++)
        for (ptrdiff_t j = 0; j < H; j++) {
            gates[g][j] = dot(l->W + (g * H + j) * I, x, I) + l->bias[g * H + j];
            recurrent[g][j] = dot(l->R + (g * H + j) * H, h, H);
        }
    for (ptrdiff_t j = 0; j < H && l->p.cell == PYRNNX_GRU; j++)
        reset[j] = sigmoid(gates[1][j] + recurrent[1][j]) * h[j];
    const double *z = gates[0];
    for (ptrdiff_t j = 0; j < H; j++) {
        if (l->p.cell == PYRNNX_RNN) {
            h[j] = tanh(gates[0][j] + recurrent[0][j]);
        } else if (l->p.cell == PYRNNX_GRU) {
            const double added = l->p.variant == PYRNNX_LINEAR_BEFORE_RESET
                                     ? sigmoid(gates[1][j] + recurrent[1][j]) * (recurrent[2][j] + l->recurrent_bias[j])
                                     : dot(l->R + (2 * H + j) * H, reset, H);
            gates[2][j] = tanh(gates[2][j] + added);
            gates[0][j] = sigmoid(z[j] + recurrent[0][j]);
        } else {
            double i = sigmoid(gates[0][j] + recurrent[0][j] + P[j] * c[j]);
            double f = sigmoid(gates[2][j] + recurrent[2][j] + P[2 * H + j] * c[j]);
            if (l->p.variant == PYRNNX_COUPLED_FORGET) f = 1 - i;
            if (l->p.variant == PYRNNX_COUPLED_INPUT) i = 1 - f;
            c[j] = f * c[j] + i * tanh(gates[3][j] + recurrent[3][j]);
            h[j] = sigmoid(gates[1][j] + recurrent[1][j] + P[H + j] * c[j]) * tanh(c[j]);
        }
    }
    for (ptrdiff_t j = 0; j < H && l->p.cell == PYRNNX_GRU; j++) h[j] = (1 - z[j]) * gates[2][j] + z[j] * h[j];
}
