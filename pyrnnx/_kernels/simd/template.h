/* The kernels of one element type for one instruction set. The includer defines
 *
 *   REAL, INTEGER (of the same size), LANES, ISA (a name)
 *   TILE_SUMS              vectors of sums in a tile
 *   HAVE_REDUCED_WEIGHTS   W and R can be packed as bfloat16 and int8; requires ISA_LOAD_BFLOAT16, ISA_LOAD_INT8
 *   HAVE_CODES             W and R can be packed as codes (float only)
 *   HAVE_SPLIT             matrices multiply split rows (float, 16 LANES and HAVE_CODES only); requires ISA_MATRICES
 *                          and ISA_BFLOAT16, or MATRIX_MODEL to use the model of matrices
 *
 * and may define faster ISA_x for GENERIC_x of vector.h: SET1, FMA, AT_LEAST, AT_MOST, SELECT_LESS, SELECT_NEGATIVE;
 * with HAVE_CODES also ISA_LIMITED_DOT or ISA_MADD; ISA_STORE_BYTES; ISA_DOT, ISA_DOT_TARGET, ISA_HAS_DOT and
 * ISA_CODE_OFFSET; ISA_MATRICES; ISA_SQUARES and what code_squares.h needs with it. With ISA_FMA_BY_LANE, FMAs take one
 * element of a register for all lanes, and ISA_LOAD_TWO and ISA_LOAD_NEXT_TWO load two vectors at once. With HAVE_RUNS,
 * products of three rows or more are cut into runs; they should have ISA_ACCUMULATE, an FMA whose sum stays in its
 * register. Each header below uses only those above it:
 *
 *   vector.h      V, a vector of REAL, and its operations
 *   functions.h   exp, tanh, sigmoid... and the activation functions on V
 *   weights.h     vectors of packed weights
 *   tiles.h       products of rows with unit blocks; lane_tiles.h: ISA_FMA_BY_LANE; run_tiles.h: HAVE_RUNS
 *   cell.h        the interface of a cell: phases, on groups of unit blocks and rows
 *   rnn.h gru.h lstm.h   one cell each
 *   cells.h       the table of cells
 *   codes.h       HAVE_CODES: rows rounded to 8-bit codes
 *   code_panels.h     panels of quantized weights
 *   code_dots.h       dot products of four codes in each lane
 *   matrices.h        the processor's matrices
 *   code_matrices.h   products of many coded rows by the processor's matrices
 *   code_products.h   products of coded rows with unit blocks; code_tiles.h: their tiles, for one dot product;
 *                     code_squares.h: those of ISA_SQUARES
 *   pack.h        panels for the phases of a cell
 *   operands.h    operands of products: elements or codes
 *   steps.h       many time steps of one row
 *   matrix_model.h    MATRIX_MODEL: a model of the matrices in C
 *   split.h           HAVE_SPLIT: rows and weights of float as bfloat16 parts
 *   split_matrices.h  products of split rows by the processor's matrices
 *   split_steps.h     project and step with split rows
 */
#include <assert.h> /* debug builds only: all others define NDEBUG */
#include <math.h>   /* INFINITY */
#include <string.h> /* memset */

#include "../storage.h"
#include "simd.h"

#include "vector.h"
#include "functions.h"
#include "weights.h"
#include "tiles.h"
#include "cell.h"
#include "rnn.h"
#include "gru.h"
#include "lstm.h"
#include "cells.h"
#include "matrices.h"
#if HAVE_CODES
#include "codes.h"
#include "code_panels.h"
#include "code_dots.h"
#include "code_matrices.h"
#include "code_products.h"
#endif
#include "pack.h"
#include "operands.h"
#include "steps.h"
#if HAVE_SPLIT
#ifdef MATRIX_MODEL
#include "matrix_model.h"
#endif
#include "split.h"
#include "split_matrices.h"
#endif

#ifndef PYRNNX_TEMPLATE
#define PYRNNX_TEMPLATE
enum { MAX_PROJECTED_ROWS = 256 }; /* in one pass over the panels of W */
#endif

