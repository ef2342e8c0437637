"""Faults of ONNX Runtime 1.31: operators that crash the process or return wrong values.

Fuzzing (tests/fuzz) or onnx's node tests revealed each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..graph.constants import array_of, shape_of
from ..graph.walk import node_label
from ..onnx_package import import_onnx
from .guards import is_guarded
from .types import Tensors

if TYPE_CHECKING:
    from onnx import NodeProto

Condition = Callable[["NodeProto", Tensors], bool]  # node, visible constants


def _always(node: NodeProto, tensors: Tensors) -> bool:
    return True


def _has_wrong_batch_dims(node: NodeProto, tensors: Tensors) -> bool:
    return any(attribute.name == "batch_dims" and not 0 <= attribute.i < 2**31 for attribute in node.attribute)


def _has_unknown_weights(place: int) -> Condition:
    def is_unknown(node: NodeProto, tensors: Tensors) -> bool:
        weights = [tensors[name] for name in node.input[place : place + 1] if name in tensors]
        return not weights or len(shape_of(weights[0])) < 3

    return is_unknown


def _has_output_shape(node: NodeProto, tensors: Tensors) -> bool:
    return any(node.input[2:3])


def _aligns_fractions(node: NodeProto, tensors: Tensors) -> bool:
    if not any(
        attribute.name == "coordinate_transformation_mode" and attribute.s == b"align_corners"
        for attribute in node.attribute
    ):
        return False
    (scales,) = node.input[2:3] or ("",)
    if scales not in tensors:
        return bool(scales)
    values = array_of(tensors[scales], node_label(node))
    return bool((values != values.round()).any())


def _has_unknown_frames(node: NodeProto, tensors: Tensors) -> bool:
    step, window, length = [*node.input[1:4], "", "", ""][:3]
    if any(name and name not in tensors for name in (step, window, length)):
        return True
    counts = [array_of(tensors[name], node_label(node)) for name in (step, length) if name]
    if any(count.size != 1 or count.min() < 1 for count in counts):
        return True
    shape = shape_of(tensors[window]) if window else (1,)
    return len(shape) != 1 or 0 in shape


def _has_no_group(node: NodeProto, tensors: Tensors) -> bool:
    return any(attribute.name == "group" and attribute.i < 1 for attribute in node.attribute)


def _has_other_axes(node: NodeProto, tensors: Tensors) -> bool:
    axes = [attribute.i for attribute in node.attribute if attribute.name in ("batch_axis", "time_axis")]
    return any(axis not in (0, 1) for axis in axes)


def _has_no_spread(node: NodeProto, tensors: Tensors) -> bool:
    values = {"low": 0.0, "high": 1.0, "scale": 1.0} | {attribute.name: attribute.f for attribute in node.attribute}
    return not (values["low"] <= values["high"] and values["scale"] > 0)  # so that NaN is excluded


def _is_unguarded(node: NodeProto, tensors: Tensors) -> bool:
    return not is_guarded(node)


_CRASHES = "ONNX Runtime crashes the process on some inputs of this operator"
_WEIGHTS = "ONNX Runtime crashes the process if the weights have no axes; their rank is unknown"
_SPREAD = "ONNX Runtime crashes the process if scale is not above 0, or low is above high"
# Operator, condition on its nodes, reason.
EXCLUDED: tuple[tuple[str, Condition, str], ...] = (
    ("Attention", _always, _CRASHES),
    ("DFT", _always, _CRASHES),
    ("Unique", _always, _CRASHES),
    ("TfIdfVectorizer", _always, _CRASHES),
    ("GatherND", _has_wrong_batch_dims, "ONNX Runtime crashes the process if batch_dims is negative or huge"),
    (
        "STFT",
        _has_unknown_frames,
        "ONNX Runtime crashes the process on some frames: frame_step, window and frame_length must be constants, "
        "positive, and the window a vector",
    ),
    (
        "ReverseSequence",
        _has_other_axes,
        "ONNX Runtime reverses along other axes than the evaluator: batch_axis and time_axis must be 0 or 1",
    ),
    *(
        (operator, _has_no_spread, _SPREAD)
        for operator in ("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
    ),
    ("ConvTranspose", _has_no_group, "ONNX Runtime crashes the process if group is below 1"),
    ("ConvInteger", _has_unknown_weights(1), _WEIGHTS),
    ("QLinearConv", _has_unknown_weights(3), _WEIGHTS),
    (
        "Scan",
        _is_unguarded,
        "ONNX Runtime needs opset 9 and declared ranks of the body's results; this Scan lacks them",
    ),
    ("MaxUnpool", _has_output_shape, "with an output_shape, ONNX Runtime puts values elsewhere than ONNX defines"),
    (
        "Resize",
        _aligns_fractions,
        "with align_corners and fractional scales, ONNX Runtime samples other positions than ONNX defines",
    ),
)


def reason_against(node: NodeProto, tensors: Tensors) -> str:
    """Return why ONNX Runtime must not run a node; empty if it may."""
    if node.domain:
        return ""
    # ONNX Runtime crashes the process on some operators without a required input or output.
    if "" in node.input and _leaves_out(node, "inputs", node.input):
        return "a required input is left out"
    if "" in node.output and _leaves_out(node, "outputs", node.output):
        return "a required output is left out"
    if any(
        attribute.name == "num_scan_inputs" and not 0 < attribute.i <= len(node.input) for attribute in node.attribute
    ):
        return "num_scan_inputs is out of range"  # ONNX Runtime would take long to reject it
    rows = (row for row in EXCLUDED if row[0] == node.op_type)
    return next((why for _, is_excluded, why in rows if is_excluded(node, tensors)), "")


def _leaves_out(node: NodeProto, kind: str, names: Sequence[str]) -> bool:
    """Return whether a required input or output has an empty name."""
    defs = import_onnx().defs
    if not defs.has(node.op_type):
        return False  # its runner raises
    formal = getattr(defs.get_schema(node.op_type), kind)
    return any(
        not name and formal[min(place, len(formal) - 1)].option != defs.OpSchema.FormalParameterOption.Optional
        for place, name in enumerate(names)
        if formal
    )
