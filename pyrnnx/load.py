"""Loading of models of any format."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pyrnnx._internal.files import is_path
from pyrnnx.errors import ArgumentError, FormatError, shown, wrong_suffix
from pyrnnx.models.model import Model

if TYPE_CHECKING:
    from onnx import ModelProto

    from pyrnnx.frontends.openvino import IRLayer


WEIGHTS = (".pt", ".pth", ".bin", ".ckpt", ".safetensors", ".keras")  # read by front-ends of their own, not by `load`


def load(
    source: str | os.PathLike[str] | bytes | ModelProto,
    *,
    session_options: Any = None,
    weight_dtype: str | None = None,
    leave: Sequence[str] = (),
) -> Model:
    """Read a model from an .onnx file, or from an OpenVINO .xml file and the .bin file next to it.

    Parameters
    ----------
    source : path, bytes or onnx.ModelProto
        Bytes are the contents of an .onnx file, or of an .xml file that needs no .bin file.
    session_options : onnxruntime.SessionOptions, optional
        Options of the sessions in which ONNX Runtime runs the model. The operators of pyrnnx are registered in it.
        Default: those of ONNX Runtime, with `pyrnnx.get_num_threads()` threads.
    weight_dtype : str, optional
        "bfloat16" or "int8" stores W and R of every recurrent layer with constant weights in fewer bits, also of layers
        that the graph spells out: see `Layer`. Weights that a model has in 8 bits stay as they are. A layer of float64
        raises an error when it is first needed. Default: the dtype of W.
    leave : sequence of str, optional
        Operators whose nodes ONNX Runtime runs instead of pyrnnx, of "RNN", "GRU", "LSTM" and "DynamicQuantizeLSTM". An
        .onnx file only. Default: none.

    Returns
    -------
    Model
        An `IRLayer` if the .xml file contains nothing but one ``<layer>``. Type checkers expect a Model in any case;
        `pyrnnx.frontends.openvino.read_layer` reads a single layer with its exact type.

    Raises
    ------
    PyrnnxError
        Another suffix; a file that cannot be read, is not regular or is too large; what the front-end's `read_model`
        rejects.
    """
    # Returning a union with IRLayer would force a type check on every caller for a rare kind of file.
    options = {"session_options": session_options, "weight_dtype": weight_dtype, "leave": leave}
    return cast("Model", read_model_or_layer(source, **options))


def read_model_or_layer(
    source: str | os.PathLike[str] | bytes | ModelProto, *, leave: Sequence[str] = (), **options: Any
) -> Model | IRLayer:
    """Read a model or a single ``<layer>``: see `load`."""
    kind, contents = _kind(source)
    if kind == "onnx":
        from pyrnnx.frontends.onnx import read_model as read_onnx

        return read_onnx(contents, leave=leave, **options)
    from pyrnnx.frontends.openvino.model_reader import read_file

    if leave != ():
        raise ArgumentError(f"load: leave is {shown(leave)}; expected an ONNX model, because an IR has no such nodes")
    return read_file(contents, **options)


def is_source(source: Any) -> bool:
    """Return whether an object is a path or an onnx.ModelProto, which `load` accepts."""
    return is_path(source) or _is_proto(source)


def _is_proto(source: Any) -> bool:
    """Return whether an object is an onnx.ModelProto, judged by its fields to avoid importing onnx."""
    return hasattr(source, "graph") and hasattr(source, "opset_import")


def _kind(source: Any) -> tuple[str, Any]:
    """Return "onnx" or "xml", judged by the suffix or the first byte, and the source as bytes, proto or Path."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        contents = bytes(source)
        return ("xml" if contents.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<") else "onnx"), contents
    if _is_proto(source):
        return "onnx", source
    if not is_path(source):
        raise ArgumentError(f"load: {type(source).__name__} was given; expected a path, bytes or an onnx.ModelProto")
    suffix = Path(source).suffix.lower()
    if suffix not in (".onnx", ".xml"):
        hint = " (pyrnnx convert makes these from it)" if suffix in WEIGHTS else ""
        raise FormatError(f"{shown(os.fspath(source))}: {wrong_suffix(source, '.onnx or .xml')}{hint}")
    return suffix[1:], Path(source)
