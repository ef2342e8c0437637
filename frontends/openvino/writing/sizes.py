"""Sizes of values, followed through the nodes that compute with them, as far as they are known."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.operator.tensor_info import TensorInfo

from ...onnx.onnx_package import import_onnx

if TYPE_CHECKING:
    from onnx import NodeProto


class Sizes:
    """Values of one-dimensional integers, as far as they are known; an unknown element is None.

    Attributes
    ----------
    constants : dict of array
    """

    def __init__(self, types: dict[str, TensorInfo], constants: dict[str, AnyArray]) -> None:
        self.constants, self._types = constants, types
        self._values: dict[str, AnyArray] = {}

    def add(self, node: NodeProto) -> AnyArray | None:
        """Compute a node; return its result if all of it is known."""
        rule = None if node.domain else _RULES.get(node.op_type)
        info = self._types.get(node.output[0]) if rule is not None else None
        if rule is None or info is None or info.dtype not in ("int32", "int64"):
            return None
        value = rule(self, node)
        if value is None:
            return None
        name, value = node.output[0], np.asarray(value, object)
        self._values[name] = value
        if None in value.ravel().tolist():
            return None
        result: AnyArray = value.astype(info.dtype)
        self.constants[name] = result
        return result

    def result(self, node: NodeProto) -> TensorInfo | None:
        """Return the type of a result whose rank follows from a partly known input, but not from shape inference."""
        rule = None if node.domain else _RESULTS.get(node.op_type)
        info = self._types.get(node.output[0]) if rule is not None else None
        if rule is None or info is None or info.dtype is None or info.shape is not None:
            return None
        target = self.value(node.input[-1])
        shape = None if target is None or target.ndim != 1 else rule(self, node, target.tolist())
        if shape is None:
            return None
        result = self._types[info.name] = TensorInfo(info.name, info.dtype, tuple(shape))
        return result

    def value(self, name: str) -> AnyArray | None:
        constant = self.constants.get(name)
        return (
            self._values.get(name) if constant is None or constant.dtype.kind not in "iu" else constant.astype(object)
        )

    def shape(self, name: str) -> tuple[int | None, ...] | None:
        info = self._types.get(name)
        if info is None or info.shape is None:
            return None
        return tuple(size if isinstance(size, int) else None for size in info.shape)

    def integers(self, node: NodeProto, position: int, name: str) -> list[int] | None:
        """Return integers of an attribute or a constant input; None if there are none."""
        listed = attribute_of(node, name)
        if listed is not None:
            return list(listed)
        array = self.constants.get(node.input[position]) if position < len(node.input) else None
        return None if array is None else array.reshape(-1).tolist()

    def of_shape(self, node: NodeProto) -> Any:
        shape = self.shape(node.input[0])
        return None if shape is None else list(shape)[attribute_of(node, "start", 0) : attribute_of(node, "end")]

    def of_size(self, node: NodeProto) -> Any:
        value, shape = self.value(node.input[0]), self.shape(node.input[0])
        if value is not None:
            return value.size
        return None if shape is None or None in shape else math.prod(size or 0 for size in shape)

    def of_gather(self, node: NodeProto) -> Any:
        value, indices = self.value(node.input[0]), self.constants.get(node.input[1])
        if value is None or value.ndim != 1 or indices is None:
            return None
        fits = ((indices >= -value.size) & (indices < value.size)).all()
        return value[indices] if fits else None

    def of_slice(self, node: NodeProto) -> Any:
        value = self.value(node.input[0])
        names = enumerate(("starts", "ends", "axes", "steps"), start=1)
        starts, ends, axes, steps = (self.integers(node, position, name) for position, name in names)
        computed = any(node.input[k] and node.input[k] not in self.constants for k in range(1, len(node.input)))
        if value is None or value.ndim != 1 or computed or not starts or not ends or (axes or [0]) not in ([0], [-1]):
            return None
        step = (steps or [1])[0]
        end = None if step < 0 and ends[0] < -value.size else ends[0]
        return value[starts[0] : end : step]

    def of_concat(self, node: NodeProto) -> Any:
        values = [self.value(name) for name in node.input]
        known = [value for value in values if value is not None and value.ndim == 1]
        return np.concatenate(known) if len(known) == len(values) else None

    def of_reshape(self, node: NodeProto) -> Any:
        """Return the value in the shape of the result, if that is known."""
        value, shape = self.value(node.input[0]), self.shape(node.output[0])
        return None if value is None or shape is None or None in shape else value.reshape([size or 0 for size in shape])

    def expanded(self, node: NodeProto, target: list[int | None]) -> list[int | None] | None:
        shape = self.shape(node.input[0])
        if shape is None:
            return None
        rank = max(len(shape), len(target))
        pairs = zip([1] * (rank - len(shape)) + [*shape], [1] * (rank - len(target)) + target, strict=True)
        return [b if a == 1 else a if b == 1 else a if a == b else None for a, b in pairs]

    def reshaped(self, node: NodeProto, target: list[int | None]) -> list[int | None]:
        return [size if size is not None and size > 0 else None for size in target]

    def of_cast(self, node: NodeProto) -> Any:
        return self.value(node.input[0])


_RULES = {
    "Shape": Sizes.of_shape,
    "Size": Sizes.of_size,
    "Gather": Sizes.of_gather,
    "Slice": Sizes.of_slice,
    "Concat": Sizes.of_concat,
    **dict.fromkeys(("Reshape", "Squeeze", "Unsqueeze"), Sizes.of_reshape),
    **dict.fromkeys(("Cast", "Identity"), Sizes.of_cast),
}
_RESULTS = {"Expand": Sizes.expanded, "Reshape": Sizes.reshaped, "ConstantOfShape": Sizes.reshaped}


def attribute_of(node: NodeProto, name: str, default: Any = None) -> Any:
    """Return the value of an attribute, or the default."""
    value = import_onnx().helper.get_attribute_value
    return next((value(attribute) for attribute in node.attribute if attribute.name == name), default)


def squeezed_one(
    node: NodeProto, producers: Mapping[str, NodeProto], constants: Mapping[str, AnyArray]
) -> tuple[str, int] | None:
    """Return X and k if a node is: if size k of X is 1, X without axis k, else X; None for any other node."""
    if node.op_type != "If" or node.domain or len(node.output) != 1:
        return None
    then_branch, else_branch = attribute_of(node, "then_branch"), attribute_of(node, "else_branch")
    if then_branch is None or else_branch is None or not node.input:
        return None
    then, other = then_branch.node, else_branch.node
    equal = producers.get(node.input[0])
    gather = None if equal is None else producers.get(equal.input[0])
    shape = None if gather is None else producers.get(gather.input[0])
    if equal is None or gather is None or shape is None or shape.attribute:
        return None
    if [row.op_type for row in (equal, gather, shape, *then, *other)] != [
        *("Equal", "Gather", "Shape", "Squeeze", "Identity")
    ]:
        return None
    size, place = constants.get(equal.input[1]), constants.get(gather.input[1])
    axes = attribute_of(then[0], "axes")
    if axes is None and len(then[0].input) > 1:
        own = {tensor.name: tensor for tensor in then_branch.initializer}
        name = then[0].input[1]
        array = import_onnx().numpy_helper.to_array(own[name]) if name in own else constants.get(name)
        axes = None if array is None else array.reshape(-1).tolist()
    if size is None or place is None or axes is None or size.size != 1 or place.size != 1 or size.item() != 1:
        return None
    same = {then[0].input[0], other[0].input[0]} == {shape.input[0]} and list(axes) == [place.item()]
    return (shape.input[0], int(place.item())) if same else None
