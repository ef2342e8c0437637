/* A model in C of the processor's matrices: load, dot product of bfloat16 pairs, store. Tests use it on machines
 * without matrices, and compare the matrices of others with it.
 *
 *   even = 0, odd = 0                                              float32, each of 16 columns of each row
 *   for each pair k   even += a[row][2k]     * b[k][2 column]       rounded once, to nearest, ties to even
 *                     odd  += a[row][2k + 1] * b[k][2 column + 1]
 *   c[row][column] += even + odd                                   rounded twice
 *
 * Subnormal operands, sums and results become zero with their sign.
 */
typedef struct {
    matrix_shapes shapes;
    unsigned char matrix[8][MATRIX_ROWS][MATRIX_BYTES];
} matrix_unit;

static void model_load(matrix_unit *m, int n, const void *from, ptrdiff_t stride) {
    memset(m->matrix[n], 0, sizeof m->matrix[n]);
    for (int r = 0; r < m->shapes.rows[n]; r++)
        memcpy(m->matrix[n][r], (const char *)from + r * stride, m->shapes.row_bytes[n]);
}

static void model_store(const matrix_unit *m, int n, void *to, ptrdiff_t stride) {
    for (int r = 0; r < m->shapes.rows[n]; r++)
        memcpy((char *)to + r * stride, m->matrix[n][r], m->shapes.row_bytes[n]);
}

static double widened_bfloat16(const unsigned char *at) {
    unsigned short upper;
    memcpy(&upper, at, 2);
    const unsigned bits = (upper & 0x7f80 ? (unsigned)upper : upper & 0x8000u) << 16;
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

/* Round an exact sum or product to float; flush it to zero if, rounded with unbounded exponent, it is subnormal. */
static float rounded_flushed(double x) {
    if (x > -0x1p-125 && x < 0x1p-125) {
        const float scaled = (float)(x * 0x1p64);
        if (scaled > -0x1p-62f && scaled < 0x1p-62f) return signbit(x) ? -0.0f : 0.0f;
    }
    return (float)x;
}

static void add_products(float *sums, double x, const double *weights) {
    double exact[16];
    int tiny = 0;
    for (int n = 0; n < 16; n++) {
        exact[n] = x * weights[n] + (double)sums[n];
        tiny |= (exact[n] < 0x1p-125) & (exact[n] > -0x1p-125);
    }
    for (int n = 0; n < 16; n++) sums[n] = (float)exact[n];
    for (int n = 0; n < 16 && tiny; n++) sums[n] = rounded_flushed(exact[n]);
}

static void model_dot(matrix_unit *m, int c, int a, int b) {
    double weights[2][MATRIX_ROWS][16];
    const int pairs = m->shapes.row_bytes[a] / 4;
    for (int k = 0; k < pairs; k++)
        for (int n = 0; n < 32; n++) weights[n % 2][k][n / 2] = widened_bfloat16(m->matrix[b][k] + 2 * n);
    for (int r = 0; r < m->shapes.rows[c]; r++) {
        float sums[2][16] = {{0}}, total[16];
        for (int k = 0; k < 2 * pairs; k++) {
            const double x = widened_bfloat16(m->matrix[a][r] + 2 * k);
            add_products(sums[k % 2], x, weights[k % 2][k / 2]);
        }
        memcpy(total, m->matrix[c][r], sizeof total);
        for (int n = 0; n < 16; n++)
            total[n] = rounded_flushed((double)rounded_flushed(total[n]) +
                                       rounded_flushed((double)sums[0][n] + (double)sums[1][n]));
        memcpy(m->matrix[c][r], total, sizeof total);
    }
}
