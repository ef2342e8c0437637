/* Vectors of packed weights: REAL, bfloat16 (the upper half of a float, rounded to nearest even), or int8 times a
 * scale. */
INLINE int NAME(weight_size)(const int weight_dtype) {
    return weight_dtype == PYRNNX_WEIGHTS_FULL ? (int)sizeof(REAL) : weight_dtype == PYRNNX_WEIGHTS_BFLOAT16 ? 2 : 1;
}

INLINE V NAME(load_weights)(const int weight_dtype, const char *p) {
#if HAVE_REDUCED_WEIGHTS
    if (weight_dtype == PYRNNX_WEIGHTS_BFLOAT16) return (V)ISA_LOAD_BFLOAT16(p);
    if (weight_dtype == PYRNNX_WEIGHTS_INT8) return (V)ISA_LOAD_INT8(p);
#else
    (void)weight_dtype;
#endif
    return LOAD((const REAL *)p);
}

/* Write the L weights of one gate and one k; scale: int8 only. */
static void NAME(store_weights)(int weight_dtype, char *p, const REAL *w, const float *scale) {
    for (int j = 0; j < LANES; j++)
        if (weight_dtype == PYRNNX_WEIGHTS_FULL)
            memcpy(p + j * sizeof(REAL), w + j, sizeof(REAL));
        else if (weight_dtype == PYRNNX_WEIGHTS_BFLOAT16) {
            const float value = (float)w[j];
            unsigned bits;
            memcpy(&bits, &value, 4);
            const unsigned short upper =
                (unsigned short)(value != value ? 0x7fc0 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
            memcpy(p + 2 * j, &upper, 2);
        } else { /* a row that is not finite has a NaN scale and arbitrary integers */
            const float q = scale[j] > 0 ? (float)w[j] / scale[j] : 0;
            p[j] = (char)(signed char)(q < 0 ? q - 0.5f : q + 0.5f);
        }
}

INLINE V NAME(load_scales)(const char *p) /* int8 exists for float only */
{
    return LOAD((const REAL *)(const void *)p);
}
