"""Shapes of the values of a graph, as far as they follow from those of its inputs for a few operators.

A size is an int, or a str for a size that is not known: equal names are equal sizes. An operator that could fail or
broadcast differently for other values of these sizes has no result here, so that what follows is certain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..graph.constants import array_of, shape_of
from ..graph.walk import local_names, subgraphs
from ..onnx_package import import_onnx
from .types import Tensors

Size = int | str
Shape = tuple[Size, ...]
Shapes = Mapping[str, Shape]
Attributes = Mapping[str, Any]
# Shapes and attributes, constant inputs by place, number of results -> shapes of results; ValueError: not certain.
Rule = Callable[[Sequence[Shape], Attributes, Mapping[int, Any], int], Sequence[Shape]]


def declared_shapes(values: Iterable[Any]) -> dict[str, Shape]:
    """Return the shapes that onnx.ValueInfoProtos declare, by name; sizes without a name are unlike all others."""
    shapes = {}
    for value in values:
        if value.type.HasField("tensor_type") and value.type.tensor_type.HasField("shape"):
            sizes = enumerate(value.type.tensor_type.shape.dim)
            shapes[value.name] = tuple(
                size.dim_value if size.HasField("dim_value") else size.dim_param or f"{value.name} {place}"
                for place, size in sizes
            )
    return shapes


def shapes_of(graph: Any, known: Shapes, tensors: Tensors) -> dict[str, Shape]:
    """Return the shapes of the values of a graph by name, as far as they are certain.

    Parameters
    ----------
    graph : onnx.GraphProto
    known : mapping
        Shapes of its inputs and of values around it.
    tensors : mapping
        Visible constants: onnx.TensorProto or array by name.
    """
    get = import_onnx().helper.get_attribute_value
    shapes = {**known}
    for node in graph.node:
        rule = None if node.domain else _RULES.get(node.op_type)
        constants = {place: tensors[name] for place, name in enumerate(node.input) if name in tensors}
        given = [_shape(name, shapes, tensors) for name in node.input]
        if rule is None or any(shape is None for shape in given):
            continue
        try:
            attributes = {attribute.name: get(attribute) for attribute in node.attribute}
            results = rule([shape for shape in given if shape is not None], attributes, constants, len(node.output))
        except (ValueError, LookupError, TypeError, ArithmeticError):  # also of attributes that are missing or wrong
            continue
        shapes |= {name: shape for name, shape in zip(node.output, results, strict=False) if name}
    return shapes


def declare_loop_results(graph: Any, known: Shapes, tensors: Tensors) -> None:
    """Declare the certain shapes of what the Loops of a graph and of its bodies stack, in place.

    A Loop without iterations returns empty values of the ranks that its body declares. The parameters are those of
    `shapes_of`.
    """
    shapes = shapes_of(graph, known, tensors)
    for node in graph.node:
        for _, body in subgraphs(node):
            own = local_names(body)
            outer = {name: shape for name, shape in shapes.items() if name not in own}
            constants = {name: tensor for name, tensor in tensors.items() if name not in own}
            constants |= {tensor.name: tensor for tensor in body.initializer}
            if node.op_type == "Loop" and not node.domain:
                starts = zip(body.input[2:], node.input[2:], strict=False)
                carried = {value.name: _shape(name, shapes, tensors) for value, name in starts}
                first = {value.name: () for value in body.input[:2]} | declared_shapes(body.input[:2])
                first |= {name: shape for name, shape in carried.items() if shape is not None}
                outer |= _steady(body, outer, first, constants)
                inside = shapes_of(body, outer, constants)
                for value in body.output[len(body.input) - 1 :]:
                    declare_shape(value, _shape(value.name, inside, constants))
            declare_loop_results(body, outer, constants)


def _steady(body: Any, outer: Shapes, first: Shapes, constants: Tensors) -> Shapes:
    """Return the shapes of the inputs of a Loop's body that are the same in every iteration."""
    inside = shapes_of(body, {**outer, **first}, constants)
    steady = {value.name: first[value.name] for value in body.input[:2] if value.name in first}
    for value, result in zip(body.input[2:], body.output[1:], strict=False):
        if value.name in first and _shape(result.name, inside, constants) == first[value.name]:
            steady[value.name] = first[value.name]
    return steady if len(steady) == len(first) else _steady(body, outer, steady, constants)


def declare_shape(value: Any, shape: Shape | None) -> None:
    """Replace the shape that an onnx.ValueInfoProto of a tensor declares, unless the shape is not known."""
    if shape is not None and value.type.HasField("tensor_type"):
        value.type.tensor_type.ClearField("shape")
        value.type.tensor_type.shape.SetInParent()
        for size in shape:
            is_known = isinstance(size, int) and 0 <= size < 2**63
            value.type.tensor_type.shape.dim.add(dim_value=size if is_known else None)


def _shape(name: str, shapes: Shapes, tensors: Tensors) -> Shape | None:
    return tuple(shape_of(tensors[name])) if name in tensors else shapes.get(name)


