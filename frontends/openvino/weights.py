"""The .bin file beside an IR: its constants, checked before they are used, and read where they lie."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pyrnnx.conventions import AnyArray
from pyrnnx.errors import ArgumentError, FormatError
from pyrnnx.frontends.openvino.element_types import ElementType, by_name
from pyrnnx.frontends.openvino.net import NetLayer
from pyrnnx.frontends.openvino.ports import integer
from pyrnnx.frontends.openvino.shapes import static_shape


class _Place(NamedTuple):
    """Where a Const lies, and what it is."""

    element_type: ElementType
    shape: tuple[int, ...]
    elements: int
    offset: int
    size: int


class Weights:
    """The constants of an IR.

    Parameters
    ----------
    source : path, bytes-like or None
        A path is memory-mapped: nothing is read before a constant is asked for. None serves an IR without constants.
    may_be_absent : bool
        A file that does not exist is as None.

    Attributes
    ----------
    origin : str
        How errors name the source.
    size : int or None
        In bytes; None where there is no source.

    Raises
    ------
    ArgumentError
        Another type; a file that cannot be read.
    """

    def __init__(self, source: Any, *, may_be_absent: bool = False) -> None:
        self._data: AnyArray | None = None
        if source is None:
            self.origin = "no weights were given"
        elif isinstance(source, (bytes, bytearray, memoryview)):
            self.origin = "the weights that were given"
            try:
                self._data = np.frombuffer(source, np.uint8)
            except (ValueError, BufferError) as error:  # bytes that do not lie side by side
                raise ArgumentError(f"read_model: weights cannot be taken as bytes ({error})") from None
        elif isinstance(source, (str, os.PathLike)):
            self._map(Path(source), may_be_absent)
        else:
            raise ArgumentError(
                f"read_model: weights is {type(source).__name__}; expected the path of a .bin file, or bytes"
            )
        if self._data is not None:
            self._data.flags.writeable = False
        self.size = None if self._data is None else self._data.size

    def _map(self, path: Path, may_be_absent: bool) -> None:
        self.origin = str(path)
        try:
            if path.stat().st_size:
                self._data = np.asarray(np.memmap(path, np.uint8, mode="r"))
            else:
                self._data = np.zeros(0, np.uint8)
        except (OSError, ValueError) as error:
            if may_be_absent and isinstance(error, FileNotFoundError):
                self.origin = f"{str(path)!r}, which does not exist"
                return
            raise ArgumentError(f"read_model: weights {str(path)!r} cannot be read ({error})") from None

    def check(self, layer: NetLayer) -> None:
        """Reject a Const that does not lie in the weights, or that contradicts itself; reads nothing of it.

        Raises
        ------
        FormatError
            Attributes that are missing or no numbers, a size that is not that of shape and type, bytes outside.
        """
        self._place(layer)

    def constant(self, layer: NetLayer) -> AnyArray:
        """The value of a Const, read-only: the mapped bytes themselves where their alignment allows it, else a copy.

        u4, i4 and u1 are unpacked to uint8, int8 and uint8 (0 or 1); boolean is bool.

        Raises
        ------
        PyrnnxError
            What `check` rejects; an element type whose values are not read.
        """
        place = self._place(layer)
        dtype = place.element_type.numpy_dtype(layer.label)
        if not place.elements or self._data is None:
            array = np.zeros(place.shape, dtype)
        else:
            raw = self._data[place.offset : place.offset + place.size]
            array = _values(raw, place, dtype).reshape(place.shape)
        array.flags.writeable = False
        return array

    def _place(self, layer: NetLayer) -> _Place:
        label = layer.label
        for name in ("element_type", "shape", "offset", "size"):
            if name not in layer.data:
                raise FormatError(f"{label}: {name} is missing; a Const needs element_type, shape, offset and size")
        element_type = by_name(label, layer.data["element_type"])
        shape = static_shape(label, layer.data["shape"])
        offset, size = (_number(label, name, layer.data[name]) for name in ("offset", "size"))
        elements = math.prod(shape)
        place = _Place(element_type, shape, elements, offset, size)
        if not elements:  # OpenVINO writes such a one with the size 1
            return place
        if element_type.bits is not None:
            nbytes = -(-elements * element_type.bits // 8)
            if size != nbytes:
                raise FormatError(
                    f"{label}: size is {size}; expected {nbytes}, for shape {shape} of {element_type.name}"
                )
        if self.size is None:
            given = self.origin if self.origin.startswith("no") else f"the weights are in {self.origin}"
            raise FormatError(f"{label}: its {size} bytes are needed, and {given}; pass weights=..., a path or bytes")
        if offset + size > self.size:
            raise FormatError(
                f"{label}: offset {offset} and size {size} lead beyond the end of {self.origin}, which has "
                f"{self.size} bytes"
            )
        return place


def _number(label: str, name: str, text: str) -> int:
    try:
        number = integer(text.strip())
    except ValueError:
        number = -1
    if number < 0:
        raise FormatError(f"{label}: {name} is {text[:40]!r}; expected a number, 0 or above")
    return number


def _values(raw: AnyArray, place: _Place, dtype: np.dtype[Any]) -> AnyArray:
    """Bytes to elements, one-dimensional."""
    if place.element_type.packed:
        return _unpacked(raw, place)
    if dtype == np.bool_:
        return np.not_equal(raw, 0)
    if raw.ctypes.data % dtype.alignment:
        raw = raw.copy()
    return raw.view(dtype)


def _unpacked(raw: AnyArray, place: _Place) -> AnyArray:
    """u1 begins with the highest bit of a byte; u4 and i4 with its lower half."""
    if place.element_type.bits == 1:
        return np.unpackbits(raw, count=place.elements)
    halves: AnyArray = np.stack([raw & 15, raw >> 4], axis=1).reshape(-1)[: place.elements]
    if place.element_type.dtype == "int8":
        return np.subtract((halves ^ 8).astype(np.int8), np.int8(8))
    return halves
