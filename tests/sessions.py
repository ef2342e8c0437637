"""Sessions of ONNX Runtime with the custom operators, from a few nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from pyrnnx import Layer
from pyrnnx.layers import custom_operators
from pyrnnx.layers.custom_operators import Handle

onnxruntime = pytest.importorskip("onnxruntime", minversion="1.31.1")

Info = tuple[Any, ...]  # a name, its element type and, where it matters, its shape
FLOAT, INT32, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL
CPU = ["CPUExecutionProvider"]


def infos(pairs: Iterable[Info]) -> list[Any]:
    return [helper.make_tensor_value_info(*info, *([] if len(info) == 3 else [None])) for info in pairs]


def graph(
    nodes: Sequence[Any],
    inputs: Iterable[Info],
    outputs: Iterable[Info],
    initializers: Iterable[Any] = (),
    values: Iterable[Info] = (),
) -> Any:
    return helper.make_graph(
        list(nodes), "graph", infos(inputs), infos(outputs), list(initializers), value_info=infos(values)
    )


def model(*arguments: Any, opset: int = 21, **keywords: Any) -> onnx.ModelProto:
    """A model of the nodes, inputs, outputs and more of `graph`."""
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1), helper.make_opsetid("pyrnnx", 1)]
    return helper.make_model(graph(*arguments, **keywords), opset_imports=opsets, ir_version=10)


def session(proto: onnx.ModelProto | bytes, threads: int = 1, **entries: str) -> Any:
    """A session of ONNX Runtime that has the operators."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 4
    options.register_custom_ops_library(custom_operators.library_path())
    contents = proto if isinstance(proto, bytes) else proto.SerializeToString()
    return onnxruntime.InferenceSession(contents, options, providers=CPU)


def recurrent(handle: Handle, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> Any:
    return helper.make_node("Recurrent", inputs, outputs, domain="pyrnnx", handle=handle, **attributes)


def python(handle: Handle, inputs: Sequence[str], outputs: Sequence[str]) -> Any:
    return helper.make_node("Python", inputs, outputs, domain="pyrnnx", handle=handle)


def layer_session(layer: Layer, element_type: int = FLOAT, names: Sequence[str] = ("X",), **attributes: Any) -> Any:
    """A session of one layer that is given what `names` say."""
    handle = custom_operators.Handle(layer)
    wanted = [name if name in names else "" for name in custom_operators.CALL_INPUTS]
    types = {name: INT32 if name == "sequence_lens" else element_type for name in names}
    outputs = layer.output_names
    node = recurrent(handle, wanted, outputs, **attributes)
    threads = attributes.get("threads", 1)
    return session(model([node], types.items(), [(name, element_type) for name in outputs]), threads)


def feeds(session: Any, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arrays that a session takes."""
    return {one.name: arrays[one.name] for one in session.get_inputs()}
