"""A whole IR as data: its layers, their ports and how they are connected. No numbers."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from lxml import etree

from pyrnnx.errors import FormatError, PyrnnxWarning, UnsupportedError, shortened, shown

from ..layer_reader import opset_number, recurrent_layer
from ..layers import IRLayer
from ..schemas import find_operation
from .order import sort_layers
from .ports import NetPort, integer, layer_label, read_ports
from .shapes import port_shape
from .xml import named_errors, parse, source_path

__all__ = ["Net", "NetLayer", "NetPort", "Output", "read_net"]

VERSIONS = (10, 11)
_ENDS = {name.lower(): name for name in ("Parameter", "Const", "Result")}
NEWEST = 10**9  # no opset is above it
SHOWN = 8  # so many ports of a layer are named


class Output(NamedTuple):
    """The index-th output port of a layer."""

    layer: NetLayer
    index: int  # type: ignore[assignment]  # a tuple has a method of that name

    @property
    def port(self) -> NetPort:
        return self.layer.outputs[self.index]


@dataclass(eq=False)
class NetLayer:
    """A `<layer>` of any type.

    Attributes
    ----------
    id, name, type, version : str
        As in the XML, but "Parameter", "Const" and "Result" always in this spelling; version "" where it is absent.
    data : dict
        Attributes of `<data>`.
    inputs, outputs : tuple of NetPort
        By ascending port id.
    sources : tuple of Output
        What each input is connected to.
    element : lxml element
    """

    id: str
    name: str
    type: str
    version: str
    data: dict[str, str]
    inputs: tuple[NetPort, ...]
    outputs: tuple[NetPort, ...]
    element: etree._Element = field(repr=False)
    sources: tuple[Output, ...] = field(default=(), repr=False)

    @property
    def label(self) -> str:
        """How errors name the layer."""
        return layer_label(self.type, self.name, self.id)

    @property
    def opset(self) -> int:
        """5 of "opset5"; the newest where the version is absent, 0 where it is no opset's name."""
        return (opset_number(self.version) or 0) if self.version else NEWEST


