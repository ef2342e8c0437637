"""Writer of nets: layers, edges and constants, and their two files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from lxml import etree

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, shown

from .element_types import BY_DTYPE, by_precision

IR_VERSION = 11

Element = etree._Element
Shape = tuple[int | None, ...]


class Value(NamedTuple):
    """An output of a layer: the layer's number, the port, precision and shape."""

    layer: int
    port: int
    precision: str
    shape: Shape


def port_element(number: int, precision: str | None, shape: Shape) -> Element:
    """Return a `<port>`."""
    element = etree.Element("port", id=str(number))
    if precision is not None:
        element.set("precision", precision)
    for size in shape:
        etree.SubElement(element, "dim").text = str(-1 if size is None else size)
    return element


def layer_element(
    identifier: str,
    name: str,
    kind: str,
    opset: int,
    data: Mapping[str, str],
    inputs: Sequence[Element],
    outputs: Sequence[Element],
    bodies: Sequence[Element] = (),
    **attributes: str,
) -> Element:
    """Return a `<layer>` with its `<data>`, ports, and what describes its bodies."""
    element = etree.Element("layer", id=identifier)
    _set_name(element, "name", name, kind)
    for key, value in {"type": kind, "version": f"opset{opset}", **attributes}.items():
        element.set(key, value)
    if data:
        etree.SubElement(element, "data", dict(data))
    for tag, ports in (("input", inputs), ("output", outputs)):
        if ports:
            etree.SubElement(element, tag).extend(ports)
    element.extend(bodies)
    return element


def _set_name(element: Element, attribute: str, name: str, kind: str) -> None:
    try:
        element.set(attribute, name)
    except ValueError as error:
        raise ArgumentError(f"{kind}: name is {shown(name)}; expected characters that XML allows ({error})") from None


def port_map(tag: str, entries: Iterable[tuple[str, Mapping[str, int | str]]]) -> Element:
    """Return the entries of a port map or of back edges, each with its tag and attributes."""
    element = etree.Element(tag)
    for kind, attributes in entries:
        etree.SubElement(element, kind, {name: str(value) for name, value in attributes.items()})
    return element


def to_text(element: Element) -> str:
    """Return the text of an element in OpenVINO's format: one tag per line, indented with tabs."""
    etree.indent(element, "\t")
    text: str = etree.tostring(element, encoding="unicode")
    return text


class _Bin:
    """The .bin under construction, which a net and its bodies share."""

    def __init__(self) -> None:
        self.pieces: list[memoryview] = []
        self._offsets: dict[bytes, int] = {}
        self._end = 0

    def add(self, stored: memoryview) -> int:
        """Return the offset of these bytes; equal bytes are stored once."""
        offset = self._offsets.setdefault(hashlib.sha256(stored).digest(), self._end)
        if offset == self._end:
            self.pieces.append(stored)
            self._end += stored.nbytes
        return offset


class NetWriter:
    """A net under construction: layers in the order of addition, numbered from 0, each after its sources.

    No other layer may have one of the `reserved` names, by default that of the net.
    """

    def __init__(self, name: str, reserved: Iterable[str] | None = None) -> None:
        self._name = name
        self._names = {name} if reserved is None else set(reserved)
        self._layers: list[Element] = []
        self._edges: list[dict[str, str]] = []
        self._bin = _Bin()

    def body(self) -> NetWriter:
        """Return the writer of a body, which shares names and constants with the net."""
        inner = NetWriter(self._name)
        inner._names, inner._bin = self._names, self._bin
        return inner

    def section(self, tag: str) -> Element:
        """Return the layers and edges of a net or a body in an element `tag`."""
        element = etree.Element(tag)
        etree.SubElement(element, "layers").extend(self._layers)
        edges = etree.SubElement(element, "edges")
        for ends in self._edges:
            etree.SubElement(edges, "edge", ends)
        return element

    def layer(
        self,
        name: str,
        kind: str,
        opset: int,
        data: Mapping[str, str],
        inputs: Sequence[Value] = (),
        outputs: Sequence[tuple[str, Shape]] = (),
        bodies: Sequence[Element] = (),
        is_reserved: bool = False,
        **attributes: str,
    ) -> list[Value]:
        """Add a layer with outputs of these precisions and shapes.

        `bodies` are the elements of its bodies and of their connections. Underscores make the name unique unless it
        `is_reserved`.
        """
        while name in self._names and not is_reserved:
            name += "_"
        self._names.add(name)
        number, count = len(self._layers), len(inputs)
        ports = [port_element(k, value.precision, value.shape) for k, value in enumerate(inputs)]
        results = [port_element(count + k, *output) for k, output in enumerate(outputs)]
        self._layers.append(layer_element(str(number), name, kind, opset, data, ports, results, bodies, **attributes))
        for port, value in enumerate(inputs):
            ends = {"from-layer": value.layer, "from-port": value.port, "to-layer": number, "to-port": port}
            self._edges.append({end: str(k) for end, k in ends.items()})
        return [Value(number, count + k, *output) for k, output in enumerate(outputs)]

    def name_tensor(self, value: Value, name: str) -> None:
        """Add a name to the tensor of a value."""
        element = self._layers[value.layer]
        port = next(port for port in element.iterfind("output/port") if port.get("id") == str(value.port))
        names = port.get("names", "")
        _set_name(port, "names", f"{names},{_escaped(name)}" if names else _escaped(name), element.get("type", ""))

    def parameter(self, name: str, precision: str, shape: Shape) -> Value:
        """Add an input; its layer and tensor are called `name`."""
        dims = ",".join("?" if size is None else str(size) for size in shape)
        data = {"shape": dims, "element_type": by_precision(name, precision).name}
        (value,) = self.layer(name, "Parameter", 1, data, (), [(precision, shape)])
        self.name_tensor(value, name)
        return value

    def result(self, name: str, value: Value) -> int:
        """Add an output, whose tensor has this name already; return the number of its layer."""
        self.layer(name, "Result", 1, {}, [value], output_names=_escaped(name))
        return len(self._layers) - 1

    def constant(self, name: str, array: AnyArray) -> Value:
        """Add a constant; equal bytes are stored once."""
        row = BY_DTYPE[array.dtype.name]
        stored = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(-1).view(np.uint8).data
        dims = ", ".join(map(str, array.shape))
        data = {
            "element_type": row.name,
            "shape": dims,
            "offset": str(self._bin.add(stored)),
            "size": str(stored.nbytes),
        }
        (value,) = self.layer(name, "Const", 1, data, (), [(row.precision, array.shape)])
        return value

    def xml(self) -> bytes:
        """Return the whole .xml."""
        net = self.section("net")
        _set_name(net, "name", self._name, "net")
        net.set("version", str(IR_VERSION))
        etree.SubElement(net, "rt_info")
        return f'<?xml version="1.0"?>\n{to_text(net)}\n'.encode()

    def weights(self) -> Sequence[memoryview]:
        """Return the .bin in pieces."""
        return self._bin.pieces


def _escaped(name: str) -> str:
    """Return a name with its commas escaped, for lists of names."""
    return name.replace(",", "\\,")
