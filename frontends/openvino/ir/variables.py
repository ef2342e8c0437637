"""The variables of an IR: what its ReadValue and Assign layers keep from one inference to the next."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyrnnx.errors import FormatError, shown
from pyrnnx.tensor_info import Dimension, may_agree

from .element_types import by_name, by_precision
from .layer import NetLayer
from .net_graph import NetGraph
from .shapes import parse_shape

_FIRST_OPSET = 3


@dataclass(frozen=True, eq=False)
class Variable:
    """What the layers with one variable_id share.

    Attributes
    ----------
    id : str
    dtype : str or None
        NumPy name; None where no layer says.
    shape : tuple or None
        As of TensorInfo.
    reads, assigns : tuple of NetLayer
        In bodies, too; at most one assigns.
    """

    id: str
    dtype: str | None
    shape: tuple[Dimension, ...] | None
    reads: tuple[NetLayer, ...]
    assigns: tuple[NetLayer, ...]

    @property
    def has_initial_value(self) -> bool:
        """Whether the model computes what it begins with; else it begins with zeros."""
        return any(layer.sources for layer in self.reads)


def is_read(layer: NetLayer) -> bool:
    return layer.type.lower() == "readvalue" and layer.opset >= _FIRST_OPSET


def is_assign(layer: NetLayer) -> bool:
    return layer.type.lower() == "assign" and layer.opset >= _FIRST_OPSET


def variable_ids(layers: Iterable[NetLayer]) -> list[str]:
    """Of the variables that these layers read or assign, each once; layers that lack one are passed over."""
    ids = (layer.data.get("variable_id", "") for layer in layers if is_read(layer) or is_assign(layer))
    return list(dict.fromkeys(one for one in ids if one))


def variables(net: NetGraph) -> tuple[Variable, ...]:
    """All of a net, by their first layers.

    Raises
    ------
    FormatError
        A variable that is assigned twice, or nowhere read; layers that declare it differently.
    """
    return tuple(_variable(net, one) for one in variable_ids(net.everything))


def _variable(net: NetGraph, identifier: str) -> Variable:
    own = [layer for layer in net.everything if layer.data.get("variable_id", "") == identifier]
    reads, assigns = [layer for layer in own if is_read(layer)], [layer for layer in own if is_assign(layer)]
    if not reads or len(assigns) > 1:
        found = "nothing reads it" if not reads else f"it is assigned in {assigns[0].label}, too"
        raise FormatError(
            f"{assigns[-1].label}: variable_id {shown(identifier)}: {found}; expected a ReadValue, and one Assign"
        )
    dtype, shape = _declared(reads[0])
    for layer in reads[1:]:
        other_dtype, other = _declared(layer)
        if dtype != other_dtype or not may_agree(shape, other):
            raise FormatError(
                f"{layer.label}: variable_id {shown(identifier)} is {other_dtype} {other}, in {reads[0].label} {dtype} "
                f"{shape}; expected one"
            )
    return Variable(identifier, dtype, shape, tuple(reads), tuple(assigns))


def _declared(layer: NetLayer) -> tuple[str | None, tuple[Dimension, ...] | None]:
    """What a ReadValue says: its attributes, which those of opset3 lack, else its port."""
    label, data = layer.label, layer.data
    port = layer.outputs[0] if len(layer.outputs) == 1 else None
    if port is None:
        raise FormatError(f"{label}: {len(layer.outputs)} outputs; expected one")
    dtype = None if port.precision is None else by_precision(label, port.precision).computed
    shape: tuple[Dimension, ...] | None = port.shape
    if "variable_type" in data:
        dtype = by_name(label, data["variable_type"].strip()).computed
    if "variable_shape" in data:
        shape = parse_shape(label, data["variable_shape"])
    return dtype, shape
