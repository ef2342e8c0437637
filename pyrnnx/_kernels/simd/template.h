/* The kernels of one element type for one instruction set.
 *
 * The includer defines REAL, INTEGER (of its size), LANES, ISA (a name), TILE_SUMS (vectors of sums a tile holds),
 * HAVE_FORMATS, and ISA_x for what it has better than GENERIC_x of generic.h: SET1, FMA, AT_LEAST, AT_MOST,
 * SELECT_LESS, SELECT_NEGATIVE; with HAVE_FORMATS also ISA_LOAD_BFLOAT16 and ISA_LOAD_INT8.
 */
#include <assert.h> /* of a debug build alone: NDEBUG is defined in any other */
#include <math.h>   /* INFINITY */
#include <string.h> /* memset */

#include "simd.h"
#include "generic.h"

#define NAME(x) PX_CAT(x, REAL, ISA)
typedef REAL NAME(vector) __attribute__((vector_size(LANES * sizeof(REAL))));
typedef INTEGER NAME(integers) __attribute__((vector_size(LANES * sizeof(REAL))));
typedef REAL NAME(unaligned) __attribute__((vector_size(LANES * sizeof(REAL)), aligned(sizeof(REAL)), may_alias));
#define V NAME(vector)
#define I NAME(integers)
#define LOAD(p) ((V)(*(const NAME(unaligned) *)(p)))
#define STORE(p, x) (*(NAME(unaligned) *)(p) = (x))

#ifndef ISA_SET1
#define ISA_SET1 GENERIC_SET1
#endif
#ifndef ISA_FMA
#define ISA_FMA GENERIC_FMA
#endif
#ifndef ISA_AT_LEAST
#define ISA_AT_LEAST GENERIC_AT_LEAST
#endif
#ifndef ISA_AT_MOST
#define ISA_AT_MOST GENERIC_AT_MOST
#endif
#ifndef ISA_SELECT_LESS
#define ISA_SELECT_LESS GENERIC_SELECT_LESS
#endif
#ifndef ISA_SELECT_NEGATIVE
#define ISA_SELECT_NEGATIVE GENERIC_SELECT_NEGATIVE
#endif
#define SET1(x) ((V)ISA_SET1(x))
#define FMA(a, b, c) ((V)ISA_FMA(a, b, c))
#define AT_LEAST(bound, x) ((V)ISA_AT_LEAST(bound, x))
#define AT_MOST(bound, x) ((V)ISA_AT_MOST(bound, x))
#define SELECT_LESS(x, y, a, b) ((V)ISA_SELECT_LESS(x, y, a, b))
#define SELECT_NEGATIVE(x, a, b) ((V)ISA_SELECT_NEGATIVE(x, a, b))

#ifndef PYRNNX_TEMPLATE_SIZES
#define PYRNNX_TEMPLATE_SIZES
enum {
    MAX_ROWS = 64,
    MAX_PROJECTED_ROWS = 256,
    PANEL_BYTES = 22528
}; /* rows of one group; of a panel stays in L1 with a group's sums */

static int gate_count(const pyrnnx_cell *cell) {
    return cell->cell == PYRNNX_RNN ? 1 : cell->cell == PYRNNX_GRU ? 3 : cell->coupling ? 3 : 4;
}

static int phase_count(const pyrnnx_cell *cell) {
    return cell->cell == PYRNNX_GRU && !cell->linear_before_reset ? 2 : 1;
}

/* Where gate g of ours stands in ONNX's order. */
static int source_gate(const pyrnnx_cell *cell, int g) {
    if (cell->cell != PYRNNX_LSTM || !cell->coupling || g == 1) return g;
    return g == 2 ? 3 : cell->coupling == PYRNNX_COUPLED_INPUT ? 2 : 0;
}
#endif

#include "formats.h"
#include "vmath.h"
#include "gemm.h"
#include "gates.h"
#include "pack.h"

