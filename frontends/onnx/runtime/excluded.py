"""Nodes that are kept from ONNX Runtime 1.31, though it has kernels for them: those that end the process, or differ.

Each was found by altered files (tests/fuzz) or by onnx's node tests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..onnx_package import import_onnx

Tensors = Mapping[str, Any]  # onnx.TensorProto by name
Condition = Callable[[Any, Tensors], bool]  # node, the constants that it sees


def _always(node: Any, tensors: Tensors) -> bool:
    return True


def _takes_rows_before_the_first(node: Any, tensors: Tensors) -> bool:
    return any(one.name == "batch_dims" and one.i < 0 for one in node.attribute)


def _has_unknown_weights(place: int) -> Condition:
    def is_unknown(node: Any, tensors: Tensors) -> bool:
        found = [tensors[name] for name in node.input[place : place + 1] if name in tensors]
        return not found or len(found[0].dims) < 3

    return is_unknown


def _has_output_shape(node: Any, tensors: Tensors) -> bool:
    return any(node.input[2:3])


def _aligns_fractions(node: Any, tensors: Tensors) -> bool:
    if not any(one.name == "coordinate_transformation_mode" and one.s == b"align_corners" for one in node.attribute):
        return False
    (scales,) = node.input[2:3] or ("",)
    if scales not in tensors:
        return bool(scales)
    values = import_onnx().numpy_helper.to_array(tensors[scales])
    return bool((values != values.round()).any())


_ENDS = "ONNX Runtime ends the process for some inputs of this operator"
_WEIGHTS = "ONNX Runtime ends the process where weights have no axes; these are not known"
# By operator: which of its nodes, and why.
EXCLUDED: dict[str, tuple[Condition, str]] = {
    "Attention": (_always, _ENDS),
    "DFT": (_always, _ENDS),
    "Unique": (_always, _ENDS),
    "TfIdfVectorizer": (_always, _ENDS),
    "Multinomial": (_always, "ONNX Runtime ends the process where its input has one axis"),
    "ReverseSequence": (_always, "ONNX Runtime ends the process where its input has one axis"),
    "GatherND": (_takes_rows_before_the_first, "ONNX Runtime ends the process where batch_dims is negative"),
    "ConvInteger": (_has_unknown_weights(1), _WEIGHTS),
    "QLinearConv": (_has_unknown_weights(3), _WEIGHTS),
    "MaxUnpool": (_has_output_shape, "with an output_shape, ONNX Runtime puts values elsewhere than the text"),
    "Resize": (
        _aligns_fractions,
        "with align_corners and scales that are no integers, ONNX Runtime takes other positions than the text",
    ),
}


def reason_against(node: Any, tensors: Tensors) -> str:
    """Why ONNX Runtime shall not run a node; empty where it may."""
    if node.domain:
        return ""
    if "" in node.input and _lacks_an_input(node):
        return "an input is left out that is not optional"  # then, of some operators, ONNX Runtime ends the process
    if node.op_type not in EXCLUDED:
        return ""
    is_excluded, why = EXCLUDED[node.op_type]
    return why if is_excluded(node, tensors) else ""


def _lacks_an_input(node: Any) -> bool:
    defs = import_onnx().defs
    if not defs.has(node.op_type):
        return False  # whoever runs it says so
    formal = defs.get_schema(node.op_type).inputs
    return any(
        not name and formal[min(place, len(formal) - 1)].option != defs.OpSchema.FormalParameterOption.Optional
        for place, name in enumerate(node.input)
        if formal
    )
