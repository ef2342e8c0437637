"""OpenVINO's recurrent operations, a row each, and their attributes as a `RecurrentOp`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pyrnnx.conventions import OPENVINO_CELL, OPENVINO_SEQUENCE, Convention
from pyrnnx.errors import ArgumentError
from pyrnnx.op import CELLS, Activation, Direction, RecurrentOp, activation_function

WEIGHTS = ("W", "R", "B")
_COMMON = ("hidden_size", "activations", "activations_alpha", "activations_beta", "clip")


@dataclass(frozen=True)
class Operation:
    """A row of the table of operations.

    Attributes
    ----------
    type : str
        As in `<layer type="...">`.
    cell : str
        "RNN", "GRU" or "LSTM".
    convention : Convention
    inputs, outputs : tuple of str
        Canonical (ONNX) names in port order.
    attributes : tuple of str
    first_opset : int
        The opset that introduced this version of the operation.
    """

    type: str
    cell: str
    convention: Convention
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: tuple[str, ...]
    first_opset: int

    @property
    def input_names(self) -> tuple[str, ...]:
        """The operation's own names of its inputs, in port order."""
        return tuple(self.convention.name_of(argument) for argument in self.inputs)

    @property
    def output_names(self) -> tuple[str, ...]:
        return tuple(self.convention.name_of(argument) for argument in self.outputs)


def _operation(cell: str, kind: str, first_opset: int) -> Operation:
    sequence = kind == "Sequence"
    states = ("initial_h", "initial_c") if CELLS[cell].has_cell_state else ("initial_h",)
    last = ("Y_h", "Y_c")[: len(states)]
    return Operation(
        type=f"{cell}{kind}",
        cell=cell,
        convention=OPENVINO_SEQUENCE if sequence else OPENVINO_CELL,
        inputs=("X", *states, "sequence_lens", *WEIGHTS) if sequence else ("X", *states, *WEIGHTS),
        outputs=("Y", *last) if sequence else last,
        attributes=_COMMON + (("direction",) if sequence else ()) + (("linear_before_reset",) if cell == "GRU" else ()),
        first_opset=first_opset,
    )


OPERATIONS: Mapping[str, Operation] = MappingProxyType(
    {
        row.type: row
        for row in (
            _operation("RNN", "Sequence", 5),
            _operation("GRU", "Sequence", 5),
            _operation("LSTM", "Sequence", 5),
            _operation("RNN", "Cell", 1),
            _operation("GRU", "Cell", 3),
            _operation("LSTM", "Cell", 4),
        )
    }
)


def build_op(operation: Operation, label: str, hidden_size: int, attributes: Mapping[str, Any]) -> RecurrentOp:
    """The operator that attributes describe; absent ones have the specification's defaults.

    Raises
    ------
    ArgumentError
        A value out of its range.
    """
    direction = _direction(label, attributes.get("direction", "forward"))
    try:
        functions = _activations(operation.cell, attributes)
        return RecurrentOp(
            operation.cell,
            hidden_size,
            direction,
            (functions,) * direction.num_directions,
            _clip(attributes.get("clip")),
            linear_before_reset=attributes.get("linear_before_reset", False),
        )
    except ArgumentError as error:
        raise ArgumentError(f"{label}: {str(error).removeprefix(f'{operation.cell}: ')}") from None


def _direction(label: str, direction: Any) -> Direction:
    try:
        return Direction(str(getattr(direction, "value", direction)).lower())
    except ValueError:
        allowed = ", ".join(one.value for one in Direction)
        raise ArgumentError(f"{label}: direction is {direction!r}; expected one of {allowed}") from None


def _clip(clip: Any) -> float | None:
    """None, 0 and infinity mean: no clipping."""
    if clip is None:
        return None
    if isinstance(clip, bool) or not isinstance(clip, (int, float)) or math.isnan(clip) or clip < 0:
        raise ArgumentError(f"clip is {clip!r}; expected a positive number, or 0 or infinity for none")
    return None if clip == 0 or math.isinf(clip) else float(clip)


def _activations(cell: str, attributes: Mapping[str, Any]) -> tuple[Activation, ...]:
    """One list, shared by both directions; alpha and beta belong to the function at their own place in it."""
    defaults = CELLS[cell].activations
    names = _list(attributes, "activations", str) or defaults
    if len(names) != len(defaults):
        raise ArgumentError(f"activations has {len(names)} names, {list(names)}; expected {len(defaults)}")
    parameters = {p: _list(attributes, f"activations_{p}", float) for p in ("alpha", "beta")}
    for parameter, values in parameters.items():
        if len(values) > len(names):
            raise ArgumentError(f"activations_{parameter} has {len(values)} values; expected at most {len(names)}")
    return tuple(_activation(name, place, parameters) for place, name in enumerate(names))


def _activation(name: str, place: int, parameters: Mapping[str, Sequence[float]]) -> Activation:
    row = activation_function(name)
    given = {
        p: values[place] for p, values in parameters.items() if place < len(values) and getattr(row, p) is not None
    }
    return Activation(row.name, **given)


def _list(attributes: Mapping[str, Any], name: str, kind: type[str] | type[float]) -> tuple[Any, ...]:
    values = attributes.get(name)
    if values is None:
        return ()
    allowed = (str,) if kind is str else (int, float)
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise ArgumentError(f"{name} is {values!r}; expected a list")
    result = tuple(values)
    for value in result:
        if not isinstance(value, allowed) or isinstance(value, bool):
            raise ArgumentError(f"{name} holds {value!r}; expected {'names' if kind is str else 'numbers'}")
    return result