static void NAME(project)(const pyrnnx_cell *cell, ptrdiff_t rows, const void *x, ptrdiff_t ldx, void *gates,
                          ptrdiff_t u0, ptrdiff_t u1) {
    const int G = gate_count(cell);
    const ptrdiff_t panel = NAME(panel_size)(cell->weights, G, cell->input_size), ld = G * NAME(padded)(cell);
    assert(0 <= u0 && u0 <= u1 && u1 * LANES <= NAME(padded)(cell));
    assert(rows >= 0 && (rows <= 1 || ldx >= cell->input_size));
    for (ptrdiff_t r = 0; r < rows; r += MAX_PROJECTED_ROWS) {
        const ptrdiff_t some = rows - r < MAX_PROJECTED_ROWS ? rows - r : MAX_PROJECTED_ROWS;
        for (ptrdiff_t u = u0, nb; u < u1; u += nb) {
            nb = tile_blocks(G, some, u1 - u);
            NAME(product)(cell->weights, G, (int)nb, some,
                          (NAME(tile_args)){.depth = cell->input_size,
                                            .x = (const REAL *)x + r * ldx,
                                            .ldx = ldx,
                                            .w = (const char *)cell->W + u * panel,
                                            .w_block = panel,
                                            .init = (const REAL *)cell->bias + u * G * LANES,
                                            .ld_init = 0,
                                            .init_block = G * LANES,
                                            .out = (REAL *)gates + r * ld + u * G * LANES,
                                            .ld_out = ld,
                                            .out_block = G * LANES});
        }
    }
}

/* One group of unit blocks for some rows: H' R^T on top of the projection, then the gate functions while the sums are
 * in L1. */
static void NAME(step_group)(NAME(group) *p, int phase, const REAL *states) {
    const pyrnnx_cell *cell = p->cell;
    const int G = gate_count(cell), two_phases = phase_count(cell) == 2, first = two_phases && phase ? 2 : 0;
    const ptrdiff_t H = cell->hidden_size, w_block = NAME(unit_size)(cell, 1), u = p->unit / LANES;
    NAME(tile_args) t = {.depth = H,
                         .x = states,
                         .ldx = p->Hp,
                         .w = (const char *)cell->R + u * w_block + (first ? NAME(panel_size)(cell->weights, 2, H) : 0),
                         .w_block = w_block,
                         .init = p->gates + first * LANES,
                         .ld_init = p->ld_gates,
                         .init_block = G * LANES,
                         .out = p->sums,
                         .ld_out = p->nv * LANES,
                         .out_block = p->rows * p->nv * LANES};
    if (cell->cell == PYRNNX_GRU && !two_phases) { /* the h gate's product stays apart from its projection */
        const REAL *bias = (const REAL *)cell->recurrent_bias + p->unit;
        FOR_EACH_VECTOR(p) {
            STORE(SUMS(p), LOAD(GRU_COLUMN(p, 0)));
            STORE(SUMS(p) + LANES, LOAD(GRU_COLUMN(p, 1)));
            STORE(SUMS(p) + 2 * LANES, LOAD(bias + b * LANES));
        }
        t.init = t.out;
        t.ld_init = t.ld_out;
        t.init_block = t.out_block;
    }
    for (ptrdiff_t b = 0, nb; b < p->blocks; b += nb) {
        nb = tile_blocks(p->nv, p->rows, p->blocks - b);
        NAME(product)(cell->weights, p->nv, (int)nb, p->rows, t);
        t.w += nb * t.w_block;
        t.init += nb * t.init_block;
        t.out += nb * t.out_block;
    }
    if (cell->cell == PYRNNX_LSTM)
        NAME(lstm_gates)(p);
    else if (cell->cell == PYRNNX_GRU)
        NAME(gru_gates)(p, phase);
    else
        NAME(rnn_gates)(p);
}

