/* From ONNX's row-major arrays to panels: [unit block][K][gate][L], padded units zero. R of a two-phase GRU is, in each
 * unit block, the panel of z and r and then the panel of h. */
static ptrdiff_t NAME(padded)(const pyrnnx_cell *cell) { return (cell->hidden_size + LANES - 1) / LANES * LANES; }

static ptrdiff_t NAME(panel_size)(int format, int nv, ptrdiff_t depth) /* bytes; int8 panels open with their scales */
{
    return nv * LANES *
           (depth * NAME(weight_size)(format) + (format == PYRNNX_WEIGHTS_INT8 ? (ptrdiff_t)sizeof(float) : 0));
}

static ptrdiff_t NAME(unit_size)(const pyrnnx_cell *cell, int recurrent) /* bytes of all panels of one unit block */
{
    return NAME(panel_size)(cell->weights, gate_count(cell), recurrent ? cell->hidden_size : cell->input_size);
}

static size_t NAME(packed_size)(const pyrnnx_cell *cell, int recurrent) {
    return (size_t)(NAME(padded)(cell) / LANES * NAME(unit_size)(cell, recurrent));
}

/* max |w| / 127 of a gate row; NaN if one is not finite */
static float NAME(row_scale)(const REAL *row, ptrdiff_t depth) {
    REAL most = 0, check = 0;
    for (ptrdiff_t k = 0; k < depth; k++) {
        const REAL size = row[k] < 0 ? -row[k] : row[k];
        most = size > most ? size : most;
        check += row[k] - row[k];
    }
    return (float)(most / 127 + check);
}

/* One panel: gates first .. first + nv of our order for the units from `unit`. */
static char *NAME(pack_panel)(const pyrnnx_cell *cell, int format, const REAL *source, ptrdiff_t depth, ptrdiff_t unit,
                              int first, int nv, char *p) {
    const ptrdiff_t H = cell->hidden_size, units = H - unit < LANES ? H - unit : LANES;
    const int step = LANES * NAME(weight_size)(format);
    for (int v = 0; v < nv; v++) {
        const REAL *rows = source + (source_gate(cell, first + v) * H + unit) * depth;
        float scales[LANES] = {0};
        char *out = p + v * step;
        if (format == PYRNNX_WEIGHTS_INT8) {
            for (ptrdiff_t j = 0; j < units; j++) scales[j] = NAME(row_scale)(rows + j * depth, depth);
            memcpy(p + v * sizeof scales, scales, sizeof scales);
            out += nv * sizeof scales;
        }
        for (ptrdiff_t k = 0; k < depth; k++) {
            REAL w[LANES] = {0};
            for (ptrdiff_t j = 0; j < units; j++) w[j] = rows[j * depth + k];
            NAME(store_weights)(format, out + k * nv * step, w, scales);
        }
    }
    return p + NAME(panel_size)(format, nv, depth);
}

static void NAME(pack_weights)(const pyrnnx_cell *cell, int recurrent, const void *source, void *packed) {
    const ptrdiff_t depth = recurrent ? cell->hidden_size : cell->input_size;
    const int G = gate_count(cell), together = recurrent && phase_count(cell) == 2 ? 2 : G;
    const int format = cell->weights;
    char *p = packed;
    for (ptrdiff_t unit = 0; unit < cell->hidden_size; unit += LANES) {
        p = NAME(pack_panel)(cell, format, source, depth, unit, 0, together, p);
        if (together < G) p = NAME(pack_panel)(cell, format, source, depth, unit, together, G - together, p);
    }
}

static void NAME(pack_bias)(const pyrnnx_cell *cell, const void *source, void *packed) {
    const ptrdiff_t H = cell->hidden_size;
    const int G = gate_count(cell);
    memset(packed, 0, (size_t)(G * NAME(padded)(cell)) * sizeof(REAL));
    for (ptrdiff_t unit = 0; unit < H; unit++)
        for (int g = 0; g < G; g++)
            ((REAL *)packed)[(unit / LANES * G + g) * LANES + unit % LANES] =
                ((const REAL *)source)[source_gate(cell, g) * H + unit];
}

static void NAME(pack_units)(const pyrnnx_cell *cell, ptrdiff_t count, const void *source, void *packed) {
    const ptrdiff_t H = cell->hidden_size, Hp = NAME(padded)(cell);
    memset(packed, 0, (size_t)(count * Hp) * sizeof(REAL));
    for (ptrdiff_t j = 0; j < count && H > 0; j++)
        memcpy((REAL *)packed + j * Hp, (const REAL *)source + j * H, (size_t)H * sizeof(REAL));
}