@dataclass(eq=False)
class Net:
    """What `read_net` returns.

    Attributes
    ----------
    name : str
    version : int
        10 or 11.
    layers, order : tuple of NetLayer
        As in the XML, and so that each comes after those that it takes inputs from.
    recurrent : mapping of NetLayer to IRLayer
        Every RNN, GRU and LSTM, sequence or cell, in the order of the XML.
    warnings : tuple of str
        What has no effect in them.
    element : lxml element

    It can be pickled and copied, as its XML.
    """

    name: str
    version: int
    layers: tuple[NetLayer, ...]
    order: tuple[NetLayer, ...]
    recurrent: Mapping[NetLayer, IRLayer]
    warnings: tuple[str, ...]
    element: etree._Element = field(repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return _net_of, (etree.tostring(self.element, encoding="utf-8", with_tail=False),)

    @cached_property
    def parameters(self) -> tuple[NetLayer, ...]:
        """The inputs, in the order of the XML."""
        return tuple(layer for layer in self.layers if layer.type == "Parameter")

    @cached_property
    def results(self) -> tuple[NetLayer, ...]:
        """The outputs, in the order of the XML."""
        return tuple(layer for layer in self.layers if layer.type == "Result")

    @cached_property
    def _consumers(self) -> dict[Output, list[tuple[NetLayer, int]]]:
        consumers: dict[Output, list[tuple[NetLayer, int]]] = {}
        for layer in self.layers:
            for place, source in enumerate(layer.sources):
                consumers.setdefault(source, []).append((layer, place))
        return consumers

    def consumers(self, output: Output) -> Sequence[tuple[NetLayer, int]]:
        """The layers that take an output, each with the place of that input."""
        return self._consumers.get(output, ())


def read_net(xml: Any) -> Net:
    """A whole IR.

    Parameters
    ----------
    xml : str, bytes, os.PathLike or lxml element
        A text that begins with "<", its bytes, the path of a file of at most 256 MiB that holds it, or the element.

    Returns
    -------
    Net

    Raises
    ------
    PyrnnxError
        Broken XML; another version than 10 or 11; layers without id or type, ids that stand twice; edges from or to
        what does not exist, two edges into one port, an input without any, cycles; recurrent layers that `read_layer`
        rejects. Layers of other types may be anything.

    Warns
    -----
    PyrnnxWarning
        An attribute that a recurrent operation does not have.

    Source: OpenVINO IR versions 10 and 11.
    """
    with named_errors(source_path(xml)):
        net = load_net(parse(xml, "read_net", "net"), "read_net")
    for message in net.warnings:
        warnings.warn(message, PyrnnxWarning, stacklevel=2)
    return net


def load_net(root: etree._Element, what: str) -> Net:
    """As `read_net`, of an element, with what it would warn of in the net."""
    name, version = root.get("name", ""), _version(what, root)
    section = root.find("layers")
    if section is None:
        raise FormatError(f"{what}: <net> holds no <layers>")
    layers: dict[str, NetLayer] = {}
    for element in section.iterchildren("layer"):
        layer = _layer(what, element)
        if layer.id in layers:
            labels = f"{layers[layer.id].label} and {layer.label}"
            raise FormatError(f"{what}: id {shortened(layer.id)} stands twice, in {labels}")
        layers[layer.id] = layer
    _connect(what, root, layers)
    order = sort_layers(what, tuple(layers.values()))
    recurrent: dict[NetLayer, IRLayer] = {}
    messages: list[str] = []
    for layer in layers.values():
        operation = find_operation(layer.type, layer.opset)
        if operation is not None:
            recurrent[layer], unknown = recurrent_layer(
                operation, layer.label, layer.element, layer.inputs, layer.outputs
            )
            messages += unknown
    return Net(name, version, tuple(layers.values()), order, recurrent, tuple(messages), root)


def _net_of(xml: bytes) -> Net:
    return load_net(parse(xml, "read_net", "net"), "read_net")


def _version(what: str, root: etree._Element) -> int:
    text = root.get("version")
    if text is None:
        raise FormatError(f"{what}: <net> has no version; expected 10 or 11")
    try:
        version = integer(text)
    except ValueError:
        version = 0
    if version not in VERSIONS:
        hint = ""
        if 0 < version < VERSIONS[0]:
            hint = "; convert the model again with OpenVINO 2020.4 or later"
        raise UnsupportedError(f"{what}: IR version is {shown(text)}; expected 10 or 11{hint}")
    return version


def _layer(what: str, element: etree._Element) -> NetLayer:
    identifier, kind, name = element.get("id"), element.get("type", ""), element.get("name", "")
    kind = _ENDS.get(kind.lower(), kind)
    label = layer_label(kind or "layer without a type", name, identifier or "")
    if not identifier:
        raise FormatError(f"{what}: {label} has no id")
    if not kind:
        raise FormatError(f"{what}: {label}: the element has no type")
    data = element.find("data")
    layer = NetLayer(
        identifier.strip(),
        name,
        kind,
        element.get("version", ""),
        {} if data is None else {str(key): str(value) for key, value in data.attrib.items()},
        read_ports(label, element, "input"),
        read_ports(label, element, "output"),
        element,
    )
    _check_form(layer)
    if kind in ("Parameter", "Const"):
        (port,) = layer.outputs
        layer.outputs = (NetPort(port.id, port_shape(layer.label, layer.data, port), port.precision, port.names),)
    return layer


def _check_form(layer: NetLayer) -> None:
    """The number of ports of the layers that stand for inputs, constants and outputs."""
    expected = {"Parameter": (0, 1), "Const": (0, 1), "Result": (1, None)}.get(layer.type)
    if expected is None:
        return
    inputs, outputs = expected
    if len(layer.inputs) != inputs or (outputs is not None and len(layer.outputs) != outputs):
        wanted = f"{inputs} inputs" + ("" if outputs is None else f" and {outputs} output")
        raise FormatError(
            f"{layer.label}: {len(layer.inputs)} input ports and {len(layer.outputs)} output ports; expected {wanted}"
        )


def _connect(what: str, root: etree._Element, layers: Mapping[str, NetLayer]) -> None:
    """Edges to the sources of each layer."""
    inputs = {layer: {port.id: place for place, port in enumerate(layer.inputs)} for layer in layers.values()}
    outputs = {layer: {port.id: place for place, port in enumerate(layer.outputs)} for layer in layers.values()}
    found: dict[NetLayer, list[Output | None]] = {layer: [None] * len(layer.inputs) for layer in layers.values()}
    for edge in (edge for section in root.iterchildren("edges") for edge in section.iterchildren("edge")):
        source, output = _end(what, edge, "from", layers, outputs)
        if source.type == "Result":
            raise FormatError(f"{source.label}: {_describe(edge)} begins there; expected none, as it gives nothing on")
        target, place = _end(what, edge, "to", layers, inputs)
        if found[target][place] is not None:
            raise FormatError(f"{target.label}: two edges lead to input port {target.inputs[place].id}; expected one")
        found[target][place] = Output(source, output)
    for layer, sources in found.items():
        connected = tuple(source for source in sources if source is not None)
        if len(connected) != len(sources):
            port = layer.inputs[sources.index(None)]
            raise FormatError(f"{layer.label}: no edge leads to input port {port.id}; expected one")
        layer.sources = connected


def _end(
    what: str,
    edge: etree._Element,
    end: str,
    layers: Mapping[str, NetLayer],
    ports: Mapping[NetLayer, Mapping[int, int]],
) -> tuple[NetLayer, int]:
    """The layer at one end of an edge, and the place of the port there."""
    identifier, text = edge.get(f"{end}-layer"), edge.get(f"{end}-port")
    if identifier is None or text is None:
        raise FormatError(f"{what}: {_describe(edge)} has no {end}-{'layer' if identifier is None else 'port'}")
    layer = layers.get(identifier.strip())
    if layer is None:
        raise FormatError(f"{what}: {_describe(edge)} names layer {shown(identifier)}, which does not exist")
    try:
        return layer, ports[layer][integer(text.strip())]
    except (KeyError, ValueError):
        kind = "output" if end == "from" else "input"
        allowed = ", ".join(map(str, list(ports[layer])[:SHOWN])) or "none"
        raise FormatError(
            f"{layer.label}: {_describe(edge)} names {kind} port {shown(text)}; the layer has {allowed}"
        ) from None


def _describe(edge: etree._Element) -> str:
    keys = ("from-layer", "from-port", "to-layer", "to-port")
    return "the edge with " + ", ".join(f"{key}={shown(edge.get(key, ''))}" for key in keys if key in edge.attrib)
