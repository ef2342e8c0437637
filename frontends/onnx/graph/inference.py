"""Types of values: declared, and inferred by onnx without the operators on which it ends the process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from pyrnnx._internal.dtypes import named_dtype
from pyrnnx.errors import FormatError, shown
from pyrnnx.operator.tensor_info import TensorInfo

from ..messages import copied
from ..onnx_package import import_onnx
from .constants import without_large
from .walk import Graph, all_graphs, all_nodes, subgraphs

if TYPE_CHECKING:
    from onnx import TensorShapeProto, ValueInfoProto

# Inference of these reads the type of the first input, even if there is none.
_CRASHES = {"RegexFullMatch", "EyeLike", "LabelEncoder", "DictVectorizer", "TreeEnsemble"}
_UNKNOWN = "Unknown:"  # before the name of an operator: onnx infers no types of operators that it does not know
_LONGEST = 2**16  # elements of a vector whose values onnx propagates, each in 150 bytes


def infer_shapes(model: Any, *, data_prop: bool = False, **options: bool) -> Any:
    """Return an onnx.ModelProto with the types that ``onnx.shape_inference.infer_shapes(model, ...)`` infers.

    Results of an operator on which onnx may end the process have no type. Without `data_prop` if there is a long
    vector, for which it would take gigabytes.
    """
    infer, model = import_onnx().shape_inference.infer_shapes, copied(model)
    for node in list(_crashing(model)):
        node.op_type = _UNKNOWN + node.op_type
    inferred = infer(model, **options)
    if data_prop and not _has_long_vectors(inferred.graph):
        inferred = infer(model, data_prop=True, **options)
    for nodes in (inferred.graph.node, *(function.node for function in inferred.functions)):
        for node in all_nodes(nodes):
            node.op_type = node.op_type.removeprefix(_UNKNOWN)
    return inferred


def _crashing(model: Any) -> Iterator[Any]:
    """Yield the nodes on which onnx may end the process: an input without a type, or outputs that are not counted."""
    graph = model.graph
    declared = {value.name for value in chain(graph.input, graph.value_info) if value.type.tensor_type.elem_type}
    for nodes, known in ((graph.node, declared), *((function.node, ()) for function in model.functions)):
        for node in all_nodes(nodes):
            is_open = node.op_type in _CRASHES and not (node.input and all(name in known for name in node.input))
            counts = [entry.i for entry in node.attribute if node.op_type == "Split" and entry.name == "num_outputs"]
            if is_open or counts not in ([], [len(node.output)]):
                yield node


def _has_long_vectors(graph: Any) -> bool:
    shapes = [value.type.tensor_type.shape.dim for value in chain(graph.input, graph.output, graph.value_info)]
    return (
        any(len(sizes) == 1 and sizes[0].dim_value > _LONGEST for sizes in shapes)
        or any(len(tensor.dims) == 1 and tensor.dims[0] > _LONGEST for tensor in graph.initializer)
        or any(_has_long_vectors(body) for node in graph.node for _, body in subgraphs(node))
    )


class Types(NamedTuple):
    """Shapes and numbers of element types of values, by name.

    Values of one name in several graphs have no shape, and the element type 0 if theirs differ.
    """

    shapes: dict[str, tuple[int | str | None, ...]]
    elements: dict[str, int]


def inferred_types(model: Any) -> Types:
    """Infer the types of the values of a model from its inputs; those that it declares if onnx rejects it."""
    try:
        graph = infer_shapes(light_copy(model), data_prop=True).graph
    except Exception:  # of several types
        graph = model.graph
    result = Types({}, {})
    _collect(graph, result)
    counts = Counter(name for inner in all_graphs(Graph(model.graph)) for name in inner.local)
    for name in (name for name, count in counts.items() if count > 1):
        result.shapes.pop(name, None)
    return result


def light_copy(model: Any) -> Any:
    """Return a copy without large values of initializers, and without types of outputs, which may be wrong."""
    light, _ = without_large(copied(model))
    for value in light.graph.output:
        value.ClearField("type")
    return light


def _collect(graph: Any, types: Types) -> None:
    for value in (*graph.input, *graph.value_info, *graph.output):
        kind = value.type.tensor_type
        if kind.elem_type:
            known = types.elements.get(value.name, kind.elem_type)
            types.elements[value.name] = kind.elem_type if known == kind.elem_type else 0
        if kind.HasField("shape"):
            types.shapes[value.name] = tuple(_size(value.name, k, dim) for k, dim in enumerate(kind.shape.dim))
    for node in graph.node:
        for _, body in subgraphs(node):
            _collect(body, types)


def _size(name: str, axis: int, dim: Any) -> int | str:
    """Return a size, its name, or a name of its own: an unknown dimension of one value is equal to itself."""
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return int(dim.dim_value)
    return str(dim.dim_param) if dim.dim_param else f"\0{name}[{axis}]"


def tensor_info(label: str, info: ValueInfoProto, *, optional: bool = False) -> TensorInfo:
    """Return the declared name, dtype and shape of an input or output."""
    onnx = import_onnx()
    tensor = info.type.tensor_type
    if not info.type.HasField("tensor_type") or tensor.elem_type == 0:
        return TensorInfo(info.name, optional=optional)
    dtype = "str"
    if tensor.elem_type != onnx.TensorProto.STRING:
        try:
            dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type).name
        except KeyError:
            raise FormatError(f"{label}: {shown(info.name)} has the unknown element type {tensor.elem_type}") from None
    shape = tuple(_dimension(size) for size in tensor.shape.dim) if tensor.HasField("shape") else None
    return TensorInfo(info.name, dtype, shape, optional=optional)


def value_info(info: TensorInfo) -> ValueInfoProto:
    """Return an onnx.ValueInfoProto without a shape."""
    onnx = import_onnx()
    element = onnx.helper.np_dtype_to_tensor_dtype(named_dtype(str(info.dtype)))
    result: ValueInfoProto = onnx.helper.make_tensor_value_info(info.name, element, None)
    return result


def _dimension(dimension: TensorShapeProto.Dimension) -> int | str | None:
    if dimension.HasField("dim_value"):
        return dimension.dim_value if dimension.dim_value >= 0 else None
    return dimension.dim_param if isinstance(dimension.dim_param, str) and dimension.dim_param else None
