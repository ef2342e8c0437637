"""What a rule of sizes sees of a call: a node, the values of its inputs, and the arithmetic of shapes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ...onnx_package import import_onnx

DOUBLE = 8  # bytes of the largest element of most results
_MOST_DIMENSIONS = 64


class Call:
    """A node and the values of its inputs: arrays, lists of arrays (sequences), or None."""

    def __init__(self, node: Any, arrays: Sequence[Any]) -> None:
        self.node, self.arrays = node, arrays

    def given(self, position: int) -> Any:
        """An input; None where it is left out."""
        return self.arrays[position] if position < len(self.arrays) else None

    def attribute(self, name: str, default: Any = None) -> Any:
        """The value of an attribute."""
        for one in self.node.attribute:
            if one.name == name:
                value = import_onnx().helper.get_attribute_value(one)
                return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        return default

    def integers(self, position: int, name: str = "") -> list[int] | None:
        """An input, or else an attribute, that is a list of integers; None where neither is there."""
        array = self.given(position)
        if array is None:
            values = self.attribute(name) if name else None
            return None if values is None else [int(one) for one in values]
        if array.size > _MOST_DIMENSIONS:
            raise ValueError("more numbers than an array has dimensions")
        return [int(one) for one in array.ravel().tolist()]

    @property
    def itemsize(self) -> int:
        """Of the largest element among the inputs."""
        return max((one.itemsize for one in self.arrays if isinstance(one, np.ndarray)), default=DOUBLE)


Rule = Callable[[Call], int]


def count(dimensions: Iterable[int]) -> int:
    """Elements of a shape; 0 where a dimension is negative."""
    return math.prod(max(int(one), 0) for one in dimensions)


def joined(*shapes: Sequence[int]) -> list[int]:
    """What broadcasting makes of the shapes; the larger size where they do not fit."""
    rank = max(map(len, shapes), default=0)
    filled = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    return [0 if 0 in sizes else max(sizes) for sizes in zip(*filled, strict=True)]


def element_bytes(number: int | None, default: int = 4) -> int:
    """Bytes of an element of an onnx.TensorProto.DataType."""
    return import_onnx().helper.tensor_dtype_to_np_dtype(number).itemsize if number else default


def replaced(shape: Sequence[int], sizes: Sequence[int], axes: Sequence[int] | None) -> list[int]:
    """The shape with other sizes on some axes; on all of them where `axes` is None."""
    result = list(shape)
    for axis, size in zip(range(len(shape)) if axes is None else axes, sizes, strict=True):
        result[axis] = size
    return result
