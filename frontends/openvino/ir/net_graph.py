"""A whole IR as data: its layers, their ports and how they are connected. No numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from lxml import etree

from pyrnnx.errors import FormatError, shortened, shown

from .layer import NetLayer, Output, element_layer, layer_label
from .numbers import integer
from .order import sort_layers
from .versions import read_version

SHOWN = 8  # so many ports of a layer are named
DEEPEST = 30  # bodies around a layer: protobuf, in which ONNX writes them, reads no deeper than 33
_BODIES = {"tensoriterator": ("body",), "loop": ("body",), "if": ("then_body", "else_body")}


@dataclass(frozen=True, eq=False)
class NetGraph:
    """An IR: what a `<net>` says.

    Attributes
    ----------
    name : str
    version : int
        10 or 11; a newer one whose elements and attributes are those of 11.
    layers, order : tuple of NetLayer
        As in the XML, and so that each comes after those that it takes inputs from.
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
            for place, source in enumerate(layer.sources):
                consumers.setdefault(source, []).append((layer, place))
        return consumers

    def consumers(self, output: Output) -> Sequence[tuple[NetLayer, int]]:
        """The layers that take an output, each with the place of that input."""
        return self._consumers.get(output, ())

    @cached_property
    def _places(self) -> dict[NetLayer, int]:
        return {layer: place for place, layer in enumerate(self.everything)}

    @cached_property
    def everything(self) -> tuple[NetLayer, ...]:
        """The layers in `order`, those in bodies behind the one that has the bodies."""
        found = []
        for layer in self.order:
            found.append(layer)
            for body in layer.bodies.values():
                found += body.everything
        return tuple(found)

    def in_order(self, layers: Iterable[NetLayer]) -> list[NetLayer]:
        """Layers, in bodies too, each after those that it takes inputs from."""
        return sorted(layers, key=self._places.__getitem__)


def net_graph(root: etree._Element, what: str) -> NetGraph:
    """The IR in a `<net>` element; `what` is how errors name it.

    Raises
    ------
    PyrnnxError
        An older version than 10, a newer one than 11 that holds more; layers without id or type, ids that stand twice;
        edges from or to what does not exist, two edges into one port, an input without any; cycles; the same in the
        bodies of loops and choices, and bodies in each other deeper than `DEEPEST`. Layers may be of any type.
    """
    return _graph(root, what, read_version(what, root), 0)


def _graph(root: etree._Element, what: str, version: int, depth: int) -> NetGraph:
    """What a `<net>` or a body holds."""
    section = root.find("layers")
    if section is None:
        raise FormatError(f"{what}: <{root.tag}> holds no <layers>")
    layers = [_layer(what, element) for element in section.iterchildren("layer")]
    places: dict[str, int] = {}
    for place, layer in enumerate(layers):
        first = places.setdefault(layer.id, place)
        if first != place:
            labels = f"{layers[first].label} and {layer.label}"
            raise FormatError(f"{what}: id {shortened(layer.id)} stands twice, in {labels}")
    ends = _connect(what, root, layers, places)
    order = sort_layers(what, [layer.label for layer in layers], [{place for place, _ in one} for one in ends])
    made: dict[int, NetLayer] = {}
    for place in order:
        sources = tuple([Output(made[source], index) for source, index in ends[place]])
        bodies = _bodies(layers[place], version, depth)
        made[place] = replace(layers[place], sources=sources, bodies=bodies) if sources or bodies else layers[place]
    in_xml = tuple([made[place] for place in range(len(layers))])
    return NetGraph(root.get("name", ""), version, in_xml, tuple(made.values()), root)


def _bodies(layer: NetLayer, version: int, depth: int) -> dict[str, NetGraph]:
    """The bodies that a layer has, of those that its type may have."""
    found: dict[str, NetGraph] = {}
    for tag in _BODIES.get(layer.type.lower(), ()) if layer.opset else ():
        elements = layer.element.findall(tag)
        if len(elements) > 1:
            raise FormatError(f"{layer.label}: {len(elements)} <{tag}> elements; expected one")
        if elements:
            if depth == DEEPEST:
                raise FormatError(f"{layer.label}: it is in {depth} bodies and has one; expected at most {DEEPEST}")
            found[tag] = _graph(elements[0], f"{layer.label}: <{tag}>", version, depth + 1)
    return found


def _layer(what: str, element: etree._Element) -> NetLayer:
    identifier, kind = element.get("id", "").strip(), element.get("type", "")
    if not identifier or not kind:
        label = layer_label(kind or "layer without a type", element.get("name", ""), identifier)
        raise FormatError(f"{what}: {label} has no id" if not identifier else f"{what}: {label}: it has no type")
    return element_layer(element)


# Edges. Here a layer is given by its place in the XML, and the end of an edge by a layer and the place of a port there.


def _connect(
    what: str, root: etree._Element, layers: Sequence[NetLayer], numbers: Mapping[str, int]
) -> list[list[tuple[int, int]]]:
    """For each layer, for each of its inputs, the end that it is connected to."""
    inputs = [{port.id: place for place, port in enumerate(layer.inputs)} for layer in layers]
    outputs = [{port.id: place for place, port in enumerate(layer.outputs)} for layer in layers]
    found: list[list[tuple[int, int] | None]] = [[None] * len(layer.inputs) for layer in layers]
    for section in root.iterchildren("edges"):
        for edge in section.iterchildren("edge"):
            source, output = _end(what, edge, "from", layers, numbers, outputs)
            if layers[source].type == "Result":
                raise FormatError(
                    f"{layers[source].label}: {_describe(edge)} begins there; expected none, as a Result has no outputs"
                )
            target, place = _end(what, edge, "to", layers, numbers, inputs)
            if found[target][place] is not None:
                port = layers[target].inputs[place]
                raise FormatError(f"{layers[target].label}: two edges lead to input port {port.id}; expected one")
            found[target][place] = source, output
    connected = []
    for layer, ends in zip(layers, found, strict=True):
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
    """The layer at one end of an edge, and the place of the port there."""
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
