"""A folded graph and its recurrent nodes: as layers, and under the names of these in the graph that is run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pyrnnx.errors import UnsupportedError, shown
from pyrnnx.layer import Layer
from pyrnnx.model import LayerValue
from pyrnnx.model_layers import why_none

from .graph.fold import FoldedGraph
from .graph.names import named_nodes
from .graph.rebuild import Edit, Place, large_results, rebuild, tensors_of
from .layers import UnboundNode
from .makers import MAKERS
from .nodes import is_recurrent
from .schemas import OPERATORS

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto

    from .graph.constants import Tensor

NO_EDITS: Mapping[str, Edit] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class RecurrentGraph:
    """A folded graph with the places of its recurrent nodes.

    Attributes
    ----------
    folded : FoldedGraph
    places : mapping
        Of the recurrent nodes, in bodies too, by names that only one of them has.
    """

    folded: FoldedGraph
    places: Mapping[str, Place]

    def layers(self, opsets: Mapping[str, int]) -> dict[str, Layer | UnboundNode]:
        """The layers of the nodes: prepared where their weights are constants.

        Raises
        ------
        PyrnnxError
            Attributes or weights that the operator does not allow.
        """
        return {name: _layer(*place, name, opsets) for name, place in self.places.items()}

    def why_no_layers(self) -> str:
        """Of a graph without recurrent nodes: why, as far as one can tell."""
        constants = self.folded.constants
        factors = (node.input[1] for node in self.folded.nodes if node.op_type in ("MatMul", "Gemm"))
        loops = (node.op_type for node in self.folded.nodes if node.op_type in ("Loop", "Scan"))
        return why_none((name for name in factors if constants.owner(name) is not None), loops)

    def rebuilt(
        self, keep: Iterable[str], layers: Mapping[str, Layer | UnboundNode], edits: Mapping[str, Edit] = NO_EDITS
    ) -> tuple[GraphProto, list[tuple[NodeProto, int]]]:
        """The graph to run, with the names of `layers`, and the bytes that some of its nodes always make.

        Its initializers, not those of bodies, have only names and types: `tensors` has their values.

        Weights that a prepared layer has are no inputs of its node any more, so that nothing else holds them.

        Parameters
        ----------
        keep : iterable of str
            Names of values that it has beside its outputs.
        layers : mapping
            As `layers` gives them.
        edits : mapping
            Of nodes, not of those in bodies: inputs and outputs that they have instead, by their names.
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
        """The initializers of a rebuilt graph by name."""
        return tensors_of(self.folded, graph)

    def values(self, layers: Mapping[str, Layer | UnboundNode]) -> dict[str, dict[str, LayerValue]]:
        """Of each layer that is in no body, the names and axes of its arrays, weights apart."""
        found: dict[str, dict[str, LayerValue]] = {}
        for name, (graph, index) in self.places.items():
            if graph is not self.folded:
                continue
            node, convention = graph.nodes[index], layers[name].convention
            row = OPERATORS[node.op_type]
            named = [*zip(row.inputs, node.input, strict=False), *zip(row.outputs, node.output, strict=False)]
            found[name] = {
                argument: LayerValue(convention.axes_of(argument), (value,))
                for argument, value in named
                if value and argument not in row.weights
            }
        return found

    def check_weights(self, label: str, names: Iterable[str]) -> None:
        """Reject nodes of these names whose weights are inputs, so that their layers are no prepared ones.

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
                            f"{label}: stream: {argument} of {shown(name)} is an input with a default, and such inputs "
                            "were given; expected none of them, or the layer left out of `layers`"
                        )


def recurrent_graph(folded: FoldedGraph) -> RecurrentGraph:
    """A folded graph with its recurrent nodes found."""
    return RecurrentGraph(folded, named_nodes(folded, is_recurrent))


def _layer(graph: FoldedGraph, index: int, name: str, opsets: Mapping[str, int]) -> Layer | UnboundNode:
    node = type(graph.nodes[index])()
    node.CopyFrom(graph.nodes[index])
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
    if not isinstance(layers.get(name), Layer):
        return Edit(name)
    row = OPERATORS[node.op_type]
    return Edit(name, tuple(k for k, key in enumerate(row.inputs[: len(node.input)]) if key in row.weights))
