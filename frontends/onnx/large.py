"""Large initializers of a file, read into arrays of their own: a message would hold a copy, and NumPy need another.

ModelProto { graph { node ..., initializer { name, dims, raw_data }, ... } }
->  the same message without raw_data, and {name: array}
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx._internal.files import is_path, open_regular
from pyrnnx.errors import FormatError

from .file import LARGEST, load_proto
from .graph.constants import PLAIN
from .messages import copied
from .onnx_package import import_onnx

if TYPE_CHECKING:
    from onnx import ModelProto, TensorProto

    from .file import Source

_SMALLEST_FILE = 2**20  # bytes of a file that is read in parts
_SMALLEST = 2**12  # bytes of an initializer that becomes an array
_GRAPH, _INITIALIZER, _RAW_DATA = 7, 5, 9  # fields of ModelProto, GraphProto and TensorProto
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # wire types
_FIXED = {_FIXED64: 8, _FIXED32: 4}
_LONGEST_VARINT, _LONGEST_HEAD = 10, 20

Arrays = dict[str, AnyArray]


class _Irregular(Exception):  # noqa: N818  # never reaches a caller
    """Raised for a message that only protobuf may judge."""


def load_parts(source: Source) -> tuple[ModelProto, Mapping[str, AnyArray]]:
    """Load a ModelProto without external data, and without large values of initializers, which are arrays by name.

    Raises
    ------
    PyrnnxError
        As in `load_proto`.
    """
    if isinstance(source, bytes):
        parts = read_parts(BytesIO(source), len(source)) if _SMALLEST_FILE <= len(source) <= LARGEST else None
    elif is_path(source):
        path = Path(source)
        with open_regular("ONNX model", path, most=LARGEST, expected="an ONNX file") as file:
            size = os.fstat(file.fileno()).st_size
            try:
                parts = read_parts(file, size) if size >= _SMALLEST_FILE else None
            except (OSError, MemoryError):
                parts = None  # raised by another reader, with its message
    else:
        parts = None
    if parts is not None:
        with suppress(FormatError):  # raised below, with the source's label
            return load_proto(parts[0], external=False), parts[1]
    return load_proto(source, external=False), {}


def read_parts(file: BinaryIO, size: int) -> tuple[bytes, Arrays] | None:
    """Return a file's ModelProto without large initializers' values, serialized, and these values by name.

    Returns None if protobuf has to read the whole file: it is broken, or has a field more than once.

    Parameters
    ----------
    file : binary file
    size : int
        Bytes of the file.
    """
    arrays: Arrays = {}
    if sys.byteorder != "little":
        return None
    try:
        contents = _parts(file, 0, size, {_GRAPH: arrays})
    except _Irregular:
        return None
    return None if contents is None else (contents, arrays)


def _parts(file: BinaryIO, begin: int, end: int, arrays: Mapping[int, Arrays]) -> bytes | None:
    """Return a message whose field `_GRAPH` or `_INITIALIZER`, the key of `arrays`, is without large values.

    None if it has none: then nothing but the heads of fields was read.
    """
    result, seen = list[bytes](), 0
    for head, field, place, length in _fields(file, begin, end):
        content = None
        if field in arrays and head[0] & 7 != _BYTES:
            raise _Irregular
        if field == _GRAPH and field in arrays:
            seen += 1
            content = _parts(file, place, place + length, {_INITIALIZER: arrays[field]})
        elif field == _INITIALIZER and field in arrays and length >= _SMALLEST:
            content = _tensor(file, place, place + length, arrays[field])
        if content is not None:
            result.append(_between(file, begin, place - len(head)))
            result += [bytes([field << 3 | _BYTES]), _varint_of(len(content)), content]
            begin = place + length
    if seen > 1:
        raise _Irregular
    return b"".join([*result, _between(file, begin, end)]) if result else None


def _between(file: BinaryIO, begin: int, end: int) -> bytes:
    file.seek(begin)
    return _read(file, end - begin)


def _tensor(file: BinaryIO, begin: int, end: int, arrays: Arrays) -> bytes | None:
    """Read the values of an initializer into `arrays`, and return the rest of it; None for others."""
    rest, values = bytearray(), []
    for head, field, place, length in _fields(file, begin, end):
        if field == _RAW_DATA and head[0] & 7 == _BYTES:
            values.append((place, length))
        else:
            rest += head + _read(file, length)
    tensor = import_onnx().TensorProto()
    try:
        tensor.ParseFromString(bytes(rest))
    except Exception as error:  # protobuf's own errors differ between its versions
        raise _Irregular from error
    dtype = PLAIN.get(tensor.data_type)
    if len(values) != 1 or dtype is None or not _is_plain(tensor, dtype, values[0][1]):
        return None
    if tensor.name in arrays:
        raise _Irregular
    file.seek(values[0][0])
    arrays[tensor.name] = np.frombuffer(_read(file, values[0][1]), dtype).reshape(tensor.dims)
    return bytes(rest)


def _is_plain(tensor: TensorProto, dtype: np.dtype[np.generic], length: int) -> bool:
    """Return whether a tensor has a name, and raw data of its shape only."""
    is_sound = isinstance(tensor.name, str) and tensor.name and min(tensor.dims, default=0) >= 0
    others = {descriptor.name for descriptor, _ in tensor.ListFields()} - {"name", "dims", "data_type", "doc_string"}
    return bool(is_sound and not others and math.prod(tensor.dims) * dtype.itemsize == length)


def _fields(file: BinaryIO, begin: int, end: int) -> Iterator[tuple[bytes, int, int, int]]:
    """Yield key with length, number, place and length of each field of a message; the file is at its place."""
    file.seek(begin)
    while begin < end:
        head = file.read(min(_LONGEST_HEAD, end - begin))
        key, used = _varint(head, 0)
        field, wire = key >> 3, key & 7
        if wire == _BYTES:
            length, used = _varint(head, used)
        elif wire == _VARINT:
            length = _varint(head, used)[1] - used
        elif wire in _FIXED:
            length = _FIXED[wire]
        else:
            raise _Irregular
        begin += used
        if not field or begin + length > end:
            raise _Irregular
        file.seek(begin)
        yield head[:used], field, begin, length
        begin += length
        file.seek(begin)


def _varint(text: bytes, place: int) -> tuple[int, int]:
    """Return the number at a place, and the place after it."""
    number = 0
    for count, byte in enumerate(text[place : place + _LONGEST_VARINT]):
        number |= (byte & 127) << 7 * count
        if byte < 128:
            return number, place + count + 1
    raise _Irregular


def _varint_of(number: int) -> bytes:
    text = bytearray()
    while number > 127:
        text.append(number & 127 | 128)
        number >>= 7
    return bytes([*text, number])


def _read(file: BinaryIO, length: int) -> bytes:
    content = file.read(length)
    if len(content) != length:
        raise _Irregular
    return content


def completed(model: ModelProto, arrays: Mapping[str, AnyArray]) -> ModelProto:
    """Return the model with these values of its initializers, itself if there are none."""
    if not arrays:
        return model
    result = copied(model)
    for tensor in result.graph.initializer:
        if tensor.name in arrays:
            tensor.raw_data = arrays[tensor.name].tobytes()
    return result
