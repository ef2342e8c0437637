"""The types of a graph's values, as onnx infers them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..graph import signatures
from ..graph.walk import subgraphs
from ..onnx_package import import_onnx

Types = Mapping[str, Any]  # onnx.TypeProto by name
Tensors = Mapping[str, Any]  # constants by name: onnx.TensorProto or array


def inferred(model: Any, graph: Any, recurrent_type: Callable[[Any], int]) -> Any:
    """A copy of the graph, and of its bodies, with element types in `value_info`.

    It has no shapes and no constants: those that a file declares may be wrong, and onnx's inference of shapes ends the
    process for some.

    Parameters
    ----------
    model : onnx.ModelProto
        The one that the graph is of.
    graph : onnx.GraphProto
    recurrent_type : callable
        node -> element type of its results; 0 of other nodes.
    """
    onnx = import_onnx()
    skeleton = _without_weights(onnx, graph)
    _strip(skeleton, recurrent_type)
    opset = next((one.version for one in model.opset_import if not one.domain), 0)
    if signatures.element_types(skeleton, opset, {}) is not None:
        return skeleton
    bare = onnx.ModelProto(ir_version=model.ir_version, graph=skeleton, opset_import=model.opset_import)
    try:
        return onnx.shape_inference.infer_shapes(bare).graph
    except Exception:  # of several types; what is not inferred is seen when the graph runs
        return skeleton


def _without_weights(onnx: Any, graph: Any) -> Any:
    """The graph with its initializers as typed values, so that they are not copied."""
    result = onnx.GraphProto(
        name=graph.name, node=graph.node, input=graph.input, output=graph.output, value_info=graph.value_info
    )
    given = {one.name for one in graph.input}
    for one in graph.initializer:
        if one.name not in given:
            signatures.declare(result.input, one.name, one.data_type)
    return result


def _strip(graph: Any, recurrent_type: Callable[[Any], int]) -> None:
    """Leave element types alone, and add those of recurrent nodes, of which onnx knows only some."""
    for one in graph.initializer:
        signatures.declare(graph.value_info, one.name, one.data_type)
    graph.ClearField("initializer")
    for one in (*graph.input, *graph.output, *graph.value_info):
        if one.type.HasField("tensor_type"):
            one.type.tensor_type.ClearField("shape")
    known = {one.name for one in (*graph.value_info, *graph.output)}
    for node in graph.node:
        element = recurrent_type(node)
        for name in node.output if element else ():
            if name and name not in known:
                signatures.declare(graph.value_info, name, element)
        for _, body in subgraphs(node):
            _strip(body, recurrent_type)


def types_of(graph: Any, outer: Types) -> dict[str, Any]:
    """Types by name, of the values of an inferred graph and of those around it."""
    onnx, found = import_onnx(), dict(outer)
    for one in graph.initializer:
        found[one.name] = onnx.helper.make_tensor_type_proto(one.data_type, list(one.dims))
    for one in (*graph.input, *graph.value_info, *graph.output):
        if one.HasField("type") and one.type.WhichOneof("value") and element_types(one.type):
            found[one.name] = one.type
    return found


def element_types(declared: Any) -> set[int]:
    """The element types in a type; empty where one is not known."""
    kind = declared.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        element = getattr(declared, kind).elem_type
        return {element} if element else set()
    if kind in ("sequence_type", "optional_type"):
        return element_types(getattr(declared, kind).elem_type)
    return set()


def without_shape(declared: Any) -> Any:
    """The type, of any shape: files declare wrong ones."""
    result = type(declared)()
    result.CopyFrom(declared)
    if result.HasField("tensor_type"):
        result.tensor_type.ClearField("shape")
    return result


def type_of_value(value: Any) -> Any:
    """The type of an array or a list of arrays; None where there is none."""
    onnx = import_onnx()
    if isinstance(value, list):
        inner = type_of_value(value[0]) if value else None
        return None if inner is None else onnx.helper.make_sequence_type_proto(inner)
    if not isinstance(value, (np.ndarray, np.generic)):
        return None
    dtype = np.dtype(object) if value.dtype.kind == "U" else value.dtype
    try:
        return onnx.helper.make_tensor_type_proto(onnx.helper.np_dtype_to_tensor_dtype(dtype), None)
    except (KeyError, ValueError):
        return None
