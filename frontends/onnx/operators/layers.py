"""Recurrent nodes, checked against the schemas, and their layers: prepared if their weights are constants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, UnsupportedError, shown, warn
from pyrnnx.layers.facts import Described
from pyrnnx.layers.layer import CONSTANTS, Layer
from pyrnnx.layers.stream import Stream
from pyrnnx.operator import check
from pyrnnx.operator.conventions import ONNX_LAYOUTS, Convention
from pyrnnx.operator.op import RecurrentOp
from pyrnnx.operator.quantized import Quantized

from ..graph.walk import DEFAULT_DOMAINS, Node
from ..onnx_package import import_onnx
from .functions import build_layer
from .schemas import (
    DEFAULT_OPSET,
    OPERATORS,
    QUANTIZED_LSTM,
    WEIGHTS,
    Schema,
    build_op,
    find_attribute,
    read_attributes,
    schema,
)

if TYPE_CHECKING:
    from onnx import NodeProto

_SHOWN = ("FLOAT", "FLOATS", "INT", "INTS", "STRING")  # types of attributes whose values errors show


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
    read = _read_node("from_node", node, opset)
    if not isinstance(initializers, Mapping):
        raise ArgumentError(
            f"{read.label}: initializers is {type(initializers).__name__}; expected a mapping of arrays"
        )
    weights = {}
    for name in OPERATORS[read.definition.operator].weights:
        source = read.inputs.get(name)
        if source is not None and source not in initializers:
            raise ArgumentError(
                f"{read.label}: {name} ({shown(source)}) is not among the initializers; expected a constant array"
            )
        if source is not None:
            weights[name] = initializers[source]
    return read.with_constants(initializers).layer(weights, weight_dtype)


def is_recurrent(node: Node | NodeProto) -> bool:
    """Return whether a node (with default domain "") is recurrent."""
    return node.op_type in OPERATORS and node.domain == OPERATORS[node.op_type].domain


def check_count(label: str, what: str, values: Sequence[str], names: Sequence[str]) -> None:
    if len(values) > len(names):
        raise ArgumentError(
            f"{label}: the node has {len(values)} {what}s; expected at most {len(names)}: {', '.join(names)}"
        )


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

    node: NodeProto
    opset: int
    label: str
    definition: Schema
    inputs: Mapping[str, str]  # names of values, by names of the definition
    attributes: Mapping[str, Any]  # as `read_attributes` returns them
    constants: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def op(self) -> RecurrentOp | None:
        # hidden_size 1 is a placeholder, so that the other attributes are checked in any case.
        op = build_op(self.definition, self.label, self.attributes, 1)
        return op if self.attributes["hidden_size"] is not None else None

    @property
    def convention(self) -> Convention:
        return ONNX_LAYOUTS[self.attributes.get("layout", 0)]

    @property
    def is_quantized(self) -> bool:
        return bool(OPERATORS[self.definition.operator].scales)

    @property
    def dtype(self) -> str | None:
        """Dtype: None, because the weights determine it."""
        return None

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of the node's inputs in the operator's definition."""
        return tuple(self.inputs)

    @property
    def sizes(self) -> dict[str, int]:
        """Sizes of X: empty, because a node declares none."""
        return {}

    def with_constants(self, initializers: Mapping[str, Any]) -> UnboundNode:
        """Return the node with those inputs of calls as constants that are among the initializers."""
        sources = {name: self.inputs[name] for name in sorted(CONSTANTS) if name in self.inputs}
        return replace(self, constants={k: initializers[name] for k, name in sources.items() if name in initializers})

    def layer(self, weights: Mapping[str, Any], weight_dtype: str | None) -> NodeLayer:
        """Return the layer with these weights, by their names in the operator's definition."""
        cls = NodeLayer
        if self.is_quantized:
            if weight_dtype is not None:
                raise ArgumentError(
                    f"{self.label}: weight_dtype is {shown(weight_dtype)}; its weights are in 8 bits already"
                )
            cls, weights = QuantizedLayer, quantized_weights(self.label, weights)
        make = partial(
            cls,
            name=self.node.name or None,
            constants=self.constants,
            node_inputs=[name for name in CONSTANTS if name in self.inputs],
            weight_dtype=weight_dtype,
        )
        return build_layer(self.definition, self.label, weights, self.attributes, make)

    def bind(self, W: Any, R: Any, B: Any = None, P: Any = None, *, weight_dtype: str | None = None) -> NodeLayer:
        """Return the layer with prepared weights, for many calls; `weight_dtype` as in `from_node`.

        Raises
        ------
        PyrnnxError
            The weights do not fit the node or each other, or need scales.
        """
        if self.is_quantized:
            raise UnsupportedError(f"{self.label}: bind: its weights are quantized; call the model")
        return self.layer({"W": W, "R": R, "B": B, "P": P}, weight_dtype)

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
        arguments = check.arguments(self.label, self.convention, self.definition.inputs, arrays, named)
        bound = self.bind(*(arguments.pop(name, None) for name in WEIGHTS))
        return bound._for_one_call().run(**arguments)


