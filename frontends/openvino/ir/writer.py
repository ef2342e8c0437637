"""A net that is being written: layers, edges and constants, and the files that they become."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from lxml import etree

from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, shown

from .element_types import BY_DTYPE, by_precision

IR_VERSION = 11

Element = etree._Element
Shape = tuple[int | None, ...]


class Value(NamedTuple):
    """What comes out of a layer: its number and port, the precision and shape."""

    layer: int
    port: int
    precision: str
    shape: Shape


def port_element(number: int, precision: str | None, shape: Shape) -> Element:
    """A `<port>`."""
    element = etree.Element("port", id=str(number))
    if precision is not None:
        element.set("precision", precision)
    for size in shape:
        etree.SubElement(element, "dim").text = str(-1 if size is None else size)
    return element


def layer_element(
    attributes: Mapping[str, str], data: Mapping[str, str], inputs: Sequence[Element], outputs: Sequence[Element]
) -> Element:
    """A `<layer>` with its `<data>` and ports.

    Raises
    ------
    ValueError
        A text with characters that XML cannot hold.
    """
    element = etree.Element("layer", dict(attributes))
    if data:
        etree.SubElement(element, "data", dict(data))
    for tag, ports in (("input", inputs), ("output", outputs)):
        if ports:
            etree.SubElement(element, tag).extend(ports)
    return element


def to_text(element: Element) -> str:
    """The element as OpenVINO prints one: a tag a line, tabs."""
    etree.indent(element, "\t")
    text: str = etree.tostring(element, encoding="unicode")
    return text


class NetWriter:
    """Layers in the order in which they are added, numbered from 0; each after those whose values it takes.

    Parameters
    ----------
    name : str
        Of the net.
    reserved : iterable of str, optional
        Names that are given to layers by `add`, so that `layer` gives them to none. Default: that of the net.
    """

    def __init__(self, name: str, reserved: Iterable[str] | None = None) -> None:
        self._name = name
        self._names = {name} if reserved is None else set(reserved)
        self._layers: list[Element] = []
        self._edges: list[dict[str, str]] = []
        self._pieces: list[memoryview] = []
        self._offsets: dict[bytes, int] = {}
        self._end = 0

    def add(self, make: Callable[[str], Element], inputs: Sequence[Value] = (), ports: Sequence[int] = ()) -> int:
        """Add the layer that `make` gives for an id, with `inputs` at its input `ports`; its number."""
        number = len(self._layers)
        self._layers.append(make(str(number)))
        for value, port in zip(inputs, ports, strict=True):
            ends = {"from-layer": value.layer, "from-port": value.port, "to-layer": number, "to-port": port}
            self._edges.append({end: str(k) for end, k in ends.items()})
        return number

    def layer(
        self,
        name: str,
        kind: str,
        opset: int,
        data: Mapping[str, str],
        inputs: Sequence[Value] = (),
        outputs: Sequence[tuple[str, Shape]] = (),
        **attributes: str,
    ) -> list[Value]:
        """Add a layer with outputs of these precisions and shapes; it gets another name where one has that already.

        Raises
        ------
        ArgumentError
            A name with characters that XML does not allow.
        """
        given = name
        while name in self._names:
            name += "_"
        self._names.add(name)
        count = len(inputs)

        def make(identifier: str) -> Element:
            head = {"id": identifier, "name": name, "type": kind, "version": f"opset{opset}", **attributes}
            ports = [port_element(k, value.precision, value.shape) for k, value in enumerate(inputs)]
            made = [port_element(count + k, *output) for k, output in enumerate(outputs)]
            try:
                return layer_element(head, data, ports, made)
            except ValueError as error:
                raise _bad_name(kind, given, error) from None

        number = self.add(make, inputs, range(count))
        return [Value(number, count + k, *output) for k, output in enumerate(outputs)]

    def name_tensor(self, value: Value, name: str) -> None:
        """Let what comes out of a layer have one more name.

        Raises
        ------
        ArgumentError
            A name with characters that XML does not allow.
        """
        element = self._layers[value.layer]
        port = next(one for one in element.iterfind("output/port") if one.get("id") == str(value.port))
        names = port.get("names", "")
        try:
            port.set("names", f"{names},{_escaped(name)}" if names else _escaped(name))
        except ValueError as error:
            raise _bad_name(element.get("type", ""), name, error) from None

    def parameter(self, name: str, precision: str, shape: Shape) -> Value:
        """An input of the model; `name` is its tensor's too."""
        dims = ",".join("?" if size is None else str(size) for size in shape)
        data = {"shape": dims, "element_type": by_precision(name, precision).name}
        (value,) = self.layer(name, "Parameter", 1, data, (), [(precision, shape)])
        self.name_tensor(value, name)
        return value

    def result(self, name: str, value: Value) -> None:
        """An output of the model; the tensor has that name already."""
        self.layer(name, "Result", 1, {}, [value], output_names=_escaped(name))

    def constant(self, name: str, array: AnyArray) -> Value:
        """Equal bytes are stored once."""
        row = BY_DTYPE[array.dtype.name]
        stored = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(-1).view(np.uint8).data
        offset = self._offsets.setdefault(hashlib.sha256(stored).digest(), self._end)
        if offset == self._end:
            self._pieces.append(stored)
            self._end += stored.nbytes
        dims = ", ".join(map(str, array.shape))
        data = {"element_type": row.name, "shape": dims, "offset": str(offset), "size": str(stored.nbytes)}
        (value,) = self.layer(name, "Const", 1, data, (), [(row.precision, array.shape)])
        return value

    def shape_of(self, name: str, value: Value) -> Value:
        output = ("I64", (len(value.shape),))
        return self.layer(name, "ShapeOf", 3, {"output_type": "i64"}, [value], [output])[0]

    def size(self, name: str, shape: Value, axis: int) -> Value:
        """One of the sizes in `shape`, [1]."""
        inputs = [
            shape,
            self.constant(f"{name}/axis", np.array([axis], np.int64)),
            self.constant(f"{name}/0", np.array(0, np.int64)),
        ]
        output = ("I64", (1,))
        return self.layer(name, "Gather", 8, {"batch_dims": "0"}, inputs, [output])[0]

    def concat(self, name: str, values: Sequence[Value]) -> Value:
        """Lists of numbers, one after the other."""
        output = (values[0].precision, (sum(value.shape[0] or 0 for value in values),))
        return self.layer(name, "Concat", 1, {"axis": "0"}, values, [output])[0]

    def broadcast(self, name: str, value: Value, sizes: Value, shape: Shape) -> Value:
        """`value` repeated to `sizes`, of which `shape` is what is known."""
        output = (value.precision, shape)
        return self.layer(name, "Broadcast", 3, {"mode": "numpy"}, [value, sizes], [output])[0]

    def xml(self) -> bytes:
        """The whole .xml.

        Raises
        ------
        ArgumentError
            A name of the net with characters that XML does not allow.
        """
        try:
            net = etree.Element("net", name=self._name, version=str(IR_VERSION))
        except ValueError as error:
            raise _bad_name("net", self._name, error) from None
        etree.SubElement(net, "layers").extend(self._layers)
        edges = etree.SubElement(net, "edges")
        for ends in self._edges:
            etree.SubElement(edges, "edge", ends)
        etree.SubElement(net, "rt_info")
        return f'<?xml version="1.0"?>\n{to_text(net)}\n'.encode()

    def weights(self) -> Sequence[memoryview]:
        """The .bin, piece by piece."""
        return self._pieces


def _escaped(name: str) -> str:
    """As one of a list of names."""
    return name.replace(",", "\\,")


def _bad_name(kind: str, name: str, error: ValueError) -> ArgumentError:
    return ArgumentError(f"{kind}: name is {shown(name)}; expected characters that XML allows ({error})")
