"""Pass that inlines the functions of a model that contain recurrent nodes, or call functions that do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pyrnnx.errors import PyrnnxError, shortened

from ..graph.local_functions import check_functions
from ..graph.walk import DEFAULT_DOMAINS, all_nodes
from ..operators.schemas import OPERATORS

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto


def has_recurrent(nodes: Iterable[NodeProto]) -> bool:
    """Return whether a recurrent node is among nodes or in their bodies."""
    return any(
        node.op_type in OPERATORS and node.domain in (*DEFAULT_DOMAINS, OPERATORS[node.op_type].domain)
        for node in all_nodes(nodes)
    )


def inline_functions(model: ModelProto, label: str, *, every: bool = False) -> ModelProto:
    """Return the model without functions that contain recurrent nodes, or without any.

    It is the model itself if it has none, or if an attribute of a function has a default, which onnx would drop. onnx
    leaves functions of another opset than the graph.

    Raises
    ------
    PyrnnxError
        onnx cannot inline a function; functions are recursive, or too large when inlined.
    """
    if not any(every or has_recurrent(function.node) for function in model.functions):
        return model
    check_functions(model, label)
    if any(function.attribute_proto for function in model.functions):
        return model
    import onnx.inliner

    try:
        result: ModelProto = onnx.inliner.inline_local_functions(model)
    except Exception as error:
        raise PyrnnxError(f"{label}: its functions cannot be inlined ({shortened(str(error))})") from error
    return result
