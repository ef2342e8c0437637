"""Nets: whole IRs with their recurrent layers, without weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lxml import etree

from pyrnnx.errors import warn
from pyrnnx.models.layers import why_none
from pyrnnx.models.model import LayerValue
from pyrnnx.operator.conventions import CALL_ARGUMENTS
from pyrnnx.operator.tensor_info import TensorInfo

from .ir.layer import NetLayer, Output
from .ir.net_graph import VERSIONS, NetGraph, net_graph
from .ir.xml import named_errors, parse, source_path
from .layer_reader import recurrent_layer
from .layers import IRLayer
from .looped_cells import LoopedCell, looped_cell
from .schemas import find_operation


@dataclass(frozen=True, eq=False)
class Net(NetGraph):
    """A whole IR with its recurrent layers.

    Attributes
    ----------
    name : str
    version : int
        10, 11 or newer, which is read as 11.
    layers, order : tuple of NetLayer
        The layers in the order of the XML, and in topological order.
    element : lxml element
    recurrent : mapping of NetLayer to IRLayer
        Every RNN, GRU and LSTM outside bodies, sequence or cell, in the order of the XML.
    inner : mapping of NetLayer to IRLayer
        The recurrent layers in bodies of loops and Ifs, except those of `looped`.
    looped : mapping of NetLayer to LoopedCell
        Every TensorIterator, in bodies too, that is a sequence: its body is one cell over slices.

    A net can be pickled and copied, as its XML.
    """

    recurrent: Mapping[NetLayer, IRLayer]
    inner: Mapping[NetLayer, IRLayer]
    looped: Mapping[NetLayer, LoopedCell]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Messages about attributes without effect and about a newer version."""
        rows = (*self.recurrent.values(), *self.inner.values(), *(looped.layer for looped in self.looped.values()))
        newer = f"IR version is {self.version}, newer than any known: it is read as version {VERSIONS[-1]}"
        own = [newer] if self.version > VERSIONS[-1] else []
        return (*own, *(message for row in rows for message in row.warnings))

    def declared(self, layer: NetLayer) -> IRLayer | None:
        """Return the declaration of a recurrent layer, or of a loop that is one; None for any other layer."""
        looped = self.looped.get(layer)
        return looped.layer if looped is not None else self.recurrent.get(layer, self.inner.get(layer))

    def recurrent_paths(self) -> Iterator[tuple[NetLayer, str]]:
        """Yield recurrent layers in the order of the XML, with the paths of their bodies: "loop/body/"."""
        return self._paths(self, "")

    def _paths(self, graph: NetGraph, path: str) -> Iterator[tuple[NetLayer, str]]:
        for layer in graph.layers:
            if self.declared(layer) is not None:
                yield layer, path
            else:
                for tag, body in layer.bodies.items():
                    yield from self._paths(body, f"{path}{layer.name or layer.label}/{tag}/")

    def why_no_layers(self) -> str:
        """Explain, as far as possible, why recurrent layers of the net would not be operations."""
        products = (layer.sources for layer in self.everything if layer.type == "MatMul")
        weights = (_constant(source.layer) for sources in products for source in sources[1:2])
        loops = (layer.type for layer in self.everything if layer.type in ("TensorIterator", "Loop"))
        return why_none((weight for weight in weights if weight is not None), loops)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (etree.tostring(self.element, encoding="utf-8", with_tail=False),)


def read_net(xml: Any) -> Net:
    """Read a whole IR, without weights.

    Parameters
    ----------
    xml : str, bytes, os.PathLike or lxml element
        Text that begins with "<", its bytes, the path of a file of at most 256 MiB, or the element.

    Returns
    -------
    Net

    Raises
    ------
    PyrnnxError
        The XML is broken, the version is below 10, a layer lacks id or type, an id
        occurs twice, an edge has an unknown end, an input has no edge or two, the graph has a cycle, or `read_layer`
        rejects a recurrent layer. Other layers are not checked.

    Warns
    -----
    PyrnnxWarning
        A recurrent operation does not have an attribute, or the version is above 11.

    Source: OpenVINO IR versions 10 and 11.
    """
    with named_errors(source_path(xml)):
        net = net_of(parse(xml, "read_net", "net"), "read_net")
    for message in net.warnings:
        warn(message)
    return net


