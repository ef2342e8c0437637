/* One formula for each activation function of tables.h, on one REAL. activations.h includes this file for float and for
   double; it defines NAME(x), which appends REAL to a name, and MATH(f), the C library's f for REAL.

   Formulas are valid for all arguments: they do not overflow if the result is finite, are accurate near zero, and
   return NaN for NaN. 1.0 is a double, so that quotients of floats are rounded once. */
#define FORMULA(function) static inline REAL NAME(function)(REAL x, REAL alpha, REAL beta)

FORMULA(Relu) { return x < 0 ? 0 : x; }

FORMULA(Tanh) { return MATH(tanh)(x); }

FORMULA(Sigmoid) {
    const REAL e = MATH(exp)(-MATH(fabs)(x)); /* in [0, 1]: neither tail overflows */
    const REAL numerator[] = {1, e};          /* no branch, because signs are random */
    return (REAL)(numerator[x < 0] / (1.0 + e));
}

FORMULA(Affine) { return alpha * x + beta; }

FORMULA(LeakyRelu) { return x >= 0 ? x : alpha * x; }

FORMULA(ThresholdedRelu) { return x < alpha ? 0 : x; }

FORMULA(ScaledTanh) { return alpha * MATH(tanh)(beta * x); }

FORMULA(HardSigmoid) {
    const REAL y = alpha * x + beta;
    return y < 0 ? 0 : y > 1 ? 1 : y;
}

FORMULA(Elu) { return x >= 0 ? x : alpha * MATH(expm1)(x); }

FORMULA(Softsign) {
    if (isinf(x)) return x > 0 ? 1 : -1; /* the limit; inf/inf would be NaN */
    return (REAL)(x / (1.0 + MATH(fabs)(x)));
}

FORMULA(Softplus) { return (x < 0 ? 0 : x) + MATH(log1p)(MATH(exp)(-MATH(fabs)(x))); }

#undef FORMULA