def _broadcast(shapes: Sequence[Shape]) -> Shape:
    rank, sizes = max(map(len, shapes)), list[Size]()
    for place in range(-rank, 0):
        others = {shape[place] for shape in shapes if len(shape) >= -place} - {1}
        if len(others) > 1:
            raise ValueError(others)
        sizes.append(others.pop() if others else 1)
    return tuple(sizes)


def _elementwise(shapes: Sequence[Shape], attributes: Attributes, constants: Any, count: int) -> Sequence[Shape]:
    return [_broadcast(shapes)]


def _of_first(shapes: Sequence[Shape], attributes: Attributes, constants: Any, count: int) -> Sequence[Shape]:
    return [shapes[0], *[()] * (count - 1)]


def _matmul(shapes: Sequence[Shape], attributes: Attributes, constants: Any, count: int) -> Sequence[Shape]:
    a, b = shapes[:2]
    if min(len(a), len(b)) < 2 or a[-1] != b[-2]:
        raise ValueError(shapes)
    return [(*_broadcast([a[:-2], b[:-2], ()]), a[-2], b[-1])]


def _gemm(shapes: Sequence[Shape], attributes: Attributes, constants: Any, count: int) -> Sequence[Shape]:
    a, b = (
        shape[::-1] if attributes.get(name) else shape
        for shape, name in zip(shapes, ("transA", "transB"), strict=False)
    )
    (result,) = _matmul([a, b], {}, {}, 1)
    if _broadcast([result, *shapes[2:]]) != result:
        raise ValueError(shapes)
    return [result]


def _split(
    shapes: Sequence[Shape], attributes: Attributes, constants: Mapping[int, Any], count: int
) -> Sequence[Shape]:
    x, axis = shapes[0], int(attributes.get("axis", 0))
    if len(shapes) > 1 or "split" in attributes:
        sizes = _integers(constants[1]) if 1 in constants else list(attributes["split"])
    else:
        sizes = [_static(x[axis]) // count] * count
    if len(sizes) != count or sum(sizes) != _static(x[axis]):
        raise ValueError(sizes)
    return [_replaced(x, axis, size) for size in sizes]


def _concat(shapes: Sequence[Shape], attributes: Attributes, constants: Any, count: int) -> Sequence[Shape]:
    axis = int(attributes["axis"])
    if len({_replaced(shape, axis, 0) for shape in shapes}) > 1:
        raise ValueError(shapes)
    return [_replaced(shapes[0], axis, sum(_static(shape[axis]) for shape in shapes))]


def _slice(
    shapes: Sequence[Shape], attributes: Attributes, constants: Mapping[int, Any], count: int
) -> Sequence[Shape]:
    if set(constants) != set(range(1, len(shapes))) or len(shapes) < 4:
        raise ValueError(constants)
    x = shapes[0]
    starts, stops, axes, *steps = (_integers(constants[place]) for place in range(1, len(shapes)))
    for start, stop, axis, step in zip(starts, stops, axes, steps[0] if steps else [1] * len(axes), strict=True):
        if step < 1:
            raise ValueError(step)
        x = _replaced(x, axis, len(range(_static(x[axis]))[start:stop:step]))
    return [x]


def _transpose(shapes: Sequence[Shape], attributes: Attributes, constants: Any, count: int) -> Sequence[Shape]:
    order = list(attributes.get("perm", range(len(shapes[0]))[::-1]))
    if sorted(order) != list(range(len(shapes[0]))):
        raise ValueError(order)
    return [tuple(shapes[0][place] for place in order)]


def _gather(shapes: Sequence[Shape], attributes: Attributes, constants: Any, count: int) -> Sequence[Shape]:
    (x, places), axis = shapes, int(attributes.get("axis", 0))
    if not -len(x) <= axis < len(x):
        raise ValueError(axis)
    axis %= len(x)
    return [(*x[:axis], *places, *x[axis + 1 :])]


def _replaced(shape: Shape, axis: int, size: int) -> Shape:
    if not -len(shape) <= axis < len(shape):
        raise ValueError(axis)
    sizes = list(shape)
    sizes[axis] = size
    return tuple(sizes)


def _static(size: Size) -> int:
    if isinstance(size, str):
        raise ValueError(size)
    return size


def _integers(tensor: Any) -> list[int]:
    return [int(value) for value in array_of(tensor, "constant").ravel()]


_NAMES: dict[Rule, str] = {
    _elementwise: """Abs Add And Cast Ceil Div Elu Equal Erf Exp Floor Greater GreaterOrEqual HardSigmoid Identity
        LeakyRelu Less LessOrEqual Log Max Mean Min Mul Neg Not Or Pow Reciprocal Relu Round Selu Sigmoid Sign Softplus
        Softsign Sqrt Sub Sum Tanh Where""",
    _of_first: "DynamicQuantizeLinear QuantizeLinear DequantizeLinear",
    _matmul: "MatMul MatMulInteger",
    _gemm: "Gemm",
    _split: "Split",
    _concat: "Concat",
    _slice: "Slice",
    _gather: "Gather",
    _transpose: "Transpose",
}
_RULES = {name: rule for rule, names in _NAMES.items() for name in names.split()}
