"""External data of ONNX models: files in the model's folder with the bytes of tensors."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyrnnx import config
from pyrnnx._internal.files import open_regular
from pyrnnx.errors import ArgumentError, FormatError, reason_of, shortened, shown

if TYPE_CHECKING:
    from onnx import TensorProto


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
        location: Any = where.get("location", "")
        what = f"{label}: the data of tensor {shown(tensor.name)} is in the file {shown(location)}"
        if folder is None:
            raise FormatError(f"{what}; expected a path to the model, so that the file can be found beside it")
        try:
            path = _path(what, location, folder)
            offset, length = _place(what, where, path.stat().st_size, _bytes(onnx, what, tensor))
            total += length
            if total > config.get_memory_limit():
                raise ArgumentError(
                    f"{label}: with tensor {shown(tensor.name)} its external data takes {total} bytes; expected at "
                    f"most {config.get_memory_limit()} (pyrnnx.set_memory_limit allows more)"
                )
            with open_regular(what, path, expected="a regular file") as file:
                file.seek(offset)
                data = file.read(length)
        except (OSError, MemoryError, RuntimeError) as error:  # RuntimeError: a cycle of links, in older Python
            raise FormatError(f"{what}, which cannot be used ({reason_of(error)})") from error
        if len(data) < length:
            raise FormatError(f"{what}, which ended at {len(data)} of {length} bytes")
        tensor.raw_data = data
        tensor.ClearField("data_location")
        del tensor.external_data[:]


def _path(what: str, location: Any, folder: Path) -> Path:
    # Protobuf returns bytes for invalid UTF-8. A backslash separates folders on some systems.
    is_name = isinstance(location, str) and not {"\0", "\\"} & {*location}
    if not is_name or not (folder / location).resolve().is_relative_to(folder.resolve()):
        raise FormatError(f"{what}; expected a file in the model's folder, and a name in UTF-8")
    path: Path = folder / location
    if not path.is_file():
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
