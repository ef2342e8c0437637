"""Mutants of the operators' arguments: optional inputs, flags, hidden_size."""

from __future__ import annotations

from mutant import OPERATORS, Mutant, table

INPUTS = (
    *(
        Mutant(f"ONNX: P in the order {order}", OPERATORS, 'peepholes="iof"', f'peepholes="{order}"', ("LSTM-only-P",))
        for order in ("ifo", "oif", "foi")
    ),
    *(
        Mutant(
            f"OpenVINO: P in the order {order}",
            OPERATORS,
            'peepholes="fio"',
            f'peepholes="{order}"',
            ("LSTMSequence-1-P-forward", "LSTMSequence-1-P-reverse", "LSTMCell-1-P"),
        )
        for order in ("iof", "ifo", "foi")
    ),
    *table(r"""
ONNX: B of W is ignored [operators.py]
    return split(Wb, order) => return split(0 * Wb, order)
    RNN-only-B GRU-only-B
ONNX: B of R is ignored [operators.py]
    split(Rb, order) => split(0 * Rb, order)
    RNN-only-B LSTM-only-B
B is ignored [operators.py]
    _biases(B[d], => _biases(0 * B[d],
    RNNSequence-5-input-B GRUSequence-5-input-B LSTMSequence-1-input-B GRUCell-3-input-B LSTMCell-1-input-B
the initial state h is ignored [cells.py]
    initial[d].copy() => initial[d] * (name != "H")
    RNN-only-initial_h GRU-only-initial_h LSTM-only-initial_h RNNSequence-5-input-H LSTMCell-1-input-H
the initial state c is ignored [cells.py]
    initial[d].copy() => initial[d] * (name != "C")
    LSTM-only-initial_c LSTMSequence-5-input-C LSTMSequence-1-input-C LSTMCell-4-input-C LSTMCell-1-input-C
P is ignored [operators.py]
    P=split(P[d], => P=split(0 * P[d],
    LSTM-only-P LSTMSequence-1-P-forward LSTMCell-1-P
P of o looks at C before the step [cells.py]
    P["o"] * Ct + => P["o"] * Ct_1 +
    LSTM-only-P LSTMCell-1-P
P of f looks at nothing [cells.py]
    P["f"] * Ct_1 + => 0 +
    LSTM-only-P LSTMSequence-1-P-bidirectional
input_forget is ignored [operators.py]
    coupled_gate="" if not a.input_forget => coupled_gate="" if True
    LSTM-input_forget=1-bias LSTM-opset1-input_forget LSTM-opset7-input_forget LSTMSequence-1-input_forget-forward,
    LSTMCell-1-input_forget
ONNX: input_forget computes i, not f [operators.py]
    else a.coupled_gate if is_onnx else "i" => else "i"
    LSTM-input_forget=1-bias
OpenVINO: input_forget computes f, not i [operators.py]
    else a.coupled_gate if is_onnx else "i" => else "f"
    LSTMSequence-1-input_forget-reverse LSTMSequence-1-input_forget-P-clip-reverse LSTMCell-1-input_forget,
    LSTMCell-1-input_forget-relu
without hidden_size there is no answer [arguments.py]
    if declared is not None and declared != H: => if declared != H:
    RNN-hidden_size-left-out GRU-hidden_size-left-out LSTM-hidden_size-left-out GRU-opset1-defaults
output_sequence is not known [operators.py]
    getattr(a, name), (0, 1)) => getattr(a, name), (0,) if name == "output_sequence" else (0, 1))
    RNN-opset1-output_sequence=1 LSTM-opset6-output_sequence=1 GRU-opset3-all-attributes
"""),
)
