"""A graph for calls whose constants and sizes are known, and whose batch has many rows.

Three changes, each of which leaves the results equal except for the order of sums:

    constants    an input that has the same value in every call is an initializer
    choices      an If whose condition is constant is the nodes of its branch
    products     a convolution with few positions is one matrix product over all rows:
                 X[N, C, L] -> windows [N, P, K * C] -> MatMul -> [N, P, O] -> [N, O, P]

Runtimes convolve row by row, and read the weights again for each row. With P positions of a row, a product of P columns
is limited by that; the product over all rows reads them once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyrnnx._internal.dtypes import AnyArray

from ..messages import copied
from ..onnx_package import import_onnx
from .fold import Evaluate, FoldedGraph, fold
from .rebuild import rebuild
from .walk import subgraphs

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto

_DOMAINS = ("", "ai.onnx")
_POSITIONS = 32  # of a convolution at most: with more, a product for each row is large enough
_OPSET = 13  # Squeeze, Pad and the others take their axes and sizes as inputs


def specialized(
    source: ModelProto,
    label: str,
    opsets: Mapping[str, int],
    evaluate: Evaluate,
    constants: Mapping[str, AnyArray],
    sizes: Mapping[str, Sequence[int | None]],
) -> ModelProto:
    """Return a copy of a model for calls with these constants and sizes.

    Parameters
    ----------
    source : onnx.ModelProto
        Model without functions.
    label : str
        How errors name the model.
    opsets : mapping
        Version by domain.
    evaluate : callable
        Function that computes a node: see `fold`.
    constants : mapping
        Values of inputs, of the declared dtypes.
    sizes : mapping
        Sizes of inputs, None for an open one.
    """
    proto = copied(source)
    _bind(proto.graph, constants, sizes)
    is_new = True
    while is_new:
        folded = fold(proto.graph, opsets, evaluate, label)
        graph = rebuild(folded)
        is_new = _inline_choices(graph, folded)
        proto.graph.CopyFrom(graph)
    if opsets.get("", 1) >= _OPSET:
        _write_products(proto, folded)
    return proto


def _bind(graph: GraphProto, constants: Mapping[str, AnyArray], sizes: Mapping[str, Sequence[int | None]]) -> None:
    onnx = import_onnx()
    inputs = [info for info in graph.input if info.name not in constants]
    for info in inputs:
        if info.name in sizes:
            shape = info.type.tensor_type.shape
            given = sizes[info.name]
            while len(shape.dim) < len(given):
                shape.dim.add()
            for dimension, size in zip(shape.dim, given, strict=True):
                if size is not None:
                    dimension.dim_value = size
    tensors = [tensor for tensor in graph.initializer if tensor.name not in constants]
    tensors += [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    for field, values in ((graph.input, inputs), (graph.initializer, tensors)):
        kept = list(map(copied, values))
        del field[:]
        field.extend(kept)


def _inline_choices(graph: GraphProto, folded: FoldedGraph) -> bool:
    """Replace each If whose condition is constant by its branch, unless names collide; return whether there was one."""
    nodes: list[NodeProto] = []
    for node in graph.node:
        branch = _branch(node, folded)
        if branch is None or branch.sparse_initializer:
            nodes.append(node)
            continue
        others = (name for other in graph.node if other is not node for name in _defined_by(other))
        if not set(_defined_in(branch)).isdisjoint([*others, *_own_names(graph), *node.output]):
            nodes.append(node)
            continue
        graph.initializer.extend(branch.initializer)
        nodes += branch.node
        for value, name in zip(branch.output, node.output, strict=True):
            if name:
                nodes.append(import_onnx().helper.make_node("Identity", [value.name], [name]))
    if len(nodes) == len(graph.node) and all(a is b for a, b in zip(nodes, graph.node, strict=True)):
        return False
    _replace_nodes(graph, nodes)
    return True


def _replace_nodes(graph: GraphProto, nodes: Sequence[NodeProto]) -> None:
    kept = list(map(copied, nodes))
    del graph.node[:]
    graph.node.extend(kept)


def _branch(node: NodeProto, folded: FoldedGraph) -> GraphProto | None:
    if node.op_type != "If" or node.domain not in _DOMAINS:
        return None
    condition = folded.constants.value(node.input[0])
    if condition is None:
        return None
    wanted = "then_branch" if condition.any() else "else_branch"
    return next((body for name, body in subgraphs(node) if name == wanted), None)


def _own_names(graph: GraphProto) -> Iterator[str]:
    yield from (info.name for info in graph.input)
    yield from (tensor.name for tensor in graph.initializer)


def _defined_in(graph: GraphProto) -> Iterator[str]:
    """Yield the names that a graph and its bodies define."""
    yield from _own_names(graph)
    for node in graph.node:
        yield from _defined_by(node)


def _defined_by(node: NodeProto) -> Iterator[str]:
    yield from filter(None, node.output)
    for _, body in subgraphs(node):
        yield from _defined_in(body)


class _Convolution(NamedTuple):
    """Convolution along one axis, with constant weights [O, C, K], of rows with `length` elements."""

    node: NodeProto
    weights: AnyArray
    bias: AnyArray | None
    length: int
    pads: tuple[int, int]
    stride: int
    dilation: int

    @property
    def positions(self) -> int:
        window = self.dilation * (int(self.weights.shape[2]) - 1) + 1
        return (self.length + self.pads[0] + self.pads[1] - window) // self.stride + 1

    def nodes(self, taken: set[str]) -> tuple[list[NodeProto], dict[str, AnyArray]]:
        """Return the nodes that replace it, and their constants."""
        make = import_onnx().helper.make_node
        outputs, channels, size = self.weights.shape
        constants: dict[str, AnyArray] = {}
        nodes: list[NodeProto] = []
        stem = self.node.output[0]

        def name(kind: str) -> str:
            result, number = f"{stem}/{kind}", 1
            while result in taken:
                result, number = f"{stem}/{kind}#{number}", number + 1
            taken.add(result)
            return result

        def constant(kind: str, value: Any) -> str:
            result = name(kind)
            constants[result] = np.ascontiguousarray(value)
            return result

        def apply(operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
            result = output or name(operator)
            nodes.append(make(operator, list(inputs), [result], name(f"node {operator}"), **attributes))
            return result

        value = self.node.input[0]
        if any(self.pads):
            pads = constant("pads", [0, 0, self.pads[0], 0, 0, self.pads[1]])
            value = apply("Pad", value, pads)
        value = apply("Transpose", value, perm=[0, 2, 1])
        first = np.arange(self.positions)[:, np.newaxis]
        if self.dilation == 1 and self.stride > 1 and size % self.stride == 0:  # windows of whole blocks
            blocks = self.positions - 1 + size // self.stride
            ends = constant("start", [0]), constant("end", [blocks * self.stride]), constant("axis", [1])
            value = apply("Slice", value, *ends)
            value = apply("Reshape", value, constant("blocks", [-1, blocks, self.stride * channels]))
            places = first + np.arange(size // self.stride)
        else:
            places = self.stride * first + self.dilation * np.arange(size)
        value = apply("Gather", value, constant("places", places), axis=1)
        value = apply("Reshape", value, constant("shape", [-1, self.positions, size * channels]))
        matrix = self.weights.transpose(2, 1, 0).reshape(size * channels, outputs)
        value = apply("MatMul", value, constant("matrix", matrix))
        if self.bias is not None:
            value = apply("Add", value, constant("bias", self.bias))
        apply("Transpose", value, output=stem, perm=[0, 2, 1])
        return nodes, constants


def _write_products(proto: ModelProto, folded: FoldedGraph) -> None:
    """Replace convolutions with few positions of known number by matrix products."""
    onnx = import_onnx()
    graph = proto.graph
    if not any(node.op_type == "Conv" for node in graph.node):
        return
    lengths = _lengths(proto)
    taken = {*_defined_in(graph), *(node.name for node in graph.node)}
    nodes: list[NodeProto] = []
    for node in graph.node:
        convolution = _convolution(node, folded, lengths)
        if convolution is None:
            nodes.append(node)
            continue
        added, constants = convolution.nodes(taken)
        nodes += added
        graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in constants.items())
    _replace_nodes(graph, nodes)


def _lengths(proto: ModelProto) -> dict[str, int]:
    """Return the last size of values [N, C, L], as far as it can be inferred."""
    onnx = import_onnx()
    try:
        graph = onnx.shape_inference.infer_shapes(proto, data_prop=True).graph
    except Exception:  # over 2 GiB, or operators of other domains
        return {}
    lengths = {}
    for info in (*graph.input, *graph.value_info):
        dims = info.type.tensor_type.shape.dim
        if len(dims) == 3 and dims[2].HasField("dim_value"):
            lengths[info.name] = dims[2].dim_value
    return lengths


def _convolution(node: NodeProto, folded: FoldedGraph, lengths: Mapping[str, int]) -> _Convolution | None:
    """Return a convolution that is worth a matrix product; None for any other node."""
    if node.op_type != "Conv" or node.domain not in _DOMAINS or node.input[0] not in lengths:
        return None
    attributes = {entry.name: import_onnx().helper.get_attribute_value(entry) for entry in node.attribute}
    weights = folded.constants.value(node.input[1])
    bias = folded.constants.value(node.input[2]) if len(node.input) > 2 and node.input[2] else None
    has_bias = len(node.input) > 2 and bool(node.input[2])
    if weights is None or weights.ndim != 3 or weights.dtype != np.float32 or has_bias != (bias is not None):
        return None
    if attributes.get("group", 1) != 1 or attributes.get("auto_pad", b"NOTSET") not in (b"NOTSET", b"VALID"):
        return None
    before, after = (0, 0) if attributes.get("auto_pad") == b"VALID" else attributes.get("pads", (0, 0))
    (stride,), (dilation,) = attributes.get("strides", (1,)), attributes.get("dilations", (1,))
    convolution = _Convolution(node, weights, bias, lengths[node.input[0]], (before, after), stride, dilation)
    return convolution if 0 < convolution.positions <= _POSITIONS else None
