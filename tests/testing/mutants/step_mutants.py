"""Mutants of the loop over time: lengths, directions, axes."""

from __future__ import annotations

from mutant import table

VALID_ROWS = "rows = np.flatnonzero(lens > k)"

STEPS = table(r"""
lengths are ignored [arguments.py]
    return array.astype(np.int64) => return np.full(N, T)
    RNN-only-sequence_lens LSTM-length-0 GRUSequence-5-sequence_lengths LSTMSequence-1-length-0
a row of length 0 keeps its initial state [cells.py]
    last = {name: np.zeros((D, N, H)) for name in states} =>
    last = {name: state.copy() for name, state in states.items()}
    RNN-length-0 GRU-T=0 LSTM-all-lens-zero RNNSequence-5-length-0 LSTMSequence-5-T=0
Y holds the last state beyond a row's length [cells.py]
    Y[t, d, rows] = computed["H"] =>
    Y[t, d, rows] = computed["H"]\n            Y[k + 1 :, d, rows] = 0.0 if direction.reverse else computed["H"]
    RNN-only-sequence_lens GRUSequence-5-sequence_lengths
Y_h is the last step of Y, not the last valid one [cells.py]
    return Y, last, values => return Y, {**last, "H": Y[-1]} if T else last, values
    GRU-only-sequence_lens RNN-only-reverse LSTMSequence-5-sequence_lengths
reverse starts at the last step of X, whatever a row's length [cells.py]
    lens[rows] - 1 - k if => np.full(rows.shape, T - 1 - k) if
    RNN-only-reverse-sequence_lens GRU-only-bidirectional-sequence_lens RNNSequence-5-reverse-sequence_lengths
reverse gives Y in the order in which it is run [cells.py]
    Y[t, d, rows] = computed["H"] => Y[k, d, rows] = computed["H"]
    RNN-only-reverse LSTM-only-bidirectional GRUSequence-5-reverse LSTMSequence-5-bidirectional
the valid rows are the first ones, as if sorted by falling length [cells.py]
    rows = np.flatnonzero(lens > k) => rows = np.arange((lens > k).sum())
    RNN-ragged GRUSequence-5-sequence_lengths
ONNX: reverse is forward [onnx_operators.py]
    reverse=reverse[d] => reverse=False
    RNN-only-reverse GRU-only-bidirectional LSTM-only-reverse
OpenVINO: reverse is forward [openvino_operators.py]
    reverse=reverse[k] => reverse=False
    RNNSequence-5-reverse GRUSequence-5-bidirectional LSTMSequence-1-reverse
a reverse direction of bidirectional is forward [arguments.py]
    "bidirectional": (False, True) => "bidirectional": (False, False)
    RNN-only-bidirectional LSTMSequence-5-bidirectional
the second direction starts from the state of the first [cells.py]
    initial[d].copy() => initial[0].copy()
    RNN-bidirectional-layout0 RNNSequence-5-bidirectional
ONNX: the second direction has R of the first [onnx_operators.py]
    R=split(R[d], order) => R=split(R[0], order)
    RNN-only-bidirectional LSTM-only-bidirectional
steps after the hundredth are left out [cells.py]
    range(int(lens.max(initial=0))) => range(min(int(lens.max(initial=0)), 100))
    RNN-long LSTMSequence-5-long
OpenVINO: X as if time came first [openvino_operators.py]
    X.swapaxes(0, 1), lens => X.reshape(T, N, I), lens
    RNNSequence-5-defaults LSTMSequence-1-defaults
OpenVINO: Y is [N, T, D, H] [openvino_operators.py]
    Y.transpose(2, 1, 0, 3) => Y.transpose(2, 0, 1, 3)
    RNNSequence-5-bidirectional GRUSequence-5-defaults
OpenVINO: initial states are [D, N, H] [openvino_operators.py]
    .reshape(N, D, size).swapaxes(0, 1) => .reshape(D, N, size)
    RNNSequence-5-bidirectional LSTMSequence-1-bidirectional
OpenVINO: last states are [D, N, H] [openvino_operators.py]
    state.swapaxes(0, 1).reshape(N, *d, size) => state.reshape(N, *d, size)
    GRUSequence-5-bidirectional
layout 1 is ignored in the initial states [onnx_operators.py]
    X.swapaxes(0, 1), {name: state.swapaxes(0, 1) => X.swapaxes(0, 1), {name: state.reshape(D, N, H)
    RNN-bidirectional-layout1 LSTM-input_forget=0-bidirectional-layout1
layout 1 is ignored in the last states [onnx_operators.py]
    *(state.swapaxes(0, 1) for state in last.values())] => *last.values()]
    RNN-only-layout GRU-linear_before_reset=0-bidirectional-layout1
layout 1 is ignored in Y [onnx_operators.py]
    [Y.transpose(2, 0, 1, 3), * => [Y, *
    RNN-only-layout GRU-only-layout LSTM-only-layout
""")
