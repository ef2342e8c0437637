"""Rewriting of models: recurrent nodes, and layers that a graph spells out, become operators of pyrnnx."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyrnnx.errors import FormatError
from pyrnnx.frontends.onnx.file import load_needed, load_proto, source_label, tensors_of
from pyrnnx.frontends.onnx.graph.large import complete, without_large
from pyrnnx.frontends.onnx.graph.walk import Graph
from pyrnnx.frontends.onnx.passes import (
    DEFAULT_OPTIONS,
    LayerOptions,
    canonical,
    find_layers,
    recurrent_inputs,
    rewritten,
)
from pyrnnx.layers import custom_operators
from pyrnnx.layers.layer import Layer

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
    return replaced(model, portable=True).proto


@dataclass(frozen=True, eq=False)
class ForSession:
    """Model for a session with pyrnnx's operators.

    Attributes
    ----------
    proto : onnx.ModelProto
    layers : mapping
        Layers that run on pyrnnx, by name.
    why_none : str
        Why there are no layers, or no more layers, as far as it is known.
    handles : sequence
        They must live until the session is created.
    external : bool
        Whether the model has external data.
    contents : collection of str
        Operators and element types in the model.
    """

    proto: ModelProto
    layers: Mapping[str, Layer] = field(default_factory=dict)
    why_none: str = ""
    handles: tuple[Any, ...] = ()
    external: bool = False
    contents: Collection[str] = ()


def replaced(
    model: Source, *, portable: bool, threads: int | None = None, options: LayerOptions = DEFAULT_OPTIONS
) -> ForSession:
    """Read a model and rewrite it; as `passes.rewritten`.

    Unless it is to be portable, external data stays where it is, but for that of layers.

    Raises
    ------
    PyrnnxError
        A recurrent node is wrong, or the file cannot be read. A model that only ONNX Runtime can read is unchanged.
    """
    label, proto = source_label(model), load_proto(model, external=portable)
    try:
        proto, graph = canonical(proto, Graph(proto.graph), label)
    except FormatError as error:
        if portable:
            raise
        return ForSession(proto, why_none=str(error))
    external = not portable and any(tensor.data_location == tensor.EXTERNAL for tensor in tensors_of(proto, graph))
    if external:
        load_needed(proto, model, recurrent_inputs(proto))
    light, arrays = without_large(proto)
    layered = find_layers(light, graph if light is proto else Graph(light.graph), label, arrays, options)
    result = rewritten(layered, portable=portable, computed=False, threads=threads)
    complete(result.proto, result.arrays)
    layers = {name: layer for name, layer in layered.layers.items() if isinstance(layer, Layer)}
    return ForSession(result.proto, layers, layered.why_no_layers(), tuple(result.handles), external, layered.contents)
