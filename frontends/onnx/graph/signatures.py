"""Signatures of common operators: onnx builds the schemas of all operators at once, 7 MB in 10 ms.

Models with other operators use those schemas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ..onnx_package import import_onnx
from ..schemas import SCHEMAS
from .walk import Node, subgraphs

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto


class Result(Enum):
    """Source of a result's element type: an input, a fixed type, or the node's bodies and attributes."""

    FIRST, SECOND, BOOL, UINT8, INT32, INT64, NODE = range(7)


@dataclass(frozen=True)
class Signature:
    """Signature of an operator from an opset on.

    Attributes
    ----------
    first_opset : int
    required : int
        Number of required inputs; they come first.
    result : Result
        Source of the first output's element type.
    """

    first_opset: int
    required: int
    result: Result


# Operators by result, first opset and number of required inputs.
_ROWS: Mapping[Result, Mapping[tuple[int, int], str]] = {
    Result.FIRST: {
        (1, 1): """Abs AveragePool Ceil DepthToSpace Elu Exp Flatten Floor GlobalAveragePool GlobalMaxPool HardSigmoid
            Identity LeakyRelu Log LogSoftmax MaxPool Neg Reciprocal ReduceL1 ReduceL2 ReduceLogSumExp ReduceMax
            ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu Selu Sigmoid Softmax Softplus Softsign
            SpaceToDepth Split Sqrt Squeeze Tanh TopK Transpose Unsqueeze""",
        (1, 3): "InstanceNormalization",
        (1, 2): "Conv ConvTranspose Gather MatMul PRelu",
        (4, 0): "Concat",
        (5, 2): "Reshape",
        (6, 1): "Clip",
        (6, 2): "Tile",
        (7, 1): "Atan Cos Dropout Sin Tan",
        (7, 2): "Add Div Mul Pow Sub",
        (8, 0): "Max Min Sum",
        (8, 2): "Expand",
        (9, 1): "Erf Sign",
        (9, 5): "BatchNormalization",
        (10, 2): "Mod TopK",
        (10, 3): "Slice",
        (11, 1): "Round",
        (11, 2): "CumSum GatherElements GatherND Gemm Pad",
        (11, 3): "Range ScatterElements ScatterND",
        (12, 0): "Einsum",
        (13, 2): "Unsqueeze",
        (14, 1): "HardSwish Trilu",
        (17, 2): "LayerNormalization",
    },
    Result.SECOND: {(9, 3): "Where"},
    Result.BOOL: {(1, 1): "Not", (7, 2): "And Equal Greater Less Or Xor", (12, 2): "GreaterOrEqual LessOrEqual"},
    Result.UINT8: {(11, 1): "DynamicQuantizeLinear"},
    Result.INT32: {(10, 2): "ConvInteger MatMulInteger"},
    Result.INT64: {(1, 1): "ArgMax ArgMin Shape Size", (9, 1): "NonZero"},
    Result.NODE: {(1, 0): "Constant", (1, 1): "If", (6, 1): "Cast", (9, 1): "ConstantOfShape"},
}


def _signatures() -> dict[str, list[Signature]]:
    signatures: dict[str, list[Signature]] = {}
    for result, rows in _ROWS.items():
        for (first_opset, required), names in sorted(rows.items(), reverse=True):
            for name in names.split():
                signatures.setdefault(name, []).append(Signature(first_opset, required, result))
    return signatures


# By operator, newest first.
SIGNATURES: Mapping[str, Sequence[Signature]] = MappingProxyType(_signatures())


def signature_of(node: NodeProto | Node, opset: int) -> Signature | None:
    """Return the signature of a node in an opset of the default domain; None if it is not in the table."""
    rows = () if node.domain else SIGNATURES.get(node.op_type, ())
    return next((row for row in rows if row.first_opset <= opset), None)


def element_types(graph: GraphProto, opset: int, known: Mapping[str, int]) -> dict[str, int] | None:
    """Return the known element types of tensors by name; None if an operator is not in the table.

    The graph and its bodies get them as `value_info`, in place.

    Parameters
    ----------
    graph : onnx.GraphProto
        Sorted.
    opset : int
        Opset of the default domain.
    known : mapping
        Element types of the graphs around it.
    """
    types = dict(known)
    for value in (*graph.input, *graph.value_info, *graph.output):
        if value.type.tensor_type.elem_type:
            types[value.name] = value.type.tensor_type.elem_type
    for node in graph.node:
        if node.domain:
            continue
        bodies = [element_types(body, opset, types) for _, body in subgraphs(node)]
        known_bodies = [body for body in bodies if body is not None]
        results = _results(node, opset, types, known_bodies) if len(known_bodies) == len(bodies) else None
        if results is None:
            return None
        for name, element in zip(node.output, results, strict=False):
            if name and element and name not in types:
                types[name] = element
                declare(graph.value_info, name, element)
    return types


def declare(infos: Any, name: str, element: int) -> None:
    """Add a tensor of that element type and any shape to a repeated onnx.ValueInfoProto."""
    infos.add(name=name).type.tensor_type.elem_type = element


def _results(
    node: NodeProto, opset: int, known: Mapping[str, int], bodies: Sequence[Mapping[str, int]]
) -> list[int] | None:
    """Return the element types of a node's results, 0 if unknown; None if it is not in the table."""
    signature, types = signature_of(node, opset), import_onnx().TensorProto
    first, second, *_ = [*(known.get(name, 0) for name in node.input[:2]), 0, 0]
    if node.op_type in SCHEMAS or node.op_type == "Split":
        return [first] * len(node.output)
    if signature is not None and signature.result is Result.NODE:
        return _of_bodies_or_attributes(node, bodies)
    if signature is None or any(node.output[1:]):
        return None
    inherited = {Result.FIRST: first, Result.SECOND: second}
    if signature.result in inherited:
        return [inherited[signature.result]]
    return [types.DataType.Value(signature.result.name)]


def _of_bodies_or_attributes(node: NodeProto, bodies: Sequence[Mapping[str, int]]) -> list[int] | None:
    """Return the element types of a node's results from its bodies or attributes."""
    if node.op_type == "If":
        outputs = [[value.name for value in body.output] for _, body in subgraphs(node)]
        types_of_bodies = [[body.get(name, 0) for name in names] for body, names in zip(bodies, outputs, strict=True)]
        return [column[0] if len(set(column)) == 1 else 0 for column in zip(*types_of_bodies, strict=False)]
    attributes, types = {attribute.name: attribute for attribute in node.attribute}, import_onnx().TensorProto
    if attributes.keys() == {"value"}:
        return [attributes["value"].t.data_type]
    if node.op_type == "Cast" and "to" in attributes and attributes["to"].i in types.DataType.values():
        return [attributes["to"].i]
    return [types.FLOAT] if node.op_type == "ConstantOfShape" and not attributes else None
