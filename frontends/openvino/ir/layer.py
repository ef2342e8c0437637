"""Layers of an IR, of any type, and the connections of their inputs."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

from lxml import etree

from pyrnnx.errors import FormatError, shortened, shown

from .element_types import ElementType, by_name
from .numbers import count, integer
from .ports import NetPort, Shape, parse_shape, port_shape, read_ports

NEWEST = 10**9  # above every opset
MAX_ITEM = 8  # bytes of the largest element type
_ENDS = {"parameter": "Parameter", "const": "Const", "result": "Result"}  # spelling, by lower-case type


class ConstData(NamedTuple):
    """The `<data>` of a Const: type and shape of the value, and where its bytes are in the .bin."""

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
        return _const_data(self)


def layer_label(kind: str, name: str, identifier: str) -> str:
    """Return the name of a layer in errors."""
    named = f" {shown(name)}" if name else ""
    return shortened(kind) + named + (f" (id {shortened(identifier)})" if identifier else "")


def opset_number(version: str) -> int | None:
    """Return the number of an opset, 5 for "opset5"; None if the text is not an opset."""
    try:
        return integer(version.removeprefix("opset"), 0) if version.startswith("opset") else None
    except ValueError:
        return None


def element_layer(element: etree._Element) -> NetLayer:
    """Read a `<layer>`, without sources; an absent type or id is ""."""
    identifier, kind, name = element.get("id", "").strip(), element.get("type", ""), element.get("name", "")
    kind = _ENDS.get(kind.lower(), kind)
    label = layer_label(kind or "layer without a type", name, identifier)
    section = element.find("data")
    data = {} if section is None else {str(key): str(value) for key, value in section.items()}
    inputs, outputs = read_ports(label, element, "input"), read_ports(label, element, "output")
    is_source, ports = kind in ("Parameter", "Const"), (len(inputs), len(outputs))
    if (is_source and ports != (0, 1)) or (kind == "Result" and len(inputs) != 1):
        expected = "0 inputs and 1 output" if is_source else "1 inputs"
        raise FormatError(f"{label}: {ports[0]} input ports and {ports[1]} output ports; expected {expected}")
    shape = None
    if is_source:
        text = data.get("shape")
        shape = None if text is None else parse_shape(label, text)
        outputs = (replace(outputs[0], shape=port_shape(label, text, shape, outputs[0])),)
    return NetLayer(identifier, name, kind, element.get("version", ""), label, data, shape, inputs, outputs, element)


def _const_data(layer: NetLayer) -> ConstData:
    label, data = layer.label, layer.data
    for name in ("element_type", "shape", "offset", "size"):
        if name not in data:
            raise FormatError(f"{label}: {name} is missing; a Const needs element_type, shape, offset and size")
    element_type = by_name(label, data["element_type"])
    sizes = tuple(size for size in layer.shape or () if isinstance(size, int))
    if layer.shape is None or len(sizes) != len(layer.shape):
        raise FormatError(
            f"{label}: shape is {shown(data['shape'])}; expected sizes separated by commas, none of them dynamic"
        )
    offset, size = count(label, "offset", data["offset"]), count(label, "size", data["size"])
    elements = math.prod(sizes)
    if not elements:  # OpenVINO writes a constant without elements with size 1
        if math.prod([size for size in sizes if size]) * MAX_ITEM > sys.maxsize:
            raise FormatError(f"{label}: shape is {shown(sizes)}; expected a shape that NumPy supports")
    elif element_type.bits is not None:
        nbytes = -(-elements * element_type.bits // 8)
        if size != nbytes:
            raise FormatError(f"{label}: size is {size}; expected {nbytes}, for shape {sizes} of {element_type.name}")
    return ConstData(element_type, sizes, elements, offset, size)
