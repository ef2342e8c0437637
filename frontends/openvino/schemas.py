"""Table of OpenVINO's recurrent operations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from pyrnnx.operator.conventions import (
    OPENVINO_CELL,
    OPENVINO_CELL_1,
    OPENVINO_SEQUENCE,
    OPENVINO_SEQUENCE_1,
    Convention,
)
from pyrnnx.operator.op import CELLS, CellName

WEIGHTS = ("W", "R", "B", "P")
# Attributes of version 1 only, and the values without effect.
NEUTRAL: Mapping[str, Any] = MappingProxyType({"input_forget": False, "weights_format": "fico"})
_COMMON = ("hidden_size", "activations", "activations_alpha", "activations_beta", "clip")


@dataclass(frozen=True)
class Operation:
    """A row of the table of operations.

    Attributes
    ----------
    type : str
        Type in `<layer type="...">`.
    cell : str
        "RNN", "GRU" or "LSTM".
    convention : Convention
    inputs, outputs : tuple of str
        Canonical (ONNX) names in port order.
    attributes : tuple of str
    first_opset : int
        The opset that introduced this version of the operation.
    optional : int
        Number of last inputs that may be absent.
    """

    type: str
    cell: CellName
    convention: Convention
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: tuple[str, ...]
    first_opset: int
    optional: int = 0

    @property
    def versioned_name(self) -> str:
        """The specification's name of this version: "LSTMSequence-5"."""
        return f"{self.type}-{self.first_opset}"

    @property
    def input_names(self) -> tuple[str, ...]:
        """The operation's own names of its inputs, in port order."""
        return tuple(self.convention.name_of(argument) for argument in self.inputs)

    @property
    def output_names(self) -> tuple[str, ...]:
        return tuple(self.convention.name_of(argument) for argument in self.outputs)


def _operation(cell: CellName, kind: str, first_opset: int) -> Operation:
    sequence = kind == "Sequence"
    states = ("initial_h", "initial_c") if CELLS[cell].has_cell_state else ("initial_h",)
    last = ("Y_h", "Y_c")[: len(states)]
    weights = ("W", "R", "B")
    return Operation(
        type=f"{cell}{kind}",
        cell=cell,
        convention=OPENVINO_SEQUENCE if sequence else OPENVINO_CELL,
        inputs=("X", *states, "sequence_lens", *weights) if sequence else ("X", *states, *weights),
        outputs=("Y", *last) if sequence else last,
        attributes=_COMMON + (("direction",) if sequence else ()) + (("linear_before_reset",) if cell == "GRU" else ()),
        first_opset=first_opset,
    )


def _first_version(row: Operation, convention: Convention, optional: int) -> Operation:
    """Return version 1 of an LSTM: the later version with peepholes and input_forget."""
    return replace(
        row,
        convention=convention,
        inputs=(*row.inputs, "P"),
        attributes=(*row.attributes, *NEUTRAL),
        first_opset=1,
        optional=optional,
    )


_LSTM_SEQUENCE, _LSTM_CELL = _operation("LSTM", "Sequence", 5), _operation("LSTM", "Cell", 4)
_ROWS = (  # later versions of a type before earlier ones
    _operation("RNN", "Sequence", 5),
    _operation("GRU", "Sequence", 5),
    _LSTM_SEQUENCE,
    _operation("RNN", "Cell", 1),
    _operation("GRU", "Cell", 3),
    _LSTM_CELL,
    _first_version(_LSTM_SEQUENCE, OPENVINO_SEQUENCE_1, optional=1),  # P
    _first_version(_LSTM_CELL, OPENVINO_CELL_1, optional=2),  # B, P
)
# By versioned name, "LSTMSequence-5". A layer has the newest version that its opset includes.
OPERATIONS: Mapping[str, Operation] = MappingProxyType({row.versioned_name: row for row in _ROWS})
TYPES = tuple(dict.fromkeys(row.type for row in _ROWS))
# Recurrent types that are not run as layers: what each is, and what to do instead.
_NOT_RUN = {
    **dict.fromkeys(
        ("AUGRUSequence", "AUGRUCell"),
        "a GRU whose update gate is scaled by an attention input; ONNX has no such operator. Run it with OpenVINO",
    ),
    **dict.fromkeys(("TensorIterator", "Loop"), "a loop over a body, which runs only in a whole IR: read_model"),
}


def find_operation(kind: str, opset: int | None = None) -> Operation | None:
    """Return the row of a type, in any case, at an opset (None: the newest); None if there is none."""
    versions = (row for row in _ROWS if row.type.lower() == kind.lower())
    return next((row for row in versions if opset is None or row.first_opset <= opset), None)


def first_opset(kind: str) -> int | None:
    """Return the opset that introduced a type, in any case; None for a type without a row."""
    return min((row.first_opset for row in _ROWS if row.type.lower() == kind.lower()), default=None)


def explain(kind: str) -> str | None:
    """Return why a recurrent type is not run here, and what to do instead; None for any other type."""
    return next((text for name, text in _NOT_RUN.items() if name.lower() == kind.lower()), None)
