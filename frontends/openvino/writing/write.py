"""Writing of a whole ONNX model as a net: Parameters, layers of nodes, Results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyrnnx.errors import FormatError, PyrnnxError, UnsupportedError, shortened

from ..ir.writer import NetWriter
from ..translation.onnx_frontend import Model, import_onnx
from .context import NodeContext
from .net import Net
from .operations import WRITERS
from .operations.recurrent import write_recurrent
from .source import Source, source_of
from .views import View


def model_net(model: Model) -> NetWriter:
    """Build the net of an ONNX model; errors: `write_model`."""
    source = source_of(model)
    net = Net(source)
    for info in source.graph.input:
        if info.name not in source.tensors:
            net.parameter(info.name)
    for node in source.graph.node:
        context = NodeContext(node, net)
        views = _write(context, source)
        net.bind_outputs(context.label, node.output, [views] if isinstance(views, View) else list(views))
    for info in source.graph.output:
        net.result(info.name)
    return net.ir


def _write(context: NodeContext, source: Source) -> View | Sequence[View]:
    node = context.node
    if node.name in source.layers:
        return write_recurrent(context, source.layers[node.name])
    writer = None if node.domain else WRITERS.get(node.op_type)
    if writer is None:
        raise UnsupportedError(
            f"{context.label}: the operator (opset {source.opset}) cannot be written as IR; expected RNN, GRU, LSTM, "
            f"{', '.join(sorted(WRITERS))}"
        )
    try:
        import_onnx().checker.check_node(node, _checker_context(source))
        views = writer(context)
    except PyrnnxError:
        raise
    except Exception as error:  # ranks of inputs, or lengths of attributes, that the operator does not allow
        raise FormatError(f"{context.label}: the node is not valid ({shortened(str(error))})") from error
    context.check_attributes()
    return views


def _checker_context(source: Source) -> Any:
    context = import_onnx().checker.C.CheckerContext()
    context.ir_version, context.opset_imports = import_onnx().IR_VERSION, {"": source.opset}
    return context
