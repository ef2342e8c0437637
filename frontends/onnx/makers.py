"""Functions that build layers, by operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .layers import NodeLayer, UnboundNode, from_node, unbound_node
from .quantized import from_quantized_node, unbound_quantized_node
from .schemas import QUANTIZED_LSTM, SCHEMAS

if TYPE_CHECKING:
    from onnx import NodeProto


@dataclass(frozen=True)
class Maker:
    """Functions of a node, constants by the names of its inputs, and the version of its domain.

    Attributes
    ----------
    layer : callable
        Builds the layer of a node with constant weights.
    unbound : callable
        Describes a node with computed weights.
    """

    layer: Callable[[NodeProto, Mapping[str, Any], int], NodeLayer]
    unbound: Callable[[NodeProto, Mapping[str, Any], int], UnboundNode]


MAKERS: Mapping[str, Maker] = {
    **dict.fromkeys(SCHEMAS, Maker(from_node, unbound_node)),
    QUANTIZED_LSTM.operator: Maker(from_quantized_node, unbound_quantized_node),
}
