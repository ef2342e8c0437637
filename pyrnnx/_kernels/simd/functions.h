/* clang-format off */
/* Elementary functions on a vector V of REAL, with errors of at most 2 ulp. NaN returns NaN.
 *
 *   expm1(x) = 2^n q + (2^n - 1)      x = n ln2 + r, |r| <= ln2/2,  q = expm1(r) = r + r^2 P(r)
 *   exp(x)   = 2^n (1 + q)
 *   tanh(x)  = x + x w T(w), w = x^2                            |x| < 0.55
 *            = sign(x) (1 - 2t / (1 + t)), t = exp(-2|x|)       else
 *   sigmoid(x) = (x < 0 ? t : 1) / (1 + t)                         t = exp(-|x|)
 *   log1p(t) = v + v w L(w)                       v = 2t / (2 + t), w = v^2/4, 0 <= t <= 1
 *   softplus(x) = max(x, 0) + log1p(exp(-|x|))
 *
 * The usual cells compute fractions, in shorter chains of operations:
 *
 *   sigmoid(x) as above, in float by P(x - n LN2_HIGH) with FMA; error at most 4 ulp
 *   tanh(x) = x N(w) / D(w), w = x^2, |x| <= ONE_AT                         float; error at most 5 ulp, 6 without FMA
 *           = -sign(x) e / (2 + e), e = expm1(-2|x|)                        double; error at most 3 ulp
 *
 * Their mean errors in float are below 0.1 ulp in any interval of width 1 between -8 and 8, because a state that many
 * steps keep adds them up.
 *
 * Their numerators and denominators are small, so that a cell can multiply fractions, and divides only once for several
 * gates. benchmarks/coefficients.py computes the coefficients of P, T, L, N and D.
 */
/* clang-format on */
#ifndef PYRNNX_FUNCTIONS_CONSTANTS
#define PYRNNX_FUNCTIONS_CONSTANTS
#define COEFFICIENTS_float_EXP {0.5f, 1.6666543e-1f, 4.1666284e-2f, 8.366624e-3f, 1.3946164e-3f}
#define COEFFICIENTS_float_LOG1P {3.3333337e-1f, 1.9999444e-1f, 1.4308293e-1f, 1.0715372e-1f, 1.2144946e-1f}
#define COEFFICIENTS_float_TANH {-3.333332e-1f, 1.3332604e-1f, -5.385416e-2f, 2.1079006e-2f, -6.2841983e-3f}
#define COEFFICIENTS_float_TANH_NUMERATOR {1.7675781e+0f, 2.4360037e-1f, 7.0768413e-3f, 5.5650427e-5f, 8.907037e-8f}
#define COEFFICIENTS_float_TANH_DENOMINATOR \
    {1.7675781e+0f, 8.3279306e-1f, 4.8997473e-2f, 7.4215105e-4f, 2.8445997e-6f, 1.2902525e-9f}
#define COEFFICIENTS_double_EXP \
    {0.5000000000000006,    0.16666666666666685,   0.04166666666657193,    0.00833333333331526, \
     0.001388888893293656,  0.0001984126990140818, 2.4801503761896342e-05, 2.7557229479148753e-06, \
     2.762660535669355e-07, 2.511397684141039e-08}
#define COEFFICIENTS_double_LOG1P \
    {0.33333333333333337, 0.1999999999999699,  0.14285714286254697, 0.1111111106276759, \
     0.09090911599903602, 0.07692226009584917, 0.06668402153265532, 0.05857983644525145, \
     0.05486227176897536, 0.0349733753177968,  0.08233466474713158}
#define COEFFICIENTS_double_TANH \
    {-0.333333333333333,      0.13333333333326822,   -0.05396825396387171,   0.02186948838889047, \
     -0.008863232648978661,   0.0035920924907789408, -0.0014555456950068673, 0.0005884557812698184, \
     -0.00023340931366390216, 8.335491722423061e-05, -1.951769508623311e-05}
/* ln2 = LN2_HIGH + LN2_LOW; n LN2_HIGH is exact unless FMA does not round it. exp is subnormal below DENORMAL_AT and 0
 * below UNDERFLOW_AT; expm1 is -1 beyond MINUS_ONE_AT; the tanh of a float is 1 from ONE_AT on. The bits of MAGIC + n
 * shifted left by MANTISSA are 2^n; those of DENORMAL_MAGIC + n are 2^n / UNSCALE, normal for every n. */
