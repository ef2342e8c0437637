"""One `<layer>` element to an `IRLayer`: attributes and ports read, and held against each other."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

from lxml import etree

from pyrnnx import check
from pyrnnx.conventions import array_axes
from pyrnnx.errors import FormatError, PyrnnxWarning, UnsupportedError, shortened, shown
from pyrnnx.op import RecurrentOp

from .ir.ports import NetPort, boolean, integer, layer_label, number, read_ports
from .ir.xml import named_errors, parse, source_path
from .layers import FLOAT_PRECISIONS, INTEGER_PRECISIONS, IRLayer, Port
from .schemas import (
    NEUTRAL,
    OPERATIONS,
    TYPES,
    Operation,
    build_op,
    explain,
    find_operation,
    first_opset,
)


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
        warnings.warn(message, PyrnnxWarning, stacklevel=2)
    return layer


def layer_of(element: etree._Element) -> tuple[IRLayer, list[str]]:
    """As `read_layer`, of an element, with what it would warn of."""
    label = layer_label(element.get("type", "layer without a type"), element.get("name", ""), element.get("id", ""))
    ports = [read_ports(label, element, kind) for kind in ("input", "output")]
    return recurrent_layer(_operation(label, element), label, element, *ports)


def recurrent_layer(
    operation: Operation,
    label: str,
    element: etree._Element,
    inputs: tuple[NetPort, ...],
    outputs: tuple[NetPort, ...],
) -> tuple[IRLayer, list[str]]:
    """A layer of a known operation whose ports are read, and a message for each attribute that has no effect.

    Raises
    ------
    PyrnnxError
        What `read_layer` rejects in a layer whose type it knows.
    """
    attributes, unknown = _attributes(label, operation, element)
    op = build_op(operation, label, attributes.pop("hidden_size"), attributes)
    ranks = {
        argument: len(array_axes(op, operation.convention, argument))
        for argument in (*operation.inputs, *operation.outputs)
    }
    named = [
        _named(label, kind, ports, arguments, operation, ranks, optional)
        for kind, ports, arguments, optional in (
            ("input", inputs, operation.inputs, operation.optional),
            ("output", outputs, operation.outputs, 0),
        )
    ]
    _check_ports(label, operation, op, *named)
    return IRLayer(op, operation, element.get("name", ""), element.get("id", ""), *named), unknown


def _operation(label: str, element: etree._Element) -> Operation:
    given = element.get("type")
    if given is None:
        raise FormatError(f"{label}: the element has no type attribute; expected one of {', '.join(TYPES)}")
    newest = find_operation(given)
    if newest is None:
        what = explain(given)
        raise UnsupportedError(
            f"{label}: {shortened(given)} is not run here: it is {what}"
            if what
            else f"{label}: type {shown(given)} is not a recurrent operation; expected {', '.join(TYPES)}"
        )
    version = element.get("version")
    if version is None:
        return newest
    opset = opset_number(version)
    operation = None if opset is None else find_operation(given, opset)
    if operation is None:
        raise UnsupportedError(f"{label}: version is {shown(version)}; expected opset{first_opset(given)} or later")
    return operation


def opset_number(version: str) -> int | None:
    """5 of "opset5"; None for what is no opset's name."""
    digits = version.removeprefix("opset")
    try:
        number = integer(digits)
    except ValueError:
        return None
    return number if digits != version and number >= 0 else None


def _attributes(label: str, operation: Operation, element: etree._Element) -> tuple[dict[str, Any], list[str]]:
    data = element.find("data")
    if data is None or data.get("hidden_size") is None:
        raise FormatError(f"{label}: hidden_size is missing; the layer needs <data hidden_size=.../>")
    known = {name for row in OPERATIONS.values() for name in row.attributes}
    attributes, unknown = {}, []
    for key, value in data.attrib.items():
        name, text = str(key), str(value)
        if name in operation.attributes:
            attributes[name] = _value(label, name, text)
        elif name in known and (name not in NEUTRAL or _value(label, name, text) != NEUTRAL[name]):
            raise UnsupportedError(f"{label}: attribute {shown(name)} does not belong to {operation.versioned_name}")
        else:
            allowed = ", ".join(operation.attributes)
            unknown.append(
                f"{label}: attribute {shown(name)} is unknown and has no effect; {operation.versioned_name} has "
                f"{allowed}"
            )
    return attributes, unknown


def _value(label: str, name: str, text: str) -> Any:
    expected, convert = _TYPES[name]
    try:
        return convert(text.strip())
    except ValueError:
        raise FormatError(f"{label}: {name} is {shown(text)}; expected {expected}") from None


def _names(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",")) if text else ()


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(number(item.strip()) for item in text.split(",")) if text else ()


_TYPES: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "hidden_size": ("a positive integer", integer),
    "direction": ("a string", str),
    "activations": ("names separated by commas", _names),
    "activations_alpha": ("numbers separated by commas", _numbers),
    "activations_beta": ("numbers separated by commas", _numbers),
    "clip": ("a number", number),
    "linear_before_reset": ("true or false", boolean),
    "input_forget": ("true or false", boolean),
    "weights_format": ("a string", str.lower),
}


def _named(
    label: str,
    kind: str,
    ports: tuple[NetPort, ...],
    arguments: tuple[str, ...],
    operation: Operation,
    ranks: Mapping[str, int],
    optional: int,
) -> tuple[Port, ...]:
    """Ports with the operation's names of what they carry; none of it is a scalar: no ``<dim>`` is any rank."""
    names = [operation.convention.name_of(argument) for argument in arguments]
    if not len(names) - optional <= len(ports) <= len(names):
        least = f"{len(names) - optional} to " if optional else ""
        raise FormatError(f"{label}: {len(ports)} {kind} ports; expected {least}{len(names)}: {', '.join(names)}")
    return tuple(
        Port(port.id, name, (None,) * ranks[argument] if port.shape is None else port.shape, port.precision)
        for argument, name, port in zip(arguments, names, ports, strict=False)
    )


def _check_ports(
    label: str, operation: Operation, op: RecurrentOp, inputs: tuple[Port, ...], outputs: tuple[Port, ...]
) -> None:
    """Declared shapes and precisions against the attributes and against each other."""
    sizes = {"H": op.hidden_size, "D": op.num_directions}
    floating: Port | None = None
    arguments = operation.inputs[: len(inputs)] + operation.outputs
    for argument, port in zip(arguments, inputs + outputs, strict=True):
        port_axes = array_axes(op, operation.convention, argument)
        check.shape(label, str(port), port.shape, port_axes, sizes)
        sizes.update(
            {
                axis: size
                for axis, size in zip(port_axes, port.shape, strict=True)
                if size is not None and "*" not in axis
            }
        )
        allowed = INTEGER_PRECISIONS if argument == "sequence_lens" else FLOAT_PRECISIONS
        if port.precision is not None and port.precision not in allowed:
            raise FormatError(f"{label}: {port} has precision {shown(port.precision)}; expected {' or '.join(allowed)}")
        if port.precision is not None and argument != "sequence_lens":
            if floating is not None and port.precision != floating.precision:
                raise FormatError(
                    f"{label}: {port} has precision {port.precision}, {floating} {floating.precision}; expected one"
                )
            floating = port
