"""Graphs of whole IRs: layers, ports and connections, without constants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from graphlib import CycleError, TopologicalSorter

from lxml import etree

from pyrnnx.errors import FormatError, UnsupportedError, shortened, shown

from .layer import NetLayer, Output, element_layer
from .numbers import integer

VERSIONS = (10, 11)
DEEPEST = 30  # nested bodies: protobuf, the format of ONNX, reads at most 33
_BODIES = {"tensoriterator": ("body",), "loop": ("body",), "if": ("then_body", "else_body")}


@dataclass(frozen=True, eq=False)
class NetGraph:
    """The graph of a `<net>` or of a body; its fields are documented in `Net`."""

    name: str
    version: int
    layers: tuple[NetLayer, ...]
    order: tuple[NetLayer, ...]
    element: etree._Element = field(repr=False)

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
        for layer in self.everything:
            for index, source in enumerate(layer.sources):
                consumers.setdefault(source, []).append((layer, index))
        return consumers

    def consumers(self, output: Output) -> Sequence[tuple[NetLayer, int]]:
        """Return the layers that read an output, each with the index of that input."""
        return self._consumers.get(output, ())

    @cached_property
    def _ranks(self) -> dict[NetLayer, int]:
        return {layer: rank for rank, layer in enumerate(self.everything)}

    @cached_property
    def everything(self) -> tuple[NetLayer, ...]:
        """All layers in topological order; a layer's bodies follow it."""
        layers = []
        for layer in self.order:
            layers.append(layer)
            for body in layer.bodies.values():
                layers += body.everything
        return tuple(layers)

    def in_order(self, layers: Iterable[NetLayer]) -> list[NetLayer]:
        """Return layers, in bodies too, in topological order."""
        return sorted(layers, key=self._ranks.__getitem__)


def net_graph(root: etree._Element, what: str) -> NetGraph:
    """Read the graph of a `<net>`, whose layers may have any type; `what` is its name in errors."""
    return _graph(root, what, read_version(what, root), 0)


def _graph(root: etree._Element, what: str, version: int, depth: int) -> NetGraph:
    """Read the graph of a `<net>` or a body, in `depth` others."""
    section = root.find("layers")
    if section is None:
        raise FormatError(f"{what}: <{root.tag}> has no <layers>")
    layers: dict[str, NetLayer] = {}
    for element in section.iterchildren("layer"):
        layer = element_layer(element)
        if not layer.id or not layer.type:
            raise FormatError(f"{what}: {layer.label} has no {'type' if layer.id else 'id'}")
        first = layers.setdefault(layer.id, layer)
        if first is not layer:
            raise FormatError(f"{what}: id {shortened(layer.id)} occurs twice, in {first.label} and {layer.label}")
    ends = _connect(what, root, layers)
    connected: dict[str, NetLayer] = {}
    for identifier in _sorted(what, layers, ends):
        sources = tuple([Output(connected[source], index) for source, index in ends[identifier]])
        bodies = _bodies(layers[identifier], version, depth)
        connected[identifier] = replace(layers[identifier], sources=sources, bodies=bodies)
    in_xml = tuple([connected[identifier] for identifier in layers])
    return NetGraph(root.get("name", ""), version, in_xml, tuple(connected.values()), root)


def _bodies(layer: NetLayer, version: int, depth: int) -> dict[str, NetGraph]:
    bodies: dict[str, NetGraph] = {}
    for tag in _BODIES.get(layer.type.lower(), ()) if layer.opset else ():
        elements = layer.element.findall(tag)
        if len(elements) > 1:
            raise FormatError(f"{layer.label}: {len(elements)} <{tag}> elements; expected one")
        if elements:
            if depth == DEEPEST:
                raise FormatError(f"{layer.label}: it is in {depth} bodies and has one; expected at most {DEEPEST}")
            bodies[tag] = _graph(elements[0], f"{layer.label}: <{tag}>", version, depth + 1)
    return bodies


def _connect(what: str, root: etree._Element, layers: Mapping[str, NetLayer]) -> dict[str, list[tuple[str, int]]]:
    """Return the sources of each layer's inputs, by its id: the id of a layer, and the index of its output."""
    sources: dict[str, dict[int, tuple[str, int]]] = {identifier: {} for identifier in layers}
    for section in root.iterchildren("edges"):
        for edge in section.iterchildren("edge"):
            source, output = _end(what, edge, "from", layers)
            target, index = _end(what, edge, "to", layers)
            if index in sources[target]:
                port = layers[target].inputs[index]
                raise FormatError(f"{layers[target].label}: two edges lead to input port {port.id}; expected one")
            sources[target][index] = source, output
    for identifier, ends in sources.items():
        for index, port in enumerate(layers[identifier].inputs):
            if index not in ends:
                raise FormatError(f"{layers[identifier].label}: no edge leads to input port {port.id}; expected one")
    return {identifier: [ends[index] for index in sorted(ends)] for identifier, ends in sources.items()}


def _end(what: str, edge: etree._Element, end: str, layers: Mapping[str, NetLayer]) -> tuple[str, int]:
    """Return one end of an edge: the layer's id, and the index of a port."""
    identifier, text = edge.get(f"{end}-layer"), edge.get(f"{end}-port")
    if identifier is None or text is None:
        raise FormatError(f"{what}: {_describe(edge)} has no {end}-{'layer' if identifier is None else 'port'}")
    layer = layers.get(identifier.strip())
    if layer is None:
        raise FormatError(f"{what}: {_describe(edge)} names layer {shown(identifier)}, which does not exist")
    ids = [port.id for port in (layer.outputs if end == "from" else layer.inputs)]
    try:
        return layer.id, ids.index(integer(text.strip()))
    except ValueError:
        kind, allowed = "output" if end == "from" else "input", shortened(", ".join(map(str, ids))) or "none"
        raise FormatError(
            f"{layer.label}: {_describe(edge)} names {kind} port {shown(text)}; the layer has {allowed}"
        ) from None


def _describe(edge: etree._Element) -> str:
    keys = ("from-layer", "from-port", "to-layer", "to-port")
    return "the edge with " + ", ".join(f"{key}={shown(edge.get(key, ''))}" for key in keys if key in edge.attrib)


def _sorted(what: str, layers: Mapping[str, NetLayer], ends: Mapping[str, Sequence[tuple[str, int]]]) -> Sequence[str]:
    """Return the ids of layers in topological order."""
    try:
        return tuple(
            TopologicalSorter({key: [source for source, _ in row] for key, row in ends.items()}).static_order()
        )
    except CycleError as error:
        text = shortened(" -> ".join(layers[identifier].label for identifier in error.args[1]))
        raise FormatError(f"{what}: layers depend on each other in a cycle: {text}") from None


def read_version(what: str, root: etree._Element) -> int:
    """Return the version of a `<net>`, 10 or above."""
    text = root.get("version")
    if text is None:
        raise FormatError(f"{what}: <net> has no version; expected 10 or 11")
    try:
        version = integer(text)
    except ValueError:
        version = 0
    if version < VERSIONS[0]:
        raise UnsupportedError(
            f"{what}: IR version is {shown(text)}; expected 10 or 11: convert the original model again, with "
            "openvino.convert_model"
        )
    return version