def unbound_node(node: NodeProto, initializers: Mapping[str, Any], opset: int = DEFAULT_OPSET) -> UnboundNode:
    """Return a recurrent node without its weights; initializers of other inputs become constants."""
    unbound = _read_node("unbound_node", node, opset).with_constants(initializers)
    unbound.op  # noqa: B018  (raises errors of attributes now)
    return unbound


def _read_node(caller: str, node: NodeProto, opset: Any) -> UnboundNode:
    """Check a recurrent node; errors name `caller` until there is a label.

    A clip of 0, which exporters write for no clip, is a warning.
    """
    fields = ("op_type", "domain", "name", "input", "output", "attribute")  # checked without importing onnx
    if isinstance(node, type) or not all(hasattr(node, field) for field in fields):
        raise ArgumentError(f"{caller}: node is {type(node).__name__} {shown(node)}; expected an onnx.NodeProto")
    domain = "" if node.domain in DEFAULT_DOMAINS else node.domain
    if node.op_type not in OPERATORS or domain != OPERATORS[node.op_type].domain:
        operator = shown(f"{node.domain}.{node.op_type}" if node.domain else node.op_type)
        expected = " or ".join(f"{OPERATORS[name].domain or 'ai.onnx'}.{name}" for name in OPERATORS)
        raise UnsupportedError(f"{caller}: the node is {operator}; expected {expected}")
    definition = QUANTIZED_LSTM if node.op_type == QUANTIZED_LSTM.operator else schema(node.op_type, opset)
    label = f"{node.op_type} {shown(node.name)}" if node.name else node.op_type
    for what, values, names in (("input", node.input, definition.inputs), ("output", node.output, definition.outputs)):
        check_count(label, what, values, names)
    inputs = {name: source for name, source in zip(definition.inputs, node.input, strict=False) if source}
    for name in ("X", "W", "R", *OPERATORS[definition.operator].scales):
        if name not in inputs:
            raise ArgumentError(f"{label}: {name} is missing; the node needs it as an input")
    attributes = read_attributes(definition, label, _node_attributes(definition, label, node))
    if attributes["clip"] == 0:
        warn(f"{label}: clip is 0, which ONNX does not allow; it is read as no clip")
        attributes["clip"] = None
    return UnboundNode(node, opset, label, definition, inputs, attributes)


def _node_attributes(definition: Schema, label: str, node: NodeProto) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for attribute in node.attribute:
        name = attribute.name
        if name in values:
            raise ArgumentError(f"{label}: attribute {shown(name)} is defined twice")
        expected = find_attribute(definition, label, name).type
        type_name = import_onnx().AttributeProto.AttributeType.Name(attribute.type)
        if attribute.ref_attr_name or type_name != expected.name:
            value = attribute.ref_attr_name or f"a value of type {type_name}"
            if not attribute.ref_attr_name and type_name in _SHOWN:
                value = import_onnx().helper.get_attribute_value(attribute)
            raise ArgumentError(f"{label}: attribute {shown(name)} is {shown(value)}; expected {expected.words}")
        values[name] = import_onnx().helper.get_attribute_value(attribute)
    return values


def quantized_weights(label: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return W and R in the shapes of an LSTM, and B and P, of the weights of a node.

    W [num_directions, input_size, 4*hidden_size] and R [num_directions, hidden_size, 4*hidden_size] are int8 or uint8,
    with W_scale, W_zero_point, R_scale and R_zero_point of shape [num_directions] or [num_directions, 4*hidden_size].
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
