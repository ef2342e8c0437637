"""Weights in 8 bits that a runtime can compute with as they are, if nobody dequantizes them ahead.

x (codes) -> DequantizeLinear -> MatMul, Conv, Add, ... -> QuantizeLinear        one product of codes
W (codes) -> DequantizeLinear ----^
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from .walk import needed_names, subgraphs

if TYPE_CHECKING:
    from onnx import NodeProto

DTYPES = frozenset({"int8", "uint8", "int16", "uint16", "int32"})  # of codes; int32 of a bias
_FLOAT_RESULTS = {"Gemm", "MatMul"}  # which runtimes compute from codes to floats, too
_CLIPS = {"Clip", "Relu"}  # which quantizing does anyhow


def products_of_codes(nodes: Sequence[NodeProto], outputs: Collection[str], constants: Collection[str]) -> set[int]:
    """The places of DequantizeLinear nodes of constants that are used in products of codes alone.

    Parameters
    ----------
    nodes : sequence of onnx.NodeProto
        Sorted.
    outputs, constants : collection of str
        Of the graph; the constants are those that need no node.
    """
    if not any(node.op_type == "DequantizeLinear" for node in nodes):
        return set()
    users: dict[str, list[NodeProto]] = {}
    fixed = set(constants)
    for node in nodes:
        names = needed_names(node)
        for name in names:
            users.setdefault(name, []).append(node)
        if names <= fixed:
            fixed.update(node.output)
    floats = {node.output[0] for node in nodes if node.op_type == "DequantizeLinear" and node.input[0] not in fixed}

    def is_quantized(name: str) -> bool:
        following = users.get(name, [])
        while len(following) == 1 and following[0].op_type in _CLIPS and following[0].output and name not in outputs:
            name = following[0].output[0]
            following = users.get(name, [])
        return name not in outputs and {node.op_type for node in following} == {"QuantizeLinear"}

    def is_product(node: NodeProto) -> bool:
        if any(subgraphs(node)) or not (node.op_type == "Gather" or not floats.isdisjoint(node.input)):
            return False
        return node.op_type in _FLOAT_RESULTS or all(map(is_quantized, node.output))

    return {
        index
        for index, node in enumerate(nodes)
        if node.op_type == "DequantizeLinear"
        and fixed.issuperset(needed_names(node))
        and len(node.output) == 1
        and node.output[0] not in outputs
        and node.output[0] in users
        and all(map(is_product, users[node.output[0]]))
    }
