"""Pass that turns recurrent nodes into operators of pyrnnx, also in bodies.

    (x, W, R, B, "", h) -> GRU -> Y      becomes      (x, "", h) -> pyrnnx.Recurrent (handle) -> Y

A node whose weights are computed at run time becomes a call of a
Python function, which builds a layer in each call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import UnsupportedError
from pyrnnx.layers import custom_operators
from pyrnnx.layers.custom_operators import DOMAIN, PYTHON, RECURRENT, Handle
from pyrnnx.layers.layer import Layer
from pyrnnx.operator.conventions import CALL_ARGUMENTS, OUTPUTS

from ..graph.constants import named
from ..graph.walk import first_output, node_label, protos
from ..messages import copied
from ..operators.layers import UnboundNode, check_count, from_node, is_recurrent
from ..operators.schemas import OPERATORS
from .carried import Carried, StreamLayer
from .recurrent import AnyLayer, RecurrentModel

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto


@dataclass(eq=False)
class Rewritten:
    """A model whose recurrent nodes are operators of pyrnnx.

    `arrays` are values of initializers that it lacks. The handles must live until sessions of the model are created.
    `rows` are labels of the replaced nodes, and what is unusual about them, for the plan.
    """

    proto: ModelProto
    arrays: Mapping[str, AnyArray]
    handles: list[Handle] = field(default_factory=list)
    rows: list[tuple[str, str]] = field(default_factory=list)


def replace_recurrent(
    model: RecurrentModel,
    *,
    carried: Mapping[str, Carried],
    portable: bool = False,
    computed: bool = True,
    threads: int | None = None,
) -> Rewritten:
    """Return a copy of a model whose recurrent nodes are operators of pyrnnx, also in bodies; it still has the weights.

    `carried` are layers whose states are inputs and outputs of the model. If `portable`, the nodes have weights as
    inputs, else handles, for sessions of this process. If `computed`, nodes with computed weights become functions of
    Python, which cannot be portable. Calls of a node use as many `threads` of a session; None stands for
    `pyrnnx.get_num_threads()` when it is created.
    """
    result = Rewritten(copied(model.proto), model.arrays)
    names = {site.place: name for name, site in model.sites.items()}
    added: dict[tuple[int, int], str] = {}
    for place, graph, node in protos(model.graph, result.proto.graph) if names else ():
        if place not in names:
            continue
        node.name = name = names[place]
        site, edit = model.sites[name], carried.get(name)
        if edit is not None:
            if isinstance(site.layer, UnboundNode):
                raise UnsupportedError(
                    f"{site.layer.label}: stream: its weights are inputs with a default, and the call passed such "
                    "inputs; expected none of them, or the layer left out of `layers`"
                )
            edit.apply(node)
        layer = site.layer if edit is None else edit.layer
        arguments = dict(zip(site.arguments, node.input, strict=False))
        outputs = dict(zip(site.results, node.output, strict=False))
        if portable and isinstance(layer, Layer):
            inputs = [arguments.get(key, "") for key in custom_operators.CALL_INPUTS]
            inputs += _add_weights(graph, node, layer, added)
            attributes: dict[str, Any] = dict(custom_operators.portable_attributes(layer))
            _rewrite(node, attributes, inputs, layer, outputs, threads)
            result.rows.append((node_label(node), ""))
        elif computed or not isinstance(site.layer, UnboundNode):
            _replace(model, result, graph, node, layer, arguments, outputs, threads)
    if result.rows and DOMAIN not in model.opsets:
        result.proto.opset_import.add(domain=DOMAIN, version=1)
    return result


def _replace(
    model: RecurrentModel,
    result: Rewritten,
    graph: GraphProto,
    node: NodeProto,
    layer: AnyLayer,
    arguments: Mapping[str, str],
    outputs: Mapping[str, str],
    threads: int | None,
) -> None:
    label = node_label(node)
    inputs = [arguments.get(argument, "") for argument in CALL_ARGUMENTS]
    attributes: dict[str, Any] = {}
    is_checked = isinstance(layer, StreamLayer) and bool(layer.starts and inputs[1])  # by Python
    if isinstance(layer, StreamLayer) and not is_checked:
        attributes |= {"keeps_states": 1, "optional_states": int(bool(layer.starts))}
        layer = layer.layer
    if isinstance(layer, Layer):
        result.handles.append(custom_operators.Handle(layer))
        attributes["handle"] = int(result.handles[-1])
        _rewrite(node, attributes, inputs, layer, outputs, threads)
        result.rows.append((label, ""))
        return
    present = [name for name in outputs.values() if name]
    element = _element(model, layer, arguments.get("X", ""))
    if not element:
        return  # ONNX Runtime runs it
    keys = CALL_ARGUMENTS if is_checked else tuple(arguments)
    given = [key for key in keys if arguments.get(key)]
    order = OUTPUTS if is_checked else tuple(outputs)
    places = [order.index(key) for key, name in outputs.items() if name]
    function = _function(model, layer, copied(node), given, places)
    result.rows.append((label, "" if is_checked else "its weights are computed; each call builds a layer"))
    # The session cannot infer types behind a custom operator.
    own = {value.name: value for value in graph.output}
    for name in present:
        value = own[name] if name in own else graph.value_info.add(name=name)
        value.type.tensor_type.elem_type = element
    result.handles.append(custom_operators.Handle(function))
    custom_operators.rewrite_node(
        node, PYTHON, {"handle": int(result.handles[-1])}, [arguments[key] for key in given], present
    )


def _rewrite(
    node: NodeProto,
    attributes: dict[str, Any],
    inputs: Sequence[str],
    layer: Layer,
    outputs: Mapping[str, str],
    threads: int | None,
) -> None:
    if threads is not None:
        attributes["threads"] = threads
    results = [outputs.get(name, "") for name in OUTPUTS[: 3 if layer.op.has_cell_state else 2]]
    custom_operators.rewrite_node(node, RECURRENT, attributes, inputs, results)


def _element(model: RecurrentModel, layer: AnyLayer, X: str) -> int:
    """Return the element type of a layer's results; 0 if it is not known."""
    dtype = getattr(layer, "dtype", None)
    if dtype is not None:
        return custom_operators.ELEMENT_TYPES[str(dtype)]
    return model.elements.get(X, 0)


