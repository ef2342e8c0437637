"""Layers of ONNX nodes: prepared if their weights are constants, else unbound."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, UnsupportedError, shown
from pyrnnx.layers.facts import Described
from pyrnnx.layers.layer import Layer
from pyrnnx.layers.stream import Stream
from pyrnnx.operator import check
from pyrnnx.operator.conventions import Convention
from pyrnnx.operator.op import RecurrentOp
from pyrnnx.operator.quantized import Quantized

from .functions import build_layer
from .nodes import RecurrentNode, read_node
from .schemas import DEFAULT_OPSET, WEIGHTS

if TYPE_CHECKING:
    from onnx import NodeProto


class NodeLayer(Layer):
    """Layer of an ONNX node; constants of the model are default arguments.

    Parameters
    ----------
    *arguments, **keywords
        As for `Layer`; `constants` are those of the node.
    node_inputs : iterable of str
        The node's inputs among sequence_lens, initial_h and initial_c, constant or not.
    origin : str
        Where a model has the layer, if not as a recurrent node: the unrolled steps or the loop.

    Attributes
    ----------
    node_inputs : frozenset of str
    origin : str
    """

    _shares = True
    _fixed = Layer._fixed | {"node_inputs"}

    def __init__(self, *arguments: Any, node_inputs: Iterable[str] = (), origin: str = "", **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.node_inputs, self.origin = frozenset(node_inputs), origin

    def __reduce__(self) -> tuple[Any, ...]:
        make, arguments = super().__reduce__()
        return partial(make, node_inputs=self.node_inputs, origin=self.origin), arguments


class QuantizedLayer(NodeLayer):
    """Layer of a DynamicQuantizeLSTM node; its `weights` are dequantized lazily, in the shapes of LSTM.

    The kernels multiply codes with codes, in integers, and scale the sums; the gates are those of an ordinary layer.
    X has one range of quantization for the whole call: that of the values of all rows, and zero. What lies beyond a
    row's length has no part in it (in ONNX Runtime, it has). h has one range for each step: that of the states of all
    rows that ran in the step before, and zero. A NaN stays with its row; an infinity becomes the end of the range of
    finite values.

    Sums of products are exact integers; on the BLAS engine, and beyond 33025 terms, they are sums of floats.
    """

    def stream(self, batch_size: int) -> Stream:
        """Raise: X has one range for a whole call.

        Raises
        ------
        UnsupportedError
        """
        raise UnsupportedError(f"{self.label}: stream: X has one range for a whole sequence; expected a call")


def from_node(
    node: NodeProto, initializers: Mapping[str, Any], opset: int = DEFAULT_OPSET, *, weight_dtype: str | None = None
) -> NodeLayer:
    """Return the prepared layer of an ONNX node.

    Parameters
    ----------
    node : onnx.NodeProto
        An RNN, GRU, LSTM or com.microsoft's DynamicQuantizeLSTM.
    initializers : mapping
        Constant arrays by the name of the node's input: W, R and, if the node has them, B and P. Others (sequence_lens,
        initial_h, initial_c) become defaults of calls.
    opset : int
        Version of the default domain in the model.
    weight_dtype : str, optional
        "bfloat16" or "int8" stores W and R in fewer bits, see `Layer`. Default: the dtype of W.

    Returns
    -------
    NodeLayer
        Called as ``layer(X, sequence_lens=None, initial_h=None[, initial_c=None])``, in the layout of the node.

    Raises
    ------
    PyrnnxError
        Another operator, missing weights, too many inputs, or attributes or arrays that the opset rejects.
    """
    read = read_node("from_node", node, opset)
    if not isinstance(initializers, Mapping):
        raise ArgumentError(
            f"{read.label}: initializers is {type(initializers).__name__}; expected a mapping of arrays"
        )
    return _node_layer(read, read.weights(initializers), read.constants(initializers), weight_dtype)


def _node_layer(
    node: RecurrentNode, weights: Mapping[str, Any], constants: Mapping[str, Any], weight_dtype: str | None
) -> NodeLayer:
    cls = NodeLayer
    if node.is_quantized:
        if weight_dtype is not None:
            raise ArgumentError(
                f"{node.label}: weight_dtype is {shown(weight_dtype)}; its weights are in 8 bits already"
            )
        cls, weights = QuantizedLayer, quantized_weights(node.label, weights)
    make = partial(cls, name=node.name, constants=constants, node_inputs=node.call_inputs, weight_dtype=weight_dtype)
    return build_layer(node.definition, node.label, weights, node.attributes, make)


@dataclass(frozen=True, eq=False, repr=False)
class UnboundNode(Described):
    """Recurrent node whose weights are computed at run time.

    Attributes
    ----------
    node : onnx.NodeProto
    opset : int
        Version of the node's domain in the model.
    label : str
        How errors name this layer.
    constants : mapping
        Constants among sequence_lens, initial_h and initial_c.
    op : RecurrentOp or None
        None if the node lacks hidden_size.
    convention : Convention
    """

    parts: RecurrentNode
    constants: Mapping[str, Any]
    op: RecurrentOp | None

    @property
    def node(self) -> NodeProto:
        return self.parts.proto

    @property
    def opset(self) -> int:
        return self.parts.opset

    @property
    def label(self) -> str:
        return self.parts.label

    @property
    def convention(self) -> Convention:
        return self.parts.convention

    @property
    def dtype(self) -> str | None:
        """Dtype: None, because the weights determine it."""
        return None

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of the node's inputs in the operator's definition."""
        return tuple(self.parts.inputs)

    @property
    def sizes(self) -> dict[str, int]:
        """Sizes of X: empty, because a node declares none."""
        return {}

    def bind(self, W: Any, R: Any, B: Any = None, P: Any = None, *, weight_dtype: str | None = None) -> NodeLayer:
        """Return the layer with prepared weights, for many calls; `weight_dtype` as in `from_node`.

        Raises
        ------
        PyrnnxError
            The weights do not fit the node or each other, or need scales.
        """
        if self.parts.is_quantized:
            raise UnsupportedError(f"{self.label}: bind: its weights are quantized; call the model")
        return _node_layer(self.parts, {"W": W, "R": R, "B": B, "P": P}, self.constants, weight_dtype)

    def __call__(self, *arrays: Any, **named: Any) -> tuple[AnyArray, ...]:
        """Run with all inputs of the operator, weights included, in its order or by name.

        Parameters
        ----------
        *arrays, **named : array_like
            X, W, R, B, sequence_lens, initial_h and, for an LSTM, initial_c and P. None if absent.

        Returns
        -------
        tuple of ndarray
            Y, Y_h and, for an LSTM, Y_c, in the layout of the node.

        Raises
        ------
        PyrnnxError
            An array is missing, unknown or duplicated, or does not fit the node or the others.
        """
        arguments = check.arguments(self.label, self.convention, self.parts.definition.inputs, arrays, named)
        bound = self.bind(*(arguments.pop(name, None) for name in WEIGHTS))
        return bound._for_one_call().run(**arguments)


def unbound_node(node: NodeProto, initializers: Mapping[str, Any], opset: int = DEFAULT_OPSET) -> UnboundNode:
    """Return a recurrent node without its weights; initializers of other inputs become constants.

    Raises
    ------
    PyrnnxError
        As in `from_node`, except for weights.
    """
    read = read_node("unbound_node", node, opset)
    return UnboundNode(read, read.constants(initializers), read.op())


def quantized_weights(label: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return W and R in the shapes of an LSTM, and B and P, of the weights of a node.

    W [num_directions, input_size, 4*hidden_size] and R [num_directions, hidden_size, 4*hidden_size] are int8 or uint8,
    with W_scale, W_zero_point, R_scale and R_zero_point of shape [num_directions] or [num_directions, 4*hidden_size].

    Raises
    ------
    ArgumentError
        An array has another dtype or shape.
    """
    arrays = {name: check.as_array(label, name, value) for name, value in given.items()}
    codes = {name: _quantized(label, name, arrays) for name in ("W", "R")}
    return {"B": arrays.get("B"), "P": arrays.get("P"), **codes}


def _quantized(label: str, name: str, arrays: Mapping[str, AnyArray]) -> Quantized:
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
