"""Mutants of sizes and numbers: boundaries, dtypes, large values, NaN."""

from __future__ import annotations

from mutant import CELLS, Mutant, table

STEP = "computed = step(direction, X[t, rows], "

VALID_ROWS = "rows = np.flatnonzero(lens > k)"

SIZES = table(r"""
axes of length 1 are dropped from the results [operators.py]
    return (*results, values) if a.steps else tuple(results) => return tuple(np.squeeze(one) for one in results)
    RNN-T1 GRU-N=1 LSTM-H=1 LSTM-all-1 RNNSequence-5-T=1 GRUCell-3-N=1 LSTMSequence-1-H=1
a single input is given to no gate [cells.py]
    computed = step(direction, X[t, rows], =>
    computed = step(direction, X[t, rows] * (X.shape[2] > 1),
    RNN-I=1 LSTMCell-1-I=1
rows after the sixteenth are left out [cells.py]
    slice(None) => slice(16)
    RNN-wide LSTMSequence-5-wide LSTMCell-1-wide
an empty batch is refused [cells.py]
    range(int(lens.max(initial=0))) => range(int(lens.max()))
    RNN-N=0 LSTM-N=0-layout1 GRU-N=0-T=0-I=0 RNNSequence-5-N=0 LSTMCell-4-N=0
no inputs: nothing is computed [cells.py]
    range(int(lens.max(initial=0))) => range(int(lens.max(initial=0)) if X.size else 0)
    RNN-I=0 LSTM-I=0 GRUSequence-5-I=0 LSTMCell-1-I=0
""")

NARROW = """

class Narrow:
    def __init__(self, x, dtype):
        self.x, self.dtype = x, dtype

    def __matmul__(self, w):
        total = np.zeros((len(self.x), w.shape[1]), self.dtype)
        for x, row in zip(self.x.T, w, strict=True):
            total = (total + np.outer(x, row)).astype(self.dtype)
        return total.astype(np.float64)
"""

NUMBERS = (
    *(
        Mutant(
            f"what X is multiplied with is summed in {dtype}",
            CELLS,
            STEP,
            f"computed = step(direction, Narrow(X[t, rows], {scalar}), ",
            (
                f"RNN-{dtype}-wide",
                f"GRU-{dtype}-wide",
                f"LSTM-{dtype}-wide",
                f"RNNSequence-5-{dtype}",
                f"LSTMCell-1-{dtype}",
            ),
            more=NARROW,
        )
        for dtype, scalar in (("float16", "np.float16"), ("bfloat16", "__import__('ml_dtypes').bfloat16"))
    ),
    *table(r"""
float64 is computed in float32 [arguments.py]
    return array.astype(np.float64) => return array.astype(np.float32).astype(np.float64)
    RNN-float64 GRU-float64-wide LSTM-float64 RNNSequence-5-float64 GRUCell-3-float64
Sigmoid of a large argument is NaN [activations.py]
    return np.where(x >= 0, 1.0, e) / (1.0 + e) => return np.exp(x) / (1.0 + np.exp(x))
    GRU-large-values LSTM-large-values GRUSequence-5-large-values LSTMCell-4-large-values
Tanh of a large argument is NaN [activations.py]
    lambda x, alpha, beta: np.tanh(x) => lambda x, alpha, beta: (np.exp(2 * x) - 1) / (np.exp(2 * x) + 1)
    RNN-large-values GRU-large-values RNNSequence-5-large-values RNNCell-1-large-values
Softplus of a large argument is infinite [activations.py]
    np.logaddexp(0.0, x) => np.log(1.0 + np.exp(x))
    RNN-large-values-Softplus GRU-large-values-Softplus
the padding is read, and multiplied by 0 [cells.py]
    computed = step(direction, X[t, rows], =>
    computed = step(direction, X[t, rows] + 0.0 * X[-1, rows],
    RNN-NaN-in-padding-forward-layout0 LSTM-NaN-in-padding-reverse-layout1 RNNSequence-5-NaN-in-padding-forward,
    LSTMSequence-1-NaN-in-padding-bidirectional
a NaN reaches the other rows, multiplied by 0 [cells.py]
    computed = step(direction, X[t, rows], =>
    computed = step(direction, X[t, rows] + 0.0 * X[t, rows].sum(axis=0),
    RNN-NaN-in-a-row GRU-NaN-in-a-row-all-inputs LSTMSequence-5-NaN-in-a-row
clip swallows a NaN [cells.py]
    if self.clip == np.inf:\n            return x\n        return np.minimum(np.maximum(x, -self.clip), self.clip) =>
    return np.fmin(np.fmax(x, -self.clip), self.clip)
    RNN-NaN-in-a-row LSTM-NaN-in-a-row GRUSequence-5-NaN-in-a-row
"""),
)
