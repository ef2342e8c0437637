"""Nodes that are kept from ONNX Runtime 1.31, though it has kernels for them: those that end the process, or differ.

Each was found by altered files (tests/fuzz) or by onnx's node tests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..graph.constants import array_of, shape_of
from ..graph.walk import node_label
from ..onnx_package import import_onnx
from .types import Tensors

Condition = Callable[[Any, Tensors], bool]  # node, the constants that it sees


def _always(node: Any, tensors: Tensors) -> bool:
    return True


def _takes_rows_before_the_first(node: Any, tensors: Tensors) -> bool:
    return any(one.name == "batch_dims" and one.i < 0 for one in node.attribute)


def _has_unknown_weights(place: int) -> Condition:
    def is_unknown(node: Any, tensors: Tensors) -> bool:
        found = [tensors[name] for name in node.input[place : place + 1] if name in tensors]
        return not found or len(shape_of(found[0])) < 3

    return is_unknown


def _has_output_shape(node: Any, tensors: Tensors) -> bool:
    return any(node.input[2:3])


def _aligns_fractions(node: Any, tensors: Tensors) -> bool:
    if not any(one.name == "coordinate_transformation_mode" and one.s == b"align_corners" for one in node.attribute):
        return False
    (scales,) = node.input[2:3] or ("",)
    if scales not in tensors:
        return bool(scales)
    values = array_of(tensors[scales], node_label(node))
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


# Of one that scans along, or stacks along, an axis that is neither the first nor the last, for it transposes then.
SCANS = "ONNX Runtime ends the process where what it scans, or what it makes, is empty"


def scans_inner_axes(node: Any) -> bool:
    """Whether a node is a Scan that runs step by step, only its body by ONNX Runtime; why is in `SCANS`."""
    if node.op_type != "Scan" or node.domain:
        return False
    axes = [one.ints for one in node.attribute if one.name in ("scan_input_axes", "scan_output_axes")]
    return any(axis not in (0, -1) for one in axes for axis in one)


def reason_against(node: Any, tensors: Tensors) -> str:
    """Why ONNX Runtime shall not run a node; empty where it may."""
    if node.domain:
        return ""
    # Of some operators ONNX Runtime ends the process then.
    if "" in node.input and _leaves_out(node, "inputs", node.input):
        return "an input is left out that is not optional"
    if "" in node.output and _leaves_out(node, "outputs", node.output):
        return "an output is left out that is not optional"
    if any(one.name == "num_scan_inputs" and not 0 < one.i <= len(node.input) for one in node.attribute):
        return "num_scan_inputs is beyond its inputs"  # which ONNX Runtime takes its time to find out
    if node.op_type not in EXCLUDED:
        return ""
    is_excluded, why = EXCLUDED[node.op_type]
    return why if is_excluded(node, tensors) else ""


def _leaves_out(node: Any, kind: str, names: Sequence[str]) -> bool:
    """Whether one of the names is empty, of inputs or outputs that the operator always has."""
    defs = import_onnx().defs
    if not defs.has(node.op_type):
        return False  # whoever runs it says so
    formal = getattr(defs.get_schema(node.op_type), kind)
    return any(
        not name and formal[min(place, len(formal) - 1)].option != defs.OpSchema.FormalParameterOption.Optional
        for place, name in enumerate(names)
        if formal
    )
