/* The interface between this engine and a cell. A time step has one or two phases. In each, for a group of unit blocks
 * and rows, the engine multiplies the phase's gates with the states, and the cell computes the next state:
 *
 *   start     initializes the sums, if not with the projection of X
 *   product   sums[v] += states . R[v]^T        states: Ht-1 in the first phase, the buffer `work` in the second
 *   finish    applies the gate functions: from the sums to c, h_next or `work`
 *
 * Each cell has a file in this folder, with a table NAME(x_variants), x its name in tables.h.
 */
#ifndef PYRNNX_CELL
#define PYRNNX_CELL
enum { MAX_ROWS = 64 }; /* of a group; also the largest rows * unit blocks of four gates */
/* Largest number of unit blocks of a group, whose sums stay in L1. */
#define MOST_BLOCKS(rows, nv) (MAX_ROWS * PYRNNX_MAX_GATES / (nv) / (rows))
#endif

typedef struct {
    const pyrnnx_parameters *parameters;
    ptrdiff_t rows, blocks; /* of the group */
    int backwards;          /* whether its products begin with the last unit block */
    ptrdiff_t depth;        /* of its products: H, or 0 if the states are zero */
    ptrdiff_t unit, Hp;     /* its first unit; units of a padded row */
    int nv;                 /* sums of each unit: the gates of the phase */
    REAL *sums;             /* [unit block][row][nv][L], contiguous, in L1 */
    /* all others at the group's first row and unit */
    REAL *projected; /* [row][unit block][G][L], rows ld_projected elements apart */
    ptrdiff_t ld_projected;
    const REAL *h_prev; /* as all states [row][unit], rows Hp elements apart */
    REAL *c, *h_next, *work;
} NAME(group);

typedef struct {
    int gates;                          /* multiplied in this phase; packed after the gates of the previous phase */
    void (*start)(const NAME(group) *); /* NULL: the sums start from the projection */
    void (*finish)(const NAME(group) *);
} NAME(phase);

typedef struct {
    int gate_count;                       /* 0: the cell has no such variant */
    signed char source[PYRNNX_MAX_GATES]; /* index of each packed gate in ONNX's order */
    int phases;
    NAME(phase) phase[2];
} NAME(variant);

/* Loop over the vectors of L units of a group g: unit block b, row r. */
#define FOR_EACH_VECTOR(g) \
    for (ptrdiff_t b = 0; b < (g)->blocks; b++) \
        for (ptrdiff_t r = 0; r < (g)->rows; r++)
#define SUM(g, v) ((g)->sums + ((b * (g)->rows + r) * (g)->nv + (v)) * LANES)
#define STATE(g, state) ((g)->state + r * (g)->Hp + b * LANES)
#define UNITS(g, vector, k) ((const REAL *)(g)->parameters->vector + (k) * (g)->Hp + (g)->unit + b * LANES)

INLINE V NAME(clipped)(const int clips, V clip, V x) { return clips ? AT_MOST(clip, AT_LEAST(-clip, x)) : x; }

/* sums of gate v <- f(sums) */
INLINE void NAME(activate_gate)(const NAME(group) *g, const pyrnnx_activation *f, int v) {
    NAME(activate)(f, g->sums + v * LANES, g->nv * LANES, g->blocks * g->rows);
}

INLINE void NAME(clip_gate)(const NAME(group) *g, int v) {
    const V clip = SET1((REAL)g->parameters->clip);
    if (g->parameters->clip < INFINITY)
        FOR_EACH_VECTOR(g) STORE(SUM(g, v), NAME(clipped)(1, clip, LOAD(SUM(g, v))));
}
