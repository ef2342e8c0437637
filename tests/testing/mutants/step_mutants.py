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
reverse is forward [operators.py]
    reverse=reverse[d] => reverse=False
    RNN-only-reverse GRU-only-bidirectional LSTM-only-reverse RNNSequence-5-reverse GRUSequence-5-bidirectional,
    LSTMSequence-1-reverse
a reverse direction of bidirectional is forward [arguments.py]
    "bidirectional": (False, True) => "bidirectional": (False, False)
    RNN-only-bidirectional LSTMSequence-5-bidirectional
the second direction starts from the state of the first [cells.py]
    initial[d].copy() => initial[0].copy()
    RNN-bidirectional-layout0 RNNSequence-5-bidirectional
the second direction has R of the first [operators.py]
    R=split(R[d], order) => R=split(R[0], order)
    RNN-only-bidirectional LSTM-only-bidirectional
steps after the hundredth are left out [cells.py]
    range(int(lens.max(initial=0))) => range(min(int(lens.max(initial=0)), 100))
    RNN-long LSTMSequence-5-long
OpenVINO: X as if time came first [operators.py]
    X="NTI",\n    Y="NDTH" => X="TNI",\n    Y="NDTH"
    RNNSequence-5-defaults LSTMSequence-1-defaults
OpenVINO: Y is [N, T, D, H] [operators.py]
    "NDTH" => "NTDH"
    RNNSequence-5-bidirectional GRUSequence-5-defaults
initial states are [D, N, H] [operators.py]
    canonical(name, form.state, "DNH") => canonical(name, form.state, form.state).reshape(D, N, H)
    RNNSequence-5-bidirectional LSTMSequence-1-bidirectional RNN-bidirectional-layout1,
    LSTM-input_forget=0-bidirectional-layout1
last states are [D, N, H] [operators.py]
    _arranged(state, "DNH", form.state) => state if not is_cell else state[0]
    GRUSequence-5-bidirectional RNN-only-layout GRU-linear_before_reset=0-bidirectional-layout1
layout 1 is ignored in Y [operators.py]
    Y="NTDH" => Y="TDNH"
    RNN-only-layout GRU-only-layout LSTM-only-layout
""")
