"""Writing of a whole ONNX model as a net: Parameters, layers of nodes, Results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyrnnx.errors import FormatError, PyrnnxError, UnsupportedError, shortened

from ...onnx.graph.walk import subgraphs
from ...onnx.model import Model
from ...onnx.onnx_package import import_onnx
from ...onnx.operators.layers import is_recurrent
from ..ir.writer import NetWriter
from .context import NodeContext
from .net import Net
from .operations import WRITERS
from .operations.recurrent import write_recurrent
from .source import Source, source_of
from .views import Sequential, View

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
        return write_recurrent(context, source.layers[node.name])
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
