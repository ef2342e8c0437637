"""Graphs of whole IRs: layers, ports and connections, without constants."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from graphlib import CycleError, TopologicalSorter

from lxml import etree

from pyrnnx.errors import FormatError, UnsupportedError, shortened, shown

from .layer import NetLayer, Output, element_layer, layer_label
from .numbers import integer

SHOWN = 8  # number of ports, or of layers of a cycle, that errors list
VERSIONS = (10, 11)
_FIRST, _NEWEST = 2, VERSIONS[-1]  # versions that OpenVINO has written
_HOW_TO_CONVERT = (
    "Only OpenVINO 2020.4 and earlier run it: convert the original model again, with openvino.convert_model, or with "
    "the Model Optimizer of OpenVINO 2020.1 or later"
)
DEEPEST = 30  # nested bodies: protobuf, the format of ONNX, reads at most 33
_BODIES = {"tensoriterator": ("body",), "loop": ("body",), "if": ("then_body", "else_body")}


@dataclass(frozen=True, eq=False)
class NetGraph:
    """The graph of a `<net>` or of a body.

    Attributes
    ----------
    name : str
    version : int
        10, 11 or newer, which is read as 11.
    layers, order : tuple of NetLayer
        The layers in the order of the XML, and in topological order.
    element : lxml element
        The `<net>`, or the `<body>`.
    """

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
        for layer in self.layers:
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
    """Read the graph of a `<net>`, whose layers may have any type; `what` is its name in errors.

    Raises
    ------
    PyrnnxError
        The version is below 10, a layer lacks id or type, an id occurs twice, an edge has an unknown end, an input has
        no edge or two, the graph has a cycle, the same holds in the body of a loop or an If, or bodies are nested
        deeper than `DEEPEST`.
    """
    return _graph(root, what, read_version(what, root), 0)


def _graph(root: etree._Element, what: str, version: int, depth: int) -> NetGraph:
    """Read the graph of a `<net>` or a body."""
    section = root.find("layers")
    if section is None:
        raise FormatError(f"{what}: <{root.tag}> has no <layers>")
    layers = [_layer(what, element) for element in section.iterchildren("layer")]
    numbers: dict[str, int] = {}
    for number, layer in enumerate(layers):
        first = numbers.setdefault(layer.id, number)
        if first != number:
            labels = f"{layers[first].label} and {layer.label}"
            raise FormatError(f"{what}: id {shortened(layer.id)} occurs twice, in {labels}")
    ends = _connect(what, root, layers, numbers)
    order = _sorted(what, [layer.label for layer in layers], [{number for number, _ in row} for row in ends])
    connected: dict[int, NetLayer] = {}
    for number in order:
        layer = layers[number]
        sources = tuple([Output(connected[source], index) for source, index in ends[number]])
        bodies = _bodies(layer, version, depth)
        connected[number] = replace(layer, sources=sources, bodies=bodies) if sources or bodies else layer
    in_xml = tuple([connected[number] for number in range(len(layers))])
    return NetGraph(root.get("name", ""), version, in_xml, tuple(connected.values()), root)


def _bodies(layer: NetLayer, version: int, depth: int) -> dict[str, NetGraph]:
    """Read the bodies of a layer.

    Raises
    ------
    FormatError
        A tag occurs twice, bodies are nested too deeply, or ids of ports are not those that OpenVINO writes: it counts
        by the ids in a port map, but by the order of the document elsewhere.
    """
    bodies: dict[str, NetGraph] = {}
    for tag in _BODIES.get(layer.type.lower(), ()) if layer.opset else ():
        elements = layer.element.findall(tag)
        if len(elements) > 1:
            raise FormatError(f"{layer.label}: {len(elements)} <{tag}> elements; expected one")
        if elements:
            if depth == DEEPEST:
                raise FormatError(f"{layer.label}: it is in {depth} bodies and has one; expected at most {DEEPEST}")
            bodies[tag] = _graph(elements[0], f"{layer.label}: <{tag}>", version, depth + 1)
    if bodies:
        ids = [port.id for port in layer.inputs]
        if ids != list(range(len(ids))):
            raise FormatError(f"{layer.label}: input ports have the ids {shown(ids)}; expected 0, 1, 2, ...")
        ids = [port.id for port in layer.outputs]
        if ids != sorted(ids):
            raise FormatError(f"{layer.label}: output ports have the ids {shown(ids)}; expected ascending ids")
    return bodies


def _layer(what: str, element: etree._Element) -> NetLayer:
    identifier, kind = element.get("id", "").strip(), element.get("type", "")
    if not identifier or not kind:
        label = layer_label(kind or "layer without a type", element.get("name", ""), identifier)
        raise FormatError(f"{what}: {label} has no id" if not identifier else f"{what}: {label}: it has no type")
    return element_layer(element)


# The end of an edge is a pair of integers: the layer's number in the order of the XML, and the index of a port.


def _connect(
    what: str, root: etree._Element, layers: Sequence[NetLayer], numbers: Mapping[str, int]
) -> list[list[tuple[int, int]]]:
    """Return, for each layer, the ends from which its inputs come."""
    inputs = [{port.id: index for index, port in enumerate(layer.inputs)} for layer in layers]
    outputs = [{port.id: index for index, port in enumerate(layer.outputs)} for layer in layers]
    sources: list[list[tuple[int, int] | None]] = [[None] * len(layer.inputs) for layer in layers]
    for section in root.iterchildren("edges"):
        for edge in section.iterchildren("edge"):
            source, output = _end(what, edge, "from", layers, numbers, outputs)
            if layers[source].type == "Result":
                raise FormatError(
                    f"{layers[source].label}: {_describe(edge)} begins there; expected none, as a Result has no outputs"
                )
            target, index = _end(what, edge, "to", layers, numbers, inputs)
            if sources[target][index] is not None:
                port = layers[target].inputs[index]
                raise FormatError(f"{layers[target].label}: two edges lead to input port {port.id}; expected one")
            sources[target][index] = source, output
    connected = []
    for layer, ends in zip(layers, sources, strict=True):
        if None in ends:
            port = layer.inputs[ends.index(None)]
            raise FormatError(f"{layer.label}: no edge leads to input port {port.id}; expected one")
        connected.append([end for end in ends if end is not None])
    return connected


def _end(
    what: str,
    edge: etree._Element,
    end: str,
    layers: Sequence[NetLayer],
    numbers: Mapping[str, int],
    ports: Sequence[Mapping[int, int]],
) -> tuple[int, int]:
    """Return one end of an edge."""
    identifier, text = edge.get(f"{end}-layer"), edge.get(f"{end}-port")
    if identifier is None or text is None:
        raise FormatError(f"{what}: {_describe(edge)} has no {end}-{'layer' if identifier is None else 'port'}")
    layer = numbers.get(identifier.strip())
    if layer is None:
        raise FormatError(f"{what}: {_describe(edge)} names layer {shown(identifier)}, which does not exist")
    try:
        return layer, ports[layer][integer(text.strip())]
    except (KeyError, ValueError):
        kind = "output" if end == "from" else "input"
        allowed = ", ".join(map(str, list(ports[layer])[:SHOWN])) or "none"
        raise FormatError(
            f"{layers[layer].label}: {_describe(edge)} names {kind} port {shown(text)}; the layer has {allowed}"
        ) from None


def _describe(edge: etree._Element) -> str:
    keys = ("from-layer", "from-port", "to-layer", "to-port")
    return "the edge with " + ", ".join(f"{key}={shown(edge.get(key, ''))}" for key in keys if key in edge.attrib)


def _sorted(what: str, labels: Sequence[str], sources: Sequence[Collection[int]]) -> list[int]:
    """Return the numbers of layers in topological order, ascending if several orders are possible."""
    sorter = TopologicalSorter(dict(enumerate(sources)))
    try:
        sorter.prepare()
    except CycleError as error:
        raise FormatError(
            f"{what}: layers depend on each other in a cycle: {_cycle(error.args[1][1:], labels)}"
        ) from None
    order: list[int] = []
    ready: list[int] = []
    while sorter.is_active():
        for number in sorter.get_ready():
            heapq.heappush(ready, number)
        order.append(heapq.heappop(ready))
        sorter.done(order[-1])
    return order


def _cycle(cycle: list[int], labels: Sequence[str]) -> str:
    """Describe a cycle from its lowest layer back to it, so that the text does not depend on the search."""
    first = cycle.index(min(cycle)) + 1
    named = [labels[number] for number in cycle[first:] + cycle[:first]]
    shown = named[:SHOWN] + (["..."] if len(named) > SHOWN else [])
    return " -> ".join([*shown, named[0]])


def read_version(what: str, root: etree._Element) -> int:
    """Return the version of a `<net>`, 10 or above.

    Raises
    ------
    FormatError
        The version is missing.
    UnsupportedError
        The version is below 10.
    """
    text = root.get("version")
    if text is None:
        raise FormatError(f"{what}: <net> has no version; expected 10 or 11")
    try:
        version = integer(text)
    except ValueError:
        version = 0
    if version < VERSIONS[0]:
        hint = f". {_HOW_TO_CONVERT}" if version >= _FIRST else ""
        raise UnsupportedError(f"{what}: IR version is {shown(text)}; expected 10 or 11{hint}")
    return version


def newer(version: int) -> list[str]:
    """Return a warning if the version is newer than any known."""
    if version <= _NEWEST:
        return []
    return [f"IR version is {shown(version)}, newer than any known: it is read as version {_NEWEST}"]