static void NAME(project)(const pyrnnx_parameters *p, ptrdiff_t rows, const void *x, ptrdiff_t ldx, void *projected,
                          ptrdiff_t u0, ptrdiff_t u1) {
    const int G = NAME(gate_count)(p);
    const ptrdiff_t panel = NAME(panel_size)(p, 0, G), ld = G * NAME(padded)(p);
    assert(0 <= u0 && u0 <= u1 && u1 * LANES <= NAME(padded)(p));
    assert(rows >= 0 && (rows <= 1 || ldx >= p->input_size));
    for (ptrdiff_t r = 0; r < rows; r += MAX_PROJECTED_ROWS) {
        const ptrdiff_t count = rows - r < MAX_PROJECTED_ROWS ? rows - r : MAX_PROJECTED_ROWS;
        for (ptrdiff_t u = u0, nb; u < u1; u += nb) {
            nb = NAME(blocks_of_product)(p, G, count, u1 - u, p->input_size);
            NAME(any_product)(p, G, (int)nb, count,
                              &(NAME(tile_args)){.depth = p->input_size,
                                                 .x = NAME(row_of)(p, x, r, ldx),
                                                 .ldx = ldx,
                                                 .w = (const char *)p->W + u * panel,
                                                 .w_block = panel,
                                                 .init = (const REAL *)p->bias + u * G * LANES,
                                                 .ld_init = 0,
                                                 .init_block = G * LANES,
                                                 .out = (REAL *)projected + r * ld + u * G * LANES,
                                                 .ld_out = ld,
                                                 .out_block = G * LANES});
        }
    }
}

/* Run one phase of one group: start, product, finish (see cell.h). states: of the group's first row. */
static void NAME(step_group)(const NAME(group) *g, const NAME(variant) *variant, int phase, const REAL *states) {
    const pyrnnx_parameters *p = g->parameters;
    const int first = phase ? variant->phase[0].gates : 0; /* gates of phase 0 are packed first */
    const ptrdiff_t w_block = NAME(panel_size)(p, 1, variant->gate_count);
    NAME(tile_args) t = {.depth = g->depth,
                         .x = states,
                         .ldx = NAME(state_stride)(p, g->Hp),
                         .w = (const char *)p->R + g->unit / LANES * w_block + NAME(panel_size)(p, 1, first),
                         .w_block = w_block,
                         .init = g->projected + first * LANES,
                         .ld_init = g->ld_projected,
                         .init_block = variant->gate_count * LANES,
                         .out = g->sums,
                         .ld_out = g->nv * LANES,
                         .out_block = g->rows * g->nv * LANES};
    if (variant->phase[phase].start != NULL) {
        variant->phase[phase].start(g);
        t.init = t.out, t.ld_init = t.ld_out, t.init_block = t.out_block;
    }
    for (ptrdiff_t done = 0, nb; done < g->blocks; done += nb) {
        nb = NAME(blocks_of_product)(p, g->nv, g->rows, g->blocks - done, g->depth);
        const ptrdiff_t b = g->backwards ? g->blocks - done - nb : done;
        NAME(tile_args) at = t;
        at.w += b * t.w_block;
        at.init += b * t.init_block;
        at.out += b * t.out_block;
        NAME(any_product)(p, g->nv, (int)nb, g->rows, &at);
    }
    variant->phase[phase].finish(g);
}

/* Return whether all states that a product reads are zero. Those of phase 1 are r H', NaN if r is NaN. */
static int NAME(states_are_zero)(const pyrnnx_parameters *p, int phase, const pyrnnx_step *s) {
    const REAL *work = (const REAL *)s->work;
    if (!s->h_is_zero || phase == 0) return s->h_is_zero;
    for (ptrdiff_t j = 0, count = s->rows * NAME(padded)(p); j < count; j++)
        if (work[j] != 0) return 0;
    return 1;
}

/* Run one phase of one time step. Rows and unit blocks [u0, u1) are cut into groups whose sums stay in L1 for the gate
 * functions. A group has at most MAX_ROWS rows and MOST_BLOCKS unit blocks. For four gates:
 *
 *               u0            u1
 *              +------+------+--+
 *   rows       |  1   |  3   |5 |    one row: up to MAX_ROWS unit blocks; MAX_ROWS rows: one unit block of four gates
 *              +------+------+--+
 *              |  2   |  4   |6 |
 *              +------+------+--+
 *
 * All rows use the panels of R before the next panels are read. Each sweep over the unit blocks begins where the sweep
 * of the previous step ended: if the cache is too small for all panels, those read last are still cached.
 */
