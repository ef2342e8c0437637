"""Sizes of values, followed by onnx's shape inference through the nodes that compute with them.

Inference propagates integers in the newest opsets only, and returns no values. So these nodes are inferred in a model
of their own, of a new opset, in which a ConstantOfShape has each value as its shape.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.operator.tensor_info import TensorInfo

from ...onnx.graph.constants import named
from ...onnx.graph.inference import infer_shapes
from ...onnx.graph.value_info import tensor_info
from ...onnx.messages import copied
from ...onnx.onnx_package import import_onnx
from ..translation.graph import IR_VERSION, OPSET, element_type

if TYPE_CHECKING:
    from onnx import NodeProto

_ZERO = "sizes/zero"
# Operators through which sizes are followed, and their attributes in old opsets that are inputs now.
_FOLLOWED: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("Add", "Cast", "Concat", "Gather", "Identity", "Mul", "Reshape", "Shape", "Size", "Sub"), ()),
    **dict.fromkeys(("Squeeze", "Unsqueeze"), ("axes",)),
    "Slice": ("starts", "ends", "axes"),
}
_SHAPED = ("ConstantOfShape", "Expand", "Reshape")  # operators whose result has a shape that is their last input


def known_sizes(
    nodes: Iterable[NodeProto], types: Mapping[str, TensorInfo], arrays: Mapping[str, AnyArray]
) -> tuple[dict[str, AnyArray], list[TensorInfo]]:
    """Return known integers by name, and types of results whose shape follows from sizes.

    Parameters
    ----------
    nodes : iterable of onnx.NodeProto
    types : mapping
        Types of values.
    arrays : mapping
        Small constants.
    """
    onnx = import_onnx()
    graph = onnx.GraphProto(name="sizes", initializer=[named(np.array([0]), _ZERO)])
    followed: list[TensorInfo] = []
    counted: dict[str, AnyArray] = {}
    shaped: set[str] = set()
    for node in nodes:
        info = types.get(next(iter(node.output), ""))
        if node.domain or not node.input or info is None or info.dtype is None:
            continue
        is_integer = info.dtype in ("int32", "int64") and info.shape is not None and len(info.shape) < 2
        sizes = types.get(node.input[0], info).shape if node.op_type == "Size" else None
        fixed = [size for size in sizes or () if isinstance(size, int)]
        if sizes is not None and len(fixed) == len(sizes):
            counted[info.name] = np.array(math.prod(fixed), np.int64)
        elif is_integer and node.op_type in _FOLLOWED:
            graph.node.extend([_newest(node, types, graph.initializer), *_probe(info)])
            followed.append(info)
        elif node.op_type in _SHAPED and info.shape is None and len(node.input) == 1 + (node.op_type != _SHAPED[0]):
            graph.node.append(node)
            shaped.add(info.name)
    if not graph.node:
        return counted, []
    made = {name for node in graph.node for name in node.output}
    needed = dict.fromkeys(name for node in graph.node for name in node.input if name and name not in made)
    own = {tensor.name for tensor in graph.initializer}
    for name in needed.keys() - own:
        if name in arrays:
            graph.initializer.append(named(arrays[name], name))
        elif name in types and types[name].dtype is not None:
            row = types[name]
            graph.input.append(onnx.helper.make_tensor_value_info(name, element_type(str(row.dtype)), row.shape))
    opsets = [onnx.helper.make_opsetid("", OPSET)]
    inferred = infer_shapes(onnx.ModelProto(ir_version=IR_VERSION, graph=graph, opset_import=opsets), data_prop=True)
    results = {info.name: tensor_info("", info) for info in inferred.graph.value_info}
    values = {info.name: _value(info, results.get(f"{info.name}/shaped")) for info in followed}
    known = counted | {name: value for name, value in values.items() if value is not None}
    return known, [results[name] for name in shaped if name in results and results[name].shape is not None]


def _newest(node: NodeProto, types: Mapping[str, TensorInfo], tensors: Any) -> NodeProto:
    """Return a copy of a node in the form of new opsets."""
    onnx = import_onnx()
    node = copied(node)
    for attribute in [row for row in node.attribute if row.name in _FOLLOWED[node.op_type]]:
        node.input.append(f"{node.output[0]}/{attribute.name}")
        tensors.append(onnx.numpy_helper.from_array(np.array(attribute.ints), node.input[-1]))
        node.attribute.remove(attribute)
    if node.op_type in ("Identity", "Reshape"):  # through which inference does not propagate integers
        before, after = (len(types.get(name, TensorInfo(name)).shape or ()) for name in (node.input[0], node.output[0]))
        kind = {(0, 1): "Unsqueeze", (1, 0): "Squeeze"}.get((before, after))
        if kind is None:
            to = element_type(str(types[node.output[0]].dtype))
            node = onnx.helper.make_node("Cast", node.input[:1], node.output, to=to)
        else:
            node = onnx.helper.make_node(kind, [node.input[0], _ZERO], node.output)
    return node


def _probe(info: TensorInfo) -> Iterator[NodeProto]:
    """Yield nodes that make an array whose shape is a value."""
    make, source = import_onnx().helper.make_node, info.name
    yield make("Cast", [source], [f"{info.name}/cast"], to=import_onnx().TensorProto.INT64)
    source = f"{info.name}/cast"
    if info.shape == ():
        yield make("Unsqueeze", [source, _ZERO], [f"{info.name}/row"])
        source = f"{info.name}/row"
    yield make("ConstantOfShape", [source], [f"{info.name}/shaped"])


def _value(info: TensorInfo, probe: TensorInfo | None) -> AnyArray | None:
    sizes = None if probe is None else probe.shape
    if sizes is None or not all(isinstance(size, int) for size in sizes):
        return None
    return np.array(sizes, np.dtype(info.dtype)).reshape(info.shape if info.shape == () else -1)
