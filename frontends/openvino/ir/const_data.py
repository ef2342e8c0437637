"""Locations and types of constants in the .bin."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from pyrnnx.errors import FormatError, shown

from .element_types import ElementType, by_name
from .numbers import integer
from .shapes import Shape, static_shape

MAX_ITEM = 8  # bytes of the largest element type


@dataclass(frozen=True)
class ConstData:
    """The `<data>` of a Const.

    Attributes
    ----------
    element_type : ElementType
    shape : tuple of int
    elements : int
        Number of elements.
    offset, size : int
        Offset and number of bytes.
    """

    element_type: ElementType
    shape: tuple[int, ...]
    elements: int
    offset: int
    size: int

    @property
    def end(self) -> int:
        """Offset after the last byte."""
        return self.offset + self.size


def read_const_data(label: str, data: Mapping[str, str], shape: Shape | None) -> ConstData:
    """Read the `<data>` of a Const with the parsed `shape`.

    Raises
    ------
    FormatError
        An attribute is missing or not a number, or the size does not match shape and type.
    """
    for name in ("element_type", "shape", "offset", "size"):
        if name not in data:
            raise FormatError(f"{label}: {name} is missing; a Const needs element_type, shape, offset and size")
    element_type = by_name(label, data["element_type"])
    sizes = static_shape(label, data["shape"], shape)
    offset, size = _number(label, "offset", data["offset"]), _number(label, "size", data["size"])
    elements = math.prod(sizes)
    if not elements:  # OpenVINO writes a constant without elements with size 1
        if math.prod([size for size in sizes if size]) * MAX_ITEM > sys.maxsize:
            raise FormatError(f"{label}: shape is {shown(sizes)}; expected a shape that NumPy supports")
    elif element_type.bits is not None:
        nbytes = -(-elements * element_type.bits // 8)
        if size != nbytes:
            raise FormatError(f"{label}: size is {size}; expected {nbytes}, for shape {sizes} of {element_type.name}")
    return ConstData(element_type, sizes, elements, offset, size)


def _number(label: str, name: str, text: str) -> int:
    try:
        number = integer(text.strip())
    except ValueError:
        number = -1
    if number < 0:
        raise FormatError(f"{label}: {name} is {shown(text)}; expected a number, 0 or above")
    return number
