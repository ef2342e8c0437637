"""Simplification of a graph before it is written: known sizes become constants, and Ifs that are decided go.

    Shape(X [N, 4]) -> Gather 1 -> Equal 4 -> If        becomes        the nodes of the then_branch
    If size k of X is 1: Squeeze(X, k), else X          becomes        X, reshaped to its other sizes

Exporters write such nodes to ask for the rank or a size of a value. The second form has results of different ranks,
which IR has not. A run in which the size is not 1 is an error of Reshape; OpenVINO's CPU plugin does not check Squeeze.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyrnnx._internal.dtypes import AnyArray, named_dtype
from pyrnnx.errors import FormatError, shortened
from pyrnnx.operator.tensor_info import TensorInfo

from ..translation.onnx_frontend import (
    array_of,
    folded_graph,
    import_onnx,
    infer_shapes,
    local_names,
    subgraphs,
    tensor_info,
)
from .sizes import Sizes, attribute_of, squeezed_one

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto

_SMALL = 64  # elements of constants whose values shape inference needs: shapes, axes
_ALLOWZERO = 14  # first opset of this attribute of Reshape
_LARGEST = 1024  # elements of a constant that is computed here; the IR computes larger ones


class Simplified(NamedTuple):
    """A simplified graph.

    Attributes
    ----------
    graph : onnx.GraphProto
        Its nodes in topological order, and its outputs.
    types : dict
        Types and shapes of values, by name.
    tensors : dict
        Constants by name: an onnx.TensorProto or an array.
    """

    graph: GraphProto
    types: dict[str, TensorInfo]
    tensors: dict[str, Any]


def simplified(
    graph: GraphProto,
    opsets: Mapping[str, int],
    label: str,
    given: Mapping[str, TensorInfo],
    tensors: Mapping[str, Any],
) -> Simplified:
    """Simplify a graph until nothing changes.

    Parameters
    ----------
    graph : onnx.GraphProto
        Folded; its initializers are ignored.
    opsets : mapping
        Version by domain.
    label : str
        Name of the model in errors.
    given : mapping
        Types of inputs and captured values.
    tensors : mapping
        Constants, also captured ones.

    Raises
    ------
    FormatError
        Shape inference fails, because the model is faulty.
    """
    onnx = import_onnx()
    large = {name: tensor for name, tensor in tensors.items() if _size(tensor) > _SMALL}
    small = {name: array_of(tensor, label) for name, tensor in tensors.items() if name not in large}
    model = onnx.ModelProto(ir_version=onnx.IR_VERSION)
    model.opset_import.extend(onnx.helper.make_opsetid(*row) for row in opsets.items())
    model.graph.CopyFrom(graph)
    _set_inputs(model, [*map(_value_info, given.values()), *(_info_of(name, large[name]) for name in large)], small)
    while True:
        types = _inferred(model, label)
        if not _replace_known(model.graph, types, opsets.get("", 1), label):
            break
        model.graph.CopyFrom(folded_graph(model.graph, opsets, label, _LARGEST))
    constants = {**large, **{tensor.name: tensor for tensor in model.graph.initializer}}
    return Simplified(model.graph, types, constants)


def _size(tensor: Any) -> int:
    return tensor.size if isinstance(tensor, np.ndarray) else math.prod(tensor.dims)


def _set_inputs(model: ModelProto, infos: Iterable[ValueInfoProto], constants: Mapping[str, AnyArray]) -> None:
    from_array = import_onnx().numpy_helper.from_array
    graph = model.graph
    del graph.input[:]
    del graph.initializer[:]
    graph.input.extend(infos)
    graph.initializer.extend(from_array(array, name) for name, array in constants.items())


def _value_info(info: TensorInfo) -> ValueInfoProto:
    onnx = import_onnx()
    if info.dtype is None:
        result: ValueInfoProto = onnx.ValueInfoProto(name=info.name)
        return result
    element = onnx.TensorProto.STRING
    if info.dtype != "str":
        element = onnx.helper.np_dtype_to_tensor_dtype(named_dtype(info.dtype))
    result = onnx.helper.make_tensor_value_info(info.name, element, info.shape)
    return result


def _info_of(name: str, tensor: Any) -> ValueInfoProto:
    if isinstance(tensor, np.ndarray):
        return _value_info(TensorInfo(name, tensor.dtype.name if tensor.dtype.kind != "U" else "str", tensor.shape))
    result: ValueInfoProto = import_onnx().helper.make_tensor_value_info(name, tensor.data_type, tensor.dims)
    return result


def _inferred(model: ModelProto, label: str) -> dict[str, TensorInfo]:
    try:
        graph = infer_shapes(model, data_prop=True).graph
    except Exception as error:  # of several types
        raise FormatError(f"{label}: its shapes cannot be inferred ({shortened(str(error))})") from error
    return {info.name: tensor_info(label, info) for info in (*graph.value_info, *graph.output, *graph.input)}


def _replace_known(graph: GraphProto, types: dict[str, TensorInfo], opset: int, label: str) -> bool:
    """Replace nodes whose results are known, and Ifs whose conditions are; return whether there are any."""
    sizes = Sizes(types, {tensor.name: array_of(tensor, label) for tensor in graph.initializer})
    producers = {name: node for node in graph.node for name in node.output}
    nodes: list[NodeProto] = []
    from_array = import_onnx().numpy_helper.from_array
    changed = False
    for node in graph.node:
        value, info = sizes.add(node), sizes.result(node)
        if info is not None:
            graph.value_info.append(_value_info(info))
            changed = True
        condition = sizes.constants.get(node.input[0]) if node.op_type == "If" and not node.domain else None
        if value is not None:
            graph.initializer.append(from_array(value, node.output[0]))
            changed = True
        elif condition is not None and condition.size == 1:
            nodes += _branch(graph, nodes, node, bool(condition.reshape(())))
            changed = True
        else:
            squeezed = squeezed_one(node, producers, sizes.constants)
            instead = _reshaped(graph, node, squeezed, types, opset)
            nodes += instead or [node]
            changed = changed or bool(instead)
    if changed:
        copies = [type(node).FromString(node.SerializeToString()) for node in nodes]
        del graph.node[:]
        graph.node.extend(copies)
    return changed


def _branch(graph: GraphProto, before: Iterable[NodeProto], node: NodeProto, condition: bool) -> list[NodeProto]:
    """Return the nodes of the branch that runs, and Identities for the outputs of the If."""
    onnx = import_onnx()
    branch = onnx.GraphProto()
    branch.CopyFrom(attribute_of(node, "then_branch" if condition else "else_branch"))
    used = local_names(graph) | {name for earlier in before for name in earlier.output}
    names = {name: _unused(name, used) for name in local_names(branch)}
    _rename(branch, {old: new for old, new in names.items() if old != new})
    graph.initializer.extend(branch.initializer)
    ends = zip(branch.output, node.output, strict=True)
    identities = [onnx.helper.make_node("Identity", [end.name], [name]) for end, name in ends if name]
    return [*branch.node, *identities]


def _reshaped(
    graph: GraphProto, node: NodeProto, squeezed: tuple[str, int] | None, types: Mapping[str, TensorInfo], opset: int
) -> list[NodeProto]:
    """Return nodes that reshape a value to its sizes without one axis."""
    shape = None if squeezed is None or squeezed[0] not in types else types[squeezed[0]].shape
    if squeezed is None or shape is None:
        return []
    name, axis = squeezed
    onnx, used = import_onnx(), local_names(graph)
    sizes, places, target = (_unused(f"{node.output[0]}/{part}", used) for part in ("sizes", "places", "shape"))
    others = [k for k in range(len(shape)) if k != axis % len(shape)]
    graph.initializer.append(onnx.numpy_helper.from_array(np.array(others, np.int64), places))
    make, attributes = onnx.helper.make_node, {"allowzero": 1} if opset >= _ALLOWZERO else {}
    return [
        make("Shape", [name], [sizes]),
        make("Gather", [sizes, places], [target]),
        make("Reshape", [name, target], [node.output[0]], **attributes),
    ]


def _unused(name: str, used: set[str]) -> str:
    while name in used:
        name += "_"
    used.add(name)
    return name


def _rename(graph: GraphProto, names: Mapping[str, str]) -> None:
    """Rename values in a graph and its bodies, in place."""
    if not names:
        return
    for tensor in graph.initializer:
        tensor.name = names.get(tensor.name, tensor.name)
    for value in (*graph.output, *graph.value_info):
        value.name = names.get(value.name, value.name)
    for node in graph.node:
        for listed in (node.input, node.output):
            listed[:] = [names.get(name, name) for name in listed]
        for _, body in subgraphs(node):
            inside = local_names(body)
            _rename(body, {old: new for old, new in names.items() if old not in inside})
