"""Layers of an IR, of any type, and the connections of their inputs."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

from lxml import etree

from pyrnnx.errors import FormatError, shortened, shown

from .element_types import ElementType, by_name
from .numbers import integer
from .ports import NetPort, read_ports
from .shapes import Shape, parse_shape, port_shape, static_shape

NEWEST = 10**9  # above every opset
MAX_ITEM = 8  # bytes of the largest element type
# Spelling and numbers of input and output ports, by lower-case type; None: any number.
_ENDS: dict[str, tuple[str, int, int | None]] = {
    "parameter": ("Parameter", 0, 1),
    "const": ("Const", 0, 1),
    "result": ("Result", 1, None),
}


@dataclass(frozen=True)
class ConstData:
    """The `<data>` of a Const.

    Attributes
    ----------
    element_type : ElementType
    shape : tuple of int
    elements : int
        Number of elements.
    offset, size : int
        Offset and number of bytes.
    """

    element_type: ElementType
    shape: tuple[int, ...]
    elements: int
    offset: int
    size: int

    @property
    def end(self) -> int:
        """Offset after the last byte."""
        return self.offset + self.size


class Output(NamedTuple):
    """The index-th output port of a layer."""

    layer: NetLayer
    index: int  # type: ignore[assignment]  # a tuple has a method of that name

    @property
    def port(self) -> NetPort:
        return self.layer.outputs[self.index]


@dataclass(frozen=True, eq=False)
class NetLayer:
    """A `<layer>` of any type.

    Attributes
    ----------
    id, name, type, version : str
        Those of the XML, but "Parameter", "Const" and "Result" always in this spelling; version "" if it is absent.
    label : str
        Name of the layer in errors.
    data : dict
        Attributes of `<data>`.
    shape : tuple or None
        The `<data shape>` of a Parameter or Const, with bounds; None: any rank, or no shape.
    inputs, outputs : tuple of NetPort
        The ports in the order of the document.
    sources : tuple of Output
        The output that each input reads, in a net.
    element : lxml element
    bodies : mapping of NetGraph
        Bodies of a TensorIterator, Loop or If in a net, by tag: "body", "then_body", "else_body".
    """

    id: str
    name: str
    type: str
    version: str
    label: str = field(repr=False)
    data: dict[str, str]
    shape: Shape | None = field(repr=False)
    inputs: tuple[NetPort, ...]
    outputs: tuple[NetPort, ...]
    element: etree._Element = field(repr=False)
    sources: tuple[Output, ...] = field(default=(), repr=False)
    # Any stands for NetGraph, whose module imports this one.
    bodies: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), repr=False)

    @property
    def opset(self) -> int:
        """Number of the opset, 5 for "opset5"; NEWEST without a version, 0 if the version is not an opset."""
        return (opset_number(self.version) or 0) if self.version else NEWEST

    @cached_property
    def const_data(self) -> ConstData:
        """Location and type of a Const in the .bin."""
        return _const_data(self.label, self.data, self.shape)


def layer_label(kind: str, name: str, identifier: str) -> str:
    """Return the name of a layer in errors."""
    named = f" {shown(name)}" if name else ""
    return shortened(kind) + named + (f" (id {shortened(identifier)})" if identifier else "")


def opset_number(version: str) -> int | None:
    """Return the number of an opset, 5 for "opset5"; None if the text is not an opset."""
    digits = version.removeprefix("opset")
    try:
        number = integer(digits)
    except ValueError:
        return None
    return number if digits != version and number >= 0 else None


def element_layer(element: etree._Element) -> NetLayer:
    """Read a `<layer>`, without sources; an absent type or id is ""."""
    identifier, kind, name = element.get("id", "").strip(), element.get("type", ""), element.get("name", "")
    end = _ENDS.get(kind.lower())
    kind = kind if end is None else end[0]
    label = layer_label(kind or "layer without a type", name, identifier)
    section = element.find("data")
    data = {} if section is None else {str(key): str(value) for key, value in section.items()}
    inputs, outputs = read_ports(label, element, "input"), read_ports(label, element, "output")
    shape = None
    if end is not None:
        _check_form(label, end, inputs, outputs)
        if kind != "Result":
            (port,) = outputs
            text = data.get("shape")
            shape = None if text is None else parse_shape(label, text)
            outputs = (NetPort(port.id, port_shape(label, text, shape, port), port.precision, port.names),)
    version = element.get("version", "")
    return NetLayer(identifier, name, kind, version, label, data, shape, inputs, outputs, element)


def _check_form(
    label: str, end: tuple[str, int, int | None], inputs: tuple[NetPort, ...], outputs: tuple[NetPort, ...]
) -> None:
    _, input_count, output_count = end
    if len(inputs) != input_count or (output_count is not None and len(outputs) != output_count):
        expected = f"{input_count} inputs" + ("" if output_count is None else f" and {output_count} output")
        raise FormatError(f"{label}: {len(inputs)} input ports and {len(outputs)} output ports; expected {expected}")


def _const_data(label: str, data: Mapping[str, str], shape: Shape | None) -> ConstData:
    """Read the `<data>` of a Const with the parsed `shape`."""
    for name in ("element_type", "shape", "offset", "size"):
        if name not in data:
            raise FormatError(f"{label}: {name} is missing; a Const needs element_type, shape, offset and size")
    element_type = by_name(label, data["element_type"])
    sizes = static_shape(label, data["shape"], shape)
    offset, size = _number(label, "offset", data["offset"]), _number(label, "size", data["size"])
    elements = math.prod(sizes)
    if not elements:  # OpenVINO writes a constant without elements with size 1
        if math.prod([size for size in sizes if size]) * MAX_ITEM > sys.maxsize:
            raise FormatError(f"{label}: shape is {shown(sizes)}; expected a shape that NumPy supports")
    elif element_type.bits is not None:
        nbytes = -(-elements * element_type.bits // 8)
        if size != nbytes:
            raise FormatError(f"{label}: size is {size}; expected {nbytes}, for shape {sizes} of {element_type.name}")
    return ConstData(element_type, sizes, elements, offset, size)


def _number(label: str, name: str, text: str) -> int:
    try:
        number = integer(text.strip())
    except ValueError:
        number = -1
    if number < 0:
        raise FormatError(f"{label}: {name} is {shown(text)}; expected a number, 0 or above")
    return number
