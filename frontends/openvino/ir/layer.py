"""The layers of an IR, of any type: what a `<layer>` says, and what its inputs are connected to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

from lxml import etree

from pyrnnx.errors import FormatError, shortened, shown

from .const_data import ConstData, read_const_data
from .numbers import integer
from .ports import NetPort, read_ports
from .shapes import Shape, parse_shape, port_shape

NEWEST = 10**9  # no opset is above it
# How these are spelt here, whatever their case, and how many input and output ports each has; None: any number.
_ENDS: dict[str, tuple[str, int, int | None]] = {
    "parameter": ("Parameter", 0, 1),
    "const": ("Const", 0, 1),
    "result": ("Result", 1, None),
}


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
        As in the XML, but "Parameter", "Const" and "Result" always in this spelling; version "" where it is absent.
    label : str
        How errors name the layer.
    data : dict
        Attributes of `<data>`.
    shape : tuple or None
        Of a Parameter or Const: what `<data shape>` says, bounds included; None: any rank, or nothing.
    inputs, outputs : tuple of NetPort
        By ascending port id.
    sources : tuple of Output
        What each input is connected to, in a net.
    element : lxml element
    bodies : mapping of NetGraph
        Of a TensorIterator, Loop or If in a net, by their elements: "body", "then_body", "else_body".
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
    # Any: a NetGraph, which is made of layers, so that its module comes after this one.
    bodies: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), repr=False)

    @property
    def opset(self) -> int:
        """5 of "opset5"; the newest where the version is absent, 0 where it is no opset's name."""
        return (opset_number(self.version) or 0) if self.version else NEWEST

    @cached_property
    def const_data(self) -> ConstData:
        """Where a Const lies in the .bin.

        Raises
        ------
        FormatError
            `<data>` does not say, or contradicts itself.
        """
        return read_const_data(self.label, self.data, self.shape)


def layer_label(kind: str, name: str, identifier: str) -> str:
    """How errors name a layer of an IR."""
    named = f" {shown(name)}" if name else ""
    return shortened(kind) + named + (f" (id {shortened(identifier)})" if identifier else "")


def opset_number(version: str) -> int | None:
    """5 of "opset5"; None for what is no opset's name."""
    digits = version.removeprefix("opset")
    try:
        number = integer(digits)
    except ValueError:
        return None
    return number if digits != version and number >= 0 else None


def element_layer(element: etree._Element) -> NetLayer:
    """A `<layer>`; one without a type or id has "" there, and no layer has sources yet.

    Raises
    ------
    FormatError
        Ports that are broken; other ports than a Parameter, Const or Result has; shapes of one that differ.
    """
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
        wanted = f"{input_count} inputs" + ("" if output_count is None else f" and {output_count} output")
        raise FormatError(f"{label}: {len(inputs)} input ports and {len(outputs)} output ports; expected {wanted}")
