"""ONNX files and bytes to a ModelProto with its external data, and back to bytes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pyrnnx.errors import ArgumentError, FormatError, UnsupportedError, shortened
from pyrnnx.files import read_regular

from .external import load_external
from .messages import tensors
from .onnx_package import import_onnx

if TYPE_CHECKING:
    from onnx import ModelProto

    Source: TypeAlias = str | os.PathLike[str] | bytes | ModelProto

LARGEST = 2**31 - 1  # bytes of a protobuf message


def source_label(source: Source) -> str:
    """How errors name what was given to `load_proto`."""
    return shortened(os.fsdecode(source)) if isinstance(source, (str, os.PathLike)) else "ONNX model"


def load_proto(source: Source) -> ModelProto:
    """A ModelProto with its external data.

    Parameters
    ----------
    source : path, bytes or ModelProto
        A str is a path, bytes are a file's contents; a ModelProto is copied. External data is looked for beside a path,
        and nowhere else.

    Raises
    ------
    ArgumentError
        A file that cannot be read, or is larger than protobuf allows; something else than a path, bytes or ModelProto.
    FormatError
        No ONNX model; external data that is missing, too short, or outside the model's folder. Whether the parts of
        the model fit together is for `check_model`.
    """
    onnx = import_onnx()
    label = source_label(source)
    folder: Path | None = None
    model: ModelProto
    if isinstance(source, onnx.ModelProto):
        model = onnx.ModelProto()
        try:
            model.CopyFrom(source)
        except Exception as error:  # deeper, or larger, than this version of protobuf copies
            raise FormatError(f"{label}: cannot be copied ({shortened(str(error))})") from error
    elif isinstance(source, (bytes, bytearray, memoryview)):
        if memoryview(source).nbytes > LARGEST:
            raise FormatError(f"{label}: {memoryview(source).nbytes} bytes; expected at most {LARGEST}")
        model = _parse(onnx, label, bytes(source))
    elif isinstance(source, (str, os.PathLike)):
        path = Path(os.fsdecode(source))
        contents = read_regular("ONNX model", path, most=LARGEST, expected="an ONNX file")
        model, folder = _parse(onnx, label, contents), path.parent
    else:
        raise ArgumentError(f"read_model: {type(source).__name__} was given; expected a path, bytes or a ModelProto")
    if not model.HasField("graph"):
        raise FormatError(f"{label}: not an ONNX model (it has no graph)")
    load_external(onnx, label, tensors(model), folder)
    return model


def external_files(path: Path) -> list[Path]:
    """Where the external data of a model lies, whether the files are there or not.

    Raises
    ------
    PyrnnxError
        As of `load_proto`, but for the data.
    """
    contents = read_regular("ONNX model", path, most=LARGEST, expected="an ONNX file")
    model = _parse(import_onnx(), source_label(path), contents)
    entries = (entry for tensor in tensors(model) for entry in tensor.external_data)
    names = dict.fromkeys(entry.value for entry in entries if entry.key == "location")
    return [path.parent / name for name in names if "\0" not in name]


def _parse(onnx: Any, label: str, contents: bytes) -> Any:
    try:
        model = onnx.ModelProto()
        model.ParseFromString(contents)
    except Exception as error:  # protobuf's own errors differ between its versions
        raise FormatError(f"{label}: not an ONNX model ({shortened(str(error))})") from error
    return model


def serialized(model: ModelProto, label: str) -> bytes:
    """The model as the bytes of a file.

    Raises
    ------
    UnsupportedError
        A model beyond what protobuf can write, 2 GiB: one whose weights were external data.
    """
    try:
        contents = bytes(model.SerializeToString())
    except Exception as error:  # of protobuf, whose errors differ between its versions
        raise UnsupportedError(f"{label}: cannot be pickled or copied ({shortened(str(error))})") from error
    if len(contents) > LARGEST:
        raise UnsupportedError(
            f"{label}: cannot be pickled or copied; it has {len(contents)} bytes, more than the {LARGEST} allowed"
        )
    return contents
