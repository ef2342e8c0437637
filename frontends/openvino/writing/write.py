"""A whole ONNX model as a net: Parameters, the layers of its nodes in order, Results."""

from __future__ import annotations

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
    """The net of an ONNX model.

    Raises
    ------
    PyrnnxError
        As of `write_model`.
    """
    source = source_of(model)
    net = Net(source)
    for one in source.graph.input:
        if one.name not in source.tensors:
            net.parameter(one.name)
    for node in source.graph.node:
        context = NodeContext(node, net)
        found = _written(context, source)
        net.bind_outputs(context.label, node.output, [found] if isinstance(found, View) else list(found))
    for one in source.graph.output:
        net.result(one.name)
    return net.ir


def _written(context: NodeContext, source: Source) -> Any:
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
        found = writer(context)
    except PyrnnxError:
        raise
    except Exception as error:  # inputs of other ranks, or attributes of other lengths, than the operator has
        raise FormatError(f"{context.label}: the node is not sound ({shortened(str(error))})") from error
    context.check_attributes()
    return found


def _checker_context(source: Source) -> Any:
    context = import_onnx().checker.C.CheckerContext()
    context.ir_version, context.opset_imports = import_onnx().IR_VERSION, {"": source.opset}
    return context