#define CONSTANT_float_MANTISSA 23
#define CONSTANT_float_MAGIC (0x1.8p23f + 127)
#define CONSTANT_float_DENORMAL_MAGIC (0x1.8p23f + 127 + 24)
#define CONSTANT_float_UNSCALE 0x1p-24f
#if ROUNDS_PRODUCTS
#define CONSTANT_float_LN2_HIGH 0.693145751953125f
#define CONSTANT_float_LN2_LOW 1.4286068e-6f
#define CONSTANT_double_LN2_HIGH 0.693147180559663
#define CONSTANT_double_LN2_LOW 2.8235290563031577e-13
#else
#define CONSTANT_float_LN2_HIGH 0.693147182464599609375f
#define CONSTANT_float_LN2_LOW -1.9046543e-9f
#define CONSTANT_double_LN2_HIGH 0.6931471805599453
#define CONSTANT_double_LN2_LOW 2.3190468138462996e-17
#endif
#define CONSTANT_float_DENORMAL_AT -87.0f
#define CONSTANT_float_UNDERFLOW_AT -104.0f
#define CONSTANT_float_MINUS_ONE_AT -20.0f
#define CONSTANT_float_ONE_AT 9.1f
#define CONSTANT_float_TANH_HAS_RATIO 1
#define CONSTANT_double_MANTISSA 52
#define CONSTANT_double_MAGIC (0x1.8p52 + 1023)
#define CONSTANT_double_DENORMAL_MAGIC (0x1.8p52 + 1023 + 53)
#define CONSTANT_double_UNSCALE 0x1p-53
#define CONSTANT_double_DENORMAL_AT -708.0
#define CONSTANT_double_UNDERFLOW_AT -745.2
#define CONSTANT_double_MINUS_ONE_AT -40.0
#define CONSTANT_double_TANH_HAS_RATIO 0
#define CONSTANT(name) PX_CAT(CONSTANT, REAL, name)
#define COEFFICIENTS(name) PX_CAT(COEFFICIENTS, REAL, name)
#endif

INLINE V NAME(polynomial)(const REAL *c, const int count, V x) {
    V sum = SET1(c[count - 1]);
#pragma GCC unroll 16
    for (int j = count - 2; j >= 0; j--) sum = FMA(sum, x, SET1(c[j]));
    return sum;
}

/* Split factor x, factor a power of 2, into n ln2 + r; set high to x - n LN2_HIGH, of which r is the rest, and scale to
 * the number whose bits are magic + n shifted to the exponent. */
INLINE V NAME(reduced)(const REAL magic, const REAL factor, V x, V *high, V *scale) {
    V shifted = FMA(x, SET1(factor * (REAL)1.4426950408889634), SET1(magic)), n = shifted - SET1(magic);
    *high = FMA(n, SET1(-CONSTANT(LN2_HIGH)), SET1(factor) * x);
    *scale = (V)((I)shifted << CONSTANT(MANTISSA));
    return FMA(n, SET1(-CONSTANT(LN2_LOW)), *high);
}

INLINE V NAME(reduced_expm1)(const REAL magic, const REAL factor, V x, V *scale) /* expm1(r) */
{
    static const REAL c[] = COEFFICIENTS(EXP);
    V high, r = NAME(reduced)(magic, factor, x, &high, scale);
    return FMA(r * r, NAME(polynomial)(c, (int)(sizeof c / sizeof *c), r), r);
}

/* expm1(r) = r + square P in a short chain of operations; return P. It has Horner's rule over pairs of terms and, in
 * float with FMA, the argument x - n LN2_HIGH in place of r; the difference is below a rounding. */
INLINE V NAME(expm1_terms)(const REAL factor, V x, V *scale, V *r, V *square) {
    static const REAL c[] = COEFFICIENTS(EXP);
    enum { COUNT = sizeof c / sizeof *c };
    V high;
    *r = NAME(reduced)(CONSTANT(MAGIC), factor, x, &high, scale);
    V near = sizeof(REAL) == sizeof(float) && !ROUNDS_PRODUCTS ? high : *r, w = near * near;
    V sum = COUNT % 2 ? SET1(c[COUNT - 1]) : FMA(SET1(c[COUNT - 1]), near, SET1(c[COUNT - 2]));
#pragma GCC unroll 16
    for (int j = (COUNT - 1) / 2 * 2 - 2; j >= 0; j -= 2) sum = FMA(sum, w, FMA(SET1(c[j + 1]), near, SET1(c[j])));
    *square = w;
    return sum;
}

