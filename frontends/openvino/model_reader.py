"""Reader of whole IRs, and of files of a net or a single layer."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from pyrnnx.errors import ArgumentError, shown, warn

from .ir.bin_file import BinFile
from .ir.xml import named_errors, parse, source_path
from .layer_reader import layer_of
from .layers import IRLayer
from .model import Model
from .net import net_of


def read_model(xml: Any, weights: Any = None, *, session_options: Any = None, weight_dtype: str | None = None) -> Model:
    """Read a whole IR.

    Parameters
    ----------
    xml : str, bytes, os.PathLike or lxml element
        Text that begins with "<", its bytes, the path of a file of at most 256 MiB, or the element.
    weights : path or bytes-like, optional
        The .bin file, or its contents. Default: the path of the .xml with suffix .bin; the file may be absent if no
        constant needs it. Constants are read from it on first use, so do not change it while the model is in use: see
        `BinFile`.
    session_options : onnxruntime.SessionOptions, optional
        Options of the sessions that run the model: see `pyrnnx.load`.
    weight_dtype : str, optional
        "bfloat16" or "int8" stores weights in fewer bits: see `pyrnnx.load`.

    Returns
    -------
    Model

    Raises
    ------
    PyrnnxError
        As in `read_net`; or a path is not a regular file, a constant exceeds the weights, or its size does not match
        its shape and type. An unknown operation raises only when the model is called or exported.

    Warns
    -----
    PyrnnxWarning
        A recurrent operation does not have an attribute, or the version is above 11.

    Source: OpenVINO IR versions 10 and 11.
    """
    return cast("Model", _read(xml, "read_model", ("net",), weights, session_options, weight_dtype))


def read_file(source: Path | bytes, *, session_options: Any = None, weight_dtype: str | None = None) -> Model | IRLayer:
    """Read an .xml file or its contents as `read_model` reads a net and `read_layer` a single layer."""
    return _read(source, "load", ("net", "layer"), None, session_options, weight_dtype)


def _read(
    xml: Any, function: str, roots: Sequence[str], weights: Any, session_options: Any, weight_dtype: str | None
) -> Model | IRLayer:
    path = source_path(xml)
    result: Model | IRLayer
    with named_errors(path):
        element = parse(xml, function, *roots)
        if element.tag == "layer":
            result = layer_of(element)
            messages = result.warnings
            if weight_dtype is not None:
                raise ArgumentError(
                    f"{result.label}: weight_dtype is {shown(weight_dtype)}, but it has no weights; expected it in "
                    "IRLayer.bind"
                )
        else:
            net = net_of(element, "read_model")
            beside = weights is None and path is not None
            bin_file = BinFile(path.with_suffix(".bin") if beside and path else weights, may_be_absent=beside)
            for layer in net.everything:
                if layer.type == "Const":
                    bin_file.check(layer)
            label = "" if path is None else os.fspath(path)
            result = Model(net, bin_file, label, session_options=session_options, weight_dtype=weight_dtype)
            messages = net.warnings
    for message in messages:
        warn(message)
    return result
