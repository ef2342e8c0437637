"""Constants of a graph to write, and those that ONNX Runtime computes from them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.operator.tensor_info import TensorInfo

from ...onnx.graph.constants import array_of, named, shape_of
from ...onnx.graph.walk import subgraphs
from ...onnx.onnx_package import import_onnx
from ...onnx.operators.nodes import is_recurrent
from ...onnx.session import RANDOM, NotRunnable, constant_values
from ..translation.graph import IR_VERSION

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto

_LARGEST = 1024  # elements of a constant that is computed though it is larger than its sources


class Constants:
    """Constants of a graph by name.

    Attributes
    ----------
    tensors : dict
        Each is an onnx.TensorProto or an array.
    """

    def __init__(self, opsets: Mapping[str, int], label: str, tensors: Mapping[str, Any]) -> None:
        self.tensors = dict(tensors)
        self._opsets, self._label = opsets, label
        self._refused: set[str] = set()  # first outputs of nodes that ONNX Runtime does not compute

    def size(self, name: str) -> int:
        """Return the number of elements."""
        return math.prod(shape_of(self.tensors[name]))

    def value(self, name: str) -> AnyArray:
        """Return the array of a constant."""
        return array_of(self.tensors[name], self._label)

    def keep(self, names: set[str]) -> None:
        """Drop all other constants."""
        for name in self.tensors.keys() - names:
            del self.tensors[name]

    def fold(self, graph: GraphProto, types: Mapping[str, TensorInfo]) -> bool:
        """Compute nodes whose inputs are constants, and remove them from the graph; return whether there are any."""
        known, nodes = set(self.tensors), []
        for node in graph.node:
            if self._is_constant(node, known, types):
                known.update(node.output)
                nodes.append(node)
        if nodes and not self._compute(nodes):  # one of them is refused
            for node in nodes:
                if known.issuperset(filter(None, node.input)) and not self._compute([node]):
                    self._refused.update(node.output)
        computed = [
            index for index, node in enumerate(graph.node) if self.tensors.keys() >= {*filter(None, node.output)}
        ]
        for index in reversed(computed):
            del graph.node[index]
        return bool(computed)

    def _is_constant(self, node: NodeProto, known: set[str], types: Mapping[str, TensorInfo]) -> bool:
        if node.domain or node.op_type in RANDOM or is_recurrent(node) or any(True for _ in subgraphs(node)):
            return False
        if not self._refused.isdisjoint(node.output) or not known.issuperset(filter(None, node.input)):
            return False
        largest = max([_LARGEST, *(self.size(name) for name in node.input if name in self.tensors)])
        sizes = (_size(types.get(name)) for name in node.output if name)
        return all(size is not None and size <= largest for size in sizes)

    def _compute(self, nodes: Sequence[NodeProto]) -> bool:
        onnx = import_onnx()
        names = [name for node in nodes for name in node.output if name]
        graph = onnx.GraphProto(name="constants", node=nodes)
        needed = {name for node in nodes for name in node.input if name in self.tensors}
        graph.initializer.extend(named(self.tensors[name], name) for name in needed)
        graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
        opsets = [onnx.helper.make_opsetid(*row) for row in self._opsets.items()]
        model = onnx.ModelProto(ir_version=IR_VERSION, graph=graph, opset_import=opsets)
        try:
            arrays = constant_values(model, names)
        except NotRunnable:
            return False
        self.tensors |= dict(zip(names, arrays, strict=True))
        return True


def _size(info: TensorInfo | None) -> int | None:
    """Return the number of elements; None if it is unknown, or the value is no tensor."""
    if info is None or info.dtype is None or info.shape is None:
        return None
    sizes = [size for size in info.shape if isinstance(size, int)]
    return math.prod(sizes) if len(sizes) == len(info.shape) else None