INLINE V NAME(exp)(V x, V *low) /* x <= 0; low: the rounding error of 1 + q */
{
    V scale, q = NAME(reduced_expm1)(CONSTANT(DENORMAL_MAGIC), 1, AT_LEAST(SET1(CONSTANT(UNDERFLOW_AT)), x), &scale);
    V high = FMA(q, scale, scale);
    *low = FMA(q, scale, scale - high) * SET1(CONSTANT(UNSCALE));
    return high * SET1(CONSTANT(UNSCALE));
}

INLINE V NAME(expm1)(V x) /* x <= 0 */
{
    V scale, q = NAME(reduced_expm1)(CONSTANT(MAGIC), 1, AT_LEAST(SET1(CONSTANT(MINUS_ONE_AT)), x), &scale);
    return FMA(q, scale, scale - SET1(1));
}

INLINE V NAME(abs)(V x) { return SELECT_NEGATIVE(x, -x, x); }
INLINE V NAME(minus_abs)(V x) { return (V)((I)x | (I)SET1(-0.0)); }
INLINE V NAME(copy_sign)(V x, V sign) { return (V)(((I)x & ~(I)SET1(-0.0)) | ((I)sign & (I)SET1(-0.0))); }

/* Fractions, so that gates can share divisions. A step of a small layer takes as long as its chain of operations, so
 * the chains are short. */

/* exp(-|x|), and the denominator 1 + exp(-|x|), which is computed from its parts so that a division can start. */
INLINE V NAME(exp_fraction)(V x, V *denominator) {
    V size = AT_LEAST(SET1(CONSTANT(DENORMAL_AT)), NAME(minus_abs)(x)); /* t is never subnormal */
    V scale, r, square, P = NAME(expm1_terms)(1, size, &scale, &r, &square), q = FMA(square, P, r);
    *denominator = FMA(q, scale, scale + SET1(1));
    return FMA(q, scale, scale);
}

/* Numerator and denominator of a saturated gate are 1. */
INLINE V NAME(sigmoid_fraction)(V x, V *denominator) {
    V t = NAME(exp_fraction)(x, denominator);
    return SELECT_NEGATIVE(x, t, SET1(1));
}

/* For a gate that multiplies a state in each step: a slow leak, 1 - sigmoid, keeps its rate. */
INLINE V NAME(sigmoid_quotient)(V x) {
    V D, t = NAME(exp_fraction)(x, &D), s = t / D;
    return SELECT_NEGATIVE(x, s, SET1(1) - s);
}

INLINE V NAME(tanh_fraction)(V x, V *denominator) /* the last bits of a ratio's numerator may exceed the denominator */
{
#if CONSTANT(TANH_HAS_RATIO)
    static const REAL n[] = COEFFICIENTS(TANH_NUMERATOR), d[] = COEFFICIENTS(TANH_DENOMINATOR);
    const V end = SET1(CONSTANT(ONE_AT));
    V y = AT_MOST(end, AT_LEAST(-end, x)), w = AT_MOST(end * end, x * x), square = w * w;
    V N = FMA(FMA(SET1(n[4]), square, FMA(SET1(n[3]), w, SET1(n[2]))), y * square, y * FMA(SET1(n[1]), w, SET1(n[0])));
    V top = FMA(FMA(SET1(d[5]), w, SET1(d[4])), square, FMA(SET1(d[3]), w, SET1(d[2])));
    *denominator = FMA(top, square, FMA(SET1(d[1]), w, SET1(d[0])));
    return N;
#else
    V size = AT_LEAST(SET1(CONSTANT(MINUS_ONE_AT) / 2), NAME(minus_abs)(x));
    V scale, r, square, P = NAME(expm1_terms)(2, size, &scale, &r, &square), q = FMA(square, P, r);
    *denominator = FMA(q, scale, scale + SET1(1));
    return NAME(copy_sign)(FMA(q, scale, scale - SET1(1)), x);
#endif
}

INLINE V NAME(at_most_one)(V x) { return AT_MOST(SET1(1), AT_LEAST(SET1(-1), x)); }

INLINE V NAME(tanh_quotient)(V x) {
    V D, N = NAME(tanh_fraction)(x, &D);
    return NAME(at_most_one)(N / D);
}

