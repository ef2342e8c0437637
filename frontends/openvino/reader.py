"""One `<layer>` element to an `IRLayer`: attributes and ports read, and held against each other."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

from lxml import etree

from pyrnnx import check
from pyrnnx.conventions import weight_axes
from pyrnnx.errors import FormatError, PyrnnxWarning, UnsupportedError
from pyrnnx.frontends.openvino.layer import FLOAT_PRECISIONS, INTEGER_PRECISIONS, IRLayer, Port, layer_label
from pyrnnx.frontends.openvino.operations import OPERATIONS, Operation, build_op
from pyrnnx.frontends.openvino.xml import parse
from pyrnnx.op import RecurrentOp

DYNAMIC = -1


def read_layer(xml: Any) -> IRLayer:
    """One `<layer>` element of an IR.

    Parameters
    ----------
    xml : str, bytes, os.PathLike or lxml element
        A text that begins with "<", its bytes, the path of a file that holds it, or the element.

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
    LSTMCell-4.
    """
    element = parse(xml, "read_layer", "layer")
    name, identifier = element.get("name", ""), element.get("id", "")
    label = layer_label(element.get("type", "layer without a type"), name, identifier)
    operation = _operation(label, element)
    attributes = _attributes(label, operation, element)
    op = build_op(operation, label, attributes.pop("hidden_size"), attributes)
    inputs = _ports(label, element.find("input"), "input", operation.input_names)
    outputs = _ports(label, element.find("output"), "output", operation.output_names)
    _check_ports(label, operation, op, inputs, outputs)
    return IRLayer(op, operation, name, identifier, inputs, outputs)


def _operation(label: str, element: etree._Element) -> Operation:
    given = element.get("type")
    if given is None:
        raise FormatError(f"{label}: the element has no type attribute; expected one of {', '.join(OPERATIONS)}")
    by_lower_name = {name.lower(): row for name, row in OPERATIONS.items()}
    operation = by_lower_name.get(given.lower())
    if operation is None:
        raise UnsupportedError(
            f"{label}: type {given!r} is not a recurrent operation; expected {', '.join(OPERATIONS)}"
        )
    version = element.get("version")
    if version is not None:
        digits = version.removeprefix("opset")
        if digits == version or not digits.isdecimal() or int(digits) < operation.first_opset:
            raise UnsupportedError(f"{label}: version is {version!r}; expected opset{operation.first_opset} or later")
    return operation


def _attributes(label: str, operation: Operation, element: etree._Element) -> dict[str, Any]:
    data = element.find("data")
    if data is None or data.get("hidden_size") is None:
        raise FormatError(f"{label}: hidden_size is missing; the layer needs <data hidden_size=.../>")
    known = {name for row in OPERATIONS.values() for name in row.attributes}
    attributes = {}
    for key, value in data.attrib.items():
        name, text = str(key), str(value)
        if name in operation.attributes:
            attributes[name] = _value(label, name, text)
        elif name in known:
            raise UnsupportedError(f"{label}: attribute {name!r} does not belong to {operation.type}")
        else:
            allowed = ", ".join(operation.attributes)
            warnings.warn(
                f"{label}: attribute {name!r} is unknown and has no effect; {operation.type} has {allowed}",
                PyrnnxWarning,
                stacklevel=3,
            )
    return attributes


def _value(label: str, name: str, text: str) -> Any:
    expected, convert = _TYPES[name]
    try:
        return convert(text.strip())
    except ValueError:
        raise FormatError(f"{label}: {name} is {text!r}; expected {expected}") from None


def _integer(text: str) -> int:
    if not text.removeprefix("-").isdecimal() or len(text) > 20:
        raise ValueError(text)
    return int(text)


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false", "1", "0"):
        raise ValueError(text)
    return text.lower() in ("true", "1")


def _names(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",")) if text else ()


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(item) for item in text.split(",")) if text else ()


_TYPES: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "hidden_size": ("a positive integer", _integer),
    "direction": ("a string", str),
    "activations": ("names separated by commas", _names),
    "activations_alpha": ("numbers separated by commas", _numbers),
    "activations_beta": ("numbers separated by commas", _numbers),
    "clip": ("a number", float),
    "linear_before_reset": ("true or false", _boolean),
}


def _ports(label: str, parent: etree._Element | None, kind: str, names: tuple[str, ...]) -> tuple[Port, ...]:
    elements = [] if parent is None else parent.findall("port")
    if len(elements) != len(names):
        raise FormatError(f"{label}: {len(elements)} {kind} ports; expected {len(names)}: {', '.join(names)}")
    numbered = {}
    for element in elements:
        number = _port_id(label, kind, element.get("id", ""))
        if number in numbered:
            raise FormatError(f"{label}: {kind} port id {number} stands twice")
        numbered[number] = element
    return tuple(
        _port(label, number, name, numbered[number]) for number, name in zip(sorted(numbered), names, strict=True)
    )


def _port_id(label: str, kind: str, text: str) -> int:
    try:
        number = _integer(text)
    except ValueError:
        number = -1
    if number < 0:
        raise FormatError(f"{label}: {kind} port id is {text[:40]!r}; expected a number, 0 or above")
    return number


def _port(label: str, number: int, name: str, element: etree._Element) -> Port:
    shape = tuple(_dimension(label, number, name, dim.text or "") for dim in element.findall("dim"))
    return Port(number, name, shape, element.get("precision"))


def _dimension(label: str, number: int, name: str, text: str) -> int | None:
    try:
        size = _integer(text.strip())
    except ValueError:
        size = DYNAMIC - 1
    if size < DYNAMIC or size >= 2**63:
        raise FormatError(
            f"{label}: port {number} ({name}) has dimension {text!r}; expected 0 or more, or -1 for dynamic"
        )
    return None if size == DYNAMIC else size


def _check_ports(
    label: str, operation: Operation, op: RecurrentOp, inputs: tuple[Port, ...], outputs: tuple[Port, ...]
) -> None:
    """Declared shapes and precisions against the attributes and against each other."""
    axes = weight_axes(op, operation.convention)
    sizes = {"H": op.hidden_size, "D": op.num_directions}
    floating: Port | None = None
    for argument, port in zip(operation.inputs + operation.outputs, inputs + outputs, strict=True):
        port_axes = axes[argument] if argument in axes else tuple(operation.convention.axes_of(argument))
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
            raise FormatError(f"{label}: {port} has precision {port.precision!r}; expected {' or '.join(allowed)}")
        if port.precision is not None and argument != "sequence_lens":
            if floating is not None and port.precision != floating.precision:
                raise FormatError(
                    f"{label}: {port} has precision {port.precision}, {floating} {floating.precision}; expected one"
                )
            floating = port
