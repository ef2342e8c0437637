"""The proof for a whole graph, node by node from its inputs to its outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyrnnx.errors import shown
from pyrnnx.scoring.proof.arithmetic import shape_arithmetic
from pyrnnx.scoring.proof.node import Node, first, with_axes
from pyrnnx.scoring.proof.rules import RULES
from pyrnnx.scoring.proof.table import OPERATORS
from pyrnnx.scoring.proof.values import ROWS, TIME, Axis, UnprovenError, Value, as_data, checked, constant, has

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto, ModelProto, NodeProto

DOMAINS = ("", "ai.onnx")


@dataclass(frozen=True)
class Proof:
    """Proven properties of the results of a graph.

    Attributes
    ----------
    rows : str
        Reason why the results of a row may depend on other rows; "" if they do not.
    padding : str
        Reason why results may depend on padding; "" if they do not.
    axes : mapping
        By output: the axis of the rows, and the axis of the time steps or None.
    """

    rows: str = ""
    padding: str = ""
    axes: Mapping[str, tuple[int, int | None]] = field(default_factory=dict)


def follow(proto: ModelProto, tensors: Mapping[str, Any], inputs: Mapping[str, Value], outputs: Sequence[str]) -> Proof:
    """Return the proof for a folded graph.

    Parameters
    ----------
    proto : onnx.ModelProto
        Model without functions, in topological order.
    tensors : mapping
        Initializers as arrays or tensors.
    inputs : mapping
        Known properties of the inputs.
    outputs : sequence of str
        Names of values at the top level.
    """
    opset = next((entry.version for entry in proto.opset_import if entry.domain in DOMAINS), 1)
    values = _values(proto.graph, tensors, inputs, opset)
    return _proof({name: values.get(name, f"{shown(name)} is no value of the graph") for name in outputs})


def _values(
    graph: GraphProto, tensors: Mapping[str, Any], outer: Mapping[str, Value | str], opset: int
) -> dict[str, Value | str]:
    """Return the properties of the values of a graph and those around it; a str is the reason why none are known."""
    values = {**outer, **{name: constant(_array(tensor)) for name, tensor in tensors.items()}}
    for node in graph.node:
        is_choice = node.op_type == "If" and node.domain in DOMAINS
        results = _chosen(node, opset, values) if is_choice else _results(node, opset, values)
        for place, name in enumerate(node.output):
            if name:
                values[name] = results if isinstance(results, str) else results[place]
    return values


def _chosen(node: NodeProto, opset: int, values: Mapping[str, Value | str]) -> list[Value] | str:
    """Return the properties of the results of an If: of the branch that all rows take, or of either branch."""
    label, bodies = _label(node), {attribute.name: attribute.g for attribute in node.attribute}
    try:
        condition = as_data(_known(values.get(node.input[0], f"{label} has an unknown condition")), label)
        if any(condition.axes) or condition.mixed:
            raise UnprovenError(condition.mixed or f"{label} has a condition for each row")
        if condition.array is not None:
            bodies.pop("else_branch" if condition.array.any() else "then_branch")
        first_branch, *others = (_body_results(body, opset, values) for body in bodies.values())
        for other in others:
            first_branch = [_either(a, b, label) for a, b in zip(first_branch, other, strict=True)]
    except UnprovenError as error:
        return str(error)
    return first_branch


def _known(value: Value | str) -> Value:
    if isinstance(value, str):
        raise UnprovenError(value)
    return value


def _body_results(graph: GraphProto, opset: int, outer: Mapping[str, Value | str]) -> list[Value]:
    inside = _values(graph, {tensor.name: tensor for tensor in graph.initializer}, outer, opset)
    return [_known(inside.get(value.name, f"{shown(value.name)} is no value of the graph")) for value in graph.output]


def _either(a: Value, b: Value, label: str) -> Value:
    """Return the properties of a value that is one of two in all rows.

    Raises
    ------
    UnprovenError
        They have different axes, or are numbers that depend on the number of rows.
    """
    a, b = as_data(a, label), as_data(b, label)
    if a.axes != b.axes:
        raise UnprovenError(f"{label} has branches with different axes")
    return with_axes(a, a.axes, zero=a.zero and b.zero, mixed=first(a.mixed, b.mixed))


def _proof(outputs: Mapping[str, Value | str]) -> Proof:
    axes: dict[str, tuple[int, int | None]] = {}
    padding = ""
    for name, value in outputs.items():
        if isinstance(value, str):
            return Proof(value, value)
        rows = _place(value.axes, ROWS)
        if rows is None:
            reason = f"output {shown(name)} has no axis of rows alone"
            return Proof(reason, reason)
        time = _place(value.axes, TIME)
        if time is None and value.timed:
            padding = padding or f"output {shown(name)} has no axis of time steps alone"
        padding = padding or value.mixed
        axes[name] = rows, time
    return Proof("", padding, axes)


def _place(axes: Sequence[Axis], label: str) -> int | None:
    return next((place for place, axis in enumerate(axes) if len(axis) == 1 and has(axis, label)), None)


def _results(node: NodeProto, opset: int, values: Mapping[str, Value | str]) -> list[Value] | str:
    """Return the properties of a node's results, or the reason why nothing is known of them."""
    label = _label(node)
    unknown = f"{label} is not known to keep rows apart"
    kind = OPERATORS.get(node.op_type) if node.domain in DOMAINS else None
    if kind is None:
        return next((value for name in node.input if isinstance(value := values.get(name), str)), unknown)
    inputs: list[Value | None] = []
    for name in node.input:
        value = values.get(name) if name else None
        if isinstance(value, str):
            return value
        if name and value is None:
            return f"{label} takes {shown(name)}, which is unknown"
        inputs.append(value)
    attributes = {attribute.name: _attribute(attribute) for attribute in node.attribute}
    read = Node(label, node.op_type, opset, attributes, tuple(inputs), tuple(node.output))
    try:
        results = shape_arithmetic(read) or RULES[kind](read)
        return [checked(value, label) for value in results] if len(results) >= len(node.output) else unknown
    except UnprovenError as error:
        return str(error)
    except Exception:  # an invalid node; the runtime will reject it
        return unknown


def _label(node: NodeProto) -> str:
    return f"{node.op_type} {shown(node.name or next(filter(None, node.output), ''))}"


def _attribute(attribute: AttributeProto) -> Any:
    from onnx.helper import get_attribute_value

    value = get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return _array(value) if attribute.type == attribute.TENSOR else value


def _array(tensor: Any) -> Any:
    from onnx.numpy_helper import to_array

    return to_array(tensor) if hasattr(tensor, "data_type") else tensor
