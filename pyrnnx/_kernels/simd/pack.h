/* Packing of ONNX's row-major arrays into panels. The panels of one unit block are contiguous:
 *
 *   W   [K][gate][L]                                    one panel of all packed gates
 *   R   [K][gates of phase 0][L] [K][gates of phase 1][L]...   one panel for each phase of the cell
 *
 * Padded units are zero. Bias is [unit block][gate][L]; other vectors are [Hp]. In both -0 becomes 0: a sum that begins
 * with 0 does not change if products with zeros are left out.
 */
INLINE ptrdiff_t NAME(padded)(const pyrnnx_parameters *p) { return (p->hidden_size + LANES - 1) / LANES * LANES; }

INLINE ptrdiff_t NAME(depth)(const pyrnnx_parameters *p, int recurrent) {
    return recurrent ? p->hidden_size : p->input_size;
}

/* Return the bytes of one unit block's panel of `gates` gates of W or R; int8 panels begin with their scales. */
INLINE ptrdiff_t NAME(panel_size)(const pyrnnx_parameters *p, int recurrent, int gates) {
#if HAVE_CODES
    if (p->weight_dtype == PYRNNX_WEIGHTS_CODES) return NAME(code_panel_size)(p, NAME(depth)(p, recurrent), gates);
#endif
    const ptrdiff_t scale = p->weight_dtype == PYRNNX_WEIGHTS_INT8 ? (ptrdiff_t)sizeof(float) : 0;
    return gates * LANES * (NAME(depth)(p, recurrent) * NAME(weight_size)(p->weight_dtype) + scale);
}

static size_t NAME(packed_size)(const pyrnnx_parameters *p, int recurrent) {
    size_t slack = 0;
#if HAVE_CODES
    if (p->weight_dtype == PYRNNX_WEIGHTS_CODES) slack = (size_t)(CODE_SLACK * NAME(gate_count)(p) * LANES * 4);
#endif
    return (size_t)(NAME(padded)(p) / LANES * NAME(panel_size)(p, recurrent, NAME(gate_count)(p))) + slack;
}

/* Return max |w| / 127 of a gate row; NaN if a weight is not finite. */
static float NAME(row_scale)(const REAL *row, ptrdiff_t depth) {
    REAL most = 0, check = 0;
    for (ptrdiff_t k = 0; k < depth; k++) {
        const REAL size = row[k] < 0 ? -row[k] : row[k];
        most = size > most ? size : most;
        check += row[k] - row[k];
    }
    return (float)(most / 127 + check);
}

/* Pack one panel: gates [first, first + gates) of the units from `unit` on; return its end. */
static char *NAME(pack_panel)(const pyrnnx_parameters *p, int recurrent, const REAL *source, ptrdiff_t unit, int first,
                              int gates, char *panel) {
    const ptrdiff_t H = p->hidden_size, depth = NAME(depth)(p, recurrent), units = H - unit < LANES ? H - unit : LANES;
    const ptrdiff_t bytes = LANES * NAME(weight_size)(p->weight_dtype); /* of the weights of one gate and one k */
    const int int8 = p->weight_dtype == PYRNNX_WEIGHTS_INT8;
    for (int v = 0; v < gates; v++) {
        const REAL *rows = source + (NAME(variant_of)(p)->source[first + v] * H + unit) * depth;
        float scales[LANES] = {0};
        char *out = panel + v * bytes;
        if (int8) {
            for (ptrdiff_t j = 0; j < units; j++) scales[j] = NAME(row_scale)(rows + j * depth, depth);
            memcpy(panel + v * sizeof scales, scales, sizeof scales);
            out += gates * sizeof scales;
        }
        for (ptrdiff_t k = 0; k < depth; k++) {
            REAL w[LANES] = {0};
            for (ptrdiff_t j = 0; j < units; j++) w[j] = rows[j * depth + k];
            NAME(store_weights)(p->weight_dtype, out + k * gates * bytes, w, scales);
        }
    }
    return panel + NAME(panel_size)(p, recurrent, gates);
}

static void NAME(pack_weights)(const pyrnnx_parameters *p, int recurrent, const void *source, void *packed) {
    const NAME(variant) *variant = NAME(variant_of)(p);
    char *panel = packed;
    for (ptrdiff_t unit = 0; unit < p->hidden_size; unit += LANES) {
#if HAVE_CODES
        if (p->weight_dtype == PYRNNX_WEIGHTS_CODES) {
            panel = NAME(pack_code_panel)(p, NAME(depth)(p, recurrent), source, unit, panel);
            continue;
        }
#endif
        if (!recurrent) panel = NAME(pack_panel)(p, 0, source, unit, 0, variant->gate_count, panel);
        for (int phase = 0, first = 0; recurrent && phase < variant->phases; first += variant->phase[phase++].gates)
            panel = NAME(pack_panel)(p, 1, source, unit, first, variant->phase[phase].gates, panel);
    }
}

static void NAME(pack_bias)(const pyrnnx_parameters *p, const void *source, void *packed) {
    const NAME(variant) *variant = NAME(variant_of)(p);
    const ptrdiff_t H = p->hidden_size, G = variant->gate_count;
    memset(packed, 0, (size_t)(G * NAME(padded)(p)) * sizeof(REAL));
    for (ptrdiff_t unit = 0; unit < H; unit++)
        for (ptrdiff_t gate = 0; gate < G; gate++)
            ((REAL *)packed)[(unit / LANES * G + gate) * LANES + unit % LANES] =
                ((const REAL *)source)[variant->source[gate] * H + unit] + 0;
}

static void NAME(pack_units)(const pyrnnx_parameters *p, ptrdiff_t count, const void *source, void *packed) {
    const ptrdiff_t H = p->hidden_size, Hp = NAME(padded)(p);
    memset(packed, 0, (size_t)(count * Hp) * sizeof(REAL));
    for (ptrdiff_t j = 0; j < count; j++)
        for (ptrdiff_t unit = 0; unit < H; unit++)
            ((REAL *)packed)[j * Hp + unit] = ((const REAL *)source)[j * H + unit] + 0;
}
