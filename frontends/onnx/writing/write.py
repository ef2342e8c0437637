"""Layers and stacks written as ONNX models."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyrnnx._internal import scalars
from pyrnnx._internal.files import is_path
from pyrnnx._internal.writing import write_files
from pyrnnx.errors import ArgumentError, UnsupportedError, shown
from pyrnnx.layers.layer import CONSTANTS, Layer
from pyrnnx.stacks.stack import Stack

from ..file import model_files
from ..operators.schemas import DEFAULT_OPSET, schema
from .graph import GraphWriter
from .layers import write_layer
from .stacks import write_stack

if TYPE_CHECKING:
    from onnx import ModelProto


def write_model(
    source: Layer | Stack,
    path: str | os.PathLike[str] | None = None,
    *,
    inputs: Iterable[str] | None = None,
    opset: int = DEFAULT_OPSET,
) -> ModelProto:
    """Return a recurrent layer or a stack as an ONNX model of RNN, GRU and LSTM nodes.

    Parameters
    ----------
    source : Layer or Stack
        Of the core, of an ONNX node (`from_node`), of OpenVINO (`IRLayer.bind`, or of a model).
    path : str or os.PathLike, optional
        Of an .onnx to write. An existing file is replaced at once: an error leaves it as it was. Weights of a model of
        more than 2 GiB, which a protobuf message does not hold, go to a file beside it: model.onnx.data. Default: none.
    inputs : iterable of str, optional
        What the model asks for besides X: any of "sequence_lens", "initial_h" and "initial_c". Default: what a call
        has to give, which is nothing but of a layer of OpenVINO.
    opset : int
        Version of the default domain.

    Returns
    -------
    onnx.ModelProto

    Raises
    ------
    PyrnnxError
        Something else than a layer with its weights or a stack; inputs that are unknown, stand twice, or that no layer
        has; a dtype or attribute that the opset does not have, or that ONNX has not at all; a path that does not end in
        .onnx or cannot be written.

    Notes
    -----
    Of a layer of any convention the inputs and outputs are those of the operator with layout 0, which is what runtimes
    have: X [seq_length, batch_size, input_size], sequence_lens [batch_size] (int32), initial_h and initial_c
    [num_directions, batch_size, hidden_size]; Y [seq_length, num_directions, batch_size, hidden_size], Y_h and Y_c.
    Constants of a layer are constants, or the defaults of inputs that are asked for.

    Of a stack they are as of its calls: X and Y with the axes that `batch_first` says, both directions side by side.
    States are one array each where all layers are of one hidden_size, else one for each layer: initial_h_0, Y_h_0,
    Y_c_0 and so on. Axes are only moved where a stack has its batch_size first, at both ends, and behind a
    bidirectional layer, where the operator's outputs have to be.

    seq_length and batch_size are free. Nodes have the names of the layers; those without a name, or with one that is
    there already, get one. Weights are written in their dtype, as they were given: weight_dtype is no part of a model.
    Attributes are float32 in ONNX: clip, alpha and beta are rounded to it.

    Source: the operators RNN, GRU and LSTM of ONNX; Transpose, Reshape, Squeeze, Split and Concat.
    """
    if not isinstance(source, (Layer, Stack)):
        raise ArgumentError(
            f"write_model: {type(source).__name__} was given; expected a recurrent layer with its weights, or a Stack"
        )
    label = source.label
    target = None if path is None else _target(label, path)
    version = scalars.integer(label, "opset", opset, 1, expected="a positive integer")
    schema("LSTM", version)  # rejects one that is not known
    graph = GraphWriter(label, version, source.dtype)
    if isinstance(source, Layer):
        required = [name for name in CONSTANTS if name in source.convention.required and name not in source.constants]
        required = [name for name in required if name != "initial_c" or source.op.has_cell_state]
        write_layer(graph, source, _asked(label, required if inputs is None else inputs, [source]))
    else:
        write_stack(graph, source, _asked(label, () if inputs is None else inputs, source.layers))
    model = graph.model(source.name or type(source).__name__)
    if target is not None:
        write_files(label, model_files(model, target, label))
    return model


def _asked(label: str, inputs: Any, layers: Sequence[Layer]) -> list[str]:
    """Return the requested inputs in the operator's order."""
    allowed = f"expected a list of some of {', '.join(CONSTANTS)}"
    if isinstance(inputs, str) or not isinstance(inputs, Iterable):
        raise ArgumentError(f"{label}: inputs is {shown(inputs)}; {allowed}")
    names = list(inputs)
    for k, name in enumerate(names):
        if not isinstance(name, str) or name not in CONSTANTS:
            raise ArgumentError(f"{label}: inputs has {shown(name)}; {allowed}")
        if name in names[:k]:
            raise ArgumentError(f"{label}: inputs has {shown(name)} twice; {allowed}")
    if "initial_c" in names and not any(layer.op.has_cell_state for layer in layers):
        cells = ", ".join(dict.fromkeys(layer.op.cell for layer in layers))
        raise UnsupportedError(f"{label}: inputs has 'initial_c'; {cells} has no cell state")
    return [name for name in CONSTANTS if name in names]


def _target(label: str, path: Any) -> Path:
    if not is_path(path):
        raise ArgumentError(f"{label}: path is {shown(path)}; expected the path of an .onnx")
    target = Path(path)
    if target.suffix.lower() != ".onnx":
        raise ArgumentError(f"{label}: path is {shown(os.fspath(path))}; expected a name that ends in .onnx")
    return target