INLINE V NAME(tanh)(V x) {
    static const REAL c[] = COEFFICIENTS(TANH);
    V size = NAME(abs)(x), w = size * size, scale;
    V small = FMA(size * w, NAME(polynomial)(c, (int)(sizeof c / sizeof *c), w), size);
    V q = NAME(reduced_expm1)(CONSTANT(MAGIC), 2, AT_LEAST(SET1(CONSTANT(MINUS_ONE_AT) / 2), -size), &scale),
      t = FMA(q, scale, scale);
    V large = SET1(1) - (t + t) / (SET1(1) + t);
    return NAME(copy_sign)(SELECT_LESS(size, SET1(0.55), small, large), x);
}

/* s = t / (1 + t), corrected to first order for the rounding errors of t and 1 + t; 1 - s for x >= 0. */
INLINE V NAME(sigmoid)(V x) {
    V t_low, t = NAME(exp)(NAME(minus_abs)(x), &t_low), D = SET1(1) + t, D_low = t - (D - SET1(1)) + t_low, s = t / D;
    s = FMA(FMA(-s, D_low, t_low), SET1(1) - s, s);
    return SELECT_NEGATIVE(x, s, SET1(1) - s);
}

INLINE V NAME(softplus)(V x) {
    static const REAL c[] = COEFFICIENTS(LOG1P);
    V t_low, t = NAME(exp)(NAME(minus_abs)(x), &t_low), D = SET1(2) + t, D_low = t - (D - SET1(2)) + t_low,
             v = (t + t) / D;
    V lost = FMA(-v, D, t + t) + FMA(-v, D_low, t_low + t_low),
      v_low = lost * FMA(v, SET1(-0.25), SET1(0.5)); /* lost / D */
    V w = SET1(0.25) * v * v, log1p = v + FMA(v * w, NAME(polynomial)(c, (int)(sizeof c / sizeof *c), w), v_low);
    return AT_LEAST(SET1(0), x) + log1p;
}

INLINE V NAME(softsign)(V x) /* bounded to avoid infinity / infinity */
{
    V bounded = AT_MOST(SET1(0x1p100), AT_LEAST(SET1(-0x1p100), x));
    return bounded / (SET1(1) + NAME(abs)(bounded));
}

/* One formula for each activation function of tables.h. */
#define FORMULA(function) INLINE V NAME(function)(V alpha, V beta, V x)
FORMULA(Relu) { return AT_LEAST(SET1(0), x); }
FORMULA(Tanh) { return NAME(tanh)(x); }
FORMULA(Sigmoid) { return NAME(sigmoid)(x); }
FORMULA(Affine) { return FMA(alpha, x, beta); }
FORMULA(LeakyRelu) { return SELECT_LESS(x, SET1(0), alpha * x, x); }
FORMULA(ThresholdedRelu) { return SELECT_LESS(x, alpha, SET1(0), x); }
FORMULA(ScaledTanh) { return alpha * NAME(tanh)(beta * x); }
FORMULA(HardSigmoid) { return AT_MOST(SET1(1), AT_LEAST(SET1(0), FMA(alpha, x, beta))); }
FORMULA(Elu) { return SELECT_LESS(x, SET1(0), alpha * NAME(expm1)(AT_MOST(SET1(0), x)), x); }
FORMULA(Softsign) { return NAME(softsign)(x); }
FORMULA(Softplus) { return NAME(softplus)(x); }
#undef FORMULA

/* One loop for each row of tables.h: a <- f(a) for count vectors, stride elements apart. sizeof turns a missing formula
 * into an error that names it; C would otherwise declare it implicitly. */
#define LOOP(function, ...) \
    static void NAME(loop_##function)(const pyrnnx_activation *f, REAL *a, ptrdiff_t stride, ptrdiff_t count) { \
        const V alpha = SET1((REAL)f->alpha), beta = SET1((REAL)f->beta); \
        (void)sizeof(&NAME(function)); \
        for (ptrdiff_t j = 0; j < count; j++) \
            STORE(a + j * stride, NAME(function)(alpha, beta, LOAD(a + j * stride))); \
    }
#define LIST_LOOP(function, ...) NAME(loop_##function),
PYRNNX_ACTIVATIONS(LOOP)
static void (*const NAME(loops)[])(const pyrnnx_activation *, REAL *, ptrdiff_t,
                                   ptrdiff_t) = {PYRNNX_ACTIVATIONS(LIST_LOOP)};

INLINE void NAME(activate)(const pyrnnx_activation *f, REAL *a, ptrdiff_t stride, ptrdiff_t count) {
    NAME(loops)[f->number](f, a, stride, count);
}
