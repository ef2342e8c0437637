"""One `<layer>` element to an `IRLayer`: attributes and ports read, and held against each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lxml import etree

from pyrnnx import check
from pyrnnx.conventions import operator_axes
from pyrnnx.errors import FormatError, UnsupportedError, shortened, shown, warn
from pyrnnx.op import RecurrentOp

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
    """One `<layer>` element of an IR.

    Parameters
    ----------
    xml : str, bytes, os.PathLike or lxml element
        A text that begins with "<", its bytes, the path of a file of at most 256 MiB that holds it, or the element.

    Returns
    -------
    IRLayer

    Raises
    ------
    PyrnnxError
        Broken XML, a layer that is no recurrent operation, attributes that are missing or out of range, ports that are
        missing, contradict each other or the attributes.

    Warns
    -----
    PyrnnxWarning
        An attribute that the operation does not have.

    Source: OpenVINO IR versions 10 and 11; RNNSequence-5, GRUSequence-5, LSTMSequence-5, RNNCell-1, GRUCell-3,
    LSTMCell-4, and version 1 of the two LSTMs.
    """
    with named_errors(source_path(xml)):
        layer, unknown = layer_of(parse(xml, "read_layer", "layer"))
    for message in unknown:
        warn(message)
    return layer


def layer_of(element: etree._Element) -> tuple[IRLayer, list[str]]:
    """As `read_layer`, of an element, with what it would warn of."""
    layer = element_layer(element)
    return recurrent_layer(_operation(layer), layer)


def recurrent_layer(operation: Operation, layer: NetLayer) -> tuple[IRLayer, list[str]]:
    """A layer of a known operation, and a message for each attribute that has no effect.

    Raises
    ------
    PyrnnxError
        What `read_layer` rejects in a layer whose type it knows.
    """
    label = layer.label
    attributes, unknown = read_attributes(label, operation, layer.data)
    op = build_op(operation, label, attributes.pop("hidden_size"), attributes)
    axes = operator_axes(op, operation.convention)
    inputs = _named(label, "input", layer.inputs, operation.inputs, operation, axes)
    outputs = _named(label, "output", layer.outputs, operation.outputs, operation, axes)
    _check_ports(label, operation, op, inputs, outputs, axes)
    return IRLayer(op, operation, layer.name, layer.id, inputs, outputs), unknown


def _operation(layer: NetLayer) -> Operation:
    label, given = layer.label, layer.type
    if not given:
        raise FormatError(f"{label}: the element has no type attribute; expected one of {', '.join(TYPES)}")
    newest = find_operation(given)
    if newest is None:
        what = explain(given)
        raise UnsupportedError(
            f"{label}: {shortened(given)} is not run here: it is {what}"
            if what
            else f"{label}: type {shown(given)} is not a recurrent operation; expected {', '.join(TYPES)}"
        )
    version = layer.element.get("version")
    if version is None:
        return newest
    opset = opset_number(version)
    operation = None if opset is None else find_operation(given, opset)
    if operation is None:
        raise UnsupportedError(f"{label}: version is {shown(version)}; expected opset{first_opset(given)} or later")
    return operation


def _named(
    label: str,
    kind: str,
    ports: tuple[NetPort, ...],
    arguments: tuple[str, ...],
    operation: Operation,
    axes: Mapping[str, Sequence[str]],
) -> tuple[Port, ...]:
    """Ports with the operation's names of what they carry; none of it is a scalar: no ``<dim>`` is any rank."""
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
    """Declared shapes and precisions against the attributes and against each other."""
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
                    f"{label}: {port} has precision {port.precision}, {floating} {floating.precision}; expected one"
                )
            floating = port
