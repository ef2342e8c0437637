"""Writing of a whole ONNX model as a net: Parameters, layers of nodes, Results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyrnnx.errors import FormatError, PyrnnxError, UnsupportedError, shortened
from pyrnnx.layers.layer import Layer
from pyrnnx.operator.conventions import OPENVINO_SEQUENCE, Convention

from ...onnx.graph.walk import subgraphs
from ...onnx.model import Model
from ...onnx.onnx_package import import_onnx
from ...onnx.operators.layers import is_recurrent
from ...onnx.operators.schemas import OPERATORS
from ..ir.writer import NetWriter
from ..layer_writer import add_layer
from .context import NodeContext
from .net import Net
from .operations import WRITERS
from .source import Source, source_of
from .views import Sequential, View, plain

_OTHER_WAY = ". OpenVINO's own converter may convert the model: openvino.convert_model, or ovc in a shell"


def model_net(model: Model) -> NetWriter:
    """Build the net of an ONNX model; errors: `write_model`."""
    source = source_of(model)
    net = Net(source, NetWriter(source.graph.name or "model", source.layers), _write_nodes)
    for name in source.inputs:
        net.parameter(name)
    net.write_nodes()
    for info in source.graph.output:
        net.result(info.name)
    return net.ir


def _write_nodes(net: Net) -> None:
    for node in net.source.graph.node:
        context = NodeContext(node, net)
        views = _write(context, net.source)
        net.bind_outputs(context.label, node.output, [views] if isinstance(views, (View, Sequential)) else list(views))


def _write(context: NodeContext, source: Source) -> View | Sequential | Sequence[View | Sequential]:
    try:
        return _written(context, source)
    except UnsupportedError as error:
        if str(error).endswith(_OTHER_WAY):  # about a node of a body
            raise
        raise UnsupportedError(f"{error}{_OTHER_WAY}") from error
    except PyrnnxError:
        raise
    except Exception as error:  # ranks of inputs, or lengths of attributes, that the operator does not allow
        raise FormatError(f"{context.label}: the node is not valid ({shortened(str(error))})") from error


def _written(context: NodeContext, source: Source) -> View | Sequential | Sequence[View | Sequential]:
    node = context.node
    if is_recurrent(node) and node.name in source.layers:
        return _recurrent(context, source.layers[node.name])
    writer = None if node.domain else WRITERS.get(node.op_type)
    if writer is None:
        version = f"opset {source.opsets.get(node.domain, 1)}"
        raise UnsupportedError(f"{context.label}: the operator ({version}) cannot be written as IR")
    if not any(True for _ in subgraphs(node)):  # bodies read values that the checker does not know
        import_onnx().checker.check_node(node, _checker_context(source))
    views = writer(context)
    context.check_attributes()
    return views


def _checker_context(source: Source) -> Any:
    context = import_onnx().checker.C.CheckerContext()
    context.ir_version, context.opset_imports = import_onnx().IR_VERSION, {"": source.opset}
    return context


def _recurrent(ctx: NodeContext, layer: Layer | Any) -> Sequence[View]:
    """Write the operation of a layer; return its outputs in the node's order."""
    if not isinstance(layer, Layer):
        raise UnsupportedError(f"{layer.label}: its weights are computed at run time; expected constant weights")
    operator, convention = OPERATORS[ctx.node.op_type], layer.convention
    inputs = {}
    for position, key in enumerate(operator.inputs[: len(ctx.node.input)]):
        if ctx.has(position) and key not in layer.constants:
            view = ctx.view(position)
            order = _order(convention, OPENVINO_SEQUENCE, key)
            if view.rank != len(order):
                ctx.refuse(f"{key} of {view.rank} axes", f"{len(order)}")
            inputs[key] = ctx.in_order(view.transposed(order))
    outputs = add_layer(ctx.net.ir, layer, ctx.node.name, inputs)
    return [
        plain(value).transposed(_order(OPENVINO_SEQUENCE, convention, key))
        for key, value in ((key, outputs[key]) for key in operator.outputs)
    ]


def _order(source: Convention, target: Convention, argument: str) -> list[int]:
    """Return the permutation of an argument's axes from one convention to another."""
    axes = source.axes_of(argument)
    return [axes.index(axis) for axis in target.axes_of(argument)]
