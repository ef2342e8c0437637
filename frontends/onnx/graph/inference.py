"""onnx's shape inference, without the operators on which it ends the process."""

from __future__ import annotations

from itertools import chain
from typing import Any

from ..onnx_package import import_onnx
from .walk import all_nodes

_CRASHES = {"RegexFullMatch"}  # if the type of its input is unknown


def infer_shapes(model: Any, **options: bool) -> Any:
    """Return an onnx.ModelProto with the types that ``onnx.shape_inference.infer_shapes(model, **options)`` infers.

    Raises
    ------
    ValueError
        The model has an operator on which onnx may end the process.
    Exception
        As onnx raises, of several types.
    """
    nodes = chain(model.graph.node, *(function.node for function in model.functions))
    crashing = {node.op_type for node in all_nodes(nodes) if not node.domain} & _CRASHES
    if crashing:
        raise ValueError(f"onnx cannot infer types of {', '.join(sorted(crashing))}")
    return import_onnx().shape_inference.infer_shapes(model, **options)
