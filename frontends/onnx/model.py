"""ONNX files; the one module of this front-end that needs the onnx package."""

from __future__ import annotations

import os
from typing import Any

from pyrnnx.errors import ArgumentError, FormatError, PyrnnxError
from pyrnnx.frontends.onnx.node import NodeLayer, from_node
from pyrnnx.frontends.onnx.schemas import INPUTS


def _import_onnx() -> Any:
    try:
        import onnx
    except ImportError as error:
        raise PyrnnxError("reading ONNX files needs the onnx package; install pyrnnx[onnx]") from error
    return onnx


def read_node(path: str | os.PathLike[str]) -> NodeLayer:
    """The recurrent node of an ONNX model that has exactly one, at the top level, with its weights as initializers.

    Raises
    ------
    PyrnnxError
        A file that cannot be read or is no ONNX model, one with no such node or several, weights that are missing or
        do not fit.
    """
    onnx = _import_onnx()
    try:
        model = onnx.load(os.fspath(path))
    except OSError as error:
        raise ArgumentError(f"{os.fspath(path)}: cannot be read ({error}); expected an ONNX file") from None
    except Exception as error:  # protobuf's own errors differ between its versions
        raise FormatError(f"{os.fspath(path)}: not an ONNX model ({error})") from error
    nodes = [node for node in model.graph.node if node.op_type in INPUTS and node.domain in ("", "ai.onnx")]
    if len(nodes) != 1:
        raise FormatError(f"{os.fspath(path)}: {len(nodes)} recurrent nodes; expected one of {', '.join(INPUTS)}")
    initializers = {one.name: onnx.numpy_helper.to_array(one) for one in model.graph.initializer}
    opsets = [one.version for one in model.opset_import if one.domain in ("", "ai.onnx")]
    if not opsets:
        raise FormatError(f"{os.fspath(path)}: opset_import does not have the ONNX domain")
    return from_node(nodes[0], initializers, opsets[0])
