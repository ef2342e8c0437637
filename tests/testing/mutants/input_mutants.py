"""Mutants of what the operators are given: optional inputs, the flags that change their meaning, hidden_size."""

from __future__ import annotations

from mutant import ARGUMENTS, CELLS, ONNX, OPENVINO, Mutant

INPUTS = (
    Mutant(
        "ONNX: B of W is ignored",
        ONNX,
        "Wb=split(Wb[d], order)",
        "Wb=split(0 * Wb[d], order)",
        ("RNN-only-B", "GRU-only-B"),
    ),
    Mutant(
        "ONNX: B of R is ignored",
        ONNX,
        "Rb=split(Rb[d], order)",
        "Rb=split(0 * Rb[d], order)",
        ("RNN-only-B", "LSTM-only-B"),
    ),
    Mutant(
        "OpenVINO: B is ignored",
        OPENVINO,
        "**split_bias(B[k], ",
        "**split_bias(0 * B[k], ",
        tuple(
            f"{one}-input-B" for one in ("RNNSequence-5", "GRUSequence-5", "LSTMSequence-1", "GRUCell-3", "LSTMCell-1")
        ),
    ),
    Mutant(
        "the initial state h is ignored",
        CELLS,
        "initial[d].copy()",
        'initial[d] * (name != "H")',
        (
            "RNN-only-initial_h",
            "GRU-only-initial_h",
            "LSTM-only-initial_h",
            "RNNSequence-5-input-H",
            "LSTMCell-1-input-H",
        ),
    ),
    Mutant(
        "the initial state c is ignored",
        CELLS,
        "initial[d].copy()",
        'initial[d] * (name != "C")',
        (
            "LSTM-only-initial_c",
            "LSTMSequence-5-input-C",
            "LSTMSequence-1-input-C",
            "LSTMCell-4-input-C",
            "LSTMCell-1-input-C",
        ),
    ),
    Mutant("ONNX: P is ignored", ONNX, "P=split(P[d], ", "P=split(0 * P[d], ", ("LSTM-only-P",)),
    Mutant(
        "OpenVINO: P is ignored",
        OPENVINO,
        "P=split(P[k], ",
        "P=split(0 * P[k], ",
        ("LSTMSequence-1-P-forward", "LSTMCell-1-P"),
    ),
    *(
        Mutant(f"ONNX: P in the order {order}", ONNX, 'PEEPHOLES = "iof"', f'PEEPHOLES = "{order}"', ("LSTM-only-P",))
        for order in ("ifo", "oif", "foi")
    ),
    *(
        Mutant(
            f"OpenVINO: P in the order {order}",
            OPENVINO,
            'PEEPHOLES = "fio"',
            f'PEEPHOLES = "{order}"',
            ("LSTMSequence-1-P-forward", "LSTMSequence-1-P-reverse", "LSTMCell-1-P"),
        )
        for order in ("iof", "ifo", "foi")
    ),
    Mutant(
        "P of o looks at C before the step", CELLS, 'P["o"] * Ct +', 'P["o"] * Ct_1 +', ("LSTM-only-P", "LSTMCell-1-P")
    ),
    Mutant("P of f looks at nothing", CELLS, 'P["f"] * Ct_1 +', "", ("LSTM-only-P", "LSTMSequence-1-P-bidirectional")),
    Mutant(
        "ONNX: input_forget is ignored",
        ONNX,
        'coupled_gate=coupled_gate if input_forget else ""',
        'coupled_gate=""',
        ("LSTM-input_forget=1-bias", "LSTM-opset1-input_forget", "LSTM-opset7-input_forget"),
    ),
    Mutant(
        "ONNX: input_forget computes i, not f",
        ONNX,
        'coupled_gate=coupled_gate if input_forget else ""',
        'coupled_gate="i" if input_forget else ""',
        ("LSTM-input_forget=1-bias",),
    ),
    Mutant(
        "OpenVINO: input_forget is ignored",
        OPENVINO,
        'coupled_gate="i" if input_forget',
        'coupled_gate="" if input_forget',
        ("LSTMSequence-1-input_forget-forward", "LSTMCell-1-input_forget"),
    ),
    Mutant(
        "OpenVINO: input_forget computes f, not i",
        OPENVINO,
        'coupled_gate="i" if input_forget',
        'coupled_gate="f" if input_forget',
        (
            "LSTMSequence-1-input_forget-reverse",
            "LSTMSequence-1-input_forget-P-clip-reverse",
            "LSTMCell-1-input_forget",
            "LSTMCell-1-input_forget-relu",
        ),
    ),
    Mutant(
        "without hidden_size there is no answer",
        ARGUMENTS,
        "if given is not None and given != H:",
        "if given != H:",
        ("RNN-hidden_size-left-out", "GRU-hidden_size-left-out", "LSTM-hidden_size-left-out", "GRU-opset1-defaults"),
    ),
    Mutant(
        "output_sequence is not known",
        ONNX,
        'arguments.one_of(operator, "output_sequence", output_sequence, (0, 1))',
        'arguments.one_of(operator, "output_sequence", output_sequence, (0,))',
        ("RNN-opset1-output_sequence=1", "LSTM-opset6-output_sequence=1", "GRU-opset3-all-attributes"),
    ),
)
