"""Simplification of a graph before it is written: known values become constants, and Ifs that are decided go.

    Shape(X [N, 4]) -> Gather 1 -> Equal 4 -> If        becomes        the nodes of the then_branch
    If size k of X is 1: Squeeze(X, k), else X          becomes        X, reshaped to its other sizes

Exporters write such nodes to ask for the rank or a size of a value. The second form has results of different ranks,
which IR has not. A run in which the size is not 1 is an error of Reshape; OpenVINO's CPU plugin does not check Squeeze.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import FormatError, shortened
from pyrnnx.operator.tensor_info import Dimension, TensorInfo

from ...onnx.graph.constants import array_of, named, set_constants, shape_of
from ...onnx.graph.inference import infer_shapes, tensor_info
from ...onnx.graph.walk import Graph, fresh_name, local_names, needed_nodes, subgraphs
from ...onnx.messages import copied
from ...onnx.onnx_package import import_onnx
from ...onnx.passes.canonical import rename_hidden
from ...onnx.passes.constants import compute_constants
from ..translation.graph import IR_VERSION, element_type
from .views import broadcast

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto

Shape = tuple[Dimension, ...]
_SMALL = 64  # elements of constants whose values shape inference needs: shapes, axes
_COMPUTED = 1024  # elements of a constant that is computed though it is larger than its sources
_ALLOWZERO = 14  # first opset of this attribute of Reshape
_MOVES = ("Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze")  # operators that do not change integers
# Operators on integers, of which some may be unknown
_ARITHMETIC = {
    name: np.frompyfunc(lambda a, b, f=function: f(a, b) if isinstance(a, int) and isinstance(b, int) else None, 2, 1)
    for name, function in (("Add", operator.add), ("Mul", operator.mul), ("Sub", operator.sub))
}
_SHAPED = ("ConstantOfShape", "Expand", "Reshape")  # operators whose result has a shape that is their last input


def simplified(
    graph: GraphProto,
    opsets: Mapping[str, int],
    label: str,
    given: Mapping[str, TensorInfo],
    tensors: Mapping[str, Any],
) -> tuple[GraphProto, dict[str, TensorInfo], dict[str, Any]]:
    """Simplify a graph until nothing changes; return it with the types of its values, and its constants, by name.

    `given` are the types of inputs and captured values. `tensors` are the constants, also captured ones, as
    onnx.TensorProtos or arrays, instead of the initializers of the graph.
    """
    onnx = import_onnx()
    rows = [onnx.helper.make_opsetid(*row) for row in opsets.items()]
    model = onnx.ModelProto(ir_version=IR_VERSION, graph=graph, opset_import=rows)
    del model.graph.initializer[:]
    _move_constants(model.graph)
    known = {**tensors, **{tensor.name: tensor for tensor in model.graph.initializer}}
    while True:
        _declare(model.graph, given.values(), known)
        types = _inferred(model, label)
        changes = [
            _fold(model, types, known, label),
            _follow_sizes(model.graph, types, known, label),
            _replace_ifs(model.graph, types, known, label, opsets.get("", 1)),
        ]
        if not any(changes):
            return model.graph, types, known
        indices, needed = needed_nodes(model.graph.node, (value.name for value in model.graph.output))
        _set_nodes(model.graph, [model.graph.node[index] for index in indices])
        known = {name: tensor for name, tensor in known.items() if name in needed}


def _set_nodes(graph: GraphProto, nodes: Iterable[NodeProto]) -> None:
    copies = [copied(node) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)


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


def _declare(graph: GraphProto, given: Iterable[TensorInfo], tensors: Mapping[str, Any]) -> None:
    """Declare inputs and constants; large constants are inputs, as shape inference needs no values of them."""
    del graph.input[:]
    del graph.initializer[:]
    graph.input.extend(map(_value_info, given))
    for name, tensor in tensors.items():
        if _size(tensor) <= _SMALL:
            graph.initializer.append(named(tensor, name))
        elif isinstance(tensor, np.ndarray):
            graph.input.append(_value_info(TensorInfo(name, tensor.dtype.name, tensor.shape)))
        else:
            make_info = import_onnx().helper.make_tensor_value_info
            graph.input.append(make_info(name, tensor.data_type, tensor.dims))


def _size(tensor: Any) -> int:
    return math.prod(shape_of(tensor))


def _value_info(info: TensorInfo) -> ValueInfoProto:
    onnx = import_onnx()
    if info.dtype is None:
        result: ValueInfoProto = onnx.ValueInfoProto(name=info.name)
        return result
    result = onnx.helper.make_tensor_value_info(info.name, element_type(info.dtype), info.shape)
    return result


def _inferred(model: ModelProto, label: str) -> dict[str, TensorInfo]:
    try:
        graph = infer_shapes(model, data_prop=True).graph
    except Exception as error:  # of several types
        raise FormatError(f"{label}: its shapes cannot be inferred ({shortened(str(error))})") from error
    return {info.name: tensor_info(label, info) for info in (*graph.value_info, *graph.output, *graph.input)}


def _fold(model: ModelProto, types: Mapping[str, TensorInfo], tensors: dict[str, Any], label: str) -> bool:
    """Compute values that depend on constants only; return whether there are any."""
    known, wanted = set(tensors), list[str]()
    for node in model.graph.node:
        if known.issuperset(filter(None, node.input)) and not any(True for _ in subgraphs(node)):
            largest = max([_COMPUTED, *(_size(tensors[name]) for name in node.input if name in tensors)])
            if all(_fits(types.get(name), largest) for name in node.output if name):
                known.update(node.output)
                wanted += filter(None, node.output)
    if not wanted:
        return False
    graph = set_constants(Graph(model.graph), label)
    graph.constants.add(tensors)
    compute_constants(graph, model, {graph: wanted})
    for name in wanted:  # if ONNX Runtime refuses one node, the others are computed one by one
        compute_constants(graph, model, {graph: [name]})
    values = {name: graph.constants.tensor(name) for name in wanted}
    tensors |= {name: value for name, value in values.items() if value is not None}
    return any(value is not None for value in values.values())


def _fits(info: TensorInfo | None, largest: int) -> bool:
    if info is None or info.dtype is None or info.shape is None:
        return False
    sizes = [size for size in info.shape if isinstance(size, int)]
    return len(sizes) == len(info.shape) and math.prod(sizes) <= largest


def _follow_sizes(graph: GraphProto, types: dict[str, TensorInfo], tensors: dict[str, Any], label: str) -> bool:
    """Make known sizes constants, and declare shapes that follow from them; return whether there are any."""
    nodes = [node for node in graph.node if not tensors.keys() >= {*filter(None, node.output)}]
    values, shapes = _known_sizes(nodes, types, _small_arrays(tensors, label))
    tensors |= values
    types |= {info.name: info for info in shapes}
    graph.value_info.extend(map(_value_info, shapes))
    _set_nodes(graph, (node for node in graph.node if not tensors.keys() >= {*filter(None, node.output)}))
    return bool(values or shapes)


def _small_arrays(tensors: Mapping[str, Any], label: str) -> dict[str, AnyArray]:
    return {name: array_of(tensor, label) for name, tensor in tensors.items() if _size(tensor) <= _SMALL}


def _replace_ifs(
    graph: GraphProto, types: Mapping[str, TensorInfo], tensors: dict[str, Any], label: str, opset: int
) -> bool:
    """Replace Ifs whose conditions are known, and those of squeezed values; return whether there are any."""
    ifs = [node for node in graph.node if node.op_type == "If" and not node.domain]
    if not ifs:
        return False
    arrays = _small_arrays(tensors, label)
    producers = {name: node for node in graph.node for name in node.output}
    used = local_names(graph) | tensors.keys()
    replaced: dict[str, list[NodeProto]] = {}
    for node in ifs:
        bodies, condition = dict(subgraphs(node)), arrays.get(node.input[0])
        if condition is not None and condition.size == 1:
            branch = bodies["then_branch" if condition.item() else "else_branch"]
            replaced[node.output[0]] = _inlined(branch, node, used, tensors)
        elif (squeezed := _squeezed(node, bodies, producers, arrays)) is not None and squeezed[0] in types:
            replaced[node.output[0]] = _reshaped(node, *squeezed, types, used, tensors, opset)
    nodes = [replaced.get(node.output[0]) or [node] for node in graph.node]
    _set_nodes(graph, (node for row in nodes for node in row))
    return any(replaced.values())


def _inlined(branch: GraphProto, node: NodeProto, used: set[str], tensors: dict[str, Any]) -> list[NodeProto]:
    """Return the nodes of the branch that runs, and Identities for the outputs of the If."""
    branch = copied(branch)
    rename_hidden(branch, {}, used, used | local_names(branch))
    used |= local_names(branch)
    tensors |= {tensor.name: tensor for tensor in branch.initializer}
    ends, make_node = zip(branch.output, node.output, strict=True), import_onnx().helper.make_node
    return [*branch.node, *(make_node("Identity", [end.name], [name]) for end, name in ends if name)]


def _squeezed(
    node: NodeProto,
    bodies: Mapping[str, GraphProto],
    producers: Mapping[str, NodeProto],
    arrays: Mapping[str, AnyArray],
) -> tuple[str, int] | None:
    """Return X and k of this If: if size k of X is 1, X without axis k, else X; None for any other."""
    equal = producers.get(node.input[0])
    gather = None if equal is None else producers.get(equal.input[0])
    shape = None if gather is None else producers.get(gather.input[0])
    if equal is None or gather is None or shape is None or shape.attribute or len(node.output) != 1:
        return None
    squeeze, *others = (*bodies["then_branch"].node, *bodies["else_branch"].node)
    types = [row.op_type for row in (equal, gather, shape, squeeze, *others)]
    if types != ["Equal", "Gather", "Shape", "Squeeze", "Identity"]:
        return None
    own = {tensor.name: array_of(tensor, "") for tensor in bodies["then_branch"].initializer}
    axes = {**arrays, **own}.get(squeeze.input[1]) if len(squeeze.input) > 1 else None
    listed = [list(row.ints) for row in squeeze.attribute] if axes is None else [axes.reshape(-1).tolist()]
    size, place = arrays.get(equal.input[1]), arrays.get(gather.input[1])
    if size is None or place is None or place.size != 1 or size.tolist() not in (1, [1]):
        return None
    same = {squeeze.input[0], others[0].input[0]} == {shape.input[0]} and listed == [[place.item()]]
    return (shape.input[0], int(place.item())) if same else None


def _reshaped(
    node: NodeProto,
    name: str,
    axis: int,
    types: Mapping[str, TensorInfo],
    used: set[str],
    tensors: dict[str, Any],
    opset: int,
) -> list[NodeProto]:
    """Return nodes that reshape a value to its sizes without one axis."""
    rank = len(types[name].shape or ())
    if not rank:
        return []
    sizes, places, target = (fresh_name(f"{node.output[0]}/{part}", used) for part in ("sizes", "places", "shape"))
    tensors[places] = np.array([k for k in range(rank) if k != axis % rank], np.int64)
    make, attributes = import_onnx().helper.make_node, {"allowzero": 1} if opset >= _ALLOWZERO else {}
    return [
        make("Shape", [name], [sizes]),
        make("Gather", [sizes, places], [target]),
        make("Reshape", [name, target], [node.output[0]], **attributes),
    ]


def _known_sizes(
    nodes: Iterable[NodeProto], types: Mapping[str, TensorInfo], arrays: Mapping[str, AnyArray]
) -> tuple[dict[str, AnyArray], list[TensorInfo]]:
    """Return known integers by name, and types of results whose shape follows from integers.

    onnx propagates integers in the newest opsets only, and returns no values. So they are followed here, in arrays of
    objects: an integer that is not known is None or the name of a dimension.
    """
    values = {name: array.astype(object) for name, array in arrays.items() if array.dtype.kind in "iu"}
    known: dict[str, AnyArray] = {}
    shaped: list[TensorInfo] = []
    for node in nodes:
        info = types.get(next(iter(node.output), ""))
        if node.domain or not node.input or info is None:
            continue
        source = types.get(node.input[0], TensorInfo("")).shape
        if info.dtype in ("int32", "int64") and info.shape is not None and len(info.shape) < 2:
            try:
                value = _followed(node, source, len(info.shape), values)
            except Exception:  # of several types, for a node that is not valid: its writer raises an error
                continue
            if value is not None:
                values[info.name] = value
                if _are_known(value.flat):
                    known[info.name] = value.astype(info.dtype)
        elif info.shape is None and node.op_type in _SHAPED and node.input[-1] in values:
            shape = _result_shape(node, source, tuple(values[node.input[-1]].flat))
            if shape is not None:
                shaped.append(replace(info, shape=shape))
    return known, shaped


def _followed(node: NodeProto, source: Shape | None, rank: int, values: Mapping[str, AnyArray]) -> AnyArray | None:
    """Return the integers that a node computes, with so many axes; None if they are not followed."""
    attributes = {row.name: import_onnx().helper.get_attribute_value(row) for row in node.attribute}
    kind, value = node.op_type, None
    if kind == "Shape" and source is not None:
        value = np.array(source, object)[attributes.get("start", 0) : attributes.get("end")]
    elif kind == "Size" and source is not None:
        value = np.array(math.prod(source) if _are_known(source) else None, object)
    elif kind in _MOVES and node.input[0] in values:
        value = values[node.input[0]].reshape([-1] * rank)
    elif values.keys() >= set(node.input):
        first, *others = (values[name] for name in node.input)
        if kind in _ARITHMETIC:
            value = np.asarray(_ARITHMETIC[kind](first, *others), object)
        elif kind == "Concat":
            value = np.concatenate([first, *others])
        elif kind == "Gather":
            value = np.asarray(first[others[0].astype(np.int64)], object)
        elif kind == "Slice":
            bounds = others or [np.array(attributes[name]) for name in ("starts", "ends")]
            value = first[slice(*(int(bounds[k].item()) for k in (0, 1, 3) if k < len(bounds)))]
    return value


def _are_known(sizes: Iterable[Any]) -> TypeGuard[Iterable[int]]:
    return all(isinstance(size, int) for size in sizes)


def _result_shape(node: NodeProto, source: Shape | None, target: Shape) -> Shape | None:
    """Return the shape of a result whose last input is its shape, as far as that is known."""
    sizes = tuple(size if isinstance(size, int) and size > 0 else None for size in target)
    if node.op_type != "Expand":
        return sizes  # Reshape has other meanings for 0 and -1
    known = tuple(size if isinstance(size, int) else None for size in source or ())
    return None if source is None else broadcast(known, sizes)
