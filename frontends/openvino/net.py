"""A whole IR with its recurrent layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lxml import etree

from pyrnnx.errors import warn

from .ir.layer import NetLayer
from .ir.net_graph import NetGraph, net_graph
from .ir.xml import named_errors, parse, source_path
from .layer_reader import recurrent_layer
from .layers import IRLayer
from .schemas import find_operation


@dataclass(frozen=True, eq=False)
class Net(NetGraph):
    """What `read_net` returns.

    Attributes
    ----------
    name : str
    version : int
        10 or 11.
    layers, order : tuple of NetLayer
        As in the XML, and so that each comes after those that it takes inputs from.
    element : lxml element
    recurrent : mapping of NetLayer to IRLayer
        Every RNN, GRU and LSTM, sequence or cell, in the order of the XML.
    warnings : tuple of str
        What has no effect in them.

    It can be pickled and copied, as its XML.
    """

    recurrent: Mapping[NetLayer, IRLayer]
    warnings: tuple[str, ...]

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
        net = net_of(parse(xml, "read_net", "net"), "read_net")
    for message in net.warnings:
        warn(message)
    return net


def net_of(root: etree._Element, what: str) -> Net:
    """As `read_net`, of an element, with what it would warn of in the net."""
    graph = net_graph(root, what)
    recurrent: dict[NetLayer, IRLayer] = {}
    messages: list[str] = []
    for layer in graph.layers:
        operation = find_operation(layer.type, layer.opset)
        if operation is not None:
            recurrent[layer], unknown = recurrent_layer(operation, layer)
            messages += unknown
    return Net(graph.name, graph.version, graph.layers, graph.order, graph.element, recurrent, tuple(messages))


def _restored(xml: bytes) -> Net:
    return net_of(parse(xml, "read_net", "net"), "read_net")
