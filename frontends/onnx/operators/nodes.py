"""Recurrent nodes, checked against the schemas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyrnnx.errors import ArgumentError, UnsupportedError, shown, warn
from pyrnnx.layers.layer import CONSTANTS
from pyrnnx.operator.conventions import ONNX_LAYOUTS, Convention
from pyrnnx.operator.op import RecurrentOp

from ..graph.walk import DEFAULT_DOMAINS, Node
from ..onnx_package import import_onnx
from .attributes import build_op, find_attribute, read_attributes
from .schemas import OPERATORS, QUANTIZED_LSTM, Schema, schema

if TYPE_CHECKING:
    from onnx import NodeProto

_SHOWN = ("FLOAT", "FLOATS", "INT", "INTS", "STRING")  # types of attributes whose values errors show


@dataclass(frozen=True, eq=False)
class RecurrentNode:
    """Node with checked inputs and attributes."""

    proto: NodeProto
    opset: int  # version of its domain in the model
    definition: Schema
    label: str
    inputs: Mapping[str, str]  # names of values, by names of the definition
    attributes: Mapping[str, Any]  # as `read_attributes` returns them

    @property
    def name(self) -> str | None:
        return self.proto.name or None

    @property
    def call_inputs(self) -> tuple[str, ...]:
        """The node's inputs among sequence_lens, initial_h and initial_c."""
        return tuple(name for name in CONSTANTS if name in self.inputs)

    @property
    def is_quantized(self) -> bool:
        return bool(OPERATORS[self.definition.operator].scales)

    @property
    def convention(self) -> Convention:
        return ONNX_LAYOUTS[self.attributes.get("layout", 0)]

    def op(self) -> RecurrentOp | None:
        """Return the op that the attributes describe; None if they lack hidden_size."""
        # hidden_size 1 is a placeholder, so that the other attributes are checked in any case.
        op = build_op(self.definition, self.label, self.attributes, 1)
        return op if self.attributes["hidden_size"] is not None else None

    def weights(self, initializers: Mapping[str, Any]) -> dict[str, Any]:
        """Return the weights, by their names in the operator's definition."""
        weights = {}
        for name in OPERATORS[self.definition.operator].weights:
            if name in self.inputs:
                source = self.inputs[name]
                if source not in initializers:
                    raise ArgumentError(
                        f"{self.label}: {name} ({shown(source)}) is not among the initializers; "
                        "expected a constant array"
                    )
                weights[name] = initializers[source]
        return weights

    def constants(self, initializers: Mapping[str, Any]) -> dict[str, Any]:
        """Return the `call_inputs` that are among the initializers."""
        sources = {name: self.inputs[name] for name in sorted(self.call_inputs)}
        return {name: initializers[source] for name, source in sources.items() if source in initializers}


def is_recurrent(node: Node | NodeProto) -> bool:
    """Return whether a node (with default domain "") is recurrent."""
    return node.op_type in OPERATORS and node.domain == OPERATORS[node.op_type].domain


def check_count(label: str, what: str, values: Sequence[str], names: Sequence[str]) -> None:
    if len(values) > len(names):
        raise ArgumentError(
            f"{label}: the node has {len(values)} {what}s; expected at most {len(names)}: {', '.join(names)}"
        )


def read_node(caller: str, node: NodeProto, opset: Any) -> RecurrentNode:
    """Check a recurrent node; errors name `caller` until there is a label.

    Raises
    ------
    ArgumentError
        Not a node; too many or missing inputs or outputs; attributes of other types.
    UnsupportedError
        Another operator, or an attribute that the opset lacks.

    Warns
    -----
    PyrnnxWarning
        The clip is 0, which exporters write for no clip.
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
    return RecurrentNode(node, opset, definition, label, inputs, attributes)


def _node_attributes(definition: Schema, label: str, node: NodeProto) -> dict[str, Any]:
    """Return the attributes of a node by name, each of its type in the schema."""
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
