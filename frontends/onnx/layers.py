"""An onnx.NodeProto with constant weights to a prepared layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyrnnx.conventions import ONNX_LAYOUTS, Convention
from pyrnnx.errors import ArgumentError, UnsupportedError, shown
from pyrnnx.layer import Layer
from pyrnnx.op import RecurrentOp

from .attributes import TYPES, build_op, flag, read_attributes
from .functions import build_layer
from .graph.walk import DEFAULT_DOMAINS
from .schemas import INPUTS, OUTPUTS, schema

WEIGHTS = ("W", "R", "B", "P")
# Where onnx.AttributeProto holds a value of each type; written down here so that onnx need not be imported.
_FIELDS = {1: "f", 2: "i", 3: "s", 6: "floats", 7: "ints", 8: "strings"}


class NodeLayer(Layer):
    """The layer of one ONNX node; inputs that are constants of the model need not be given again.

    Attributes
    ----------
    bound : mapping
        sequence_lens, initial_h, initial_c, where they are constants.
    node_inputs : frozenset
        Those of the three that the node has an input for, constant or not.
    """

    node_inputs: frozenset[str] = frozenset()

    @property
    def bound(self) -> Mapping[str, Any]:
        return self.constants

    def __reduce__(self) -> tuple[Any, ...]:
        return (*super().__reduce__(), {"node_inputs": self.node_inputs})


def from_node(node: Any, initializers: Mapping[str, Any], opset: int = 22) -> NodeLayer:
    """A prepared layer from an ONNX node.

    Parameters
    ----------
    node : onnx.NodeProto
        An RNN, GRU or LSTM.
    initializers : mapping
        Constant arrays by the name of the node's input; those of W and R, and of B and P where the node has them, must
        be there. Others (sequence_lens, initial_h, initial_c) become what a call takes when they are not given.
    opset : int
        Version of the default domain in the model.

    Returns
    -------
    NodeLayer
        Called as ``layer(X, sequence_lens=None, initial_h=None[, initial_c=None])``, in the layout of the node.

    Raises
    ------
    PyrnnxError
        Another operator, missing weights, too many inputs, attributes or arrays that the opset does not allow.
    """
    label, inputs = _check_node(node, opset)
    check_initializers(label, initializers)
    weights = {name: _constant(label, name, inputs[name], initializers) for name in WEIGHTS if name in inputs}
    bound = {
        name: initializers[inputs[name]]
        for name in sorted(inputs.keys() - {"X", *WEIGHTS})
        if inputs[name] in initializers
    }
    return _layer(node, opset, weights, bound)


def check_node_type(label: str, node: Any) -> None:
    """Reject what is no onnx.NodeProto, by its fields: onnx need not be imported.

    Raises
    ------
    ArgumentError
    """
    fields = ("op_type", "domain", "name", "input", "output", "attribute")
    if isinstance(node, type) or not all(hasattr(node, field) for field in fields):
        raise ArgumentError(f"{label}: node is {type(node).__name__} {shown(node)}; expected an onnx.NodeProto")


def check_initializers(label: str, initializers: Any) -> None:
    """Reject what is no mapping.

    Raises
    ------
    ArgumentError
    """
    if not isinstance(initializers, Mapping):
        raise ArgumentError(f"{label}: initializers is {type(initializers).__name__}; expected a mapping of arrays")


def _check_node(node: Any, opset: int) -> tuple[str, dict[str, str]]:
    """The label of a recurrent node, and the names of the inputs that it has by what the operator calls them."""
    check_node_type("from_node", node)
    operator: str = node.op_type
    if operator not in INPUTS or node.domain not in DEFAULT_DOMAINS:
        what = shown(f"{node.domain}.{operator}" if node.domain else operator)
        raise UnsupportedError(f"from_node: the node is {what}; expected one of {', '.join(INPUTS)} of the ONNX domain")
    label: str = operator if not node.name else f"{operator} {shown(node.name)}"
    names = schema(operator, opset).inputs
    if len(node.input) > len(names):
        raise ArgumentError(
            f"{label}: the node has {len(node.input)} inputs; expected at most {len(names)}: {', '.join(names)}"
        )
    if len(node.output) > len(OUTPUTS[operator]):
        raise ArgumentError(f"{label}: {len(node.output)} outputs; expected at most {len(OUTPUTS[operator])}")
    inputs = {name: source for name, source in zip(names, node.input, strict=False) if source}
    for name in ("W", "R"):
        if name not in inputs:
            raise ArgumentError(f"{label}: {name} is missing; the node needs it as an input")
    return label, inputs


def _layer(node: Any, opset: int, weights: Mapping[str, Any], bound: Mapping[str, Any]) -> NodeLayer:
    label, inputs = _check_node(node, opset)
    attributes = node_attributes(label, node)
    layer = build_layer(node.op_type, opset, weights, attributes, node.name or None, NodeLayer, bound)
    layer.node_inputs = frozenset(inputs) - {"X", *WEIGHTS}
    return layer


@dataclass(frozen=True, eq=False)
class UnboundNode:
    """A recurrent node whose weights are computed at run time.

    Attributes
    ----------
    node : onnx.NodeProto
    opset : int
        Version of the default domain in the model.
    bound : mapping
        sequence_lens, initial_h, initial_c, where they are constants.
    op : RecurrentOp or None
        None where the node does not say hidden_size.
    convention : Convention
    """

    node: Any
    opset: int
    bound: Mapping[str, Any]
    op: RecurrentOp | None
    convention: Convention

    @property
    def label(self) -> str:
        """How errors name this layer."""
        return _check_node(self.node, self.opset)[0]

    @property
    def dtype(self) -> str | None:
        """None: the weights are to tell."""
        return None

    @property
    def sizes(self) -> dict[str, int]:
        """Empty: a node declares no size of X."""
        return {}

    def bind(self, W: Any, R: Any, B: Any = None, P: Any = None) -> NodeLayer:
        """The layer with its weights prepared, for many calls.

        Raises
        ------
        PyrnnxError
            Weights that do not fit the node or each other.
        """
        given = {"W": W, "R": R, "B": B, "P": P}
        return _layer(self.node, self.opset, {k: v for k, v in given.items() if v is not None}, self.bound)


def unbound_node(node: Any, bound: Mapping[str, Any], opset: int = 22) -> UnboundNode:
    """A recurrent node without its weights; `bound` are constants among the rest, by the operator's names of inputs.

    Raises
    ------
    PyrnnxError
        As `from_node`, for all but the weights.
    """
    label, _ = _check_node(node, opset)
    definition = schema(node.op_type, opset)
    read = read_attributes(definition, label, node_attributes(label, node))
    # Without hidden_size its place is held by 1, so that the other attributes are checked all the same.
    op = build_op(definition, label, read, read.get("hidden_size", 1))
    layout = ONNX_LAYOUTS[flag(label, "layout", read)]
    return UnboundNode(node, opset, bound, op if "hidden_size" in read else None, layout)


def _constant(label: str, name: str, source: str, initializers: Mapping[str, Any]) -> Any:
    if source not in initializers:
        raise ArgumentError(
            f"{label}: {name} ({shown(source)}) is not among the initializers; expected a constant array"
        )
    return initializers[source]


def node_attributes(label: str, node: Any) -> dict[str, Any]:
    """The attributes of a node by name, each of its own type.

    Raises
    ------
    ArgumentError
        An attribute that stands twice, is of another type, or takes its value from a function around the node.
    """
    values: dict[str, Any] = {}
    for attribute in node.attribute:
        name = attribute.name
        if name in values:
            raise ArgumentError(f"{label}: attribute {shown(name)} stands twice")
        if name not in TYPES:  # rejected, with what there is, where all unknown attributes are
            values[name] = None
            continue
        value = _value(attribute)
        if attribute.type != TYPES[name].number or attribute.ref_attr_name:
            given = attribute.ref_attr_name or value
            raise ArgumentError(f"{label}: attribute {shown(name)} is {shown(given)}; expected {TYPES[name].words}")
        values[name] = value
    return values


def _value(attribute: Any) -> Any:
    """The value of an onnx.AttributeProto, whatever its type."""
    field = _FIELDS.get(attribute.type)
    if field is None:
        return f"a value of type {attribute.type}"
    value = getattr(attribute, field)
    return value if len(field) == 1 else list(value)
