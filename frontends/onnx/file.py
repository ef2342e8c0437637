"""Conversion of ONNX files and bytes to a ModelProto with external data, and back to bytes."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pyrnnx import config
from pyrnnx._internal.files import is_path, open_regular, read_regular
from pyrnnx.errors import ArgumentError, FormatError, UnsupportedError, printable, reason_of, shortened, shown

from .graph.walk import Graph, all_graphs
from .messages import copy_fields, tensors
from .onnx_package import import_onnx

if TYPE_CHECKING:
    from onnx import ModelProto, TensorProto

    Source: TypeAlias = str | os.PathLike[str] | bytes | ModelProto

LARGEST = 2**31 - 1  # bytes of a protobuf message
_ROOM = 2**20  # bytes of a message that are not weights
_SMALL = 1024  # bytes of tensors that stay in the .onnx of a model with external data


def source_label(source: Source) -> str:
    return printable(shortened(os.fspath(source))) if is_path(source) else "ONNX model"


def source_folder(source: Source) -> Path | None:
    """Return the folder of a path, which contains external data; None for other sources."""
    return Path(source).parent if is_path(source) else None


def load_proto(source: Source, *, external: bool = True) -> ModelProto:
    """Load a ModelProto with its external data from the folder of a path; `load_needed` can read a part of it later."""
    onnx = import_onnx()
    label = source_label(source)
    model: ModelProto
    if isinstance(source, onnx.ModelProto):
        model = onnx.ModelProto()
        try:
            model.CopyFrom(source)
        except Exception as error:  # too deep or large for this version of protobuf
            raise FormatError(f"{label}: cannot be copied ({shortened(str(error))})") from error
    elif isinstance(source, (bytes, bytearray, memoryview)):
        model = _parse(onnx, label, bytes(source))
    elif is_path(source):
        model = _parse(onnx, label, read_regular("ONNX model", Path(source), most=LARGEST, expected="an ONNX file"))
    else:
        raise ArgumentError(f"read_model: {type(source).__name__} was given; expected a path, bytes or a ModelProto")
    if not model.HasField("graph"):
        raise FormatError(f"{label}: not an ONNX model (it has no graph)")
    if external:
        load_external(onnx, label, tensors(model), source_folder(source))
    return model


def load_needed(model: ModelProto, source: Source, names: Collection[str]) -> None:
    """Read the external data of initializers with these names, and of all tensors inside nodes, in place."""
    others = {tensor.name for tensor in model.graph.initializer}.difference(names)
    needed = (tensor for tensor in tensors(model) if tensor.name not in others)
    load_external(import_onnx(), source_label(source), needed, source_folder(source))


def tensors_of(model: ModelProto, graph: Graph) -> Iterator[TensorProto]:
    """Yield the tensors of a model, whose graph was read already, and of its functions."""
    for inner in all_graphs(graph):
        yield from inner.tensors
    for function in model.functions:
        yield from tensors(function)


def external_files(path: Path) -> list[Path]:
    """Return the paths of a model's external data, existing or not."""
    model = load_proto(path, external=False)
    entries = (entry for tensor in tensors(model) for entry in tensor.external_data)
    names = dict.fromkeys(entry.value for entry in entries if entry.key == "location")
    return [path.parent / name for name in names if "\0" not in name]


def model_files(model: ModelProto, path: Path) -> dict[Path, list[bytes]]:
    """Return the contents of a model's files by path: the .onnx, and external data if one message cannot hold all."""
    if sum(len(tensor.raw_data) for tensor in model.graph.initializer) <= LARGEST - _ROOM:
        return {path: [bytes(model.SerializeToString())]}
    data, pieces = path.with_name(f"{path.name}.data"), list[bytes]()
    small = _with_external(model, data.name, pieces)
    return {data: pieces, path: [bytes(small.SerializeToString())]}


def _with_external(model: ModelProto, location: str, pieces: list[bytes]) -> ModelProto:
    """Return the model with the data of its large initializers in `pieces` of a file."""
    onnx = import_onnx()
    result: ModelProto = onnx.ModelProto()
    copy_fields(model, result, {"graph"})
    copy_fields(model.graph, result.graph, {"initializer"})
    offset = 0
    for tensor in model.graph.initializer:
        if len(tensor.raw_data) < _SMALL:
            result.graph.initializer.append(tensor)
            continue
        stub = result.graph.initializer.add(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
        stub.data_location = onnx.TensorProto.EXTERNAL
        entries = {"location": location, "offset": offset, "length": len(tensor.raw_data)}
        for key, entry in entries.items():
            stub.external_data.add(key=key, value=str(entry))
        pieces.append(tensor.raw_data)
        offset += len(tensor.raw_data)
    return result


def _parse(onnx: Any, label: str, contents: bytes) -> ModelProto:
    try:
        model: ModelProto = onnx.ModelProto()
        model.ParseFromString(contents)
    except Exception as error:  # protobuf's own errors differ between its versions
        raise FormatError(f"{label}: not an ONNX model ({shortened(str(error))})") from error
    return model


def serialized(model: ModelProto, label: str) -> bytes:
    """Return the model as the bytes of a file; a model of more than 2 GiB is an UnsupportedError."""
    try:
        return bytes(model.SerializeToString())
    except Exception as error:  # protobuf's own errors differ between its versions
        raise UnsupportedError(f"{label}: cannot be pickled or copied ({shortened(str(error))})") from error


def load_external(onnx: Any, label: str, tensors: Iterable[TensorProto], folder: Path | None) -> None:
    """Read external data into the tensors, of regular files in the model's folder.

    It may not exceed `pyrnnx.get_memory_limit`: tensors may share a file, and files may be sparse.
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
