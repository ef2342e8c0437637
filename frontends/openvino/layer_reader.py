"""Reader of one recurrent `<layer>` element: checks attributes and ports against each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lxml import etree

from pyrnnx.errors import FormatError, UnsupportedError, shortened, shown, warn
from pyrnnx.operator import check
from pyrnnx.operator.conventions import operator_axes

from .attributes import build_op, read_attributes
from .ir.element_types import FLOAT_PRECISIONS, INTEGER_PRECISIONS
from .ir.layer import NetLayer, element_layer, opset_number
from .ir.xml import named_errors, parse, source_path
from .layers import IRLayer, Port
from .schemas import TYPES, Operation, explain, find_operation, first_opset


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
        layer = layer_of(parse(xml, "read_layer", "layer"))
    for message in layer.warnings:
        warn(message)
    return layer


def layer_of(element: etree._Element) -> IRLayer:
    """Return the layer that an element declares."""
    layer = element_layer(element)
    return recurrent_layer(_operation(layer), layer)


def recurrent_layer(operation: Operation, layer: NetLayer) -> IRLayer:
    """Return a layer of a known operation."""
    label, convention = layer.label, operation.convention
    attributes, messages = read_attributes(label, operation, layer.data)
    op = build_op(operation, label, attributes.pop("hidden_size"), attributes)
    _check_count(label, "input", len(layer.inputs), operation.input_names, operation.optional)
    _check_count(label, "output", len(layer.outputs), operation.output_names, 0)
    arguments = (*operation.inputs[: len(layer.inputs)], *operation.outputs)
    axes, sizes = operator_axes(op, convention), {"H": op.hidden_size, "D": op.num_directions}
    ports: list[Port] = []
    for argument, declared in zip(arguments, layer.inputs + layer.outputs, strict=True):
        shape = (None,) * len(axes[argument]) if declared.shape is None else declared.shape  # none is a scalar
        port = Port(declared.id, convention.name_of(argument), shape, declared.precision)
        check.shape(label, str(port), shape, axes[argument], sizes)
        known = zip(axes[argument], shape, strict=True)
        sizes.update({axis: size for axis, size in known if size is not None and "*" not in axis})
        _check_precision(label, port, INTEGER_PRECISIONS if argument == "sequence_lens" else FLOAT_PRECISIONS, ports)
        ports.append(port)
    inputs, outputs = tuple(ports[: len(layer.inputs)]), tuple(ports[len(layer.inputs) :])
    return IRLayer(op, operation, layer.name, layer.id, inputs, outputs, tuple(messages))


def _check_count(label: str, kind: str, count: int, names: tuple[str, ...], optional: int) -> None:
    if not len(names) - optional <= count <= len(names):
        least = f"{len(names) - optional} to " if optional else ""
        raise FormatError(f"{label}: {count} {kind} ports; expected {least}{len(names)}: {', '.join(names)}")


def _check_precision(label: str, port: Port, allowed: tuple[str, ...], ports: Sequence[Port]) -> None:
    """Check a port's precision, also against the `ports` before it."""
    if port.precision is None:
        return
    if port.precision not in allowed:
        raise FormatError(f"{label}: {port} has precision {shown(port.precision)}; expected {' or '.join(allowed)}")
    for other in ports:
        if other.precision in allowed and other.precision != port.precision:
            raise FormatError(
                f"{label}: {port} has precision {port.precision}, but {other} has {other.precision}; expected the same"
            )


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
