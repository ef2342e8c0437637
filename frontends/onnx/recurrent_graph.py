"""Folded graphs with their recurrent nodes, as layers and in the graph to run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pyrnnx.errors import UnsupportedError, shown
from pyrnnx.layers.layer import Layer
from pyrnnx.models.layers import why_none
from pyrnnx.models.model import LayerValue

from .graph.fold import FoldedGraph
from .graph.names import named_nodes
from .graph.rebuild import Edit, Place, large_results, rebuild, tensors_of
from .graph.walk import Node
from .layers import NodeLayer, UnboundNode
from .makers import MAKERS
from .messages import copied
from .nodes import is_recurrent
from .recognise import Recognised
from .schemas import OPERATORS
from .stream_layer import StreamLayer

if TYPE_CHECKING:
    from onnx import GraphProto

    from .graph.constants import Tensor

_MOST_REASONS = 3
NO_EDITS: Mapping[str, Edit] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class RecurrentGraph:
    """Folded graph with the places of its recurrent nodes.

    Attributes
    ----------
    folded : FoldedGraph
    places : mapping
        Places of recurrent nodes, also in bodies, by unique name.
    origins : mapping
        Where recognised layers come from, by name.
    reasons : tuple of str
        What is missing in parts that are nearly layers.
    """

    folded: FoldedGraph
    places: Mapping[str, Place]
    origins: Mapping[str, str]
    reasons: tuple[str, ...] = ()

    def layers(self, opsets: Mapping[str, int]) -> dict[str, NodeLayer | UnboundNode]:
        """Return the layers of the nodes, prepared if their weights are constants.

        Raises
        ------
        PyrnnxError
            The operator rejects an attribute or a weight.
        """
        layers = {name: _layer(*place, name, opsets) for name, place in self.places.items()}
        for name, origin in self.origins.items():
            layer = layers.get(name)
            if isinstance(layer, NodeLayer):
                layer._recognised_in(origin)
        return layers

    def why_no_layers(self) -> str:
        """Return why a graph has no recurrent nodes, or what other parts lack, as far as it is known."""
        missing = "; ".join(self.reasons[:_MOST_REASONS])
        if self.places:
            return f"other parts are nearly layers, but are not recognised: {missing}" if missing else ""
        constants = self.folded.constants
        factors = (node.input[1] for node in self.folded.nodes if node.op_type in ("MatMul", "Gemm"))
        loops = (node.op_type for node in self.folded.nodes if node.op_type in ("Loop", "Scan"))
        likely = why_none((name for name in factors if constants.owner(name) is not None), loops)
        return f"{likely}; it is not recognised: {missing}" if likely and missing else likely or missing

    def rebuilt(
        self,
        keep: Iterable[str],
        layers: Mapping[str, Layer | UnboundNode | StreamLayer],
        edits: Mapping[str, Edit] = NO_EDITS,
    ) -> tuple[GraphProto, list[tuple[Node, int]]]:
        """Return the graph to run, with the names of `layers`, and nodes whose results have a fixed size in bytes.

        It has no `value_info`, and its top-level initializers have only names and types; `tensors` returns their
        values. Nodes lose the weight inputs of prepared layers, so that the layers own the weights.

        Parameters
        ----------
        keep : iterable of str
            Values to retain in addition to the outputs.
        layers : mapping
            As `layers` returns them.
        edits : mapping
            Changed inputs and outputs of top-level nodes, by name.
        """
        places = {place: _edit(*place, name, layers) for name, place in self.places.items()}
        if edits:
            names = {place: name for name, place in self.places.items()}
            for index, node in enumerate(self.folded.nodes):
                place = self.folded, index
                edit = edits.get(names.get(place, node.name))
                if edit is not None:
                    dropped = places[place].dropped if place in places else ()
                    places[place] = replace(edit, dropped=dropped)
        graph = rebuild(self.folded, keep, places, values=False)
        return graph, large_results(self.folded, graph)

    def tensors(self, graph: GraphProto) -> dict[str, Tensor]:
        """Return the initializers of a rebuilt graph by name."""
        return tensors_of(self.folded, graph)

    def values(self, layers: Mapping[str, Layer | UnboundNode]) -> dict[str, dict[str, LayerValue]]:
        """Return names and axes of the arrays of each top-level layer, except weights."""
        values: dict[str, dict[str, LayerValue]] = {}
        writers = {value: (node.op_type,) for node in self.folded.nodes for value in node.output}
        readers: dict[str, tuple[str, ...]] = {}
        for node in self.folded.nodes:
            for value in node.input:
                readers[value] = (*readers.get(value, ()), node.op_type)
        for name, (graph, index) in self.places.items():
            if graph is not self.folded:
                continue
            node, convention = graph.nodes[index], layers[name].convention
            row = OPERATORS[node.op_type]
            named = [*zip(row.inputs, node.input, strict=False), *zip(row.outputs, node.output, strict=False)]
            values[name] = {
                argument: LayerValue(
                    convention.axes_of(argument),
                    (value,),
                    (readers if argument in row.outputs else writers).get(value, ()),
                )
                for argument, value in named
                if value and argument not in row.weights
            }
        return values

    def added(self) -> set[str]:
        """Return the names of values at the top level that recognised layers take or return."""
        places = (self.places[name] for name in self.origins if name in self.places)
        nodes = (graph.nodes[index] for graph, index in places if graph is self.folded)
        return {value for node in nodes for value in (*node.input, *node.output) if value}

    def check_weights(self, label: str, names: Iterable[str]) -> None:
        """Reject named nodes whose weights are inputs, because their layers are not prepared.

        Raises
        ------
        UnsupportedError
        """
        for name in names:
            if name in self.places:
                graph, index = self.places[name]
                node = graph.nodes[index]
                row = OPERATORS[node.op_type]
                for argument, source in zip(row.inputs, node.input, strict=False):
                    if source and argument in row.weights and graph.constants.owner(source) is None:
                        raise UnsupportedError(
                            f"{label}: stream: {argument} of {shown(name)} is an input with a default, and the call "
                            "passed such inputs; expected none of them, or the layer left out of `layers`"
                        )


def recurrent_graph(recognised: Recognised) -> RecurrentGraph:
    """Return a folded graph with its recurrent nodes."""
    return RecurrentGraph(
        recognised.folded, named_nodes(recognised.folded, is_recurrent), recognised.origins, recognised.reasons
    )


def _layer(graph: FoldedGraph, index: int, name: str, opsets: Mapping[str, int]) -> NodeLayer | UnboundNode:
    node = copied(graph.nodes[index].proto)
    node.name = name
    row, make, opset = OPERATORS[node.op_type], MAKERS[node.op_type], opsets.get(node.domain, 1)
    sources = {key: source for key, source in zip(row.inputs, node.input, strict=False) if source}
    values = {source: graph.constants.value(source) for key, source in sources.items() if key != "X"}
    constants = {source: value for source, value in values.items() if value is not None}
    if all(sources[key] in constants for key in row.weights if key in sources):
        return make.layer(node, constants, opset)
    return make.unbound(node, constants, opset)


def _edit(graph: FoldedGraph, index: int, name: str, layers: Mapping[str, Any]) -> Edit:
    node = graph.nodes[index]
    if isinstance(layers.get(name), (UnboundNode, type(None))):
        return Edit(name)
    row = OPERATORS[node.op_type]
    return Edit(name, tuple(k for k, key in enumerate(row.inputs[: len(node.input)]) if key in row.weights))
