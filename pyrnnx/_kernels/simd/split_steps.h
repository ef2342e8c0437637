/* project and step for split rows. Rows that split.h leaves out go to those of template.h. */
#ifndef PYRNNX_SPLIT_STEPS
#define PYRNNX_SPLIT_STEPS
enum { SPLIT_SUMS = 384 }; /* vectors of sums in a group, which stay in L1 */

/* Return how many rows, from the first one on, are all left out or all split. */
static ptrdiff_t run_length(const char *left_out, ptrdiff_t rows) {
    const char *other = memchr(left_out, !left_out[0], (size_t)rows);
    return other == NULL ? rows : other - left_out;
}

/* Return how many unit blocks fit a group, with an even number of columns if possible. */
static ptrdiff_t split_group_blocks(int nv, ptrdiff_t rows, ptrdiff_t blocks) {
    const ptrdiff_t most = SPLIT_SUMS / (rows * nv), count = blocks < most ? blocks : most;
    return count < 2 ? 1 : nv % 2 ? count / 2 * 2 : count;
}
#endif

INLINE NAME(split_args)
    NAME(split_operands)(const pyrnnx_parameters *p, ptrdiff_t rows, ptrdiff_t depth, const void *split) {
    return (NAME(split_args)){.parts = split_parts(p),
                              .blocks = split_blocks(depth),
                              .x = (const char *)split + split_header(rows),
                              .x_part = rows * SPLIT_LINE,
                              .w_column = NAME(split_column)(p, depth)};
}

SPLIT_TARGET static void NAME(project_split)(const pyrnnx_parameters *p, ptrdiff_t rows, const void *x, ptrdiff_t ldx,
                                             const void *split, void *projected, ptrdiff_t u0, ptrdiff_t u1) {
    const int G = NAME(gate_count)(p);
    const ptrdiff_t ld = G * NAME(padded)(p), u = u0 * G * LANES;
    NAME(split_args) t = NAME(split_operands)(p, rows, p->input_size, split);
    UNIT unit;
    memset(&unit.shapes, 0, sizeof unit.shapes);
    t.w = (const char *)p->split_W + u0 * G * t.w_column;
    t.per_block = (u1 - u0) * G; /* a row of all unit blocks is contiguous */
    t.init = (const REAL *)p->bias + u;
    t.ld_init = t.init_block = t.out_block = 0;
    t.out = (REAL *)projected + u;
    t.ld_out = ld;
    for (ptrdiff_t r = 0, count; r < rows; r += count) {
        const char *left_out = (const char *)split + r;
        count = run_length(left_out, rows - r);
        if (*left_out) {
            NAME(project)(p, count, (const REAL *)x + r * ldx, ldx, (REAL *)projected + r * ld, u0, u1);
            continue;
        }
        NAME(split_args) run = t;
        run.x += r * SPLIT_LINE;
        run.out += r * ld;
        NAME(split_product)(&unit, count, (u1 - u0) * G, &run);
    }
    RELEASE(&unit);
}

/* Run one phase of one time step for rows none of which is left out. As in step, each sweep over the unit blocks begins
 * where the last one ended. All rows use a group's weights before the next group. */
SPLIT_TARGET static void NAME(step_run)(UNIT *unit, const pyrnnx_parameters *p, int phase, const pyrnnx_step *s,
                                        const NAME(split_args) *operands) {
    REAL sums[SPLIT_SUMS * LANES] __attribute__((aligned(64)));
    const NAME(variant) *variant = NAME(variant_of)(p);
    const int nv = variant->phase[phase].gates, first = phase ? variant->phase[0].gates : 0, G = variant->gate_count;
    const ptrdiff_t Hp = NAME(padded)(p), ld = G * Hp, blocks = s->u1 - s->u0;
    for (ptrdiff_t done = 0, nb; done < blocks; done += nb) {
        nb = split_group_blocks(nv, s->rows < MAX_ROWS ? s->rows : MAX_ROWS, blocks - done);
        const ptrdiff_t u = s->number % 2 ? s->u1 - done - nb : s->u0 + done;
        for (ptrdiff_t r = 0, rows; r < s->rows; r += rows) {
            const ptrdiff_t at = r * Hp + u * LANES;
            rows = s->rows - r < MAX_ROWS ? s->rows - r : MAX_ROWS;
            const NAME(group) g = {.parameters = p,
                                   .rows = rows,
                                   .blocks = nb,
                                   .unit = u * LANES,
                                   .Hp = Hp,
                                   .nv = nv,
                                   .sums = sums,
                                   .projected = (REAL *)s->projected + r * ld + u * LANES * G,
                                   .ld_projected = ld,
                                   .h_prev = (const REAL *)s->h_prev + at,
                                   .c = s->c ? (REAL *)s->c + at : NULL,
                                   .h_next = (REAL *)s->h_next + at,
                                   .work = s->work ? (REAL *)s->work + at : NULL};
            NAME(split_args) t = *operands;
            t.x += r * SPLIT_LINE;
            t.w += u * nv * t.w_column;
            t.per_block = nv;
            t.out = sums, t.ld_out = nv * LANES, t.out_block = rows * nv * LANES;
            t.init = g.projected + first * LANES, t.ld_init = ld, t.init_block = G * LANES;
            if (variant->phase[phase].start != NULL) {
                variant->phase[phase].start(&g);
                t.init = t.out, t.ld_init = t.ld_out, t.init_block = t.out_block;
            }
            NAME(split_product)(unit, rows, nb * nv, &t);
            variant->phase[phase].finish(&g);
        }
    }
}