static void NAME(step)(const pyrnnx_cell *cell, int phase, ptrdiff_t rows, void *gates, const void *h_prev, void *c,
                       void *h_next, void *work, ptrdiff_t u0, ptrdiff_t u1) {
    REAL sums[MAX_ROWS * 4 * LANES] __attribute__((aligned(64)));
    const int G = gate_count(cell), nv = phase_count(cell) == 1 ? G : phase == 0 ? 2 : 1;
    const ptrdiff_t Hp = NAME(padded)(cell), row_groups = (rows + MAX_ROWS - 1) / MAX_ROWS;
    const REAL *states = phase ? (const REAL *)work : (const REAL *)h_prev;
    assert(0 <= u0 && u0 <= u1 && u1 * LANES <= Hp && rows >= 0);
    assert(0 <= phase && phase < phase_count(cell) && h_next != h_prev);
    assert(work || phase_count(cell) == 1);
    assert(c || cell->cell != PYRNNX_LSTM);
    for (ptrdiff_t group = 0, r = 0; group < row_groups; group++) {
        const ptrdiff_t some = (rows - r) / (row_groups - group);
        for (ptrdiff_t u = u0, nb; u < u1; u += nb) {
            nb = u1 - u < MAX_ROWS / some ? u1 - u : MAX_ROWS / some;
            const ptrdiff_t unit = u * LANES, at = r * Hp + unit, ld = G * Hp;
            NAME(group) p = {cell,
                             some,
                             nb,
                             Hp,
                             unit,
                             nv,
                             sums,
                             (REAL *)gates + r * ld + unit * G,
                             ld,
                             (const REAL *)h_prev + at,
                             c ? (REAL *)c + at : NULL,
                             (REAL *)h_next + at,
                             work ? (REAL *)work + at : NULL};
            NAME(step_group)(&p, phase, states + r * Hp);
        }
        r += some;
    }
}

static void NAME(activate_all)(const pyrnnx_activation *f, double clip, const void *x, void *y, ptrdiff_t count) {
    for (ptrdiff_t j = 0; j < count; j += LANES) {
        REAL some[LANES] = {0};
        const size_t bytes = (size_t)(count - j < LANES ? count - j : LANES) * sizeof(REAL);
        memcpy(some, (const REAL *)x + j, bytes);
        STORE(some, NAME(bounded)(1, SET1((REAL)clip), LOAD(some)));
        NAME(activate)(f, some, LANES, 1);
        memcpy((REAL *)y + j, some, bytes);
    }
}

#define PX_STRING_(x) #x
#define PX_STRING(x) PX_STRING_(x)
const pyrnnx_kernels PX_CAT(pyrnnx, ISA, REAL) = {.isa = PX_STRING(ISA),
                                                  .itemsize = sizeof(REAL),
                                                  .lanes = LANES,
                                                  .formats = HAVE_FORMATS ? 7 : 1,
                                                  .gates = gate_count,
                                                  .phases = phase_count,
                                                  .packed_size = NAME(packed_size),
                                                  .pack_weights = NAME(pack_weights),
                                                  .pack_bias = NAME(pack_bias),
                                                  .pack_units = NAME(pack_units),
                                                  .project = NAME(project),
                                                  .step = NAME(step),
                                                  .activate = NAME(activate_all)};

#undef NAME
#undef V
#undef I
#undef LOAD
#undef STORE
#undef REAL
#undef INTEGER
#undef LANES
#undef HAVE_FORMATS
#undef SET1
#undef FMA
#undef AT_LEAST
#undef AT_MOST
#undef SELECT_LESS
#undef SELECT_NEGATIVE
#undef ISA_SET1
#undef ISA_FMA
#undef ISA_AT_LEAST
#undef ISA_AT_MOST
#undef ISA_SELECT_LESS
#undef ISA_SELECT_NEGATIVE
#undef ISA_LOAD_BFLOAT16
#undef ISA_LOAD_INT8
