"""Connections of the body of a TensorIterator, Loop or If: `<port_map>` and `<back_edges>`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from lxml import etree

from pyrnnx.errors import FormatError, UnsupportedError, shortened, shown

from .layer import NetLayer
from .net_graph import NetGraph
from .numbers import integer
from .ports import MAX_RANK

_SLICED = {"start": 0, "end": -1, "stride": 1, "part_size": 1}  # and their defaults
_KNOWN = {"external_port_id", "internal_layer_id", "internal_port_id", "axis", "purpose", *_SLICED}
_EDGE = {"from-layer", "from-port", "to-layer", "to-port"}
_NOWHERE = -1  # external port of values that only a loop and its body exchange


class Slices(NamedTuple):
    """The elements of an array along an axis, one for each iteration, backwards if `is_reversed`."""

    axis: int
    is_reversed: bool


class Mapped(NamedTuple):
    """A port of the layer, by index, and the Parameter or Result of the body that it is connected to."""

    place: int
    layer: NetLayer
    slices: Slices | None


@dataclass(frozen=True, eq=False)
class Body:
    """A body and its connections.

    Attributes
    ----------
    label : str
        Name of the body in errors.
    graph : NetGraph
    inputs, outputs : tuple of Mapped
        Inputs have each Parameter once, outputs each port once.
    back_edges : mapping
        Result whose value a Parameter has in the next iteration, by the Parameter.
    iteration, condition : NetLayer or None
        The Parameter that counts iterations, and the Result that is true if another one follows.
    """

    label: str
    graph: NetGraph
    inputs: tuple[Mapped, ...]
    outputs: tuple[Mapped, ...]
    back_edges: Mapping[NetLayer, NetLayer]
    iteration: NetLayer | None
    condition: NetLayer | None

    @property
    def invariant(self) -> tuple[Mapped, ...]:
        """Inputs that are the same in every iteration."""
        return tuple(row for row in self.inputs if row.slices is None and row.layer not in self.back_edges)


def read_body(layer: NetLayer, tag: str = "body") -> Body:
    """Read the body of a layer in the element `tag`.

    Raises
    ------
    FormatError
        There is no body, a port or layer is unknown, connected twice or not at all, or a slice is invalid.
    UnsupportedError
        Slices have several elements, overlap, leave gaps, or cover only a part of an axis.
    """
    graph, label = layer.bodies.get(tag), f"{layer.label}: <{tag}>"
    if graph is None:
        raise FormatError(f"{layer.label}: it has no <{tag}>")
    reader = _Reader(layer, label, graph)
    for element in _children(layer, tag.replace("body", "port_map"), "input", "output"):
        reader.read(element)
    back_edges = dict(map(reader.back_edge, _children(layer, "back_edges", "edge")))
    for parameter in back_edges:
        if parameter not in reader.inputs or reader.inputs[parameter].slices is not None:
            reason = "has no first value" if parameter not in reader.inputs else "is sliced"
            raise FormatError(f"{label}: {parameter.label} {reason}, but a back edge leads to it")
    for parameter in graph.parameters:
        if parameter not in reader.inputs and parameter is not reader.iteration:
            raise FormatError(f"{label}: {parameter.label} has no entry in the port map")
    inputs, outputs = tuple(reader.inputs.values()), tuple(reader.outputs[place] for place in sorted(reader.outputs))
    return Body(label, graph, inputs, outputs, back_edges, reader.iteration, reader.condition)


def _children(layer: NetLayer, tag: str, *tags: str) -> Iterator[etree._Element]:
    for section in layer.element.iterchildren(tag):
        yield from section.iterchildren(*tags)


class _Reader:
    """Reader of the entries of a port map."""

    def __init__(self, layer: NetLayer, label: str, graph: NetGraph) -> None:
        self.layer, self.label = layer, label
        self._layers = {inner.id: inner for inner in graph.layers}
        self._places = {
            "input": {port.id: place for place, port in enumerate(layer.inputs)},
            "output": {port.id: place for place, port in enumerate(layer.outputs)},
        }
        self.inputs: dict[NetLayer, Mapped] = {}
        self.outputs: dict[int, Mapped] = {}
        self.iteration: NetLayer | None = None
        self.condition: NetLayer | None = None

    def read(self, element: etree._Element) -> None:
        """Add an entry."""
        kind = str(element.tag)
        self._check(element, _KNOWN, f"{kind} of the port map")
        if "purpose" in element.attrib:
            self._special(element, kind)
            return
        end = self._end(element, kind)
        place = self._place(element, kind)
        slices = self._slices(element, kind)
        if kind == "input":
            if end in self.inputs or end is self.iteration:
                raise FormatError(f"{self.label}: {end.label} has two entries in the port map; expected one")
            self.inputs[end] = Mapped(place, end, slices)
        else:
            if place in self.outputs:
                port = self.layer.outputs[place].id
                raise FormatError(f"{self.label}: output port {port} has two entries in the port map; expected one")
            self.outputs[place] = Mapped(place, end, slices)

    def _special(self, element: etree._Element, kind: str) -> None:
        """Add a control value of a Loop: the number of iterations, or the condition for another one."""
        purpose = str(element.get("purpose"))
        external = self._number(element, "external_port_id", _NOWHERE)
        if kind == "input" and purpose in ("trip_count", "execution_condition"):
            place = 0 if purpose == "trip_count" else 1
            if self._place(element, kind) != place:
                raise FormatError(
                    f"{self.label}: {purpose} is input port {external}; expected the loop's input {place}"
                )
            return
        expected = {"input": "current_iteration", "output": "execution_condition"}[kind]
        if purpose != expected or external != _NOWHERE:
            raise FormatError(
                f"{self.label}: an {kind} of the port map has purpose {shown(purpose)} and external port {external}; "
                f"expected {expected} and {_NOWHERE}"
            )
        end = self._end(element, kind)
        if end in self.inputs or (self.iteration if kind == "input" else self.condition) is not None:
            raise FormatError(f"{self.label}: {end.label}: purpose {purpose} occurs twice, or with another entry")
        if kind == "input":
            self.iteration = end
        else:
            self.condition = end

    def back_edge(self, element: etree._Element) -> tuple[NetLayer, NetLayer]:
        """Read a back edge; return the Parameter to which it leads, and the Result from which it comes."""
        self._check(element, _EDGE, "back edge")
        source = self._layer(element, "from-layer", "from-port", "Result")
        target = self._layer(element, "to-layer", "to-port", "Parameter")
        count = sum(
            (edge.get("to-layer") or "").strip() == target.id for edge in _children(self.layer, "back_edges", "edge")
        )
        if count > 1:
            raise FormatError(f"{self.label}: {count} back edges lead to {target.label}; expected one")
        return target, source

    def _check(self, element: etree._Element, known: set[str], what: str) -> None:
        for name in map(str, element.attrib):
            if name not in known:
                raise FormatError(
                    f"{self.label}: the {what} has attribute {shown(name)}; expected {', '.join(sorted(known))}"
                )

    def _end(self, element: etree._Element, kind: str) -> NetLayer:
        return self._layer(
            element, "internal_layer_id", "internal_port_id", "Parameter" if kind == "input" else "Result"
        )

    def _layer(self, element: etree._Element, layer_key: str, port_key: str, kind: str) -> NetLayer:
        identifier = (element.get(layer_key) or "").strip()
        layer = self._layers.get(identifier)
        if layer is None or layer.type != kind:
            reason = "does not exist" if layer is None else f"is {layer.label}"
            raise FormatError(f"{self.label}: {layer_key}={shown(identifier)} {reason}; expected the id of a {kind}")
        if port_key in element.attrib:
            ports = layer.outputs if kind == "Parameter" else layer.inputs
            if self._number(element, port_key, 0) not in (port.id for port in ports):
                raise FormatError(f"{self.label}: {layer.label} has no port {shown(element.get(port_key))}")
        return layer

    def _place(self, element: etree._Element, kind: str) -> int:
        places = self._places[kind]
        number = self._number(element, "external_port_id", None)
        if number not in places:
            allowed = shortened(", ".join(map(str, places))) or "none"
            raise FormatError(f"{self.label}: the port map names {kind} port {number}; the layer has {allowed}")
        return places[number]

    def _slices(self, element: etree._Element, kind: str) -> Slices | None:
        if "axis" not in element.attrib:
            for name in _SLICED:
                if name in element.attrib:
                    raise FormatError(f"{self.label}: an {kind} of the port map has {name} but no axis")
            return None
        axis = self._number(element, "axis", None)
        start, end, stride, part = (self._number(element, name, default) for name, default in _SLICED.items())
        if not 0 <= axis < MAX_RANK or part < 1 or stride == 0:
            raise FormatError(
                f"{self.label}: an {kind} of the port map has axis {axis}, part_size {part} and stride {stride}; "
                "expected an axis from 0, a part_size from 1, and a stride that is not 0"
            )
        if part != 1 or abs(stride) != 1:
            raise UnsupportedError(
                f"{self.label}: an {kind} of the port map has part_size {part} and stride {stride}; expected a "
                "part_size of 1 and a stride of 1 or -1"
            )
        if ((start, end) if stride > 0 else (end, start)) != (0, -1):
            raise UnsupportedError(
                f"{self.label}: an {kind} of the port map has start {start} and end {end}; expected 0 and -1, or "
                "backwards -1 and 0"
            )
        return Slices(axis, stride < 0)

    def _number(self, element: etree._Element, name: str, default: int | None) -> int:
        text = element.get(name)
        if text is None and default is not None:
            return default
        try:
            number = integer((text or "").strip())
        except ValueError:
            number = 2**63
        if not -(2**63) <= number < 2**63:
            raise FormatError(f"{self.label}: {element.tag} has {name} {shown(text)}; expected an integer")
        return number
