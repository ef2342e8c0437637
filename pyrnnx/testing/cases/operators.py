"""The recurrent operators of ONNX and OpenVINO: their inputs, outputs and versions."""

from __future__ import annotations

from pyrnnx.operator.op import CellName
from pyrnnx.testing.numbers import DTYPES

OPERATORS: tuple[CellName, ...] = ("RNN", "GRU", "LSTM")  # of ONNX
# The operations of OpenVINO, by the specification's names of their versions.
SEQUENCES = ("RNNSequence-5", "GRUSequence-5", "LSTMSequence-5", "LSTMSequence-1")
STEPS = ("RNNCell-1", "GRUCell-3", "LSTMCell-4", "LSTMCell-1")  # one step of a cell, without the axes T and D
OPERATIONS = (*SEQUENCES, *STEPS)

# Inputs in the order of the operator's text.
INPUTS = {
    "RNN": ("X", "W", "R", "B", "sequence_lens", "initial_h"),
    "GRU": ("X", "W", "R", "B", "sequence_lens", "initial_h"),
    "LSTM": ("X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P"),
    "RNNSequence-5": ("X", "H", "sequence_lengths", "W", "R", "B"),
    "GRUSequence-5": ("X", "H", "sequence_lengths", "W", "R", "B"),
    "LSTMSequence-5": ("X", "H", "C", "sequence_lengths", "W", "R", "B"),
    "LSTMSequence-1": ("X", "H", "C", "sequence_lengths", "W", "R", "B", "P"),
    "RNNCell-1": ("X", "H", "W", "R", "B"),
    "GRUCell-3": ("X", "H", "W", "R", "B"),
    "LSTMCell-4": ("X", "H", "C", "W", "R", "B"),
    "LSTMCell-1": ("X", "H", "C", "W", "R", "B", "P"),
}
OUTPUTS = {
    "RNN": ("Y", "Y_h"),
    "GRU": ("Y", "Y_h"),
    "LSTM": ("Y", "Y_h", "Y_c"),
    "RNNSequence-5": ("Y", "Ho"),
    "GRUSequence-5": ("Y", "Ho"),
    "LSTMSequence-5": ("Y", "Ho", "Co"),
    "LSTMSequence-1": ("Y", "Ho", "Co"),
    "RNNCell-1": ("Ho",),
    "GRUCell-3": ("Ho",),
    "LSTMCell-4": ("Ho", "Co"),
    "LSTMCell-1": ("Ho", "Co"),
}
# optional inputs but sequence_lens
OPTIONAL: dict[str, tuple[str, ...]] = {
    "RNN": ("B", "initial_h"),
    "GRU": ("B", "initial_h"),
    "LSTM": ("B", "initial_h", "initial_c", "P"),
    **dict.fromkeys(OPERATIONS, ()),
    "LSTMSequence-1": ("P",),
    "LSTMCell-1": ("B", "P"),
}
RUNTIME_INPUTS = ("X", "sequence_lens", "initial_h", "initial_c")  # of ONNX; the others are weights


# The opsets that introduced a version of ONNX's operators.
VERSIONS = {"RNN": (1, 7, 14, 22), "GRU": (1, 3, 7, 14, 22), "LSTM": (1, 7, 14, 22)}


def version_of(operator: str, opset: int) -> str:
    """Return the operator with its version in an opset: "LSTM-14"; OpenVINO names contain it already."""
    if operator in OPERATIONS:
        return operator
    return f"{operator}-{max(first for first in VERSIONS[operator] if first <= opset)}"


def opset_dtypes(opset: int) -> tuple[str, ...]:
    """Return the dtypes of an ONNX opset."""
    return DTYPES if opset >= 22 else DTYPES[:-1]