def net_of(root: etree._Element, function: str) -> Net:
    """Read the net of an element without warning; errors name the calling `function`."""
    graph = net_graph(root, function)
    recurrent: dict[NetLayer, IRLayer] = {}
    inner: dict[NetLayer, IRLayer] = {}
    looped: dict[NetLayer, LoopedCell] = {}

    def collect(layers: Iterable[NetLayer], declared: dict[NetLayer, IRLayer]) -> None:
        """Add recurrent layers to `declared`, those in bodies to `inner`."""
        for layer in layers:
            operation, match = find_operation(layer.type, layer.opset), looped_cell(layer)
            if operation is not None:
                declared[layer] = recurrent_layer(operation, layer)
            elif match is not None:
                looped[layer] = match
            else:
                for body in layer.bodies.values():
                    collect(body.layers, inner)

    collect(graph.layers, recurrent)
    return Net(graph.name, graph.version, graph.layers, graph.order, graph.element, recurrent, inner, looped)


def computed_values(net: Net, values: Mapping[str, Output]) -> tuple[dict[str, Output], frozenset[str]]:
    """Return values between inputs or states and outputs, by name in order of computation, and the unreliable names.

    A name is unreliable if it is a layer's name but not a name of the layer's tensor: converters keep the names of
    layers even if they change the axes of the results, so a value of the original model with this name may differ.
    """
    ranks = {layer: rank for rank, layer in enumerate(net.order)}
    changing: set[NetLayer] = set()  # layers that depend on an input or a variable
    for layer in net.order:
        if layer.type in ("Parameter", "ReadValue") or any(source.layer in changing for source in layer.sources):
            changing.add(layer)
    needed = set(net.results)
    for layer in reversed(net.order):
        needed |= {source.layer for source in layer.sources if layer in needed}
    own = [item for item in values.items() if item[1].layer in changing & needed and item[1].layer.type != "Parameter"]
    ordered = dict(sorted(own, key=lambda item: (ranks[item[1].layer], item[1].index)))
    return ordered, frozenset(name for name, value in ordered.items() if name not in value.port.names)


def layer_values(
    net: Net,
    keys: Mapping[NetLayer, str],
    values: Mapping[str, Output],
    inputs: Sequence[TensorInfo],
    outputs: Sequence[TensorInfo],
) -> dict[str, dict[str, LayerValue]]:
    """Return the named values of each recurrent layer outside bodies, by its key.

    `values` maps names to values; `inputs` and `outputs` are the model's. If a loop was recognized as a sequence, its
    values have the axes of the loop.
    """
    names: dict[Output, list[str]] = {}
    for name, value in values.items():
        names.setdefault(value, []).append(name)
    for info, layer in zip(inputs, net.parameters, strict=True):
        names.setdefault(Output(layer, 0), []).append(info.name)
    for info, layer in zip(outputs, net.results, strict=True):
        names.setdefault(layer.sources[0], []).append(info.name)

    return {
        keys[layer]: {
            argument: LayerValue(axes, tuple(dict.fromkeys(names[value])))
            for argument, axes, value in _arrays(net, layer)
            if value in names
        }
        for layer, path in net.recurrent_paths()
        if not path
    }


def _arrays(net: Net, layer: NetLayer) -> Iterator[tuple[str, str, Output]]:
    looped, declared = net.looped.get(layer), net.declared(layer)
    if looped is not None:
        yield "X", looped.axes, layer.sources[looped.X]
        yield from ((argument, "NH", layer.sources[place]) for argument, place in looped.states.items())
        yield from ((argument, axes, Output(layer, place)) for place, (argument, axes) in looped.outputs.items())
    elif declared is not None:
        inputs = zip(declared.arguments, layer.sources, strict=True)
        arrays = [(argument, value) for argument, value in inputs if argument in CALL_ARGUMENTS]
        arrays += [(argument, Output(layer, k)) for k, argument in enumerate(declared.operation.outputs)]
        yield from ((argument, declared.convention.axes_of(argument), value) for argument, value in arrays)


def _constant(layer: NetLayer) -> tuple[str, ...] | None:
    """Return offset and size in the .bin of a decompressed and rearranged weight; None if it is computed."""
    while layer.type in ("Convert", "Transpose", "Reshape") and layer.sources:
        layer = layer.sources[0].layer
    return (layer.data.get("offset", ""), layer.data.get("size", "")) if layer.type == "Const" else None


def _restored(xml: bytes) -> Net:
    return net_of(parse(xml, "read_net", "net"), "read_net")
