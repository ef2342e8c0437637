"""onnx's shape inference, without the models on which it ends the process."""

from __future__ import annotations

from typing import Any

from ..onnx_package import import_onnx
from .walk import DEFAULT_DOMAINS, all_nodes

# Inference of these reads the type of the first input, even if there is none.
_CRASHES = {"RegexFullMatch", "EyeLike", "LabelEncoder", "DictVectorizer", "TreeEnsemble"}
_STANDARD = (*DEFAULT_DOMAINS, "ai.onnx.ml")


def infer_shapes(model: Any, **options: bool) -> Any:
    """Return an onnx.ModelProto with the types that ``onnx.shape_inference.infer_shapes(model, **options)`` infers.

    Raises
    ------
    ValueError
        The model has an operator on which onnx may end the process, and the types of its inputs may stay unknown.
    Exception
        As onnx raises, of several types.
    """
    crashing = {node.op_type for function in model.functions for node in all_nodes(function.node)} & _CRASHES
    crashing |= _untyped(model.graph)
    if crashing:
        raise ValueError(f"onnx cannot infer types of {', '.join(sorted(crashing))}")
    return import_onnx().shape_inference.infer_shapes(model, **options)


def _untyped(graph: Any) -> set[str]:
    """Return the operators of _CRASHES whose inputs may have no type: not each follows from declared ones."""
    nodes = list(all_nodes(graph.node))
    if not any(node.op_type in _CRASHES for node in nodes):
        return set()
    typed = {value.name for value in (*graph.input, *graph.value_info) if value.type.tensor_type.elem_type}
    typed |= {tensor.name for tensor in graph.initializer}
    found = set()
    for node in nodes:
        if node.input and all(name in typed for name in node.input):
            if node.domain in _STANDARD:
                typed.update(node.output)
        elif node.op_type in _CRASHES:
            found.add(node.op_type)
        elif not node.input and node.op_type == "Constant":
            typed.update(node.output)
    return found
