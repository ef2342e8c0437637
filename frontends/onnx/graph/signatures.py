"""What the commonest operators need and give: onnx makes the schemas of all operators at once, 7 MB in 10 ms.

A model of other operators, too, is for those schemas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ..onnx_package import import_onnx
from ..schemas import SCHEMAS
from .walk import subgraphs

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto


class Result(Enum):
    """What the element type of a result is: that of an input, always the same, or told by the node."""

    FIRST, SECOND, BOOL, INT64, NODE = range(5)


@dataclass(frozen=True)
class Signature:
    """An operator, in the opsets from one on.

    Attributes
    ----------
    first_opset : int
    required : int
        Inputs that it needs: its first ones.
    result : Result
        Of its first output.
    """

    first_opset: int
    required: int
    result: Result


# The operators of a result, by their first opset and by how many inputs they need.
_ROWS: Mapping[Result, Mapping[tuple[int, int], str]] = {
    Result.FIRST: {
        (1, 1): """Abs AveragePool Ceil Elu Exp Flatten Floor GlobalAveragePool GlobalMaxPool HardSigmoid Identity
            LeakyRelu Log LogSoftmax MaxPool Neg Reciprocal ReduceMax ReduceMean ReduceMin ReduceSum Relu Selu Sigmoid
            Softmax Softplus Softsign Split Sqrt Squeeze Tanh Transpose Unsqueeze""",
        (1, 3): "InstanceNormalization",
        (1, 2): "Conv ConvTranspose Gather MatMul PRelu",
        (4, 0): "Concat",
        (5, 2): "Reshape",
        (6, 1): "Clip",
        (6, 2): "Tile",
        (7, 1): "Cos Dropout Sin",
        (7, 2): "Add Div Mul Pow Sub",
        (8, 0): "Max Min Sum",
        (8, 2): "Expand",
        (9, 1): "Erf Sign",
        (9, 5): "BatchNormalization",
        (10, 3): "Slice",
        (11, 2): "Gemm Pad",
        (11, 3): "Range",
        (13, 2): "Unsqueeze",
        (14, 1): "HardSwish",
        (17, 2): "LayerNormalization",
    },
    Result.SECOND: {(9, 3): "Where"},
    Result.BOOL: {(1, 1): "Not", (7, 2): "And Equal Greater Less Or", (12, 2): "GreaterOrEqual LessOrEqual"},
    Result.INT64: {(1, 1): "ArgMax ArgMin Shape Size", (9, 1): "NonZero"},
    Result.NODE: {(1, 0): "Constant", (1, 1): "If", (6, 1): "Cast", (9, 1): "ConstantOfShape"},
}


def _signatures() -> dict[str, list[Signature]]:
    found: dict[str, list[Signature]] = {}
    for result, rows in _ROWS.items():
        for (first_opset, required), names in sorted(rows.items(), reverse=True):
            for name in names.split():
                found.setdefault(name, []).append(Signature(first_opset, required, result))
    return found


# By operator, the newest first.
SIGNATURES: Mapping[str, Sequence[Signature]] = MappingProxyType(_signatures())


def signature_of(node: NodeProto, opset: int) -> Signature | None:
    """None of an operator that is not among these in that opset of the default domain."""
    found = () if node.domain else SIGNATURES.get(node.op_type, ())
    return next((one for one in found if one.first_opset <= opset), None)


def element_types(graph: GraphProto, opset: int, known: Mapping[str, int]) -> dict[str, int] | None:
    """The element types of values that are tensors, by name, as far as they can be told.

    Bodies get them as `value_info`. None if an operator is not among these: onnx's inference is for it.

    Parameters
    ----------
    graph : onnx.GraphProto
        Sorted.
    opset : int
        Of the default domain.
    known : mapping
        Those of the graphs around it.
    """
    found = dict(known)
    for one in (*graph.input, *graph.value_info, *graph.output):
        if one.type.tensor_type.elem_type:
            found[one.name] = one.type.tensor_type.elem_type
    for node in graph.node:
        if node.domain:
            continue
        bodies = [element_types(body, opset, found) for _, body in subgraphs(node)]
        results = None if None in bodies else _results(node, opset, found, bodies)
        if results is None:
            return None
        for name, element in zip(node.output, results, strict=False):
            if name and element and name not in found:
                found[name] = element
                declare(graph.value_info, name, element)
    return found


def declare(infos: Any, name: str, element: int) -> None:
    """Add a tensor of that element type, and of any shape, to some onnx.ValueInfoProto."""
    infos.add(name=name).type.tensor_type.elem_type = element


def _results(node: NodeProto, opset: int, known: Mapping[str, int], bodies: Sequence[Any]) -> list[int] | None:
    """The element types of a node's results; 0 where they are not known."""
    signature, types = signature_of(node, opset), import_onnx().TensorProto
    first, second, *_ = [*(known.get(name, 0) for name in node.input[:2]), 0, 0]
    if node.op_type in SCHEMAS or node.op_type == "Split":
        return [first] * len(node.output)
    if signature is not None and signature.result is Result.NODE:
        return _told(node, bodies)
    if signature is None or any(node.output[1:]):
        return None
    always = {Result.FIRST: first, Result.SECOND: second, Result.BOOL: types.BOOL, Result.INT64: types.INT64}
    return [always[signature.result]]


def _told(node: NodeProto, bodies: Sequence[Mapping[str, int]]) -> list[int] | None:
    """Those of a node whose bodies or attributes tell them."""
    if node.op_type == "If":
        outputs = [[one.name for one in body.output] for _, body in subgraphs(node)]
        found = [[body.get(name, 0) for name in names] for body, names in zip(bodies, outputs, strict=True)]
        return [column[0] if len(set(column)) == 1 else 0 for column in zip(*found, strict=False)]
    attributes, types = {one.name: one for one in node.attribute}, import_onnx().TensorProto
    if attributes.keys() == {"value"}:
        return [attributes["value"].t.data_type]
    if node.op_type == "Cast" and "to" in attributes and attributes["to"].i in types.DataType.values():
        return [attributes["to"].i]
    return [types.FLOAT] if node.op_type == "ConstantOfShape" and not attributes else None