/* Return the same step for `rows` rows from r on. */
static pyrnnx_step NAME(step_from)(const pyrnnx_parameters *p, const pyrnnx_step *s, ptrdiff_t r, ptrdiff_t rows) {
    const ptrdiff_t Hp = NAME(padded)(p);
    pyrnnx_step part = *s;
    part.rows = rows;
    part.projected = (REAL *)s->projected + r * NAME(gate_count)(p) * Hp;
    part.h_prev = (const REAL *)s->h_prev + r * Hp;
    part.h_next = (REAL *)s->h_next + r * Hp;
    if (s->c) part.c = (REAL *)s->c + r * Hp;
    if (s->work) part.work = (REAL *)s->work + r * Hp;
    return part;
}

SPLIT_TARGET static void NAME(step_split)(const pyrnnx_parameters *p, int phase, const pyrnnx_step *s,
                                          const void *split) {
    const ptrdiff_t columns = phase ? NAME(padded)(p) / LANES * NAME(variant_of)(p)->phase[0].gates : 0;
    NAME(split_args) t = NAME(split_operands)(p, s->rows, p->hidden_size, split);
    UNIT unit;
    memset(&unit.shapes, 0, sizeof unit.shapes);
    t.w = (const char *)p->split_R + columns * t.w_column; /* phase 0 is packed first */
    if (NAME(states_are_zero)(p, phase, s)) t.blocks = 1;  /* not 0: any product flushes subnormal sums to zero */
    for (ptrdiff_t r = 0, count; r < s->rows; r += count) {
        const char *left_out = (const char *)split + r;
        count = run_length(left_out, s->rows - r);
        const pyrnnx_step part = NAME(step_from)(p, s, r, count);
        NAME(split_args) run = t;
        run.x += r * SPLIT_LINE;
        if (*left_out)
            NAME(step)(p, phase, &part);
        else
            NAME(step_run)(&unit, p, phase, &part, &run);
    }
    RELEASE(&unit);
}

/* Return whether matrices are faster. Below these sizes, measured with 16 to 65 rows, splitting, overhead and the zeros
 * that fill blocks of k cost as much as matrices save. */
static int NAME(split_pays)(const pyrnnx_parameters *p) {
    const ptrdiff_t H = p->hidden_size, k = p->input_size + H;
    const ptrdiff_t zeros = (split_blocks(p->input_size) + split_blocks(H)) * SPLIT_DEPTH - k;
    return p->weight_dtype != PYRNNX_WEIGHTS_INT8 && H >= (p->cell == PYRNNX_GRU ? 64 : 48) &&
           NAME(gate_count)(p) * H >= 128 && k >= 40 + 3 * zeros;
}

static const pyrnnx_matrices NAME(matrices) = {.pays = NAME(split_pays),
                                               .packed_size = NAME(split_weights_size),
                                               .pack_weights = NAME(split_weights),
                                               .split_size = split_size,
                                               .split = NAME(split_rows),
                                               .project = NAME(project_split),
                                               .step = NAME(step_split)};
#undef UNIT
#undef SPLIT_TARGET
#undef SHAPE
#undef LOAD_MATRIX
#undef STORE_MATRIX
#undef DOT
#undef RELEASE
