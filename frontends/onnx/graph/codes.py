"""Quantized weights that a runtime computes with directly, unless folding dequantizes them.

x (codes) -> DequantizeLinear -> MatMul, Conv, Add, ... -> QuantizeLinear        a product of codes
W (codes) -> DequantizeLinear ----^
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from .walk import Node

DTYPES = frozenset({"int8", "uint8", "int16", "uint16", "int32"})  # of codes; int32 for a bias
_FLOAT_RESULTS = {"Gemm", "MatMul"}  # runtimes also compute these from codes to floats
_CLIPS = {"Clip", "Relu"}  # quantizing clips too


def products_of_codes(nodes: Sequence[Node], outputs: Collection[str], constants: Collection[str]) -> set[int]:
    """Return the indices of constant DequantizeLinear nodes that only products of codes use.

    Parameters
    ----------
    nodes : sequence of Node
        Sorted.
    outputs, constants : collection of str
        Names in the graph; the constants are those that need no node.
    """
    users: dict[str, list[Node]] = {}
    fixed = set(constants)
    for node in nodes:
        names = node.needs
        for name in names:
            users.setdefault(name, []).append(node)
        if names <= fixed:
            fixed.update(node.output)
    dequantizing = [node for node in nodes if node.op_type == "DequantizeLinear" and node.output]
    floats = {node.output[0] for node in dequantizing if not fixed.issuperset(node.input[:1])}

    def is_quantized(name: str) -> bool:
        following = users.get(name, [])
        while len(following) == 1 and following[0].op_type in _CLIPS and following[0].output and name not in outputs:
            name = following[0].output[0]
            following = users.get(name, [])
        return name not in outputs and {node.op_type for node in following} == {"QuantizeLinear"}

    def is_product(node: Node) -> bool:
        if node.bodies or not (node.op_type == "Gather" or not floats.isdisjoint(node.input)):
            return False
        return node.op_type in _FLOAT_RESULTS or all(map(is_quantized, node.output))

    return {
        index
        for index, node in enumerate(nodes)
        if node.op_type == "DequantizeLinear"
        and fixed.issuperset(node.needs)
        and len(node.output) == 1
        and node.output[0] not in outputs
        and node.output[0] in users
        and all(map(is_product, users[node.output[0]]))
    }
