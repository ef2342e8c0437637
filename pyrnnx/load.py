"""A file of any format that a front-end reads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pyrnnx.errors import ArgumentError, FormatError, shown


def load(path: str | os.PathLike[str]) -> Any:
    """The model in an .onnx file, or in an OpenVINO .xml file and the .bin beside it.

    Returns
    -------
    Model
        Or, of an .xml file that holds nothing but one ``<layer>``, the layer.

    Raises
    ------
    PyrnnxError
        Another suffix; a file that cannot be read, is no regular one or too large; what the front-end's `read_model`
        rejects.
    """
    if not isinstance(path, (str, os.PathLike)) or not isinstance(os.fspath(path), str):
        raise ArgumentError(f"load: {type(path).__name__} was given; expected a path")
    # A front-end is imported only for a file of its format: the core does not need them.
    suffix = Path(path).suffix.lower()
    if suffix == ".onnx":
        from pyrnnx.frontends.onnx import read_model as read_onnx

        return read_onnx(Path(path))
    if suffix == ".xml":
        from pyrnnx.frontends.openvino.model import read_file

        return read_file(Path(path))
    raise FormatError(f"{shown(os.fspath(path))}: the file name ends in {shown(suffix)}; expected .onnx or .xml")
