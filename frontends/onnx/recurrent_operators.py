"""Pass that replaces recurrent nodes by custom operators, also in bodies, for ONNX Runtime sessions of users.

    (x, W, R, B, "", h) -> GRU -> Y      becomes      (x, "", h) -> pyrnnx.Recurrent (handle) -> Y

Only the sources of W, R, B and P are folded, and dropped if nothing else needs them. Nodes whose weights are computed
at run time stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableSequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyrnnx.errors import FormatError
from pyrnnx.layers import custom_operators
from pyrnnx.layers.custom_operators import DOMAIN, RECURRENT, Handle
from pyrnnx.layers.layer import Layer

from .graph.constants import named
from .graph.fold import FoldedGraph, fold
from .graph.walk import DEFAULT_DOMAINS, AnyNode, all_nodes, first_output, needed_names, node_label, subgraphs
from .layers import NodeLayer
from .nodes import is_recurrent
from .recognise import Recognised
from .recurrent_graph import recurrent_graph
from .runtime.evaluator import evaluate_node
from .schemas import OPERATORS

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto

FIRST_IR_WITH_DEFAULTS = 4  # in older files, an initializer that is also an input is a constant


@dataclass(frozen=True, eq=False)
class Replaced:
    """Result of `replace_recurrent`.

    Attributes
    ----------
    layers : mapping
        Layers of the replaced nodes, by their names in `Model.layers`.
    handles : tuple of Handle
        They must live until sessions are created; empty if the nodes are portable.
    """

    layers: Mapping[str, NodeLayer]
    handles: tuple[Handle, ...]


def has_recurrent(nodes: Iterable[NodeProto]) -> bool:
    """Return whether a recurrent node is among nodes or in their bodies."""
    return any(
        node.op_type in OPERATORS and node.domain in (*DEFAULT_DOMAINS, OPERATORS[node.op_type].domain)
        for node in all_nodes(nodes)
    )


def constant_inputs(graph: GraphProto) -> set[str]:
    """Return the names that may be constants of layers: `weight_sources`, and all inputs of recurrent nodes."""
    direct = {name for node in all_nodes(graph.node) if node.op_type in OPERATORS for name in node.input}
    return weight_sources(graph) | direct


def weight_sources(graph: GraphProto) -> set[str]:
    """Return the names that W, R, B, P and scales of recurrent nodes depend on, in the graph and its bodies."""
    producers: dict[str, list[NodeProto]] = {}
    left: list[str] = []
    for node in all_nodes(graph.node):
        for output in node.output:
            producers.setdefault(output, []).append(node)
        if is_recurrent(node):
            row = OPERATORS[node.op_type]
            left += [name for key, name in zip(row.inputs, node.input, strict=False) if key in row.weights]
    sources: set[str] = set()
    while left:
        name = left.pop()
        if name and name not in sources:
            sources.add(name)
            for node in producers.get(name, ()):
                left.extend(needed_names(node))
    return sources


def replace_recurrent(
    model: ModelProto, opsets: Mapping[str, int], label: str, *, portable: bool, threads: int | None = None
) -> Replaced:
    """Replace the recurrent nodes with constant W, R, B and P of a model, in place.

    Parameters
    ----------
    model : onnx.ModelProto
        Without functions that have recurrent nodes; its default domain is "".
    opsets : mapping
        Version by domain.
    label : str
        How errors name the model.
    portable : bool
        Whether the nodes have weights as inputs. Otherwise they have handles, for sessions of this process.
    threads : int, optional
        Threads of a session that a call of a node may use. Default: `pyrnnx.get_num_threads()` when the session is
        created.

    Raises
    ------
    PyrnnxError
        Attributes or weights that the operator rejects.
    """
    sources = weight_sources(model.graph)
    if not sources:
        return Replaced({}, ())
    defaults = model.ir_version < FIRST_IR_WITH_DEFAULTS
    folded = fold(model.graph, opsets, evaluate_node, label, defaults=defaults, wanted=sources)
    recurrent = recurrent_graph(Recognised(folded, {}))
    layers = {name: layer for name, layer in recurrent.layers(opsets).items() if isinstance(layer, NodeLayer)}
    handles, added = [], dict[tuple[int, int], str]()
    for name, layer in layers.items():
        graph, index = recurrent.places[name]
        node = graph.nodes[index].proto
        names = dict(zip(OPERATORS[node.op_type].inputs, node.input, strict=False))
        inputs = [names.get(key, "") for key in custom_operators.call_inputs()]
        if portable:
            attributes = custom_operators.portable_attributes(layer)
            inputs += _add_weights(graph, node, layer, added)
        else:
            handles.append(custom_operators.recurrent_handle(layer))
            attributes = {"handle": int(handles[-1])}
        if threads is not None:
            attributes["threads"] = threads
        custom_operators.rewrite_node(node, RECURRENT, attributes, inputs, node.output)
    _prune(model.graph, sources, defaults)
    if layers and DOMAIN not in opsets:
        model.opset_import.add(domain=DOMAIN, version=1)
    return Replaced(layers, tuple(handles))


def check_handles(nodes: Iterable[AnyNode], label: str) -> None:
    """Reject handles in nodes of a file, and in their bodies: they could run a layer or function of another model.

    Raises
    ------
    FormatError
    """
    for node in all_nodes(nodes):
        if node.domain == DOMAIN and any(attribute.name == "handle" for attribute in node.attribute):
            raise FormatError(
                f"{label}: {node_label(node)} has a handle, which is valid only in the process that wrote it; "
                "expected the original model, or one that pyrnnx.onnxruntime.rewrite wrote"
            )


def _add_weights(graph: FoldedGraph, node: NodeProto, layer: Layer, added: dict[tuple[int, int], str]) -> list[str]:
    """Add the weights of a layer as initializers of its graph; return the names of the node's inputs for them.

    `added` has the names of those that other layers of the graph added, by graph and array.
    """
    weights, names = custom_operators.portable_weights(layer), []
    for key in custom_operators.all_inputs()[len(custom_operators.call_inputs()) :]:
        place = id(graph.graph.proto), id(weights.get(key))
        if key in weights and place not in added:
            added[place] = f"pyrnnx/{first_output(node)}/{key}"
            graph.graph.proto.initializer.append(named(weights[key], added[place]))
        names.append(added[place] if key in weights else "")
    return names


def _graphs(graph: GraphProto) -> Iterator[GraphProto]:
    """Yield the bodies in a graph, the innermost first, then the graph."""
    for node in graph.node:
        for _, body in subgraphs(node):
            yield from _graphs(body)
    yield graph


def _prune(graph: GraphProto, sources: set[str], defaults: bool) -> None:
    """Drop nodes and initializers among `sources` that only weights needed."""
    for inner in _graphs(graph):
        needed = {value.name for value in inner.output}
        dead = set()
        for index in range(len(inner.node) - 1, -1, -1):
            node = inner.node[index]
            if needed.isdisjoint(node.output) and not sources.isdisjoint(node.output) and node.domain != DOMAIN:
                dead.add(index)
            else:
                needed |= needed_names(node)
        _drop(inner.initializer, sources - needed)
        if defaults and inner is graph:
            _drop(inner.input, sources - needed)
        for index in sorted(dead, reverse=True):
            del inner.node[index]


def _drop(values: MutableSequence[TensorProto] | MutableSequence[ValueInfoProto], names: set[str]) -> None:
    for index in reversed(range(len(values))):
        if values[index].name in names:
            del values[index]
