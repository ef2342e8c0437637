"""DynamicQuantizeLSTM of com.microsoft: an LSTM with 8-bit weights that rounds X and h to 8 bits in each call.

The kernels multiply codes with codes, in integers, and scale the sums; the gates are those of an ordinary layer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, UnsupportedError
from pyrnnx.layers.stream import Stream
from pyrnnx.operator import check
from pyrnnx.operator.quantized import Quantized

from .layers import NodeLayer, UnboundNode, check_initializers, from_node, node_layer, unbound_node
from .nodes import read_node
from .schemas import QUANTIZED_LSTM, SCHEMAS

if TYPE_CHECKING:
    from onnx import NodeProto

_OPERATORS = (QUANTIZED_LSTM.operator,)


class QuantizedLayer(NodeLayer):
    """Layer of a DynamicQuantizeLSTM node; its `weights` are dequantized lazily, in the shapes of LSTM.

    X has one range of quantization for the whole call: that of the values of all rows, and zero. What lies beyond a
    row's length has no part in it (in ONNX Runtime, it has). h has one range for each step: that of the states of all
    rows that ran in the step before, and zero. A NaN stays with its row; an infinity becomes the end of the range of
    finite values.

    Sums of products are exact integers; on the BLAS engine, and beyond 33025 terms, they are sums of floats.

    Parameters
    ----------
    *arguments, **keywords
        As of `NodeLayer`, with W and R `Quantized` and no weight_dtype.
    """

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        if self.weight_dtype is not None or not all(isinstance(self._kept[name], Quantized) for name in ("W", "R")):
            raise ArgumentError(f"{self.label}: expected W and R in codes, with their scales, and no weight_dtype")

    def stream(self, batch_size: int) -> Stream:
        """Raise: X has one range for a whole call.

        Raises
        ------
        UnsupportedError
        """
        raise UnsupportedError(f"{self.label}: stream: X has one range for a whole sequence; expected a call")


def from_quantized_node(node: NodeProto, initializers: Mapping[str, Any], opset: int = 1) -> NodeLayer:
    """Return the prepared `QuantizedLayer` of a com.microsoft DynamicQuantizeLSTM node; as `from_node`.

    W [num_directions, input_size, 4*hidden_size] and R [num_directions, hidden_size, 4*hidden_size] are int8 or uint8,
    with W_scale, W_zero_point, R_scale and R_zero_point of shape [num_directions] or [num_directions, 4*hidden_size].
    """
    read = read_node("from_quantized_node", node, opset, _OPERATORS)
    check_initializers(read.label, initializers)
    given = read.weights(initializers)
    arrays = {name: check.as_array(read.label, name, value) for name, value in given.items()}
    weights = {name: arrays.get(name) for name in ("B", "P")}
    quantized = {name: _quantized(read.label, name, arrays) for name in ("W", "R")}
    return node_layer(read, {**weights, **quantized}, read.constants(initializers), QuantizedLayer)


def _quantized(label: str, name: str, arrays: Mapping[str, AnyArray]) -> Quantized:
    """Return a copy of W or R in the shape of LSTM, [num_directions, 4*hidden_size, ...]."""
    weight = arrays[name]
    if weight.dtype.name not in ("int8", "uint8") or weight.ndim != 3:
        raise ArgumentError(
            f"{label}: {name} has dtype {weight.dtype} and shape {weight.shape}; expected int8 or uint8, and "
            f"[num_directions, {'input_size' if name == 'W' else 'hidden_size'}, 4*hidden_size]"
        )
    per_tensor, per_channel = weight.shape[:1], (weight.shape[0], weight.shape[2])
    parts = [np.array(weight.transpose(0, 2, 1), order="C")]
    for kind, dtype in (("scale", np.dtype(np.float32)), ("zero_point", weight.dtype)):
        array = arrays[f"{name}_{kind}"]
        if array.shape not in (per_tensor, per_channel) or array.dtype != dtype:
            raise ArgumentError(
                f"{label}: {name}_{kind} has dtype {array.dtype} and shape {array.shape}; expected {dtype}, and "
                f"{per_tensor} or {per_channel}"
            )
        parts.append(np.array(np.broadcast_to(array.reshape(weight.shape[0], -1), per_channel), dtype, order="C"))
    for part in parts:
        part.flags.writeable = False
    return Quantized(*parts)


class UnboundQuantizedNode(UnboundNode):
    """DynamicQuantizeLSTM node whose weights are computed at run time; it runs in its model only."""

    def bind(self, W: Any, R: Any, B: Any = None, P: Any = None, *, weight_dtype: str | None = None) -> NoReturn:
        """Raise: the weights need their scales.

        Raises
        ------
        UnsupportedError
        """
        raise UnsupportedError(f"{self.label}: bind: its weights are quantized; call the model")


def unbound_quantized_node(node: NodeProto, initializers: Mapping[str, Any], opset: int = 1) -> UnboundQuantizedNode:
    """Return a node without its weights; as `unbound_node`."""
    read = read_node("unbound_quantized_node", node, opset, _OPERATORS)
    return UnboundQuantizedNode(read, read.constants(initializers), read.op())


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

    layer: Callable[..., NodeLayer]
    unbound: Callable[[NodeProto, Mapping[str, Any], int], UnboundNode]


MAKERS: Mapping[str, Maker] = {
    **dict.fromkeys(SCHEMAS, Maker(from_node, unbound_node)),
    QUANTIZED_LSTM.operator: Maker(from_quantized_node, unbound_quantized_node),
}
