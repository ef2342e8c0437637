"""Argument of size rules, a node with the values of its inputs, and arithmetic of shapes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...onnx_package import import_onnx
from ..walk import Node

if TYPE_CHECKING:
    from onnx import NodeProto

DOUBLE = 8  # bytes of the largest element of most results
LISTED = 40  # bytes of an integer in a list of Python
_MOST_DIMENSIONS = 64


class Call:
    """Node with the values of its inputs: arrays, lists of arrays (sequences), or None."""

    def __init__(self, node: Node | NodeProto, arrays: Sequence[Any]) -> None:
        self.node, self.arrays = node, arrays

    def input(self, position: int) -> Any:
        """Return an input; None if it is absent."""
        return self.arrays[position] if position < len(self.arrays) else None

    def attribute(self, name: str, default: Any = None) -> Any:
        """Return the value of an attribute."""
        for attribute in self.node.attribute:
            if attribute.name == name:
                value = import_onnx().helper.get_attribute_value(attribute)
                return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        return default

    def integers(self, position: int, name: str = "") -> list[int] | None:
        """Return a list of integers from an input or else an attribute; None if both are absent."""
        array = self.input(position)
        if array is None:
            values = self.attribute(name) if name else None
            return None if values is None else [int(value) for value in values]
        if array.size > _MOST_DIMENSIONS:
            raise ValueError("more numbers than an array has dimensions")
        return [int(value) for value in array.ravel().tolist()]

    @property
    def itemsize(self) -> int:
        """Bytes of the largest element of the inputs."""
        return max((array.itemsize for array in self.arrays if isinstance(array, np.ndarray)), default=DOUBLE)


Rule = Callable[[Call], int]


def count(dimensions: Iterable[int]) -> int:
    """Return the elements of a shape; 0 if a dimension is negative."""
    return math.prod(max(int(size), 0) for size in dimensions)


def joined(*shapes: Sequence[int]) -> list[int]:
    """Return the broadcast shape, with the larger size for sizes that differ."""
    rank = max(map(len, shapes), default=0)
    filled = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    return [0 if 0 in sizes else max(sizes) for sizes in zip(*filled, strict=True)]


def filled(dimensions: Iterable[int]) -> int:
    """Return the elements of a shape whose empty axes have one element."""
    return math.prod(max(int(size), 1) for size in dimensions)


def dtype_of(number: int) -> np.dtype[Any]:
    """Return the dtype of an onnx.TensorProto.DataType."""
    dtype: np.dtype[Any] = import_onnx().helper.tensor_dtype_to_np_dtype(number)
    return dtype


def element_bytes(number: int | None, default: int = 4) -> int:
    """Return the bytes of an element of an onnx.TensorProto.DataType."""
    return dtype_of(number).itemsize if number else default


def replaced(shape: Sequence[int], sizes: Sequence[int], axes: Sequence[int] | None) -> list[int]:
    """Return the shape with new sizes for `axes`; None means all axes."""
    result = list(shape)
    for axis, size in zip(range(len(shape)) if axes is None else axes, sizes, strict=True):
        result[axis] = size
    return result
