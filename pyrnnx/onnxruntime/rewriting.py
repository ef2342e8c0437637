"""Rewriting of models: recurrent nodes become operators of pyrnnx."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyrnnx.frontends.onnx.file import has_external, load_needed, load_proto, source_label
from pyrnnx.frontends.onnx.graph.check import check_model
from pyrnnx.frontends.onnx.graph.inline import inlined
from pyrnnx.frontends.onnx.recurrent_operators import (
    Replaced,
    check_handles,
    constant_inputs,
    has_recurrent,
    replace_recurrent,
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

    Nodes in bodies of If, Loop and Scan and in functions are replaced, too. Their weights stay in the model, checked;
    they are packed when a session is made. Nodes whose weights are computed at run time are left to ONNX Runtime.

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
class Rewritten:
    """Model with replaced recurrent nodes; `external` says whether it has external data."""

    proto: ModelProto
    result: Replaced
    external: bool = False


def replaced(model: Source, *, portable: bool, threads: int | None = None) -> Rewritten:
    """Read a model, check it, and replace its recurrent nodes; as `replace_recurrent`.

    Unless it is to be portable, external data stays where it is, but for that of layers.
    """
    label, proto = source_label(model), load_proto(model, external=portable)
    opsets: Mapping[str, int] = check_model(proto, label)
    check_handles(proto.graph.node, label)
    for function in proto.functions:
        check_handles(function.node, label)
    if not (has_recurrent(proto.graph.node) or any(has_recurrent(function.node) for function in proto.functions)):
        return Rewritten(proto, Replaced({}, ()))
    proto, opsets = inlined(proto, opsets, label)
    external = not portable and has_external(proto)
    if external:
        load_needed(proto, model, constant_inputs(proto.graph))
    result = replace_recurrent(proto, opsets, label, portable=portable, threads=threads)
    return Rewritten(proto, result, external)
