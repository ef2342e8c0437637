"""External data of ONNX models: files in the model's folder with the bytes of tensors."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any

from pyrnnx import config
from pyrnnx._internal.files import open_regular
from pyrnnx.errors import ArgumentError, FormatError, reason_of, shortened, shown

if TYPE_CHECKING:
    from onnx import TensorProto

_LONGEST = 4096  # characters of a path


def load_external(onnx: Any, label: str, tensors: Iterable[TensorProto], folder: Path | None) -> None:
    """Read external data into the tensors.

    Raises
    ------
    FormatError
        A location is not a regular file in the model's folder, or a range is outside the file or has the wrong size.
    ArgumentError
        The data exceeds `pyrnnx.get_memory_limit`: tensors may share a file, and files may be sparse.
    """
    total = 0
    for tensor in tensors:
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            continue
        where = {entry.key: entry.value for entry in tensor.external_data}
        location = where.get("location", "")
        if not isinstance(location, str):  # protobuf returns bytes for invalid UTF-8
            raise FormatError(f"{label}: the location of tensor {shown(tensor.name)} is {shown(location)}, not UTF-8")
        what = f"{label}: the data of tensor {shown(tensor.name)} is in the file {shown(location)}"
        path = _path(what, location, folder)
        offset, length = _place(what, where, path.stat().st_size, _bytes(onnx, what, tensor))
        total += length
        if total > config.get_memory_limit():
            raise ArgumentError(
                f"{label}: with tensor {shown(tensor.name)} its external data takes {total} bytes; expected at most "
                f"{config.get_memory_limit()} (pyrnnx.set_memory_limit allows more)"
            )
        _read(tensor, what, path, offset, length)


def _path(what: str, location: str, folder: Path | None) -> Path:
    if folder is None:
        raise FormatError(f"{what}; expected a path to the model, so that the file can be found beside it")
    inside = False
    if len(location) <= _LONGEST and "\0" not in location and not _leaves(location):
        try:
            inside = (folder / location).resolve().is_relative_to(folder.resolve())
        except (OSError, RuntimeError) as error:  # RuntimeError: a cycle of links, in older Python
            raise FormatError(f"{what}, which cannot be used ({reason_of(error)})") from error
    if not inside:
        raise FormatError(f"{what}; expected a file in the model's folder")
    path = folder / location
    try:
        regular = path.is_file()
    except OSError as error:  # a name longer than the file system allows
        raise FormatError(f"{what}, which cannot be used ({reason_of(error)})") from error
    if not regular:
        raise FormatError(f"{what}, which does not exist in {shown(os.fspath(folder))}, or is no regular file")
    return path


def _bytes(onnx: Any, what: str, tensor: TensorProto) -> int:
    """Return the bytes of a tensor, from its dtype and dims."""
    try:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
        name = onnx.TensorProto.DataType.Name(tensor.data_type)
    except (KeyError, ValueError):
        raise FormatError(f"{what}; its element type is {tensor.data_type}, which is unknown") from None
    if dtype.hasobject:
        raise FormatError(f"{what}; its element type is {name}; expected one of a fixed size")
    bits = next((number for end, number in (("INT4", 4), ("FLOAT4E2M1", 4), ("INT2", 2)) if name.endswith(end)), 0)
    elements: int = math.prod(tensor.dims)
    return -(-elements * (bits or 8 * int(dtype.itemsize)) // 8)


def _place(what: str, where: Mapping[str, str], size: int, expected: int) -> tuple[int, int]:
    """Return offset and length, checked against the file and the tensor."""
    try:
        offset = int(where.get("offset", "0"))
        length = int(where.get("length", str(size - offset)))
    except ValueError as error:
        raise FormatError(f"{what}, at no place in it ({shortened(str(error))})") from None
    if offset < 0 or length < 0 or offset + length > size:
        raise FormatError(f"{what}, from byte {shown(offset)} on for {shown(length)} bytes; it has {size}")
    if length != expected:
        raise FormatError(f"{what}, {length} bytes; its element type and dims make {shown(expected)}")
    return offset, length


def _read(tensor: TensorProto, what: str, path: Path, offset: int, length: int) -> None:
    try:
        with open_regular(what, path, expected="a regular file") as file:
            file.seek(offset)
            data = file.read(length)
    except (OSError, MemoryError) as error:
        raise FormatError(f"{what}, which cannot be used ({reason_of(error)})") from error
    if len(data) < length:
        raise FormatError(f"{what}, which ended at {len(data)} of {length} bytes")
    tensor.raw_data = data
    tensor.ClearField("data_location")
    del tensor.external_data[:]


def _leaves(location: str) -> bool:
    """Return whether a path is absolute or contains "..", on any system."""
    paths = (PurePosixPath(location), PureWindowsPath(location))
    return not location or any(p.is_absolute() or p.drive or p.root or ".." in p.parts for p in paths)
