"""Rewriting of models: recurrent nodes, and layers that a graph spells out, become operators of pyrnnx."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pyrnnx.errors import FormatError
from pyrnnx.frontends.onnx.file import load_needed, load_proto, source_label, tensors_of
from pyrnnx.frontends.onnx.graph.large import complete, without_large
from pyrnnx.frontends.onnx.graph.walk import Graph
from pyrnnx.frontends.onnx.passes import (
    DEFAULT_OPTIONS,
    LayerOptions,
    RecurrentModel,
    Rewritten,
    canonical,
    find_layers,
    recurrent_inputs,
    rewritten,
    without_layers,
)
from pyrnnx.layers import custom_operators

if TYPE_CHECKING:
    from onnx import ModelProto

    from pyrnnx.frontends.onnx.file import Source


def library() -> str:
    """Return the path of the custom operators, for `SessionOptions.register_custom_ops_library`.

    Any Python program that registers it runs what `rewrite` returns.
    """
    return custom_operators.library_path()


def rewrite(model: str | os.PathLike[str] | bytes | ModelProto) -> ModelProto:
    """Return a copy of a model whose recurrent nodes run on pyrnnx in sessions that have registered `library()`.

    Nodes in bodies of If, Loop and Scan and in functions are replaced, too, and so are layers that the graph spells
    out. Their weights stay in the model, checked; they are packed when a session is made. Nodes whose weights are
    computed at run time are left to ONNX Runtime.

    Parameters
    ----------
    model : path, bytes or onnx.ModelProto
        External data is read from beside a path. A result beyond 2 GiB is written by ``onnx.save_model(...,
        save_as_external_data=True)``.

    Returns
    -------
    onnx.ModelProto

    Raises
    ------
    PyrnnxError
        A model that is broken; attributes or weights that an operator does not allow.
    """
    return replaced(model, portable=True)[1].proto


def replaced(
    model: Source, *, portable: bool, threads: int | None = None, options: LayerOptions = DEFAULT_OPTIONS
) -> tuple[RecurrentModel, Rewritten, bool]:
    """Read a model and rewrite it; return it before and after, and whether its external data stays where it is.

    Unless it is to be portable, external data is not read, but for that of layers, and a model that only ONNX Runtime
    can read is unchanged.

    Raises
    ------
    PyrnnxError
        A recurrent node is wrong, or the file cannot be read.
    """
    label, proto = source_label(model), load_proto(model, external=portable)
    try:
        proto, graph = canonical(proto, Graph(proto.graph), label)
    except FormatError as error:
        if portable:
            raise
        layered = without_layers(proto, {}, str(error))
        return layered, rewritten(layered), False
    external = not portable and any(tensor.data_location == tensor.EXTERNAL for tensor in tensors_of(proto, graph))
    if external:
        load_needed(proto, model, recurrent_inputs(proto))
    light, arrays = without_large(proto)
    layered = find_layers(light, graph if light is proto else Graph(light.graph), label, arrays, options)
    result = rewritten(layered, portable=portable, computed=False, threads=threads)
    complete(result.proto, result.arrays)
    return layered, result, external
