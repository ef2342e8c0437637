"""Simplification of a graph before it is written: known sizes become constants, and Ifs that are decided go.

    Shape(X [N, 4]) -> Gather 1 -> Equal 4 -> If        becomes        the nodes of the then_branch
    If size k of X is 1: Squeeze(X, k), else X          becomes        X, reshaped to its other sizes

Exporters write such nodes to ask for the rank or a size of a value. The second form has results of different ranks,
which IR has not. A run in which the size is not 1 is an error of Reshape; OpenVINO's CPU plugin does not check Squeeze.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx._internal.dtypes import named_dtype
from pyrnnx.errors import FormatError, shortened
from pyrnnx.operator.tensor_info import TensorInfo

from ...onnx.graph.constants import named
from ...onnx.graph.inference import infer_shapes
from ...onnx.graph.value_info import tensor_info
from ...onnx.graph.walk import local_names, subgraphs
from ...onnx.onnx_package import import_onnx
from ..translation.graph import drop_unused
from .constants import Constants
from .sizes import Sizes, attribute_of, squeezed_one

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto

_SMALL = 64  # elements of constants whose values shape inference needs: shapes, axes
_ALLOWZERO = 14  # first opset of this attribute of Reshape


def simplified(
    graph: GraphProto,
    opsets: Mapping[str, int],
    label: str,
    given: Mapping[str, TensorInfo],
    tensors: Mapping[str, Any],
) -> tuple[GraphProto, dict[str, TensorInfo], dict[str, Any]]:
    """Simplify a graph until nothing changes; return it with the types of its values, and its constants, by name.

    Parameters
    ----------
    graph : onnx.GraphProto
        Its initializers are ignored at the top level: `tensors` has them.
    opsets : mapping
        Version by domain.
    label : str
        Name of the model in errors.
    given : mapping
        Types of inputs and captured values.
    tensors : mapping
        Constants, also captured ones.
    """
    onnx = import_onnx()
    constants = Constants(opsets, label, tensors)
    model = onnx.ModelProto(ir_version=onnx.IR_VERSION)
    model.opset_import.extend(onnx.helper.make_opsetid(*row) for row in opsets.items())
    model.graph.CopyFrom(graph)
    del model.graph.initializer[:]
    _move_constants(model.graph)
    constants.tensors |= {tensor.name: tensor for tensor in model.graph.initializer}
    while True:
        _set_inputs(model.graph, given.values(), constants)
        types = _inferred(model, label)
        is_folded = constants.fold(model.graph, types)
        if not _replace_known(model.graph, types, constants, opsets.get("", 1)) and not is_folded:
            break
        constants.keep(drop_unused(model.graph))
    return model.graph, types, constants.tensors


def _move_constants(graph: GraphProto) -> None:
    """Make the results of Constant nodes initializers, also in bodies."""
    for index in reversed(range(len(graph.node))):
        node = graph.node[index]
        if node.op_type == "Constant" and not node.domain and node.attribute and node.attribute[0].name == "value":
            graph.initializer.append(named(node.attribute[0].t, node.output[0]))
            del graph.node[index]
            continue
        for _, body in subgraphs(node):
            _move_constants(body)


def _set_inputs(graph: GraphProto, given: Iterable[TensorInfo], constants: Constants) -> None:
    """Declare inputs and constants; large constants are inputs, as shape inference needs no values of them."""
    del graph.input[:]
    del graph.initializer[:]
    graph.input.extend(map(_value_info, given))
    for name, tensor in constants.tensors.items():
        if constants.size(name) > _SMALL:
            graph.input.append(_info_of(name, tensor))
        else:
            graph.initializer.append(named(tensor, name))


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


def _replace_known(graph: GraphProto, types: dict[str, TensorInfo], tensors: Constants, opset: int) -> bool:
    """Replace nodes whose results are known, and Ifs whose conditions are; return whether there are any."""
    small = (name for name in tensors.tensors if tensors.size(name) <= _SMALL)
    sizes = Sizes(types, {name: tensors.value(name) for name in small})
    producers = {name: node for node in graph.node for name in node.output}
    nodes: list[NodeProto] = []
    changed = False
    for node in graph.node:
        value, info = sizes.add(node), sizes.result(node)
        if info is not None:
            graph.value_info.append(_value_info(info))
            changed = True
        condition = sizes.constants.get(node.input[0]) if node.op_type == "If" and not node.domain else None
        if value is not None:
            tensors.tensors[node.output[0]] = value
            changed = True
        elif condition is not None and condition.size == 1:
            nodes += _branch(graph, nodes, node, tensors, bool(condition.reshape(())))
            changed = True
        else:
            squeezed = squeezed_one(node, producers, sizes.constants)
            instead = _reshaped(graph, node, squeezed, types, tensors, opset)
            nodes += instead or [node]
            changed = changed or bool(instead)
    if changed:
        copies = [type(node).FromString(node.SerializeToString()) for node in nodes]
        del graph.node[:]
        graph.node.extend(copies)
    return changed


def _branch(
    graph: GraphProto, before: Iterable[NodeProto], node: NodeProto, tensors: Constants, condition: bool
) -> list[NodeProto]:
    """Return the nodes of the branch that runs, and Identities for the outputs of the If."""
    onnx = import_onnx()
    branch = onnx.GraphProto()
    branch.CopyFrom(attribute_of(node, "then_branch" if condition else "else_branch"))
    used = local_names(graph) | {name for earlier in before for name in earlier.output}
    names = {name: _unused(name, used) for name in local_names(branch)}
    _rename(branch, {old: new for old, new in names.items() if old != new})
    tensors.tensors.update((tensor.name, tensor) for tensor in branch.initializer)
    ends = zip(branch.output, node.output, strict=True)
    identities = [onnx.helper.make_node("Identity", [end.name], [name]) for end, name in ends if name]
    return [*branch.node, *identities]


def _reshaped(
    graph: GraphProto,
    node: NodeProto,
    squeezed: tuple[str, int] | None,
    types: Mapping[str, TensorInfo],
    tensors: Constants,
    opset: int,
) -> list[NodeProto]:
    """Return nodes that reshape a value to its sizes without one axis."""
    shape = None if squeezed is None or squeezed[0] not in types else types[squeezed[0]].shape
    if squeezed is None or shape is None:
        return []
    name, axis = squeezed
    onnx, used = import_onnx(), local_names(graph)
    sizes, places, target = (_unused(f"{node.output[0]}/{part}", used) for part in ("sizes", "places", "shape"))
    others = [k for k in range(len(shape)) if k != axis % len(shape)]
    tensors.tensors[places] = np.array(others, np.int64)
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
