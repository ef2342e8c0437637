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
    """A body and its connections."""

    label: str  # in errors
    graph: NetGraph
    inputs: tuple[Mapped, ...]  # each Parameter once
    outputs: tuple[Mapped, ...]  # each port once
    back_edges: Mapping[NetLayer, NetLayer]  # Result whose value a Parameter has in the next iteration, by Parameter
    iteration: NetLayer | None  # Parameter that counts iterations
    condition: NetLayer | None  # Result that is true if another iteration follows

    @property
    def invariant(self) -> tuple[Mapped, ...]:
        """Inputs that are the same in every iteration."""
        return tuple(row for row in self.inputs if row.slices is None and row.layer not in self.back_edges)


def read_body(layer: NetLayer, tag: str = "body") -> Body:
    """Read the body of a layer in the element `tag`; parts of an axis, and slices of several elements, are errors."""
    graph, label = layer.bodies.get(tag), f"{layer.label}: <{tag}>"
    if graph is None:
        raise FormatError(f"{layer.label}: it has no <{tag}>")
    reader = _Reader(layer, label, graph)
    for element in _children(layer, tag.replace("body", "port_map"), "input", "output"):
        reader.read(element)
    back_edges: dict[NetLayer, NetLayer] = {}
    for element in _children(layer, "back_edges", "edge"):
        source, parameter = reader.back_edge(element)
        if parameter in back_edges:
            raise FormatError(f"{label}: two back edges lead to {parameter.label}; expected one")
        if parameter not in reader.inputs or reader.inputs[parameter].slices is not None:
            reason = "has no first value" if parameter not in reader.inputs else "is sliced"
            raise FormatError(f"{label}: {parameter.label} {reason}, but a back edge leads to it")
        back_edges[parameter] = source
    for parameter in graph.parameters:
        if parameter not in reader.inputs and parameter is not reader.special.get("input"):
            raise FormatError(f"{label}: {parameter.label} has no entry in the port map")
    inputs, outputs = tuple(reader.inputs.values()), tuple(reader.outputs[place] for place in sorted(reader.outputs))
    return Body(label, graph, inputs, outputs, back_edges, reader.special.get("input"), reader.special.get("output"))


def _children(layer: NetLayer, tag: str, *tags: str) -> Iterator[etree._Element]:
    for section in layer.element.iterchildren(tag):
        yield from section.iterchildren(*tags)


class _Reader:
    """Reader of the entries of a port map."""

    def __init__(self, layer: NetLayer, label: str, graph: NetGraph) -> None:
        self.layer, self.label = layer, label
        self._layers = {inner.id: inner for inner in graph.layers}
        self.inputs: dict[NetLayer, Mapped] = {}
        self.outputs: dict[int, Mapped] = {}
        self.special: dict[str, NetLayer] = {}  # by "input" the iteration's number, by "output" the condition

    def read(self, element: etree._Element) -> None:
        """Add an entry."""
        kind, purpose = str(element.tag), element.get("purpose")
        what = f"{'an input' if kind == 'input' else 'an output'} of the port map"
        self._check(element, _KNOWN, what)
        if kind == "input" and purpose in ("trip_count", "execution_condition"):
            return  # input 0 or 1 of a Loop
        end = self._layer(element, "internal_layer_id", "Parameter" if kind == "input" else "Result")
        twice = FormatError(f"{self.label}: {end.label} has two entries in the port map; expected one")
        if end in self.inputs or end is self.special.get("input"):
            raise twice
        if purpose is None:
            mapped = Mapped(self._place(element, kind), end, self._slices(element, what))
            if kind == "input":
                self.inputs[end] = mapped
            elif self.outputs.setdefault(mapped.place, mapped) is not mapped:
                raise twice
            return
        external = self._number(element, "external_port_id", _NOWHERE)
        expected = {"input": "current_iteration", "output": "execution_condition"}[kind]
        if purpose != expected or external != _NOWHERE:
            raise FormatError(
                f"{self.label}: {what} has purpose {shown(purpose)} and external port {external}; expected {expected} "
                f"and {_NOWHERE}"
            )
        if self.special.setdefault(kind, end) is not end:
            raise FormatError(f"{self.label}: {end.label}: purpose {purpose} occurs twice")

    def back_edge(self, element: etree._Element) -> tuple[NetLayer, NetLayer]:
        """Return the Result from which a back edge comes, and the Parameter to which it leads."""
        self._check(element, _EDGE, "the back edge")
        return self._layer(element, "from-layer", "Result"), self._layer(element, "to-layer", "Parameter")

    def _check(self, element: etree._Element, known: set[str], what: str) -> None:
        for name in map(str, element.attrib):
            if name not in known:
                raise FormatError(
                    f"{self.label}: {what} has attribute {shown(name)}; expected {', '.join(sorted(known))}"
                )

    def _layer(self, element: etree._Element, key: str, kind: str) -> NetLayer:
        identifier = (element.get(key) or "").strip()
        layer = self._layers.get(identifier)
        if layer is None or layer.type != kind:
            reason = "does not exist" if layer is None else f"is {layer.label}"
            raise FormatError(f"{self.label}: {key}={shown(identifier)} {reason}; expected the id of a {kind}")
        return layer

    def _place(self, element: etree._Element, kind: str) -> int:
        ids = [port.id for port in (self.layer.inputs if kind == "input" else self.layer.outputs)]
        number = self._number(element, "external_port_id", None)
        if number not in ids:
            allowed = shortened(", ".join(map(str, ids))) or "none"
            raise FormatError(f"{self.label}: the port map names {kind} port {number}; the layer has {allowed}")
        return ids.index(number)

    def _slices(self, element: etree._Element, what: str) -> Slices | None:
        if "axis" not in element.attrib:
            return None
        axis = self._number(element, "axis", None)
        start, end, stride, part = (self._number(element, name, default) for name, default in _SLICED.items())
        if not 0 <= axis < MAX_RANK:
            raise FormatError(f"{self.label}: {what} has axis {axis}; expected 0 or above")
        if part != 1 or abs(stride) != 1:
            raise UnsupportedError(
                f"{self.label}: {what} has part_size {part} and stride {stride}; expected a part_size of 1 and a "
                "stride of 1 or -1"
            )
        if ((start, end) if stride > 0 else (end, start)) != (0, -1):
            raise UnsupportedError(
                f"{self.label}: {what} has start {start} and end {end}; expected 0 and -1, or backwards -1 and 0"
            )
        return Slices(axis, stride < 0)

    def _number(self, element: etree._Element, name: str, default: int | None) -> int:
        text = element.get(name)
        if text is None and default is not None:
            return default
        try:
            return integer((text or "").strip())
        except ValueError:
            raise FormatError(f"{self.label}: {element.tag} has {name} {shown(text)}; expected an integer") from None