Function = Callable[..., Sequence[Any]]


def _function(
    model: RecurrentModel, layer: AnyLayer, node: NodeProto, arguments: Sequence[str], places: Sequence[int]
) -> Function:
    """Return a function of present arguments that returns the results at these places."""
    if isinstance(layer, StreamLayer) or not is_recurrent(node):
        names = CALL_ARGUMENTS if isinstance(layer, StreamLayer) else layer.arguments[: len(node.input)]
        call = layer.run if isinstance(layer, StreamLayer) else layer

        def compute(values: Mapping[str, Any]) -> Sequence[Any]:
            return call(*map(values.get, names))

    else:
        row, opset = OPERATORS[node.op_type], model.opsets.get(node.domain, 1)
        check_count(node_label(node), "input", node.input, row.inputs)
        sources = dict(zip(row.inputs, node.input, strict=False))

        def compute(values: Mapping[str, Any]) -> Sequence[Any]:
            weights = {sources[key]: values[key] for key in row.weights if key in values}
            return from_node(node, weights, opset).run(*map(values.get, CALL_ARGUMENTS))

    def run(*arrays: Any) -> Sequence[Any]:
        results = compute(dict(zip(arguments, arrays, strict=True)))
        return [results[place] for place in places]

    return run


def _add_weights(graph: GraphProto, node: NodeProto, layer: Layer, added: dict[tuple[int, int], str]) -> list[str]:
    """Add the weights of a layer as initializers of its graph; return the names of the node's inputs for them.

    `added` has the names of those that other layers of the graph added, by graph and array.
    """
    weights, names = custom_operators.portable_weights(layer), []
    for key in custom_operators.CONSTANT_INPUTS:
        place = id(graph), id(weights.get(key))
        if key in weights and place not in added:
            added[place] = f"pyrnnx/{first_output(node)}/{key}"
            graph.initializer.append(named(weights[key], added[place]))
        names.append(added[place] if key in weights else "")
    return names
