"""A whole IR with its recurrent layers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lxml import etree

from pyrnnx.errors import warn
from pyrnnx.model_layers import why_none

from .ir.layer import NetLayer
from .ir.net_graph import NetGraph, net_graph
from .ir.versions import newer
from .ir.xml import named_errors, parse, source_path
from .layer_reader import recurrent_layer
from .layers import IRLayer
from .looped_cells import LoopedCell, looped_cell
from .schemas import find_operation


@dataclass(frozen=True, eq=False)
class Net(NetGraph):
    """What `read_net` returns.

    Attributes
    ----------
    name : str
    version : int
        10 or 11; a newer one whose elements and attributes are those of 11.
    layers, order : tuple of NetLayer
        As in the XML, and so that each comes after those that it takes inputs from.
    element : lxml element
    recurrent : mapping of NetLayer to IRLayer
        Every RNN, GRU and LSTM, sequence or cell, in the order of the XML; not those in bodies.
    inner : mapping of NetLayer to IRLayer
        Those in the bodies of loops and choices, but of `looped`.
    looped : mapping of NetLayer to LoopedCell
        Every TensorIterator, in bodies too, that is a sequence: its body is one cell over a slice.
    warnings : tuple of str
        What has no effect in them; that the version is newer.

    It can be pickled and copied, as its XML.
    """

    recurrent: Mapping[NetLayer, IRLayer]
    inner: Mapping[NetLayer, IRLayer]
    looped: Mapping[NetLayer, LoopedCell]
    warnings: tuple[str, ...]

    def declared(self, layer: NetLayer) -> IRLayer | None:
        """What a recurrent layer is, or a loop that is one; None of any other."""
        looped = self.looped.get(layer)
        return looped.layer if looped is not None else self.recurrent.get(layer, self.inner.get(layer))

    def recurrent_paths(self) -> Iterator[tuple[NetLayer, str]]:
        """The recurrent layers in the order of the XML, with the paths of the bodies that they are in: "loop/body/"."""
        return self._paths(self, "")

    def _paths(self, graph: NetGraph, path: str) -> Iterator[tuple[NetLayer, str]]:
        for layer in graph.layers:
            if self.declared(layer) is not None:
                yield layer, path
            else:
                for tag, body in layer.bodies.items():
                    yield from self._paths(body, f"{path}{layer.name or layer.label}/{tag}/")

    def why_no_layers(self) -> str:
        """Of a net without recurrent layers: why, as far as one can tell."""
        weights = (_constant(layer.sources[1].layer) for layer in self.everything if layer.type == "MatMul")
        loops = (layer.type for layer in self.everything if layer.type in ("TensorIterator", "Loop"))
        return why_none((one for one in weights if one is not None), loops)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (etree.tostring(self.element, encoding="utf-8", with_tail=False),)


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
        Broken XML; an older version than 10, a newer one than 11 that holds more; layers without id or type, ids that
        stand twice; edges from or to what does not exist, two edges into one port, an input without any, cycles;
        recurrent layers that `read_layer` rejects. Layers of other types may be anything.

    Warns
    -----
    PyrnnxWarning
        An attribute that a recurrent operation does not have; a version above 11.

    Source: OpenVINO IR versions 10 and 11.
    """
    with named_errors(source_path(xml)):
        net = net_of(parse(xml, "read_net", "net"), "read_net")
    for message in net.warnings:
        warn(message)
    return net


def net_of(root: etree._Element, what: str) -> Net:
    """As `read_net`, of an element, with what it would warn of in the net."""
    graph = net_graph(root, what)
    looped: dict[NetLayer, LoopedCell] = {}
    messages = newer(graph.version)

    def found(layers: Iterable[NetLayer], inner: dict[NetLayer, IRLayer]) -> dict[NetLayer, IRLayer]:
        """The recurrent ones; those in bodies go to `inner`."""
        recurrent: dict[NetLayer, IRLayer] = {}
        for layer in layers:
            operation, match = find_operation(layer.type, layer.opset), looped_cell(layer)
            if operation is not None:
                recurrent[layer], unknown = recurrent_layer(operation, layer)
                messages.extend(unknown)
            elif match is not None:
                looped[layer], unknown = match
                messages.extend(unknown)
            else:
                for body in layer.bodies.values():
                    inner |= found(body.layers, inner)
        return recurrent

    inner: dict[NetLayer, IRLayer] = {}
    recurrent = found(graph.layers, inner)
    return Net(
        graph.name, graph.version, graph.layers, graph.order, graph.element, recurrent, inner, looped, tuple(messages)
    )


def _constant(layer: NetLayer) -> tuple[str, ...] | None:
    """Where a weight lies in the .bin, behind what decompresses and arranges it; None of what is computed."""
    while layer.type in ("Convert", "Transpose", "Reshape") and layer.sources:
        layer = layer.sources[0].layer
    return (layer.data.get("offset", ""), layer.data.get("size", "")) if layer.type == "Const" else None


def _restored(xml: bytes) -> Net:
    return net_of(parse(xml, "read_net", "net"), "read_net")
