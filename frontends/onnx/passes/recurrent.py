"""Pass that finds the layers of recurrent nodes, prepared if their weights are constants."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, shown
from pyrnnx.layers.layer import Layer
from pyrnnx.models.inputs import given_names
from pyrnnx.models.layers import why_none
from pyrnnx.models.model import LayerValue
from pyrnnx.operator.conventions import CALL_ARGUMENTS, OUTPUTS
from pyrnnx.operator.quantized import check_weight_dtype

from ..graph.inference import inferred_types
from ..graph.walk import Graph, Node, Place, all_graphs, all_nodes, named_nodes, needed_names
from ..messages import copied
from ..onnx_package import import_onnx
from ..operators.layers import NodeLayer, UnboundNode, from_node, is_recurrent, unbound_node
from ..operators.schemas import OPERATORS
from .constants import compute_constants

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

_MOST_REASONS = 3
AnyLayer = Any  # Layer, StreamLayer, or a layer whose weights are arguments


class LayerOptions(NamedTuple):
    """Choice of the nodes that pyrnnx runs, and of how it runs them.

    Attributes
    ----------
    others : mapping
        Layers of nodes of other domains, by node name.
    weight_dtype : str or None
        As of `Layer`, for layers with constant weights that are not in 8 bits already.
    leave : collection of str
        Operators whose nodes stay with ONNX Runtime; recognised layers do not.
    """

    others: Mapping[str, AnyLayer] = {}
    weight_dtype: str | None = None
    leave: Collection[str] = ()


DEFAULT_OPTIONS = LayerOptions()


def layer_options(label: str, weight_dtype: Any, leave: Any) -> LayerOptions:
    """Return the checked options of `load`."""
    check_weight_dtype(label, weight_dtype)
    names = given_names(label, leave, "leave")
    for name in names:
        if name not in OPERATORS:
            raise ArgumentError(f"{label}: leave contains {shown(name)}; expected names of {', '.join(OPERATORS)}")
    return LayerOptions(weight_dtype=weight_dtype, leave=names)


@dataclass(frozen=True, eq=False)
class Site:
    """A recurrent node of a model, its layer, and the names of its inputs and outputs in the operator's definition.

    The layer may be one whose weights are arguments; `weights` are those of its inputs that it owns.
    """

    place: Place
    layer: AnyLayer
    arguments: Sequence[str]
    results: Sequence[str]
    weights: Sequence[str] = ()

    @property
    def node(self) -> Node:
        graph, index = self.place
        return graph.node[index]

    def sources(self) -> dict[str, str]:
        """Return the names of values that the node takes, by argument."""
        return {key: name for key, name in zip(self.arguments, self.node.input, strict=False) if name}


@dataclass(frozen=True, eq=False)
class RecurrentModel:
    """A model and its recurrent nodes, also in bodies, by unique name.

    Its functions have no recurrent nodes; its default domain is "". `reasons` say what is missing in parts that are
    nearly layers.
    """

    proto: ModelProto
    graph: Graph
    opsets: Mapping[str, int]
    sites: Mapping[str, Site]
    reasons: tuple[str, ...] = ()

    @property
    def arrays(self) -> Mapping[str, AnyArray]:
        """Values of initializers that the model lacks, by name."""
        return self.graph.arrays

    @property
    def contents(self) -> set[str]:
        """Operators in the model, its bodies and functions, and "float16" if it has values of this type."""
        graph, element = self.graph, import_onnx().TensorProto.FLOAT16
        functions = [node for function in self.proto.functions for node in all_nodes(function.node)]
        elements = {value.type.tensor_type.elem_type for value in graph.input}
        elements |= {tensor.data_type for part in all_graphs(graph) for tensor in part.tensors}
        nodes = [*(node.proto for node in graph.every if node.op_type == "Cast"), *functions]
        elements |= {to.i for node in nodes if node.op_type == "Cast" for to in node.attribute}
        operators = {operator for _, operator in graph.kinds} | {node.op_type for node in functions}
        return operators | {"float16"} if element in elements else operators

    def why_no_layers(self) -> str:
        """Return why a model has no recurrent nodes, or what other parts lack, as far as it is known."""
        missing = "; ".join(self.reasons[:_MOST_REASONS])
        if self.sites:
            return f"other parts are nearly layers, but are not recognised: {missing}" if missing else ""
        graph = self.graph
        factors = (node.input[1] for node in graph.node if node.op_type in ("MatMul", "Gemm") and node.input[1:])
        loops = (node.op_type for node in graph.node if node.op_type in ("Loop", "Scan"))
        likely = why_none((name for name in factors if graph.constants.owner(name) is not None), loops)
        return f"{likely}; it is not recognised: {missing}" if likely and missing else likely or missing

    @property
    def layers(self) -> dict[str, NodeLayer | UnboundNode]:
        return {name: site.layer for name, site in self.sites.items() if is_recurrent(site.node)}

    def values(self) -> dict[str, dict[str, LayerValue]]:
        """Return names and axes of the arrays of each top-level layer, except weights."""
        values: dict[str, dict[str, LayerValue]] = {}
        for name, site in self.sites.items():
            if site.place[0] is self.graph and is_recurrent(site.node):
                named = [*site.sources().items(), *zip(site.results, site.node.output, strict=False)]
                axes_of, kept = site.layer.convention.axes_of, OPERATORS[site.node.op_type].weights
                values[name] = {
                    key: LayerValue(axes_of(key), (value,)) for key, value in named if value and key not in kept
                }
        return values

    @cached_property
    def elements(self) -> Mapping[str, int]:
        """Element types of values, as far as onnx infers them, by name; 0 if values of one name differ."""
        return inferred_types(self.proto).elements


def find_recurrent(
    proto: ModelProto,
    graph: Graph,
    opsets: Mapping[str, int],
    options: LayerOptions,
    origins: Mapping[str, str],
    reasons: tuple[str, ...],
) -> RecurrentModel:
    """Return a model with the layers of its recurrent nodes, prepared if their weights are constants.

    `origins` say where recognised layers come from, by node name, and `reasons` what is missing in parts that are
    nearly layers.
    """

    def is_ours(node: Node) -> bool:
        if is_recurrent(node):
            return node.op_type not in options.leave or node.name in origins
        return bool(node.domain and node.name in options.others)

    places = named_nodes(graph, is_ours)
    wanted: dict[Graph, list[str]] = {}
    for inner, index in places.values():
        wanted.setdefault(inner, []).extend(inner.node[index].input[1:])
    compute_constants(graph, proto, wanted)
    sites = {}
    for name, (inner, index) in places.items():
        node = inner.node[index]
        if is_recurrent(node):
            row, layer = OPERATORS[node.op_type], _layer(inner, node, name, opsets, options.weight_dtype)
            weights = row.weights if isinstance(layer, Layer) else ()
            if isinstance(layer, NodeLayer) and node.name in origins:
                layer.origin = origins[node.name]
            sites[name] = Site((inner, index), layer, row.inputs, OUTPUTS, weights)
        else:
            layer = options.others[node.name]
            arguments = CALL_ARGUMENTS if isinstance(layer, Layer) else layer.arguments
            sites[name] = Site((inner, index), layer, arguments, OUTPUTS[1:] if is_cell(layer) else OUTPUTS)
    return RecurrentModel(proto, graph, opsets, sites, reasons)


def recurrent_inputs(model: ModelProto) -> set[str]:
    """Return the names that the inputs of recurrent nodes, but X, and of functions depend on, also in bodies."""
    nodes, functions = [*all_nodes(model.graph.node)], {function.name for function in model.functions}
    left = [name for node in nodes if node.op_type in OPERATORS for name in node.input[1:]]
    left += [name for node in nodes if node.op_type in functions for name in node.input]
    producers: dict[str, list[NodeProto]] = {}
    for node in nodes:
        for output in node.output:
            producers.setdefault(output, []).append(node)
    names = set[str]()
    while left:
        name = left.pop()
        if name and name not in names:
            names.add(name)
            for node in producers.get(name, ()):
                left.extend(needed_names(node))
    return names


def is_cell(layer: Any) -> bool:
    """Return whether a layer runs single steps, and has no Y."""
    return "T" not in layer.convention.axes_of("X")


def _layer(
    graph: Graph, node: Node, name: str, opsets: Mapping[str, int], weight_dtype: str | None
) -> NodeLayer | UnboundNode:
    proto = copied(node.proto)
    proto.name = name
    row, opset = OPERATORS[node.op_type], opsets.get(node.domain, 1)
    sources = {key: source for key, source in zip(row.inputs, node.input, strict=False) if source}
    values = {source: graph.constants.value(source) for key, source in sources.items() if key != "X"}
    constants = {source: value for source, value in values.items() if value is not None}
    if all(sources[key] in constants for key in row.weights if key in sources):
        return from_node(proto, constants, opset, weight_dtype=None if row.scales else weight_dtype)
    return unbound_node(proto, constants, opset)
