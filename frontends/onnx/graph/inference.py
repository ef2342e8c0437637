"""onnx's shape inference, without the models on which it ends the process."""

from __future__ import annotations

from itertools import chain
from typing import Any

from ..onnx_package import import_onnx
from .walk import all_nodes

# Inference of these reads the type of the first input, even if there is none.
_CRASHES = {"RegexFullMatch", "EyeLike", "LabelEncoder", "DictVectorizer", "TreeEnsemble"}


def infer_shapes(model: Any, **options: bool) -> Any:
    """Return an onnx.ModelProto with the types that ``onnx.shape_inference.infer_shapes(model, **options)`` infers.

    Raises
    ------
    ValueError
        The model has an operator on which onnx may end the process: the type of an input is not declared.
    Exception
        As onnx raises, of several types.
    """
    graph = model.graph
    declared = {value.name for value in chain(graph.input, graph.value_info) if value.type.tensor_type.elem_type}
    crashing = {
        node.op_type
        for nodes, known in ((graph.node, declared), *((function.node, ()) for function in model.functions))
        for node in all_nodes(nodes)
        if node.op_type in _CRASHES and not (node.input and all(name in known for name in node.input))
    }
    if crashing:
        raise ValueError(f"onnx cannot infer types of {', '.join(sorted(crashing))}")
    return import_onnx().shape_inference.infer_shapes(model, **options)