static void NAME(step)(const pyrnnx_parameters *p, int phase, const pyrnnx_step *s) {
    REAL sums[MAX_ROWS * PYRNNX_MAX_GATES * LANES] __attribute__((aligned(64)));
    const NAME(variant) *variant = NAME(variant_of)(p);
    const int nv = variant->phase[phase].gates, backwards = s->number % 2;
    const ptrdiff_t Hp = NAME(padded)(p), ld = variant->gate_count * Hp, blocks = s->u1 - s->u0;
    const ptrdiff_t row_groups = (s->rows + MAX_ROWS - 1) / MAX_ROWS;
    const REAL *states = (const REAL *)(phase ? s->work : s->h_prev);
    const int zero = NAME(states_are_zero)(p, phase, s);
    assert(0 <= s->u0 && s->u0 <= s->u1 && s->u1 * LANES <= Hp && s->rows >= 0);
    assert(0 <= phase && phase < variant->phases && s->h_next != s->h_prev);
    assert(s->work || variant->phases == 1);
    assert(s->c || !PYRNNX_CELL_ROWS[p->cell].has_cell_state);
    if (s->rows == 0) return;
    const ptrdiff_t most = MOST_BLOCKS((s->rows + row_groups - 1) / row_groups, nv);
    for (ptrdiff_t done = 0, nb; done < blocks; done += nb) {
        nb = blocks - done < most ? blocks - done : most;
        const ptrdiff_t unit = (backwards ? s->u1 - done - nb : s->u0 + done) * LANES;
        for (ptrdiff_t group = 0, r = 0, rows; group < row_groups; group++, r += rows) {
            rows = (s->rows - r) / (row_groups - group);
            const ptrdiff_t at = r * Hp + unit;
            const NAME(group) g = {.parameters = p,
                                   .rows = rows,
                                   .blocks = nb,
                                   .backwards = backwards,
                                   .depth = zero ? 0 : p->hidden_size,
                                   .unit = unit,
                                   .Hp = Hp,
                                   .nv = nv,
                                   .sums = sums,
                                   .projected = (REAL *)s->projected + r * ld + unit * variant->gate_count,
                                   .ld_projected = ld,
                                   .h_prev = (const REAL *)s->h_prev + at,
                                   .c = s->c ? (REAL *)s->c + at : NULL,
                                   .h_next = (REAL *)s->h_next + at,
                                   .work = s->work ? (REAL *)s->work + at : NULL};
            NAME(step_group)(&g, variant, phase, NAME(row_of)(p, states, r, NAME(state_stride)(p, Hp)));
        }
    }
}

#if HAVE_CODES
static const pyrnnx_coding NAME(coding) = {
    .best_dot = NAME(best_dot), .row_size = coded_size, .widen_range = NAME(widen_range), .encode = NAME(encode)};
#endif

#if HAVE_SPLIT
#include "split_steps.h"
#endif

const pyrnnx_kernels PX_CAT(pyrnnx, ISA, REAL) = {
    .itemsize = sizeof(REAL),
    .lanes = LANES,
    .weight_dtypes = HAVE_REDUCED_WEIGHTS ? (1 << PYRNNX_WEIGHTS_CODES) - 1 : 1 << PYRNNX_WEIGHTS_FULL,
    .gate_count = NAME(gate_count),
    .phases = NAME(phases),
    .packed_size = NAME(packed_size),
    .pack_weights = NAME(pack_weights),
    .pack_bias = NAME(pack_bias),
    .pack_units = NAME(pack_units),
#if HAVE_CODES
    .coding = &NAME(coding),
#endif
#if HAVE_SPLIT
    .matrices = &NAME(matrices),
#endif
    .project = NAME(project),
    .step = NAME(step),
    .widen = pyrnnx_widen,
    .narrow = pyrnnx_narrow,
    .steps = NAME(steps)};

#undef NAME
#undef V
#undef I
#undef LOAD
#undef STORE
#undef REAL
#undef INTEGER
#undef LANES
#undef HAVE_REDUCED_WEIGHTS
#undef HAVE_CODES
#undef HAVE_SPLIT
#undef MATRIX_MODEL
#undef ISA_BFLOAT16
#undef SPLITS_ROWS
#undef STEPS_BLOCKS
#undef COLUMN
#undef CODED
#undef LOAD_I
#undef DOTTED
#undef CODE_TILE
#undef DEFINE_CODE_TILE
#undef LIST_CODE_TILE
#undef ISA_DOT
#undef ISA_DOT_TARGET
#undef ISA_HAS_DOT
#undef ISA_CODE_OFFSET
#undef ISA_FMA_BY_LANE
#undef ISA_LOAD_TWO
#undef ISA_LOAD_NEXT_TWO
#undef ISA_SQUARES
#undef ISA_MADD
#undef ISA_LIMITED_DOT
#undef ISA_STORE_BYTES
#undef IS_LIMITED
#undef CODES_ARE_BYTES
#undef PLAIN_TILES
#undef CODE_STEP
#undef ISA_MATRICES
#undef MATRICES
#undef SET1
#undef FMA
#undef ACCUMULATE
#undef AT_LEAST
#undef AT_MOST
#undef SELECT_LESS
#undef SELECT_NEGATIVE
#undef ISA_SET1
#undef ISA_FMA
#undef ISA_ACCUMULATE
#undef ROUNDS_PRODUCTS
#undef ISA_AT_LEAST
#undef ISA_AT_MOST
#undef ISA_SELECT_LESS
#undef ISA_SELECT_NEGATIVE
#undef ISA_LOAD_BFLOAT16
#undef ISA_LOAD_INT8
