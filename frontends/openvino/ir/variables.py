"""Variables of an IR: values that ReadValue and Assign layers carry from call to call."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyrnnx.errors import FormatError, shown
from pyrnnx.operator.tensor_info import Dimension, may_agree

from .element_types import by_name, by_precision
from .layer import NetLayer, Output
from .net_graph import NetGraph
from .ports import parse_shape

_FIRST_OPSET = 3


@dataclass(frozen=True, eq=False)
class Variable:
    """The value that the layers with one variable_id share."""

    id: str
    dtype: str | None  # NumPy name; None if no layer declares it
    shape: tuple[Dimension, ...] | None  # as in TensorInfo
    reads: tuple[NetLayer, ...]  # in bodies too
    assigns: tuple[NetLayer, ...]  # at most one

    @property
    def initial(self) -> Output | None:
        """Output that computes the first value; None if it is zeros."""
        return next((layer.sources[0] for layer in self.reads if layer.sources), None)


def _is(kind: str, layer: NetLayer) -> bool:
    return layer.type.lower() == kind and layer.opset >= _FIRST_OPSET


def variable_ids(layers: Iterable[NetLayer]) -> list[str]:
    """Return the ids of variables that these layers read or assign, each once."""
    ids = (layer.data.get("variable_id", "") for layer in layers if _is("readvalue", layer) or _is("assign", layer))
    return list(dict.fromkeys(filter(None, ids)))


def variables(net: NetGraph) -> tuple[Variable, ...]:
    """Return all variables of a net, in the order of their first layers."""
    return tuple(_variable(net, identifier) for identifier in variable_ids(net.everything))


def _variable(net: NetGraph, identifier: str) -> Variable:
    own = [layer for layer in net.everything if layer.data.get("variable_id", "") == identifier]
    reads, assigns = ([layer for layer in own if _is(kind, layer)] for kind in ("readvalue", "assign"))
    if not reads or len(assigns) > 1:
        reason = "nothing reads it" if not reads else f"it is assigned in {assigns[0].label}, too"
        raise FormatError(
            f"{assigns[-1].label}: variable_id {shown(identifier)}: {reason}; expected a ReadValue, and one Assign"
        )
    dtype, shape = _declared(reads[0])
    for layer in reads[1:]:
        other_dtype, other = _declared(layer)
        if dtype != other_dtype or not may_agree(shape, other):
            raise FormatError(
                f"{layer.label}: variable_id {shown(identifier)} is {other_dtype} {other}, but {dtype} {shape} in "
                f"{reads[0].label}; expected the same"
            )
    return Variable(identifier, dtype, shape, tuple(reads), tuple(assigns))


def _declared(layer: NetLayer) -> tuple[str | None, tuple[Dimension, ...] | None]:
    """Return the dtype and shape of a ReadValue by its attributes, which opset 3 lacks, else by its ports."""
    label, data = layer.label, layer.data
    if len(layer.outputs) != 1:
        raise FormatError(f"{label}: {len(layer.outputs)} outputs; expected one")
    shape: tuple[Dimension, ...] | None = layer.outputs[0].shape
    if "variable_shape" in data:
        shape = parse_shape(label, data["variable_shape"])
    rows = [by_name(label, data["variable_type"].strip())] if "variable_type" in data else []
    ports = [layer.outputs[0], *layer.inputs, *(output.port for output in layer.sources)]
    rows += [by_precision(label, port.precision) for port in ports if port.precision is not None]
    # The first of them that is not dynamic
    return next((row.computed for row in rows if row.computed is not None), None), shape
