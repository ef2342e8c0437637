"""Reader of one recurrent `<layer>` element: checks attributes and ports against each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lxml import etree

from pyrnnx.errors import FormatError, UnsupportedError, shortened, shown, warn
from pyrnnx.operator import check
from pyrnnx.operator.conventions import operator_axes
from pyrnnx.operator.op import RecurrentOp

from .attributes import build_op, read_attributes
from .ir.element_types import ELEMENT_TYPES
from .ir.layer import NetLayer, element_layer, opset_number
from .ir.ports import NetPort
from .ir.xml import named_errors, parse, source_path
from .layers import IRLayer, Port
from .schemas import TYPES, Operation, explain, find_operation, first_opset

FLOAT_PRECISIONS = tuple(row.precision for row in ELEMENT_TYPES.values() if row.floating)
INTEGER_PRECISIONS = tuple(row.precision for row in ELEMENT_TYPES.values() if row.integer)


def read_layer(xml: Any) -> IRLayer:
    """Read one `<layer>` element of an IR.

    Parameters
    ----------
    xml : str, bytes, os.PathLike or lxml element
        Text that begins with "<", its bytes, the path of a file of at most 256 MiB, or the element.

    Returns
    -------
    IRLayer

    Raises
    ------
    PyrnnxError
        The XML is broken, the layer is not a recurrent operation, an attribute is missing or out of range, or a port is
        missing or contradicts another port or an attribute.

    Warns
    -----
    PyrnnxWarning
        The operation does not have an attribute.

    Source: OpenVINO IR versions 10 and 11; RNNSequence-5, GRUSequence-5, LSTMSequence-5, RNNCell-1, GRUCell-3,
    LSTMCell-4, and version 1 of the two LSTMs.
    """
    with named_errors(source_path(xml)):
        layer, messages = layer_of(parse(xml, "read_layer", "layer"))
    for message in messages:
        warn(message)
    return layer


def layer_of(element: etree._Element) -> tuple[IRLayer, list[str]]:
    """Return the layer that an element declares, and the warnings of `read_layer`."""
    layer = element_layer(element)
    return recurrent_layer(_operation(layer), layer)


def recurrent_layer(operation: Operation, layer: NetLayer) -> tuple[IRLayer, list[str]]:
    """Return a layer of a known operation, and a message for each attribute that has no effect.

    Raises
    ------
    PyrnnxError
        As in `read_layer`, except for an unknown type.
    """
    label = layer.label
    attributes, messages = read_attributes(label, operation, layer.data)
    op = build_op(operation, label, attributes.pop("hidden_size"), attributes)
    axes = operator_axes(op, operation.convention)
    inputs = _named(label, "input", layer.inputs, operation.inputs, operation, axes)
    outputs = _named(label, "output", layer.outputs, operation.outputs, operation, axes)
    _check_ports(label, operation, op, inputs, outputs, axes)
    return IRLayer(op, operation, layer.name, layer.id, inputs, outputs), messages


def _operation(layer: NetLayer) -> Operation:
    label, kind = layer.label, layer.type
    if not kind:
        raise FormatError(f"{label}: the element has no type attribute; expected one of {', '.join(TYPES)}")
    newest = find_operation(kind)
    if newest is None:
        explanation = explain(kind)
        raise UnsupportedError(
            f"{label}: {shortened(kind)} is not run here: it is {explanation}"
            if explanation
            else f"{label}: type {shown(kind)} is not a recurrent operation; expected {', '.join(TYPES)}"
        )
    version = layer.element.get("version")
    if version is None:
        return newest
    opset = opset_number(version)
    operation = None if opset is None else find_operation(kind, opset)
    if operation is None:
        raise UnsupportedError(f"{label}: version is {shown(version)}; expected opset{first_opset(kind)} or later")
    return operation


def _named(
    label: str,
    kind: str,
    ports: tuple[NetPort, ...],
    arguments: tuple[str, ...],
    operation: Operation,
    axes: Mapping[str, Sequence[str]],
) -> tuple[Port, ...]:
    """Return ports with the operation's names; a port without ``<dim>`` has any rank, because none is a scalar."""
    names = [operation.convention.name_of(argument) for argument in arguments]
    optional = operation.optional if kind == "input" else 0
    if not len(names) - optional <= len(ports) <= len(names):
        least = f"{len(names) - optional} to " if optional else ""
        raise FormatError(f"{label}: {len(ports)} {kind} ports; expected {least}{len(names)}: {', '.join(names)}")
    named = []
    for argument, name, port in zip(arguments, names, ports, strict=False):
        shape = (None,) * len(axes[argument]) if port.shape is None else port.shape
        named.append(Port(port.id, name, shape, port.precision))
    return tuple(named)


def _check_ports(
    label: str,
    operation: Operation,
    op: RecurrentOp,
    inputs: tuple[Port, ...],
    outputs: tuple[Port, ...],
    axes: Mapping[str, Sequence[str]],
) -> None:
    """Check declared shapes and precisions against the attributes and each other."""
    sizes = {"H": op.hidden_size, "D": op.num_directions}
    floating: Port | None = None
    arguments = operation.inputs[: len(inputs)] + operation.outputs
    for argument, port in zip(arguments, inputs + outputs, strict=True):
        check.shape(label, str(port), port.shape, axes[argument], sizes)
        known = zip(axes[argument], port.shape, strict=True)
        sizes.update({axis: size for axis, size in known if size is not None and "*" not in axis})
        if port.precision is None:
            continue
        allowed = INTEGER_PRECISIONS if argument == "sequence_lens" else FLOAT_PRECISIONS
        if port.precision not in allowed:
            raise FormatError(f"{label}: {port} has precision {shown(port.precision)}; expected {' or '.join(allowed)}")
        if argument != "sequence_lens":
            if floating is not None and port.precision != floating.precision:
                raise FormatError(
                    f"{label}: {port} has precision {port.precision}, but {floating} has {floating.precision}; "
                    "expected the same"
                )
            floating = port
