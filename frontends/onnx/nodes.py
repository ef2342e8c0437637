"""Recurrent nodes, checked against the schemas: what a layer is made of but for its weights."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from pyrnnx.conventions import ONNX_LAYOUTS, Convention
from pyrnnx.errors import ArgumentError, UnsupportedError, shown
from pyrnnx.layer import CONSTANTS
from pyrnnx.op import RecurrentOp

from .attributes import build_op, find_attribute, read_attributes
from .graph.walk import DEFAULT_DOMAINS
from .onnx_package import import_onnx
from .schemas import OPERATORS, QUANTIZED_LSTM, Schema, schema


@dataclass(frozen=True, eq=False)
class RecurrentNode:
    """A node, its inputs and attributes checked.

    Attributes
    ----------
    proto : onnx.NodeProto
    opset : int
        Version of its domain in the model.
    definition : Schema
    label : str
        How errors name the layer.
    inputs : mapping
        The names of the inputs that it has, by what the operator calls them.
    attributes : mapping
        As `read_attributes` gives them.
    """

    proto: Any
    opset: int
    definition: Schema
    label: str
    inputs: Mapping[str, str]
    attributes: Mapping[str, Any]

    @property
    def name(self) -> str | None:
        return self.proto.name or None

    @property
    def call_inputs(self) -> tuple[str, ...]:
        """Those of sequence_lens, initial_h and initial_c that it has as inputs."""
        return tuple(name for name in CONSTANTS if name in self.inputs)

    @property
    def convention(self) -> Convention:
        return ONNX_LAYOUTS[self.attributes.get("layout", 0)]

    def op(self) -> RecurrentOp | None:
        """What the attributes describe; None where only weights tell hidden_size.

        Raises
        ------
        ArgumentError
            A value out of its range.
        """
        # 1 in place of a hidden_size that is not there: the other attributes are checked all the same.
        op = build_op(self.definition, self.label, self.attributes, 1)
        return op if self.attributes["hidden_size"] is not None else None

    def weights(self, initializers: Mapping[str, Any]) -> dict[str, Any]:
        """The inputs that a layer is made of, by what the operator calls them.

        Raises
        ------
        ArgumentError
            One of them is not among the initializers.
        """
        found = {}
        for name in OPERATORS[self.definition.operator].weights:
            if name in self.inputs:
                source = self.inputs[name]
                if source not in initializers:
                    raise ArgumentError(
                        f"{self.label}: {name} ({shown(source)}) is not among the initializers; "
                        "expected a constant array"
                    )
                found[name] = initializers[source]
        return found

    def constants(self, initializers: Mapping[str, Any]) -> dict[str, Any]:
        """Those of `call_inputs` that are among the initializers."""
        sources = {name: self.inputs[name] for name in sorted(self.call_inputs)}
        return {name: initializers[source] for name, source in sources.items() if source in initializers}


def is_recurrent(node: Any) -> bool:
    """Whether a node (its default domain spelt "") is of one of the operators here."""
    return node.op_type in OPERATORS and bool(node.domain == OPERATORS[node.op_type].domain)


def read_node(caller: str, node: Any, opset: Any, operators: Collection[str]) -> RecurrentNode:
    """A node of one of the operators; `caller` is the function that errors name before there is a label.

    Raises
    ------
    ArgumentError
        No node; inputs or outputs that are too many or missing; attributes of other types.
    UnsupportedError
        Another operator, an attribute that the opset's does not have.
    """
    fields = ("op_type", "domain", "name", "input", "output", "attribute")  # so that onnx need not be imported
    if isinstance(node, type) or not all(hasattr(node, field) for field in fields):
        raise ArgumentError(f"{caller}: node is {type(node).__name__} {shown(node)}; expected an onnx.NodeProto")
    domain = "" if node.domain in DEFAULT_DOMAINS else node.domain
    if node.op_type not in operators or domain != OPERATORS[node.op_type].domain:
        given = shown(f"{node.domain}.{node.op_type}" if node.domain else node.op_type)
        expected = " or ".join(f"{OPERATORS[name].domain or 'ai.onnx'}.{name}" for name in operators)
        raise UnsupportedError(f"{caller}: the node is {given}; expected {expected}")
    definition = QUANTIZED_LSTM if node.op_type == QUANTIZED_LSTM.operator else schema(node.op_type, opset)
    label = f"{node.op_type} {shown(node.name)}" if node.name else node.op_type
    for what, given, names in (("input", node.input, definition.inputs), ("output", node.output, definition.outputs)):
        if len(given) > len(names):
            raise ArgumentError(
                f"{label}: the node has {len(given)} {what}s; expected at most {len(names)}: {', '.join(names)}"
            )
    inputs = {name: source for name, source in zip(definition.inputs, node.input, strict=False) if source}
    for name in ("W", "R", *OPERATORS[definition.operator].scales):
        if name not in inputs:
            raise ArgumentError(f"{label}: {name} is missing; the node needs it as an input")
    attributes = read_attributes(definition, label, _node_attributes(definition, label, node))
    return RecurrentNode(node, opset, definition, label, inputs, attributes)


def _node_attributes(definition: Schema, label: str, node: Any) -> dict[str, Any]:
    """The attributes of a node by name, each of the very type that the schema gives it.

    Raises
    ------
    ArgumentError
        An attribute that stands twice, is of another type, or takes its value from a function around the node.
    UnsupportedError
        An attribute that the opset's operator does not have.
    """
    values: dict[str, Any] = {}
    for attribute in node.attribute:
        name = attribute.name
        if name in values:
            raise ArgumentError(f"{label}: attribute {shown(name)} stands twice")
        expected = find_attribute(definition, label, name).type
        type_name = import_onnx().AttributeProto.AttributeType.Name(attribute.type)
        if attribute.ref_attr_name or type_name != expected.name:
            given = attribute.ref_attr_name or _described(attribute, type_name)
            raise ArgumentError(f"{label}: attribute {shown(name)} is {shown(given)}; expected {expected.words}")
        values[name] = import_onnx().helper.get_attribute_value(attribute)
    return values


def _described(attribute: Any, type_name: str) -> Any:
    """The value of an attribute for a message."""
    try:
        value = import_onnx().helper.get_attribute_value(attribute)
    except ValueError:  # its type is UNDEFINED
        return f"a value of type {type_name}"
    simple = isinstance(value, (int, float, bytes)) or (isinstance(value, list) and type_name in ("INTS", "FLOATS"))
    return value if simple else f"a value of type {type_name}"
