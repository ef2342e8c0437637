"""A file of any format that a front-end reads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyrnnx.errors import ArgumentError, FormatError, shown
from pyrnnx.model import Model

if TYPE_CHECKING:
    from onnx import ModelProto


WEIGHTS = (".pt", ".pth", ".bin", ".ckpt", ".safetensors", ".keras")  # which have front-ends of their own


def load(source: str | os.PathLike[str] | bytes | ModelProto, *, runtime: str | None = None) -> Model | Any:
    """The model in an .onnx file, or in an OpenVINO .xml file and the .bin beside it.

    Parameters
    ----------
    source : path, bytes or onnx.ModelProto
        Bytes are the contents of an .onnx file, or of an .xml file that needs no .bin.
    runtime : str, optional
        What runs the operators around recurrent layers: "onnxruntime"; "reference", onnx's reference evaluator, many
        times slower; or "auto", ONNX Runtime, and the reference evaluator for what it does not run, with a
        `SlowRuntimeWarning`. Default: the environment variable PYRNNX_RUNTIME, else "auto".

    Returns
    -------
    Model
        Or, of an .xml file that holds nothing but one ``<layer>``, the layer: an `IRLayer`, for type checkers Any.

    Raises
    ------
    PyrnnxError
        Another suffix; a file that cannot be read, is no regular one or too large; what the front-end's `read_model`
        rejects.
    """
    kind, given = _kind(source)
    # A front-end is imported only for a source of its format: the core does not need them.
    if kind == "onnx":
        from pyrnnx.frontends.onnx import read_model as read_onnx

        return read_onnx(given, runtime=runtime)
    from pyrnnx.frontends.openvino.model import read_file

    return read_file(given, runtime=runtime)


def is_source(source: Any) -> bool:
    """Whether something is a path or an onnx.ModelProto, which `load` takes."""
    return isinstance(source, (str, os.PathLike)) or _is_proto(source)


def _is_proto(source: Any) -> bool:
    """By its fields, so that onnx need not be imported."""
    return hasattr(source, "graph") and hasattr(source, "opset_import")


def _kind(source: Any) -> tuple[str, Any]:
    """ "onnx" or "xml", by the name or the first byte, and a path as a Path."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        contents = bytes(source)
        return ("xml" if contents.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<") else "onnx"), contents
    if _is_proto(source):
        return "onnx", source
    if not isinstance(source, (str, os.PathLike)) or not isinstance(os.fspath(source), str):
        raise ArgumentError(f"load: {type(source).__name__} was given; expected a path, bytes or an onnx.ModelProto")
    suffix = Path(source).suffix.lower()
    if suffix not in (".onnx", ".xml"):
        if os.path.isdir(source):
            raise FormatError(f"{shown(os.fspath(source))} is a folder; expected a file that ends in .onnx or .xml")
        hint = " (pyrnnx convert makes these of it)" if suffix in WEIGHTS else ""
        raise FormatError(
            f"{shown(os.fspath(source))}: the file name ends in {shown(suffix)}; expected .onnx or .xml{hint}"
        )
    return suffix[1:], Path(source)
